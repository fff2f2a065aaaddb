"""Hudi 0.15 reads what the library writes into tables whose columns it altered, and goes on with them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from support.altered_tables import comparable, unpack
from support.hudi_engine import HudiEngine


@pytest.mark.parametrize("name", ["cow_types", "mor_types", "cow_columns", "mor_columns", "mor_planned"])
def test_hudi_reads_and_writes_altered_columns_after_the_library(hudi: HudiEngine, name: str, tmp_path: Path) -> None:
    if hudi.version != "0.15.0":
        pytest.skip("the tables are of Hudi 0.15")
    path = Path(unpack(name, tmp_path))
    table = hoodie.open_table(str(path))
    rows = table.snapshot().to_arrow()
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
        ours = comparable(table.snapshot().to_arrow())
        assert comparable(hudi.read(path, hoodie__schema__on__read__enable="true")) == ours
        hudi.sql(f"CREATE TABLE altered_{name} USING hudi LOCATION '{path}'")
        hudi.sql(f"UPDATE altered_{name} SET ts = 30 WHERE id = 'k2'")
        theirs = comparable(hudi.read(path, hoodie__schema__on__read__enable="true"))
        assert [row["ts"] for row in theirs if row["id"] == "k2"] == [30]
        assert comparable(table.snapshot().to_arrow()) == theirs
    finally:
        hudi.sql("SET spark.sql.parquet.enableVectorizedReader=true")
        hudi.sql("SET hoodie.schema.on.read.enable=false")
