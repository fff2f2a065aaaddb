"""Which unit timestamps have: what commits, labels and footers say, and values that stay right through writes."""

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie import open_table
from hoodie.errors import ContradictoryTimestamps, HudiCannotRead, SchemaMismatch
from hoodie.formats.parquet.stored_types import stored_types
from hoodie.reading.slices.column_types import mislabelled_files
from hoodie.reading.snapshot import read_table
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import ALSO_TEXT
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_commit
from hoodie.view.load import load_view
from hoodie.view.slices import latest_base_files
from support.scans import plan_scan
from support.timestamp_tables import (
    NEW_TYPES,
    NUMBER,
    OPTIONS,
    Witnesses,
    as_text,
    data_files,
    declare,
    declared,
    in_micros,
    label_of,
    make_table,
    new_rows,
    old_rows,
    unpacked,
)

MERGE_ON_READ = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
MILLIS, MICROS = "timestamp-millis", "timestamp-micros"
LOCAL_MILLIS, LOCAL_MICROS = "local-timestamp-millis", "local-timestamp-micros"
#: commit, label, footer -> whether the numbers are milliseconds, and whether readers are warned.
CASES: dict[tuple[str, str, str], tuple[bool, bool]] = {
    # The commit says milliseconds: so do the numbers, unless the label says local microseconds.
    **{(MILLIS, label, footer): (True, False) for label in ("millis", "none") for footer in ("", MILLIS, "long")},
    **{(MILLIS, "micros", footer): (True, True) for footer in ("", MILLIS, MICROS, "long")},
    (MILLIS, "none", MICROS): (True, True),
    # The commit says microseconds: labels count, and without one the footer.
    **{(MICROS, "millis", footer): (True, False) for footer in ("", MILLIS)},
    **{(MICROS, label, footer): (False, False) for label in ("micros", "none") for footer in ("", MICROS, "long")},
    (MICROS, "micros", MILLIS): (False, True),
    (MICROS, "none", MILLIS): (True, True),
    # Without a zone nobody ever wrote a wrong label; many wrote none.
    **{
        (LOCAL_MILLIS, label, f): (True, False)
        for label in ("local millis", "none")
        for f in ("", LOCAL_MILLIS, "long")
    },
    (LOCAL_MILLIS, "local micros", ""): (False, True),
    (LOCAL_MILLIS, "local micros", LOCAL_MICROS): (False, True),
    (LOCAL_MILLIS, "none", LOCAL_MICROS): (False, True),
    **{(LOCAL_MICROS, "local micros", f): (False, False) for f in ("", LOCAL_MICROS, "long")},
    **{(LOCAL_MICROS, "none", f): (False, False) for f in ("", LOCAL_MICROS, "long")},
    (LOCAL_MICROS, "local millis", ""): (True, False),
    (LOCAL_MICROS, "none", LOCAL_MILLIS): (True, True),
}


@pytest.mark.parametrize(("commit", "label", "footer"), CASES)
def test_the_best_witness_tells_the_unit(commit: str, label: str, footer: str) -> None:
    storage = MemoryStorage()
    make_table(storage, commit, {"a": Witnesses(label, footer)}, [NUMBER, None, -1])
    millis, warned = CASES[commit, label, footer]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        rows = read_table(load_state(storage))
    factor = 1000 if millis else 1
    # A column of milliseconds rounds down what was measured in microseconds.
    cut = 1000 if commit in (MILLIS, LOCAL_MILLIS) else 1
    assert in_micros(rows, "at") == [NUMBER * factor // cut * cut, None, -1 * factor // cut * cut]
    units = {MILLIS: ("ms", "UTC"), MICROS: ("us", "UTC"), LOCAL_MILLIS: ("ms", None), LOCAL_MICROS: ("us", None)}
    assert rows.schema.field("at").type == pa.timestamp(*units[commit])
    found = [each.message for each in seen if isinstance(each.message, ContradictoryTimestamps)]
    assert bool(found) == warned
    assert all(commit in str(each) and "column at" in str(each) for each in found)


def test_times_within_lists_maps_and_structs_are_read_by_their_unit() -> None:
    def nested(stamp: pa.DataType) -> pa.DataType:
        inner = pa.struct([("n", pa.int32()), ("t", stamp)])
        return pa.struct([("l", pa.list_(inner)), ("m", pa.map_(pa.string(), pa.list_(stamp)))])

    value = {"l": [{"n": 1, "t": NUMBER}, None, {"n": None, "t": None}], "m": [("k", [NUMBER, None]), ("e", None)]}
    rows = pa.table({"c": pa.array([value, None, {"l": None, "m": []}], nested(pa.int64()))})
    for label, stamp in ((pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")), (pa.int64(), pa.timestamp("ms"))):
        labelled = pa.table({"c": rows.column("c").chunk(0).view(nested(label))})
        types = stored_types(labelled.schema, pa.schema([("c", nested(stamp))]))
        got = types.applied(labelled).column("c")
        assert got.type == nested(stamp)
        assert got.chunk(0).view(nested(pa.int64())).equals(rows.column("c").chunk(0))
        assert [note.column for note in types.contradictions] == (
            ["c.l.element.t", "c.m.value.element"] if label != pa.int64() else []
        )


def test_a_footer_that_cannot_be_read_is_no_witness() -> None:
    storage = MemoryStorage()
    make_table(storage, MILLIS, {"a": Witnesses("none", '{"type": "millis"')}, [NUMBER])
    assert in_micros(read_table(load_state(storage)), "at") == [NUMBER * 1000]


@pytest.mark.parametrize("name", ["trips_logical_types_json_cow_read_v6", "trips_logical_types_json_mor_read_v8"])
def test_tables_that_hudi_mislabelled_have_the_times_that_hudi_expects(name: str, tmp_path: Path) -> None:
    path = unpacked(name, tmp_path)
    with pytest.warns(ContradictoryTimestamps, match="ts_millis is timestamp-millis in the commits"):
        rows = open_table(path).snapshot(meta=True).to_arrow()
    assert_hudis_times(rows, 20)
    first = load_state(LocalStorage(path)).timeline.commits[0].requested
    with pytest.warns(ContradictoryTimestamps):
        then = open_table(path).snapshot(as_of=first, meta=True).to_arrow()
    assert_hudis_times(then, then.num_rows)
    assert then.num_rows
    with pytest.warns(ContradictoryTimestamps):
        assert_hudis_times(open_table(path).changes("earliest", meta=True).to_arrow(), 20)


def assert_hudis_times(rows: pa.Table, count: int) -> None:
    """Each row has the times just before, or just after, the same boundaries: what Hudi's own tests expect."""
    before = (
        "2019-12-31T23:59:59.999",
        "2020-06-01T11:59:59.999999",
        "2015-05-20T12:34:55.999",
        "2017-07-07T07:07:06.999999",
    )
    after = (
        "2020-01-01T00:00:00.001",
        "2020-06-01T12:00:00.000001",
        "2015-05-20T12:34:56.001",
        "2017-07-07T07:07:07.000001",
    )
    columns = ["ts_millis", "ts_micros", "local_ts_millis", "local_ts_micros"]
    texts = []
    for name, digits in zip(columns, (3, 6, 3, 6), strict=True):
        plain = rows.column(name).cast(pa.timestamp("us")).to_pylist()
        texts.append([value.isoformat(timespec="milliseconds" if digits == 3 else "microseconds") for value in plain])
    found = list(zip(*texts, strict=True))
    assert len(found) == count
    assert set(found) <= {before, after}
    assert count < 20 or set(found) == {before, after}


def old_table(storage: MemoryStorage, options: dict[str, str], *, logs: bool) -> ArrowTable:
    """A table that Hudi 0.15 wrote, where a later commit says what the numbers are."""
    table = ArrowTable.create(storage, options)
    table.insert(old_rows(["a1", "a2", "a3", "b1"], 1))
    if logs:
        table.upsert(old_rows(["a2"], 2, NUMBER + 1))
    declare(storage, NEW_TYPES)
    return table


NEW = 1_700_000_000_123_456


def expected(ids: dict[str, int]) -> dict[str, tuple[int, int, int]]:
    """id -> its three times in microseconds, from the microseconds that were written or the number in an old file."""
    made = {}
    for key, value in ids.items():
        if value == NEW:  # columns of milliseconds hold what is left of them
            made[key] = (NEW // 1000 * 1000, NEW // 1000 * 1000, NEW)
        else:
            made[key] = (value * 1000, value * 1000, value * 1000 + 1)
    return made


def times_of(rows: pa.Table) -> dict[str, tuple[Any, ...]]:
    columns = (in_micros(rows, name) for name in ("at", "here", "exact"))
    return dict(zip(rows.column("id").to_pylist(), zip(*columns, strict=True), strict=True))


@pytest.mark.filterwarnings("ignore::hoodie.errors.ContradictoryTimestamps")
def test_an_upsert_keeps_the_unit_and_mends_the_files_that_it_rewrites() -> None:
    storage = MemoryStorage()
    table = old_table(storage, OPTIONS, logs=False)
    assert times_of(table.snapshot()) == expected(dict.fromkeys(["a1", "a2", "a3", "b1"], NUMBER))
    result = table.upsert(new_rows(["a1", "a9"], 2, NEW))
    wanted = expected({"a1": NEW, "a2": NUMBER, "a3": NUMBER, "a9": NEW, "b1": NUMBER})
    assert times_of(table.snapshot()) == wanted
    assert {name: declared(storage)[name] for name in NEW_TYPES} == NEW_TYPES
    written = [path for path in data_files(storage) if result.instant in path]
    assert written
    for path in written:
        labels = [label_of(storage, path, name) for name in NEW_TYPES]
        assert labels == ["millis", "local millis", "local micros"]
    assert times_of(table.changes("earliest")) == wanted


@pytest.mark.filterwarnings("ignore::hoodie.errors.ContradictoryTimestamps")
@pytest.mark.parametrize("block", ["avro", "parquet"])
def test_a_merge_of_logs_takes_each_file_and_block_by_its_own_unit(block: str) -> None:
    storage = MemoryStorage()
    options = {**MERGE_ON_READ, "hoodie.logfile.data.block.format": block, "hoodie.compact.inline": "false"}
    table = old_table(storage, options, logs=True)
    old = {"a1": NUMBER, "a2": NUMBER + 1, "a3": NUMBER, "b1": NUMBER}
    assert times_of(table.snapshot()) == expected(old)
    table.upsert(new_rows(["a1"], 3, NEW))
    assert times_of(table.snapshot()) == expected({**old, "a1": NEW})
    assert {name: declared(storage)[name] for name in NEW_TYPES} == NEW_TYPES
    table.upsert(new_rows(["b1"], 4, NEW))
    instant = schedule_compaction(storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"}))
    compact(storage, Settings.of({}), instant)
    rows = table.snapshot()
    assert times_of(rows) == expected({**old, "a1": NEW, "b1": NEW})
    assert not any(each.logs for each in table.slices())
    assert times_of(table.read_optimized()) == times_of(rows)


@pytest.mark.filterwarnings("ignore::hoodie.errors.ContradictoryTimestamps")
def test_an_ordering_value_in_milliseconds_is_compared_with_stored_ones() -> None:
    storage = MemoryStorage()
    options = {**MERGE_ON_READ, "hoodie.table.precombine.field": "at", "hoodie.compact.inline": "false"}
    options["hoodie.datasource.write.payload.class"] = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
    table = old_table(storage, options, logs=True)
    earlier, later = NUMBER * 1000 - 1000, NUMBER * 1000 + 5000
    table.upsert(new_rows(["a1"], 9, earlier))
    table.upsert(new_rows(["a3"], 9, later))
    found = {row["id"]: row["seq"] for row in table.snapshot().to_pylist()}
    assert found == {"a1": 1, "a2": 2, "a3": 9, "b1": 1}


def files_in(state: Any) -> list[Any]:
    return list(latest_base_files(load_view(state.storage, state.timeline, state.config)).values())


def test_spark_types_cost_no_look_at_any_file() -> None:
    storage = CountingStorage(MemoryStorage())
    table = ArrowTable.create(storage, OPTIONS)
    with pytest.warns(HudiCannotRead):
        table.insert(new_rows(["a1", "b1"], 1, NEW))
    state = load_state(storage)
    schema = table_schema(state, load_view(storage, state.timeline, state.config))
    files = files_in(state)
    storage.reset()
    assert mislabelled_files(state, files, schema, schema.names) == frozenset()
    assert storage.count() == 0


def test_footers_of_columns_in_doubt_are_read_once() -> None:
    storage = CountingStorage(MemoryStorage())
    said = {"a": Witnesses("micros"), "b": Witnesses("millis"), "c": Witnesses("none")}
    make_table(storage, MILLIS, said, [NUMBER])
    state = load_state(storage)
    schema = table_schema(state, load_view(storage, state.timeline, state.config))
    files = files_in(state)
    storage.reset()
    with pytest.warns(ContradictoryTimestamps):
        found = mislabelled_files(state, files, schema, schema.names)
    assert {file.group.partition for file in found} == {"a", "c"}
    assert storage.count("open_input") == len(files) == 3
    storage.reset()
    with pytest.warns(ContradictoryTimestamps):
        assert mislabelled_files(state, files, schema, schema.names) == found
    assert mislabelled_files(state, files, schema, ["id", "seq"]) == frozenset()
    assert storage.count() == 0


def test_the_plan_of_a_read_by_spark_names_mislabelled_files_and_that_of_others_opens_none() -> None:
    storage = CountingStorage(MemoryStorage())
    make_table(storage, MILLIS, {"a": Witnesses("micros"), "b": Witnesses("millis"), "c": Witnesses("none")}, [NUMBER])
    state = load_state(storage)
    storage.reset()
    assert plan_scan(state).mislabelled == frozenset()
    assert storage.count("open_input") == 0
    with pytest.warns(ContradictoryTimestamps):
        scan = plan_scan(state, for_spark=True)
    assert {file.group.partition for file in scan.mislabelled} == {"a", "c"}
    assert storage.count("open_input") == 3
    assert "2 base files read by Python, for their timestamps' labels" in str(scan)
    assert plan_scan(state, columns=["id"], for_spark=True).mislabelled == frozenset()


# --- partition columns of time-based key generators ---


def test_a_number_that_its_path_shows_as_a_time_is_read_as_stored(tmp_path: Path) -> None:
    """Hudi's SQL declared the column as text, and wrote one file so."""
    path = unpacked("v9_timebasedkeygen_epochmillis", tmp_path)
    rows = open_table(path).snapshot(meta=True).to_arrow()
    assert rows.schema.field("ts_millis").type == pa.int64()
    found = sorted(zip(rows.column("txn_id").to_pylist(), rows.column("ts_millis").to_pylist(), strict=True))
    assert found == [
        ("TXN-001", 1705311000000), ("TXN-001", 1705311000000), ("TXN-002", 1705315500000),
        ("TXN-003", 1705367700000), ("TXN-005", 1705485600000), ("TXN-006", 1705489200000),
    ]  # fmt: skip
    paths = set(rows.column("_hoodie_partition_path").to_pylist())
    assert paths == {f"2024/01/{hour}" for hour in ("15/09", "15/10", "16/01", "17/10", "17/11")}
    older = load_state(LocalStorage(path)).timeline.commits[1].requested
    assert open_table(path).snapshot(as_of=older, meta=True).to_arrow().schema.field("ts_millis").type == pa.int64()
    assert open_table(path).changes("earliest", meta=True).to_arrow().num_rows == 6


def timed(kind: str) -> dict[str, str]:
    prefix = "hoodie.keygen.timebased."
    return {
        **OPTIONS,
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
        prefix + "timestamp.type": kind,
        prefix + "timestamp.scalar.time.unit": "DAYS",
        prefix + "input.dateformat": "yyyy-MM-dd",
        prefix + "output.dateformat": "yyyy/MM/dd",
    }


def timed_table(kind: str, first: list[Any], second: list[Any], *, text: bool = False) -> MemoryStorage:
    """A table of two commits, whose files hold these values of the partition column.

    text  the second is one of Hudi's SQL: its file has the values as text, and its commit says so
    """
    storage = MemoryStorage()
    table = ArrowTable.create(storage, timed(kind))
    for number, values in enumerate((first, second)):
        table.insert(
            pa.table({"id": [f"{number}{at}" for at in range(len(values))], "part": values, "seq": [1] * len(values)})
        )
        if number and text:
            declare(storage, {"part": "string"})
            for path in data_files(storage)[-len(values) :]:
                as_text(storage, path, "part")
    properties = storage.read(".hoodie/hoodie.properties").decode()
    assert "SimpleKeyGenerator" in properties
    properties = properties.replace("SimpleKeyGenerator", "TimestampBasedKeyGenerator")
    storage.write(".hoodie/hoodie.properties", properties.encode())
    return storage


@pytest.mark.parametrize("kind", ["EPOCHMILLISECONDS", "EPOCHMICROSECONDS", "UNIX_TIMESTAMP", "SCALAR"])
def test_files_may_hold_a_time_based_partition_column_as_numbers_or_text(kind: str) -> None:
    storage = timed_table(kind, [17, 18], [-3, 19], text=True)
    rows = read_table(load_state(storage))
    assert rows.schema.field("part").type == pa.int64()
    assert sorted(rows.column("part").to_pylist()) == [-3, 17, 18, 19]
    older = load_state(storage).timeline.commits[0].requested
    assert sorted(read_table(load_state(storage), as_of=older).column("part").to_pylist()) == [17, 18]


def test_only_files_of_commits_that_declare_a_number_as_text_are_looked_at() -> None:
    storage = CountingStorage(timed_table("SCALAR", [17, 18], [-3, 19], text=True))
    state = load_state(storage)
    schema, files = table_schema(state, load_view(storage, state.timeline, state.config)), files_in(state)
    storage.reset()
    found = mislabelled_files(state, files, schema, schema.names)
    assert {file.instant for file in found} == {state.timeline.commits[1].requested}
    assert (len(files), len(found), storage.count("open_input")) == (4, 2, 2)


def test_text_that_is_no_number_names_its_column() -> None:
    marked = pa.schema([pa.field("part", pa.int64(), metadata={ALSO_TEXT: b"true"})])
    rows = pa.table({"part": ["2024/01/17"]})
    with pytest.raises(SchemaMismatch, match="column part is string in a file and bigint in the table"):
        stored_types(rows.schema, marked).applied(rows)


@pytest.mark.parametrize("kind", ["DATE_STRING", "MIXED"])
def test_text_that_its_path_shows_as_a_time_stays_text(kind: str) -> None:
    storage = timed_table(kind, ["2024-01-01"], ["2024-01-02"])
    rows = read_table(load_state(storage), ["part"])
    assert sorted(rows.column("part").to_pylist()) == ["2024-01-01", "2024-01-02"]


# --- times without a zone, which Hudi cannot read in a table of version 6 ---


def test_a_new_column_of_times_without_zone_is_warned_about_once() -> None:
    storage = MemoryStorage()
    table = ArrowTable.create(storage, OPTIONS)
    nulls = {"hoodie.write.missing.columns": "null"}
    rows = pa.table({"id": ["1"], "part": ["a"], "seq": [1]})
    stamps = pa.array([0], pa.int64()).view(pa.timestamp("us"))
    inside = pa.array([[{"t": None}]], pa.list_(pa.struct([("t", pa.timestamp("us"))])))
    with warnings.catch_warnings():
        warnings.simplefilter("error", HudiCannotRead)
        table.upsert(rows.append_column("moment", stamps.cast(pa.timestamp("us", "UTC"))))
    with pytest.warns(HudiCannotRead, match=r"timestamp_ntz: local, inside\.element\.t\. Hudi"):
        table.upsert(rows.append_column("local", stamps).append_column("inside", inside), nulls)
    with warnings.catch_warnings():
        warnings.simplefilter("error", HudiCannotRead)
        table.upsert(rows.append_column("local", stamps), nulls)
    assert pc.count(table.snapshot().column("local")).as_py() == 1
    assert read_commit(storage, table.state().timeline, table.state().timeline.commits[-1]).schema
