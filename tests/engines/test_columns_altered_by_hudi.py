"""Hudi 0.15 reads tables whose columns it or the library altered, after writes by the library, and goes on."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.schema.by_id import Add, Comment, Drop, Move, Position, Rename, Retype
from hoodie.services.alter_columns import alter_columns
from hoodie.table.settings import Settings
from support.altered_tables import comparable, unpack
from support.hudi_engine import HudiEngine


@pytest.mark.parametrize("name", ["cow_types", "mor_types", "cow_columns", "mor_columns", "mor_planned"])
def test_hudi_reads_and_writes_altered_columns_after_the_library(hudi: HudiEngine, name: str, tmp_path: Path) -> None:
    if hudi.version != "0.15.0":
        pytest.skip("the tables are of Hudi 0.15")
    path = Path(unpack(name, tmp_path))
    table = hoodie.open_table(str(path))
    rows = table.snapshot(meta=True).to_arrow()
    typed = rows.select([column for column in rows.column_names if not column.startswith("_hoodie_")])
    first = {**typed.filter(pa.compute.equal(typed["id"], "k1")).to_pylist()[0], "ts": 20}
    table.upsert(pa.Table.from_pylist([first, {**first, "id": "k9"}], schema=typed.schema))
    table.delete(typed.filter(pa.compute.equal(typed["id"], "k3")))
    if name.startswith("mor"):
        if name != "mor_planned":
            table.schedule_compaction()
        table.compact()
    hudi.sql("SET hoodie.schema.on.read.enable=true")
    hudi.sql("SET spark.sql.parquet.enableVectorizedReader=false")  # it fails without code generation
    try:
        ours = comparable(table.snapshot(meta=True).to_arrow())
        assert comparable(hudi.read(path, hoodie__schema__on__read__enable="true")) == ours
        hudi.sql(f"CREATE TABLE altered_{name} USING hudi LOCATION '{path}'")
        hudi.sql(f"UPDATE altered_{name} SET ts = 30 WHERE id = 'k2'")
        theirs = comparable(hudi.read(path, hoodie__schema__on__read__enable="true"))
        assert [row["ts"] for row in theirs if row["id"] == "k2"] == [30]
        assert comparable(table.snapshot(meta=True).to_arrow()) == theirs
    finally:
        hudi.sql("SET spark.sql.parquet.enableVectorizedReader=true")
        hudi.sql("SET hoodie.schema.on.read.enable=false")


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_and_alters_columns_that_the_library_altered(hudi: HudiEngine, kind: str, tmp_path: Path) -> None:
    if hudi.version != "0.15.0":
        pytest.skip("the tables are of version 6")
    path = tmp_path / "ours"
    table = hoodie.create_table(path, name="ours", record_key="id", ordering="ts", table_type=kind, spark=None)
    row = {"id": "k1", "a": 1, "b": "b1", "s": {"x": 1, "y": "y1"}, "ts": 1}
    columns = pa.schema(
        [
            *(pa.field("id", pa.string()), pa.field("a", pa.int32()), pa.field("b", pa.string())),
            pa.field("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
            pa.field("ts", pa.int64()),
        ]
    )
    table.insert(pa.Table.from_pylist([row, {**row, "id": "k2"}, {**row, "id": "k3"}], schema=columns))
    changes = [
        *(Rename(("b",), "bb"), Retype(("a",), pa.string()), Move(("a",), Position(after="s"))),
        *(Drop(("s", "y")), Add(("s", "z"), pa.field("", pa.float64()), Position(first=True)), Comment(("bb",), "b")),
        Add(("b",), pa.field("", pa.int64())),
    ]
    for change in changes:
        alter_columns(table.storage, [change], Settings.of({}), on_read=True)
    after = {"id": "k2", "a": "many", "bb": "b2", "s": {"x": 2, "z": 0.5}, "ts": 2, "b": 7}
    table.upsert(pa.Table.from_pylist([after], schema=_user_columns(table)))
    hudi.sql("SET hoodie.schema.on.read.enable=true")
    hudi.sql("SET spark.sql.parquet.enableVectorizedReader=false")
    try:
        ours = comparable(table.snapshot(meta=True).to_arrow())
        assert comparable(hudi.read(path, hoodie__schema__on__read__enable="true")) == ours
        hudi.sql(f"CREATE TABLE ours_{kind} USING hudi LOCATION '{path}'")
        hudi.sql(f"ALTER TABLE ours_{kind} RENAME COLUMN bb TO bbb")
        hudi.sql(f"UPDATE ours_{kind} SET bbb = 'c', ts = 3 WHERE id = 'k3'")
        theirs = comparable(hudi.read(path, hoodie__schema__on__read__enable="true"))
        assert [row["bbb"] for row in theirs] == ["b1", "b2", "c"]
        assert comparable(table.snapshot(meta=True).to_arrow()) == theirs
    finally:
        hudi.sql("SET spark.sql.parquet.enableVectorizedReader=true")
        hudi.sql("SET hoodie.schema.on.read.enable=false")


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_the_library_reads_and_writes_columns_that_a_later_hudi_altered(
    hudi: HudiEngine, kind: str, tmp_path: Path
) -> None:
    if hudi.version < "1":
        pytest.skip("other tests have its tables")
    path, name = tmp_path / "later", f"later_{kind}"
    properties = f"primaryKey = 'id', preCombineField = 'ts', type = '{kind}'"
    columns = "id string, a int, dec decimal(10,2), ts bigint"
    hudi.sql("SET hoodie.schema.on.read.enable=true")
    hudi.sql("SET spark.sql.parquet.enableVectorizedReader=false")
    try:
        hudi.sql(f"CREATE TABLE {name} ({columns}) USING hudi TBLPROPERTIES ({properties}) LOCATION '{path}'")
        hudi.sql(f"INSERT INTO {name} VALUES ('k1', 1, 1.5, 1), ('k2', 2, 2.5, 1), ('k3', 3, 3.5, 1)")
        for number, change in enumerate(
            ("ALTER COLUMN a TYPE bigint", "ADD COLUMNS (n string AFTER a)", "ALTER COLUMN dec TYPE decimal(20,4)")
        ):
            hudi.sql(f"ALTER TABLE {name} {change}")
            table = hoodie.open_table(str(path))
            rows = table.snapshot().to_arrow()
            first = {**rows.filter(pa.compute.equal(rows["id"], "k1")).to_pylist()[0], "ts": 2 + number}
            table.upsert(pa.Table.from_pylist([first, {**first, "id": f"n{number}"}], schema=rows.schema))
            theirs = comparable(hudi.read(path, hoodie__schema__on__read__enable="true"))
            assert comparable(table.snapshot(meta=True).to_arrow()) == theirs
        hudi.sql(f"UPDATE {name} SET n = 'theirs', ts = 20 WHERE id = 'k2'")
        theirs = comparable(hudi.read(path, hoodie__schema__on__read__enable="true"))
        assert comparable(table.snapshot(meta=True).to_arrow()) == theirs
    finally:
        hudi.sql("SET spark.sql.parquet.enableVectorizedReader=true")
        hudi.sql("SET hoodie.schema.on.read.enable=false")


def _user_columns(table: hoodie.HoodieTable) -> pa.Schema:
    return pa.schema(
        [field for field in table.snapshot(meta=True).to_arrow().schema if not field.name.startswith("_hoodie_")]
    )
