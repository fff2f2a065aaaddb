"""VECTOR columns, as Hudi 1.2.0 wrote them, are lists of numbers with and without Spark."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.avro.schema import from_avro
from hoodie.schema.conform import conform

FIXTURES = Path(__file__).parents[1] / "fixtures" / "hudi-1.x"
NAME = "hudi12_cow_vector"
FACTS = json.loads((FIXTURES / f"{NAME}.json").read_text())
COLUMNS = ["id", "ts", "name", "emb", "embd", "emb8"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    with zipfile.ZipFile(FIXTURES / f"{NAME}.zip") as archive:
        archive.extractall(tmp_path)
    return str(tmp_path / NAME)


def expected(view: str = "snapshot") -> list[dict[str, Any]]:
    return [{name: row[name] for name in COLUMNS} for row in FACTS[view]]


def test_vectors_are_lists_without_spark(path: str) -> None:
    table = hoodie.open_table(path)
    rows = table.snapshot().to_arrow()
    assert rows.select(COLUMNS).sort_by("id").to_pylist() == expected()
    assert [str(rows.schema.field(name).type.value_type) for name in COLUMNS[3:]] == ["float", "double", "int8"]
    first = FACTS["instants"][0].partition("_")[0]
    assert table.as_of(first).to_arrow().select(COLUMNS).to_pylist() == expected(f"as_of {first}")
    assert table.snapshot(filters="id = 'k2'").to_arrow().column("emb").to_pylist() == [[1.0, 2.0, 3.0]]


def test_vectors_are_lists_in_spark(spark: Any, path: str) -> None:
    frame = hoodie.open_table(path, spark=spark).snapshot()
    types = [frame.schema[name].dataType.simpleString() for name in COLUMNS[3:]]
    assert types == ["array<float>", "array<double>", "array<tinyint>"]
    assert [row.asDict() for row in frame.select(COLUMNS).orderBy("id").collect()] == expected()
    hoodie.register(spark)
    read = spark.read.format("hudi").load(path).where("id = 'k1'").select("emb8")
    assert [row.emb8 for row in read.collect()] == [[1, -2, 3, -128]]


def vector(**more: Any) -> str:
    kind = {"type": "fixed", "name": "v3", "size": 12, "logicalType": "vector", "dimension": 3, "elementType": "FLOAT",
            "storageBacking": "FIXED_BYTES", **more}  # fmt: skip
    fields = [{"name": "v", "type": ["null", kind]}, {"name": "w", "type": ["null", "v3"]}]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def test_a_vector_that_is_null_or_in_a_slice_is_decoded_and_one_that_is_unknown_is_refused_by_name() -> None:
    schema = from_avro(vector(), "x")
    assert [str(field.type) for field in schema] == ["list<element: float not null>"] * 2
    values = pa.array([b"\0" * 12, b"\0\0\x80\x3f" * 3, None], pa.binary(12))
    rows = pa.table({"v": values, "w": values}).slice(1)
    assert conform(rows, schema).column("w").to_pylist() == [[1.0] * 3, None]
    with pytest.raises(UnsupportedTable, match="column v is a VECTOR of BFLOAT16"):
        from_avro(vector(elementType="BFLOAT16"), "x")
    with pytest.raises(CorruptFile, match="column v is a VECTOR of 4 numbers in 12 bytes"):
        from_avro(vector(dimension=4), "x")
