"""Columns that grow by a write as in Hudi 0.15: int, bigint, float, double, text, whatever digits are lost. The values
of rows before and after are those that Hudi gave."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import SchemaMismatch
from support.nightly import covering
from support.oracles import read_hudi_rs

TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]
KINDS = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "decimal": pa.decimal128(12, 2),
}
#: Before, after, the type then, and the values of the rows of the first file, of its update, and of the other file.
GROWTHS: list[tuple[str, str, str, list[Any]]] = [
    ("int", "bigint", "bigint", [16777217, 2, 7]),
    ("int", "float", "float", [16777216.0, 2.5, 7.0]),
    ("int", "double", "double", [16777217.0, 2.5, 7.0]),
    ("int", "string", "string", ["16777217", "2.5", "7"]),
    ("bigint", "int", "bigint", [16777217, 2, 7]),
    ("bigint", "float", "float", [16777216.0, 2.5, 7.0]),
    ("bigint", "double", "double", [16777217.0, 2.5, 7.0]),
    ("bigint", "string", "string", ["16777217", "2.5", "7"]),
    ("float", "int", "float", [16777216.0, 2.0, 7.0]),
    ("float", "bigint", "float", [16777216.0, 2.0, 7.0]),
    ("float", "double", "double", [16777216.0, 2.5, 7.0]),
    ("float", "string", "string", ["1.6777216E7", "2.5", "7.0"]),
    ("double", "int", "double", [16777217.0, 2.0, 7.0]),
    ("double", "bigint", "double", [16777217.0, 2.0, 7.0]),
    ("double", "float", "double", [16777217.0, 2.5, 7.0]),
    ("double", "string", "string", ["1.6777217E7", "2.5", "7.0"]),
    ("string", "int", "string", ["16777217", "2", "7"]),
    ("string", "bigint", "string", ["16777217", "2", "7"]),
    ("string", "float", "string", ["16777217", "2.5", "7"]),
    ("string", "double", "string", ["16777217", "2.5", "7"]),
    ("string", "decimal", "string", ["16777217", "2.50", "7"]),
]


def batch(kind: str, *rows: tuple[int, str, str]) -> pa.Table:
    """rows  id, partition, value as text"""
    whole = kind in ("int", "bigint")
    values = pa.array([value.partition(".")[0] if whole else value for *_, value in rows])
    number = (
        values.cast(pa.float64()).cast(KINDS[kind], safe=False)
        if kind in ("int", "bigint", "float", "double")
        else values.cast(KINDS[kind])
    )
    return pa.table({"id": [row[0] for row in rows], "p": [row[1] for row in rows], "v": number})


def made(path: Path, table_type: str) -> hoodie.HoodieTable[Any]:
    return hoodie.create_table(path, name="t", record_key="id", partition_by="p", table_type=table_type)


@pytest.mark.parametrize(
    ("table_type", "growth"), covering(TYPES, {f"{growth[0]} to {growth[1]}": growth for growth in GROWTHS})
)
def test_rows_before_and_after_have_hudis_values(
    tmp_path: Path, table_type: str, growth: tuple[str, str, str, list[Any]]
) -> None:
    before, after, then, values = growth
    table = made(tmp_path, table_type)
    table.insert(batch(before, (1, "a", "16777217"), (2, "a", "1"), (3, "b", "7")))
    table.upsert(batch(after, (2, "a", "2.5")))
    rows = table.snapshot().to_arrow().sort_by("id")
    assert rows["v"].to_pylist() == values
    assert rows.schema.field("v").type == KINDS[then]
    assert table.changes("earliest").to_arrow().sort_by("id")["v"].to_pylist() == values
    for value, count in ((values[2], 1), (values[0], 1), ("x" if then == "string" else 99, 0)):
        assert table.snapshot(filters=[("v", "=", value)]).count() == count
    table.upsert(batch(after, (3, "b", "2.5")))  # the other file, once the table has grown
    assert table.snapshot().to_arrow().sort_by("id")["v"].to_pylist() == [*values[:2], values[1]]


@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "BUCKET"])
def test_a_table_that_has_grown_is_written_by_any_index_and_compacted(tmp_path: Path, index: str) -> None:
    table = hoodie.create_table(
        tmp_path,
        name="t",
        record_key="id",
        partition_by="p",
        table_type="MERGE_ON_READ",
        options={"hoodie.index.type": index, "hoodie.compact.inline.max.delta.commits": 1},
    )
    table.upsert(batch("int", (1, "a", "1"), (2, "a", "2")))
    table.upsert(batch("int", (1, "a", "11")))
    table.upsert(batch("string", (2, "a", "two")))
    table.upsert(batch("double", (1, "b", "0.5") if index != "BUCKET" else (1, "a", "0.5")))
    assert table.snapshot().to_arrow().sort_by("id")["v"].to_pylist() == ["0.5", "two"]
    table.schedule_compaction()
    table.compact()
    assert table.snapshot(optimized=True).to_arrow().sort_by("id")["v"].to_pylist() == ["0.5", "two"]
    table.delete(where="v = 'two'")
    assert table.snapshot().count() == 1


def test_hudi_rs_reads_a_table_that_has_grown(tmp_path: Path) -> None:
    table = made(tmp_path, "COPY_ON_WRITE")
    table.insert(batch("int", (1, "a", "5"), (3, "b", "7")))
    table.upsert(batch("string", (1, "a", "x")))
    assert sorted(read_hudi_rs(tmp_path, ["v"])["v"].to_pylist()) == ["7", "x"]


def test_keys_partitions_ordering_and_what_is_nested_do_not_lose_digits(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "p": [1], "ts": [1], "s": [{"x": 1}]})
    options = {
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.precombine.field": "ts",
    }
    hoodie.hudi.write(rows, tmp_path, options)
    for name in ("id", "p", "ts"):
        other = rows.set_column(rows.schema.get_field_index(name), name, pc.cast(rows[name], pa.string()))
        with pytest.raises(SchemaMismatch, match=f"column {name} is bigint in the table and string in the batch"):
            hoodie.hudi.write(other, tmp_path, options)
    nested = rows.set_column(3, "s", pa.array([{"x": "1"}]))
    with pytest.raises(SchemaMismatch, match=r"column s\.x is bigint in the table and string in the batch"):
        hoodie.hudi.write(nested, tmp_path, options)
