"""Small tables that the library and the real Hudi write by the same options and rows, and how they are compared."""

import datetime
import decimal
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import hoodie
from hoodie.api.table import HoodieTable

#: The columns that most cases have.
COLUMNS = {"id": "string", "city": "string", "day": "int", "ts": "bigint", "fare": "double"}
_ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "binary": pa.binary(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
    "array<string>": pa.list_(pa.string()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "struct<a:int,b:string>": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "struct<a:int,b:string,c:int>": pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.int32())]),
}
Row = tuple[Any, ...]
#: What the real Hudi read of the cases, by case and view.
VECTORS = Path(__file__).parents[1] / "vectors" / "engines.json"
VIEWS = ("snapshot", "read_optimized", "incremental", "as_of")


@dataclass(frozen=True, slots=True)
class Step:
    """One write.

    rows     of the columns, as literals of Spark's SQL
    options  over those of the case
    """

    operation: str
    rows: tuple[Row, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=lambda: COLUMNS)

    def sql(self) -> str:
        """The query that gives the rows. Columns are nullable."""
        columns = ", ".join(
            f"CAST(nullif(v{n}, 'none') AS {t}) AS {c}" for n, (c, t) in enumerate(self.columns.items())
        )
        if any("<" in t for t in self.columns.values()):
            columns = ", ".join(
                f"from_json(nullif(v{n}, 'none'), '{t}') AS {c}"
                if "<" in t
                else f"CAST(nullif(v{n}, 'none') AS {t}) AS {c}"
                for n, (c, t) in enumerate(self.columns.items())
            )
        rows = ", ".join("(" + ", ".join(_literal(value) for value in row) + ")" for row in self.rows)
        return f"SELECT {columns} FROM VALUES {rows} AS t({', '.join(f'v{n}' for n in range(len(self.columns)))})"

    def arrow(self) -> pa.Table:
        arrays = {}
        for n, (name, kind) in enumerate(self.columns.items()):
            arrays[name] = pa.array([_value(row[n], kind) for row in self.rows], _ARROW[kind])
        return pa.table(arrays)


@dataclass(frozen=True, slots=True)
class Difference:
    """Views of a table that Hudi reads otherwise than the library, its own table of the same writes, too.

    releases  their beginnings, such as "0.15" or "1."
    theirs    what Hudi does
    ours      what the library does
    way       why, or the way round
    fault     it is a fault of Hudi's reader; else the library differs on purpose
    """

    releases: tuple[str, ...]
    views: tuple[str, ...]
    table: str
    theirs: str
    ours: str
    way: str
    fault: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """A table by its options and writes, and the views that are not the same.

    then    what the library does to it afterwards, one of `_THEN`; "": nothing. Such tables Hudi reads alone
    unmade  beginnings of the releases that cannot make it
    """

    name: str
    options: Mapping[str, str]
    steps: tuple[Step, ...]
    differences: tuple[Difference, ...] = ()
    then: str = ""
    unmade: tuple[str, ...] = ()

    @property
    def views(self) -> tuple[str, ...]:
        return VIEWS if self.merge_on_read else tuple(view for view in VIEWS if view != "read_optimized")

    def differs(self, release: str, view: str) -> bool:
        return any(release.startswith(d.releases) and view in d.views for d in self.differences)

    @property
    def merge_on_read(self) -> bool:
        return self.options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ"

    def options_of(self, step: Step) -> dict[str, str]:
        return {**self.options, **step.options, "hoodie.datasource.write.operation": step.operation}


#: What makes Hudi quick on a small machine, and nothing else. Its metadata table is on where a case says so.
QUICK = {
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
}


def write(case: Case, path: Path) -> list[str]:
    """Make the table by the library, without Spark: the instants of the writes."""
    results = []
    for step in case.steps:
        result = hoodie.hudi.write(step.arrow(), str(path), case.options_of(step))
        assert result is not None
        results.append(result.instant)
    return [*results, *(_THEN[case.then](case, path) if case.then else ())]


def _roll_back(case: Case, path: Path) -> list[str]:
    """A write, rolled back."""
    step = Step("upsert", (_row("k0", "oslo", 9), _row("r1", "rome", 9)))
    result = hoodie.hudi.write(step.arrow(), str(path), case.options_of(step))
    assert result is not None
    hoodie.open_table(str(path)).rollback(result.instant)
    return []


def _die(case: Case, path: Path) -> list[str]:
    """A write whose files and markers are there, and that did not complete."""
    step = Step("upsert", (_row("k0", "oslo", 9), _row("r1", "rome", 9)))
    client = hoodie.hudi.HoodieWriteClient(str(path), options={**case.options, "hoodie.auto.commit": "false"})
    client.upsert(step.arrow(), client.start_commit())
    return []


def _plan_compaction(case: Case, path: Path) -> list[str]:
    """A compaction's plan, and a write behind it."""
    due = {"hoodie.compact.inline.max.delta.commits": "1"}
    assert hoodie.open_table(str(path)).schedule_compaction(options=due) is not None
    step = Step("upsert", (_row("k0", "oslo", 9), _row("r1", "rome", 9)))
    result = hoodie.hudi.write(step.arrow(), str(path), case.options_of(step))
    return [result.instant]


def _keep(case: Case, path: Path) -> list[str]:
    """A savepoint."""
    hoodie.open_table(str(path)).savepoint()
    return []


_THEN: Mapping[str, Callable[[Case, Path], list[str]]] = {
    "rolled_back": _roll_back,
    "failed": _die,
    "compaction_pending": _plan_compaction,
    "savepointed": _keep,
}


def read(path: Path, view: str, after: str, spark: SparkSession | None = None) -> pa.Table:
    """The rows of a view, with Spark or without.

    after  the instant after which `incremental` begins, and of which `as_of` reads
    """
    if spark is not None:
        return _rows(hoodie.open_table(str(path), spark=spark), view, after).toArrow()
    return _rows(hoodie.open_table(str(path)), view, after, meta=True).to_arrow()


def _rows(table: HoodieTable[Any], view: str, after: str, **meta: bool) -> Any:
    if view == "snapshot":
        return table.snapshot(**meta)
    if view == "read_optimized":
        return table.snapshot(optimized=True, **meta)
    return table.changes(after, **meta) if view == "incremental" else table.as_of(after, **meta)


# --- comparing ---

_LEFT_OUT = ("_hoodie_commit_seqno", "_hoodie_file_name", "_hoodie_commit_time")


def comparable(rows: pa.Table | Iterable[Mapping[str, Any]], instants: Sequence[str] = ()) -> list[str]:
    """Rows as sorted JSON: values as the session of Hudi gives them.

    instants  of the writes: commit times become their numbers; without them these are left out
    """
    numbers = {instant: number for number, instant in enumerate(instants, 1)}
    lines = []
    for row in rows.to_pylist() if isinstance(rows, pa.Table) else rows:
        plain = {name: _plain(value) for name, value in row.items() if name not in _LEFT_OUT}
        if numbers:
            plain["commit"] = numbers.get(row["_hoodie_commit_time"], 0)
        lines.append(json.dumps(plain, sort_keys=True))
    return sorted(lines)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(([_plain(key), _plain(item)] for key, item in value), key=repr)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, decimal.Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return "NaN" if isinstance(value, float) and value != value else value


def _literal(value: Any) -> str:
    if value is None:
        return "'none'"
    text = json.dumps(value) if isinstance(value, (dict, list)) else str(value)
    return "'" + text.replace("'", "\\'") + "'"


def _value(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind.startswith("map"):
        return list(value.items())
    if kind == "timestamp":
        return datetime.datetime.fromisoformat(value).replace(tzinfo=datetime.UTC)
    if kind == "date":
        return datetime.date.fromisoformat(value)
    if kind.startswith("decimal"):
        return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-int(kind[:-1].partition(",")[2])))
    return value.encode() if kind == "binary" else value


# --- the cases ---

_MODEL = "org.apache.hudi.common.model"
_STRUCT = {"id": "string", "city": "string", "ts": "bigint", "s": "struct<a:int,b:string>"}
_GROWN = "struct<a:int,b:string,c:int>"
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_PLAIN = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.compact.inline": "false",
}
_KEYGEN = "hoodie.datasource.write.keygenerator.class"
_PAYLOAD = "hoodie.datasource.write.payload.class"
_ALL_TYPES = {
    "id": "string",
    "ts": "bigint",
    "n": "int",
    "f": "float",
    "b": "boolean",
    "d": "date",
    "at": "timestamp",
    "raw": "binary",
    "small": "decimal(10,2)",
    "large": "decimal(38,10)",
    "words": "array<string>",
    "counts": "map<string,bigint>",
    "s": "struct<a:int,b:string>",
}


def _row(key: str, city: str, ts: int, fare: float | None = None) -> Row:
    return (key, city, 20 + ts % 2, ts, ts / 2 if fare is None else fare)


_FIRST = Step("insert", tuple(_row(f"k{n}", ("oslo", "rome", "lima")[n % 3], 1) for n in range(9)))
_WRITES = (
    _FIRST,
    Step("upsert", (_row("k0", "oslo", 2), _row("k1", "rome", 2), _row("k9", "rome", 2))),
    Step("delete", (_row("k3", "oslo", 3), _row("k1", "rome", 3))),
    Step("upsert", (_row("k4", "rome", 4), _row("n1", "bern", 4))),
)
_TYPED: tuple[Row, ...] = (
    (
        *("a", 1, 7, 1.5, True, "2024-02-29", "2024-02-29 12:30:00.123456", "x y", "12.34", "1234567890.0123456789"),
        *(["p", "q"], {"u": 1, "v": 2}, {"a": 1, "b": "z"}),
    ),
    ("b", 1, *[None] * 11),
    (
        *("c", 1, -7, -0.5, False, "1969-12-31", "1969-12-31 23:59:59.999999", "", "-0.01", "-0.0000000001"),
        *([], {}, {"a": None, "b": None}),
    ),
)

_EPOCH = (
    Difference(
        ("0.15",),
        ("snapshot", "as_of"),
        "Copy-on-Write, partitions by the timestamp key generator, from a column that is no text",
        "fails: `Failed to cast value`",
        "reads the column's values",
        "Incremental reads are right. Else keep the day as a text column, and partition by that",
    ),
    Difference(
        ("1.",),
        ("snapshot", "read_optimized", "as_of"),
        "partitions by the timestamp key generator, from a column that is no text",
        "gives the column as text",
        "gives it in its own type",
        "Cast it",
    ),
    Difference(
        ("1.1", "1.2"),
        ("incremental",),
        "partitions by the timestamp key generator, from a column that is no text",
        "gives the column as text",
        "gives it in its own type",
        "Cast it",
    ),
)
_EPOCH_LOGS = (
    replace(
        _EPOCH[0],
        views=VIEWS,
        table="Merge-on-Read, partitions by the timestamp key generator, from a column that is no text",
        way="Keep the day as a text column, and partition by that",
    ),
    *_EPOCH[1:],
)
_TIMED = (
    replace(
        _EPOCH[0],
        table="Copy-on-Write, partitions by the timestamp key generator, from a timestamp column",
        theirs="fails: `Long cannot be cast to UTF8String`",
    ),
    *(replace(e, table="partitions by the timestamp key generator, from a timestamp column") for e in _EPOCH[1:]),
)
_TIMED_LOGS = (
    replace(
        _EPOCH_LOGS[0],
        views=("read_optimized",),
        way="All other reads are right. Else keep the day as a text column, and partition by that",
        table="Merge-on-Read, partitions by the timestamp key generator, from a timestamp column",
        theirs="fails: `Long cannot be cast to UTF8String`",
    ),
    *_TIMED[1:],
)
_ENCODED = Difference(
    ("1.1", "1.2"),
    ("incremental",),
    "URL-encoded partition paths",
    "gives the encoded path as the column's value",
    "gives the value",
    "Decode it, or take a snapshot",
)
_PARTIAL = Difference(
    ("0.15", "1."),
    ("incremental",),
    "Merge-on-Read with `PartialUpdateAvroPayload`",
    "gives the row as the log has it, with nulls for what it does not set",
    "gives the row as it was at the end of the range",
    "A pull must be applicable as it is",
    fault=False,
)
_FIRST_VALUE = Difference(
    ("1.1", "1.2"),
    ("snapshot", "incremental"),
    "Merge-on-Read with `FirstValueAvroPayload`",
    "fails: the class is gone since 1.1",
    "gives the rows",
    "Compact before, and query the newest base files",
)
_NON_DEFAULTS = replace(_PARTIAL, table="Merge-on-Read with `OverwriteNonDefaultsWithLatestAvroPayload`")


def _cases() -> Iterator[Case]:
    none = {
        "hoodie.datasource.write.partitionpath.field": "",
        _KEYGEN: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }
    several = {
        "hoodie.datasource.write.recordkey.field": "id,day",
        "hoodie.datasource.write.partitionpath.field": "city,day",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        _KEYGEN: "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    same_day = tuple(
        Step(s.operation, tuple((key, city, 20, ts, fare) for key, city, _, ts, fare in s.rows)) for s in _WRITES
    )
    epoch = {
        "hoodie.datasource.write.partitionpath.field": "day",
        _KEYGEN: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    timed = {
        "hoodie.datasource.write.partitionpath.field": "at",
        _KEYGEN: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "SCALAR",
        "hoodie.keygen.timebased.timestamp.scalar.time.unit": "microseconds",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    }
    times = {"id": "string", "ts": "bigint", "at": "timestamp"}
    timed_steps = (
        Step("insert", (("a", 1, "2024-02-29 12:30:00"), ("b", 1, "2024-03-01 12:30:00")), columns=times),
        Step("upsert", (("a", 2, "2024-02-29 13:30:00"),), columns=times),
    )
    custom = {
        "hoodie.datasource.write.partitionpath.field": "city:simple,day:simple",
        _KEYGEN: "org.apache.hudi.keygen.CustomKeyGenerator",
    }
    some = Step("upsert", (("k0", "oslo", None, 5, None), ("k1", "rome", 1, 7, None)))
    soon = {
        "hoodie.cleaner.commits.retained": "2",
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
    }
    one_by_one = [Step("upsert", (_row(f"k{n % 9}", ("oslo", "rome", "lima")[n % 3], n),)) for n in range(2, 12)]
    for short, kind in _TYPES.items():
        base = {**_PLAIN, "hoodie.datasource.write.table.type": kind}

        def case(
            name: str,
            options: Mapping[str, str],
            steps: tuple[Step, ...],
            *differences: Difference,
            base: Mapping[str, str] = base,
            short: str = short,
        ) -> Case:
            named = f"{short}_{name}"
            return Case(named, {**base, "hoodie.table.name": named, **options}, steps, differences)

        yield case("plain", {}, _WRITES)
        yield case("unpartitioned", none, _WRITES)
        yield case("complex_keys", several, same_day)
        yield case("epoch_partitions", epoch, same_day, *(_EPOCH if short == "cow" else _EPOCH_LOGS))
        encoded = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
        odd = Step("insert", (_row("a", "a/b c", 1), _row("b", "d=e", 1), _row("c", "f%g", 1)))
        yield case("url_encoded", encoded, (odd, Step("upsert", (_row("a", "a/b c", 2),))), _ENCODED)
        yield case("global_bloom", {"hoodie.index.type": "GLOBAL_BLOOM"}, (
            *_WRITES, Step("upsert", (_row("k0", "rome", 5), _row("k2", "lima", 5)))
        ))  # fmt: skip
        yield case("bucket", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}, _WRITES)
        yield case("late", {_PAYLOAD: "org.apache.hudi.common.model.DefaultHoodieRecordPayload"}, (
            _FIRST,
            Step("upsert", (_row("k0", "oslo", 5), _row("k1", "rome", 7))),
            Step("upsert", (_row("k0", "oslo", 3), _row("k1", "rome", 8))),
        ))  # fmt: skip
        partial = {_PAYLOAD: "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
        yield case("partial", partial, (_FIRST, some), *([_PARTIAL] if short == "mor" else []))
        yield case("overwritten", {}, (
            *_WRITES,
            Step("insert_overwrite", (_row("o1", "rome", 5),)),
            Step("upsert", (_row("o1", "rome", 6), _row("o2", "rome", 6))),
        ))  # fmt: skip
        yield case("typed", {**none, "hoodie.datasource.write.precombine.field": "ts"}, (
            Step("insert", _TYPED, columns=_ALL_TYPES),
            Step("upsert", (("a", 2, *_TYPED[2][2:]), ("b", 2, *_TYPED[0][2:])), columns=_ALL_TYPES),
        ))  # fmt: skip
        yield case("grown", {}, (
            _FIRST,
            Step(
                "upsert",
                (("k0", "oslo", 20, 2, 1.0, "new"), ("g1", "rome", 20, 2, 1.0, None)),
                columns={**COLUMNS, "day": "bigint", "note": "string"},
            ),
        ))  # fmt: skip
        yield case("time_partitions", timed, timed_steps, *(_TIMED if short == "cow" else _TIMED_LOGS))
        yield case("custom_keys", custom, _WRITES)
        yield case("hive_style", {"hoodie.datasource.write.hive_style_partitioning": "true"}, _WRITES)
        moving = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
        yield case("global_simple", moving, (*_WRITES, Step("upsert", (_row("k0", "rome", 5), _row("k2", "oslo", 5)))))
        first_value = case("first_value", {_PAYLOAD: f"{_MODEL}.FirstValueAvroPayload"}, (
            _FIRST, Step("upsert", (_row("k0", "oslo", 1, 9.0), _row("k1", "rome", 7)))
        ), *([_FIRST_VALUE] if short == "mor" else []))  # fmt: skip
        yield replace(first_value, unmade=("1.1", "1.2"))
        non_defaults = {_PAYLOAD: f"{_MODEL}.OverwriteNonDefaultsWithLatestAvroPayload"}
        yield case("non_defaults", non_defaults, (_FIRST, some), *([_NON_DEFAULTS] if short == "mor" else []))
        yield case("event_time", {_PAYLOAD: f"{_MODEL}.EventTimeAvroPayload"}, (
            _FIRST,
            Step("upsert", (_row("k0", "oslo", 5), _row("k1", "rome", 7))),
            Step("upsert", (_row("k0", "oslo", 3), _row("k1", "rome", 8))),
        ))  # fmt: skip
        by_rows = {"hoodie.datasource.write.row.writer.enable": "false"}  # else Hudi 1.2 makes no delta commit
        yield case("bulk_loaded", by_rows, (Step("bulk_insert", _FIRST.rows), *_WRITES[1:]))
        yield case("table_overwritten", {}, (
            *_WRITES,
            Step("insert_overwrite_table", (_row("o1", "rome", 5), _row("o2", "oslo", 5))),
            Step("upsert", (_row("o1", "rome", 6),)),
        ))  # fmt: skip
        yield case("flag_deleted", {}, (
            _FIRST,
            Step(
                "upsert",
                tuple((*row, flag) for row, flag in ((_row("k0", "oslo", 2), True), (_row("k1", "rome", 2), False))),
                columns={**COLUMNS, "_hoodie_is_deleted": "boolean"},
            ),
        ))  # fmt: skip
        yield case("struct_grown", {}, (
            Step("insert", (("a", "oslo", 1, {"a": 1, "b": "x"}), ("b", "oslo", 1, None)), columns=_STRUCT),
            Step("upsert", (("b", "oslo", 2, {"a": 2, "b": "y", "c": 3}),), columns={**_STRUCT, "s": _GROWN}),
        ))  # fmt: skip
        yield case("cleaned", soon, (_FIRST, *one_by_one))
        yield case("change_data", {"hoodie.table.cdc.enabled": "true"}, _WRITES)
        for then in ("rolled_back", "failed", "savepointed", *(["compaction_pending"] if short == "mor" else [])):
            yield replace(case(then, {}, _WRITES), then=then)
        if short == "mor":
            inline = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
            yield case("compacted", inline, (*_WRITES, Step("upsert", (_row("k5", "lima", 6),))))


CASES = {case.name: case for case in _cases()}
#: Those that Hudi writes, too.
BY_BOTH = {name: case for name, case in CASES.items() if not case.then}
