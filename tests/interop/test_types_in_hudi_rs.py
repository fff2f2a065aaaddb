"""Every column type, in the form we store it, read by another implementation: hudi-rs."""

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

from hoodie.formats.avro.schema import to_avro
from hoodie.schema.conform import conform
from hoodie.schema.schema import reconcile, stored_form, with_meta_fields
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_NTZ

UTC = dt.UTC
MOMENT = dt.datetime(1900, 2, 3, 4, 5, 6, 789012)

PROPERTIES = """\
hoodie.table.name=types
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=6
hoodie.timeline.layout.version=1
hoodie.table.timeline.timezone=UTC
hoodie.table.recordkey.fields=id
hoodie.table.keygenerator.class=org.apache.hudi.keygen.NonpartitionedKeyGenerator
hoodie.table.base.file.format=PARQUET
hoodie.populate.meta.fields=true
"""


def items(kind: pa.DataType, nullable: bool = True) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable))


def values(kind: pa.DataType) -> pa.DataType:
    return pa.map_(pa.string(), kind)


POINT = pa.struct([pa.field("x", pa.int32(), False), ("tags", items(pa.string())), ("d", pa.decimal128(5, 1))])

#: (type, values): each with a null, the extremes and what usually goes wrong.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, None, False]),
    "tiny": (pa.int8(), [-128, None, 127]),
    "short": (pa.int16(), [-32768, None, 32767]),
    "int": (pa.int32(), [-(2**31), None, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), None, 2**63 - 1]),
    "float": (pa.float32(), [float("nan"), None, float("-inf")]),
    "double": (pa.float64(), [float("nan"), None, -0.0]),
    "string": (pa.string(), ["", None, "ü☃𝄞"]),
    "binary": (pa.binary(), [b"", None, b"\x00\xff"]),
    "date": (pa.date32(), [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "stamp": (TIMESTAMP, [MOMENT.replace(tzinfo=UTC), None, dt.datetime(9999, 1, 1, tzinfo=UTC)]),
    "dec1": (pa.decimal128(1, 0), [Decimal(9), None, Decimal(-9)]),
    "dec9": (pa.decimal128(9, 2), [Decimal("1234567.89"), None, Decimal("-0.01")]),
    "dec18": (pa.decimal128(18, 4), [Decimal("1.2300"), None, Decimal("-99999999999999.9999")]),
    "dec38": (pa.decimal128(38, 10), [Decimal("1" * 28 + "." + "9" * 10), None, Decimal("-1.5000000000")]),
    "list": (items(pa.int64()), [[1, None], None, []]),
    "strict": (items(pa.int64(), False), [[1, 2], None, []]),
    "lists": (items(items(pa.date32())), [[[dt.date(2020, 1, 1), None], None, []], None, []]),
    "map": (values(pa.decimal128(12, 2)), [[("a", Decimal("1.50")), ("b", None)], None, []]),
    "maps": (values(values(pa.binary())), [[("a", [("b", b"x")]), ("c", None)], None, []]),
    "point": (POINT, [{"x": 1, "tags": ["a", None], "d": Decimal("1.5")}, None, {"x": 2, "tags": None, "d": None}]),
    "points": (items(POINT), [[{"x": 1, "tags": [], "d": None}, None], None, []]),
    "by_name": (values(POINT), [[("a", {"x": 1, "tags": ["t"], "d": None}), ("b", None)], None, []]),
}


def write(root: Path, batches: list[pa.Table], schema: pa.Schema) -> None:
    """A copy-on-write table with one commit and one file for each batch, all under the schema of the last."""
    (root / ".hoodie").mkdir(parents=True)
    (root / ".hoodie" / "hoodie.properties").write_text(PROPERTIES)
    for number, rows in enumerate(batches):
        instant = f"2025010100000{number}000"
        file_id = f"0000000{number}-0000-4000-8000-000000000000-0"
        name = f"{file_id}_0-1-1_{instant}.parquet"
        # hudi-rs takes no nulls in the meta columns.
        meta = [pa.repeat(word, len(rows)) for word in (instant, f"{instant}_0_0")]
        meta += [rows.column("id"), pa.repeat("", len(rows)), pa.repeat(name, len(rows))]
        full = pa.table([*meta, *rows.columns], schema=with_meta_fields(rows.schema))
        pq.write_table(full, root / name, store_schema=False, store_decimal_as_integer=False)
        stat = {"fileId": file_id, "path": name, "prevCommit": "null", "numWrites": len(rows), "partitionPath": ""}
        stat["fileSizeInBytes"] = (root / name).stat().st_size
        commit = {
            "partitionToWriteStats": {"": [stat]},
            "compacted": False,
            "extraMetadata": {"schema": to_avro(schema, "types")},
            "operationType": "INSERT",
        }
        for suffix in (".commit.requested", ".inflight"):
            (root / ".hoodie" / f"{instant}{suffix}").touch()
        (root / ".hoodie" / f"{instant}.commit").write_text(json.dumps(commit))
        (root / ".hoodie_partition_metadata").write_text(f"commitTime={instant}\npartitionDepth=0\n")


def read(root: Path) -> pa.Table:
    batches = HudiTableBuilder.from_base_uri(str(root)).build().read()
    return pa.Table.from_batches([pa.record_batch(batch) for batch in batches]).sort_by("id")


def table_of(columns: dict[str, tuple[pa.DataType, list[Any]]], first_id: int = 0) -> pa.Table:
    arrays = {name: pa.array(rows, kind) for name, (kind, rows) in columns.items()}
    count = len(next(iter(arrays.values())))
    ids = pa.array([f"k{first_id + number}" for number in range(count)])
    schema = pa.schema(
        [pa.field("id", pa.string(), False), *(pa.field(name, each.type) for name, each in arrays.items())]
    )
    return pa.table([ids, *arrays.values()], schema=schema)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_read_with_equal_values(name: str, tmp_path: Path) -> None:
    rows = table_of({name: COLUMNS[name]})
    stored = conform(rows, stored_form(rows.schema))
    write(tmp_path / "t", [stored], stored.schema)
    seen = read(tmp_path / "t").column(name)
    assert seen.type == stored.schema.field(name).type
    assert repr(seen.to_pylist()) == repr(stored.column(name).to_pylist())
    assert repr(stored.column(name).to_pylist()) == repr(rows.column(name).to_pylist())


def test_a_table_with_every_type_is_read(tmp_path: Path) -> None:
    rows = table_of(COLUMNS)
    stored = conform(rows, stored_form(rows.schema))
    write(tmp_path / "t", [stored], stored.schema)
    seen = read(tmp_path / "t").select(rows.schema.names)
    assert repr(seen.to_pylist()) == repr(stored.to_pylist())


def test_a_timestamp_without_zone_is_read_as_its_microseconds(tmp_path: Path) -> None:
    kinds = {"plain": TIMESTAMP_NTZ, "list": items(TIMESTAMP_NTZ), "map": values(TIMESTAMP_NTZ)}
    rows = table_of(
        {
            "plain": (kinds["plain"], [MOMENT, None]),
            "list": (kinds["list"], [[MOMENT, None], None]),
            "map": (kinds["map"], [[("a", MOMENT)], None]),
        }
    )
    write(tmp_path / "t", [rows], rows.schema)
    seen = read(tmp_path / "t")
    micros = pa.scalar(MOMENT, TIMESTAMP_NTZ).cast(pa.int64()).as_py()
    assert seen.column("plain").to_pylist() == [micros, None]
    assert seen.column("list").to_pylist() == [[micros, None], None]
    assert conform(seen.select(rows.schema.names), rows.schema).to_pylist() == rows.to_pylist()


X = pa.struct([("x", pa.int32())])
XY = pa.struct([("x", pa.int64()), ("y", pa.string())])


@pytest.mark.parametrize(
    ("old", "old_values", "new", "new_values"),
    [
        (pa.int32(), [1, None], pa.int64(), [2**40]),
        (pa.int32(), [1, None], pa.float64(), [0.5]),
        (pa.float32(), [1.5, None], pa.float64(), [0.1]),
        (items(pa.int32(), False), [[1], None], items(pa.int64()), [[None, 2**40]]),
        (values(pa.int32()), [[("a", 1)], None], values(pa.int64()), [[("b", 2**40)]]),
        (X, [{"x": 1}, None], XY, [{"x": 2**40, "y": "new"}]),
        (items(X), [[{"x": 1}, None], None], items(XY), [[{"x": 2**40, "y": "new"}]]),
        (values(X), [[("a", {"x": 1})], None], values(XY), [[("a", {"x": 2**40, "y": "new"})]]),
    ],
)
def test_files_from_before_a_widening_are_read_beside_newer_ones(
    tmp_path: Path, old: pa.DataType, old_values: list[Any], new: pa.DataType, new_values: list[Any]
) -> None:
    before = table_of({"c": (old, old_values)})
    after = table_of({"c": (new, new_values), "added": (pa.string(), ["s"])}, first_id=len(old_values))
    schema = reconcile(before.schema, after.schema)
    write(tmp_path / "t", [before, after], schema)
    expected = pa.concat_tables([conform(before, schema), conform(after, schema)])
    assert read(tmp_path / "t").select(schema.names).to_pylist() == expected.to_pylist()
