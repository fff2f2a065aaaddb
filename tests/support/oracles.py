"""What a table must hold, told by others: the rows noted when it was made, hudi-rs, and a comparison that explains."""

import base64
import datetime
import decimal
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hudi import HudiQueryType, HudiReadConfig, HudiReadOptions, HudiTableBuilder

TABLES = Path(__file__).parents[1] / "fixtures" / "tables"

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


# --- the tables in tests/fixtures/tables ---


def fixture_names(under: str = "*") -> list[str]:
    """The tables there are, in `hudi-0.15`, `hudi-tables` or both; for pytest.mark.parametrize."""
    return sorted(path.stem for path in TABLES.glob(f"{under}/*.zip"))


def unpack_table(name: str, into: Path) -> Path:
    """Unzip the table below `into`; returns the folder that holds its .hoodie."""
    with zipfile.ZipFile(_beside(name, ".zip")) as archive:
        archive.extractall(into)
    found = [path.parent for path in into.glob("*/.hoodie") if path.parent.name != "__MACOSX"]
    if len(found) != 1:
        raise AssertionError(f"{name}.zip holds {len(found)} tables")
    return found[0]


@cache
def fixture_facts(name: str) -> dict[str, Any]:
    """The .json beside a `hudi-0.15` table: steps, write_options, timeline_files, completed_instants and the views."""
    return dict(json.loads(_beside(name, ".json").read_text()))


def expected_rows(name: str, view: str = "snapshot") -> pa.Table:
    """The rows that a table was seen to hold when it was made.

    view     "snapshot"; for tables of `hudi-0.15` also "read_optimized" and "cdc_after_first_commit"
    Raises   KeyError when the fixture doesn't have the view
    """
    if not _beside(name, ".json").exists():
        if view != "snapshot":
            raise KeyError(f"{name} has a snapshot only")
        return pq.read_table(_beside(name, ".expected.parquet"))
    return _decode_view(fixture_facts(name), fixture_facts(name)[view])


@dataclass(frozen=True)
class Changes:
    """The rows that an incremental read of (after, up_to] gives; up_to None: to the newest instant."""

    after: str
    up_to: str | None
    rows: pa.Table


def expected_changes(name: str) -> list[Changes]:
    """The incremental reads noted for a table of `hudi-0.15`; some give a few columns only."""
    facts = fixture_facts(name)
    return [
        Changes(read["begin_exclusive"], read["end_inclusive"], _decode_view(facts, read["result"]))
        for read in facts.get("incremental", ())
        if "result" in read  # Hudi refuses to read commits whose files were cleaned
    ]


def _beside(name: str, suffix: str) -> Path:
    (archive,) = TABLES.glob(f"*/{name}.zip")
    return archive.with_name(name + suffix)


def _decode_view(facts: dict[str, Any], view: dict[str, Any]) -> pa.Table:
    types = {field["name"]: field["type"] for field in facts["spark_schema"]["fields"]}
    columns = {}
    for index, name in enumerate(view["columns"]):
        spark_type = types.get(name, "string")  # the columns of change data are not the table's
        values = [_decode(row[index], spark_type) for row in view["rows"]]
        columns[name] = pa.array(values, _arrow_type(spark_type))
    return pa.table(columns)


_ARROW = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
}

_DECODE: dict[str, Callable[[Any], Any]] = {
    "float": float,  # NaN and the infinities are strings
    "double": float,
    "date": datetime.date.fromisoformat,
    "timestamp": lambda text: datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC),
    "binary": base64.b64decode,
}


def _arrow_type(spark_type: Any) -> pa.DataType:
    if isinstance(spark_type, str):
        if spark_type.startswith("decimal("):
            precision, scale = spark_type[8:-1].split(",")
            return pa.decimal128(int(precision), int(scale))
        return _ARROW[spark_type]
    if spark_type["type"] == "array":
        return pa.list_(_arrow_type(spark_type["elementType"]))
    if spark_type["type"] == "map":
        return pa.map_(_arrow_type(spark_type["keyType"]), _arrow_type(spark_type["valueType"]))
    return pa.struct([(field["name"], _arrow_type(field["type"])) for field in spark_type["fields"]])


def _decode(value: Any, spark_type: Any) -> Any:
    if value is None:
        return None
    if isinstance(spark_type, str):
        if spark_type.startswith("decimal("):
            return decimal.Decimal(value)
        return _DECODE.get(spark_type, lambda same: same)(value)
    if spark_type["type"] == "array":
        return [_decode(item, spark_type["elementType"]) for item in value]
    if spark_type["type"] == "map":
        return [(_decode(k, spark_type["keyType"]), _decode(v, spark_type["valueType"])) for k, v in value]
    return {field["name"]: _decode(value[field["name"]], field["type"]) for field in spark_type["fields"]}


# --- hudi-rs, a reader that shares no code with this one ---


def read_hudi_rs(path: str | Path, columns: Sequence[str] | None = None, *, as_of: str | None = None) -> pa.Table:
    """The snapshot that hudi-rs reads, now or as of an instant."""
    options = HudiReadOptions(projection=list(columns) if columns else None)
    return _read(path, options if as_of is None else options.with_as_of_timestamp(as_of), columns)


def read_hudi_rs_optimized(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The base files only, without the logs, as hudi-rs reads them."""
    options = HudiReadOptions(projection=list(columns) if columns else None)
    return _read(path, options.with_hudi_option(HudiReadConfig.USE_READ_OPTIMIZED_MODE.value, "true"), columns)


def read_hudi_rs_changes(path: str | Path, after: str, up_to: str | None = None) -> pa.Table:
    """The rows that hudi-rs says were written in (after, up_to]."""
    options = HudiReadOptions().with_query_type(HudiQueryType.Incremental).with_start_timestamp(after)
    return _read(path, options if up_to is None else options.with_end_timestamp(up_to), None)


def _read(path: str | Path, options: HudiReadOptions, columns: Sequence[str] | None) -> pa.Table:
    table = HudiTableBuilder.from_base_uri(str(path)).build()
    batches = table.read(options)
    # Batches of file slices may differ in nullability; types are those of the table.
    read = (
        pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")
        if (batches)
        else table.get_schema_with_meta_fields().empty_table()
    )
    return read.select(list(columns)) if columns else read


# --- comparing ---


def assert_same_rows(
    actual: pa.Table, expected: pa.Table, ignore: Iterable[str] = (), sort_by: Sequence[str] | None = None
) -> None:
    """Fail, telling the first differences, unless both tables hold the same rows in whatever order.

    Columns are matched by name in whatever order; values are compared as Python's, so int32 equals int64 and a
    timestamp equals the same moment in another zone; NaN equals NaN; the order of a map's entries has no meaning.

    ignore   columns left out, such as META
    sort_by  columns that identify a row, by which rows are matched to tell how they differ; default: partition path
             and record key where both tables have them, else a row is its own identity
    """
    left_out = set(ignore)
    names = [name for name in expected.column_names if name not in left_out]
    has = [name for name in actual.column_names if name not in left_out]
    if set(names) != set(has) or len(names) != len(has):
        raise AssertionError(
            f"columns differ: missing {sorted(set(names) - set(has))}, unexpected {sorted(set(has) - set(names))}"
        )
    if sort_by is None:
        meta = ("_hoodie_partition_path", "_hoodie_record_key")
        sort_by = meta if all(name in t.column_names for name in meta for t in (actual, expected)) else names
    ours, theirs = _by_identity(actual, names, sort_by), _by_identity(expected, names, sort_by)
    problems = _differences(names, ours, theirs)
    if problems:
        shown = "\n  ".join(problems[:10])
        more = f"\n  and {len(problems) - 10} more" if len(problems) > 10 else ""
        raise AssertionError(
            f"{actual.num_rows} rows, {expected.num_rows} expected, {len(problems)} differences:\n  {shown}{more}"
        )


_Rows = dict[tuple[Any, ...], list[tuple[Any, ...]]]


def _by_identity(table: pa.Table, names: Sequence[str], sort_by: Sequence[str]) -> _Rows:
    columns = {name: _comparable_column(table.column(name)) for name in {*names, *sort_by}}
    found: _Rows = {}
    for index in range(table.num_rows):
        identity = tuple(columns[name][index] for name in sort_by)
        found.setdefault(identity, []).append(tuple(columns[name][index] for name in names))
    return found


def _differences(names: Sequence[str], ours: _Rows, theirs: _Rows) -> list[str]:
    problems = []
    for identity in sorted({*ours, *theirs}, key=repr):
        mine, other = sorted(ours.get(identity, []), key=repr), sorted(theirs.get(identity, []), key=repr)
        if len(mine) != len(other):
            problems.append(f"{identity}: {len(mine)} times, expected {len(other)}")
            continue
        for row, wanted in zip(mine, other, strict=True):
            cells = [
                f"{name}={value!r} (expected {right!r})"
                for name, value, right in zip(names, row, wanted, strict=True)
                if value != right
            ]
            if cells:
                problems.append(f"{identity}: {', '.join(cells)}")
    return problems


def _comparable_column(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pa.timestamp("us", kind.tz))  # Python's datetime holds no more
    return [_comparable(value, kind) for value in column.to_pylist()]


def _comparable(value: Any, kind: pa.DataType) -> Any:
    """The value as one that can be a dict's key and equals what means the same."""
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return "NaN" if value != value else value
    if pa.types.is_struct(kind):
        return tuple((field.name, _comparable(value[field.name], field.type)) for field in kind)
    if pa.types.is_map(kind):
        entries = [(_comparable(k, kind.key_type), _comparable(v, kind.item_type)) for k, v in value]
        return tuple(sorted(entries, key=repr))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return tuple(_comparable(item, kind.value_type) for item in value)
    return value
