"""The plan of a read as a value: what is read, what is left out and why, in files and bytes."""

import itertools

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import InvalidInput
from hoodie.merge.log_merge import LogMerge, Versions
from hoodie.model.files import parse_data_file
from hoodie.reading.pruning import Pruned, PruneReason
from hoodie.reading.scan import ScanKind, ScanPlan
from hoodie.reading.slices import reader as reader_module
from hoodie.reading.slices.log_scanner import PlacedBlock
from hoodie.reading.slices.projection import MergeColumns
from hoodie.reading.slices.reader import block_versions
from hoodie.reading.snapshot import read_scan, read_table
from hoodie.reading.stream import count_rows
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.scans import plan_scan
from support.trips import TRIPS

COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
BOTH = pytest.mark.parametrize("kind", [COPY_ON_WRITE, MERGE_ON_READ])


def made(kind: str, **options: str) -> ArrowTable:
    return ArrowTable.create(
        MemoryStorage(clock=itertools.count(1_900_000_000_000, 1000).__next__),
        {
            **TRIPS,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.table.services.enabled": "false",
            "hoodie.parquet.small.file.limit": "0",
            **options,
        },
    )


def batch(ts: int, **cities: str) -> pa.Table:
    """Rows by id, each in its city."""
    return pa.table({"id": list(cities), "city": list(cities.values()), "ts": [ts] * len(cities)})


def on_storage(storage: Storage) -> dict[str, int]:
    """Bytes of all data files there are, by path."""
    tree = storage.list_tree("", skip=(".hoodie",))
    return {
        f"{folder}/{entry.name}": entry.size
        for folder, entries in tree.items()
        for entry in entries
        if parse_data_file(folder, entry.name, 0) is not None
    }


def pruned(scan: ScanPlan) -> dict[PruneReason, tuple[int | None, int | None]]:
    """Partitions and files that are left out, by reason."""
    return {part.reason: (part.partitions, part.files) for part in scan.pruned}


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows.column("id").to_pylist())


# --- what is read ---


def test_a_scan_names_the_slices_and_the_bytes_that_a_snapshot_reads() -> None:
    table = made(MERGE_ON_READ)
    table.upsert(batch(1, a="oslo", b="rome"))
    table.upsert(batch(2, a="oslo"))
    scan = plan_scan(table.state())
    sizes = on_storage(table.storage)
    assert scan.kind is ScanKind.SNAPSHOT
    assert [(slice_.group.partition, len(slice_.logs)) for slice_ in scan.slices] == [("oslo", 1), ("rome", 0)]
    assert scan.partitions == ("oslo", "rome")
    assert [len(scan.base_slices), len(scan.log_slices), len(scan.base_files), len(scan.log_files)] == [1, 1, 2, 1]
    assert scan.base_bytes == sum(size for path, size in sizes.items() if path.endswith(".parquet"))
    assert scan.log_bytes == sum(size for path, size in sizes.items() if ".log." in path) > 0
    assert scan.bytes == sum(sizes.values())
    assert scan.pruned == ()


@pytest.mark.parametrize(
    ("filters", "decoded"),
    [(None, {"_hoodie_record_key", "ts"}), (pc.field("city") == "oslo", {"_hoodie_record_key", "ts", "city"})],
)
def test_a_count_decodes_what_logs_are_merged_by_and_what_its_filter_asks_for(
    filters: pc.Expression | None, decoded: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, needed = made(MERGE_ON_READ), list[str]()
    table.upsert(batch(1, a="oslo", b="rome", c="rome"))
    table.upsert(batch(2, a="oslo", c="rome"))
    table.delete(pa.table({"id": ["c"], "city": ["rome"]}))

    def noted(storage: Storage, block: PlacedBlock, columns: MergeColumns, log: LogMerge) -> Versions:
        needed.extend(columns.stored.names)
        return block_versions(storage, block, columns, log)

    monkeypatch.setattr(reader_module, "block_versions", noted)
    scan = plan_scan(table.state(), filters=filters)
    assert count_rows(scan) == read_scan(scan).num_rows == (2 if filters is None else 1)
    needed.clear()
    count_rows(scan)
    assert set(needed) == decoded


def test_columns_and_what_filters_ask_for_are_read_and_no_others() -> None:
    table = made(COPY_ON_WRITE)
    table.upsert(batch(1, a="oslo", b="rome"))
    scan = plan_scan(table.state(), columns=["ts", "id"], filters=[("city", "=", "oslo")])
    assert scan.columns == ("ts", "id")
    assert scan.read == ("ts", "id", "city")
    assert read_scan(scan).to_pylist() == [{"ts": 1, "id": "a"}]
    assert plan_scan(table.state(), columns=["id"], filters=pc.field("ts") > 1).read == ("id", "ts")
    assert read_scan(plan_scan(table.state(), columns=["id"], filters=pc.field("ts") > 1)).num_rows == 0
    with pytest.raises(InvalidInput, match="no column 'towns'"):
        plan_scan(table.state(), columns=["towns"])
    with pytest.raises(InvalidInput, match="no column 'towns'"):
        plan_scan(table.state(), columns=["id"], filters=[("towns", "=", "oslo")])


@BOTH
def test_a_scan_runs_later_as_it_was_planned(kind: str) -> None:
    table = made(kind)
    table.upsert(batch(1, a="oslo"))
    scan = plan_scan(table.state())
    table.upsert(batch(2, a="oslo", b="rome"))
    assert read_scan(scan).column("ts").to_pylist() == [1]
    assert ids(table.snapshot()) == ["a", "b"]


# --- what is left out ---


@BOTH
def test_each_file_of_a_table_is_read_or_left_out_for_one_reason(kind: str) -> None:
    """The storage's own listing is the oracle: files and bytes add up, whatever happened to the table."""
    table = made(kind)
    first = table.upsert(batch(1, a="oslo", b="rome", c="bern")).instant
    table.upsert(batch(2, a="oslo", b="rome"))
    if kind == MERGE_ON_READ:
        options = {**table.options, "hoodie.compact.inline.max.delta.commits": "1"}
        assert schedule_compaction(table.storage, Settings.of(options)) is not None
        compact(table.storage, Settings.of(options))
        assert schedule_compaction(table.storage, Settings.of(options)) is None
    table.upsert(batch(3, a="oslo"))
    table.delete_partitions(["bern"])
    table.upsert(batch(4, d="paris"))
    state, sizes = table.state(), on_storage(table.storage)
    scans = [
        plan_scan(state),
        plan_scan(state, as_of=first),
        plan_scan(state, "read_optimized"),
        plan_scan(state, "read_optimized", as_of=first),
    ]
    for scan in scans:
        assert len(scan.base_files) + len(scan.log_files) + sum(part.files or 0 for part in scan.pruned) == len(sizes)
        assert scan.bytes + sum(part.bytes or 0 for part in scan.pruned) == sum(sizes.values())
    assert [ids(read_scan(scan)) for scan in scans] == [["a", "b", "d"], ["a", "b", "c"]] * 2


def test_older_versions_and_replaced_file_groups_are_left_out() -> None:
    table = made(COPY_ON_WRITE)
    first = table.upsert(batch(1, a="oslo", b="rome")).instant
    table.upsert(batch(2, a="oslo"))
    table.upsert(batch(3, a="oslo"))
    assert pruned(plan_scan(table.state())) == {PruneReason.SUPERSEDED: (0, 2)}
    table.delete_partitions(["rome"])
    scan = plan_scan(table.state())
    assert scan.partitions == ("oslo",)
    assert pruned(scan) == {PruneReason.SUPERSEDED: (0, 2), PruneReason.REPLACED: (1, 1)}
    assert pruned(plan_scan(table.state(), as_of=first)) == {PruneReason.LATER: (0, 2)}


def test_files_of_a_write_that_is_not_completed_are_left_out() -> None:
    table = made(COPY_ON_WRITE)
    table.upsert(batch(1, a="oslo"))
    second = table.upsert(batch(2, b="rome")).instant
    table.storage.delete(f".hoodie/{second}.commit")  # as if its writer had died just before
    scan = plan_scan(table.state())
    assert scan.partitions == ("oslo",)
    assert pruned(scan) == {PruneReason.UNCOMMITTED: (1, 1)}


def test_partitions_that_were_not_asked_for_are_not_listed_and_nobody_knows_their_files() -> None:
    table = made(COPY_ON_WRITE)
    table.upsert(batch(1, a="oslo", b="rome"))
    counting = CountingStorage(table.storage)
    state = load_state(counting)
    counting.reset()
    scan = plan_scan(state, partitions=["oslo"])
    assert (counting.count("list_tree"), counting.count("list"), counting.count("list", "oslo")) == (0, 1, 1)
    assert scan.partitions == ("oslo",)
    assert scan.pruned == (Pruned(PruneReason.NOT_ASKED),)
    assert "in partitions that were not asked for: not listed" in str(scan)
    assert ids(read_scan(scan)) == ["a"]


def test_a_read_optimized_scan_leaves_the_logs_out() -> None:
    table = made(MERGE_ON_READ)
    table.upsert(batch(1, a="oslo"))
    table.upsert(batch(2, a="oslo"))
    scan = plan_scan(table.state(), ScanKind.READ_OPTIMIZED)
    assert (len(scan.base_files), scan.log_files, scan.reader) == (1, (), None)
    assert pruned(scan) == {PruneReason.LOGS: (0, 1)}
    assert read_scan(scan).column("ts").to_pylist() == [1]


def test_a_scan_of_changes_leaves_out_what_the_range_did_not_change() -> None:
    one_row_a_file = {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "1"}
    table = made(MERGE_ON_READ, **one_row_a_file)
    first = table.upsert(batch(1, a="oslo", b="oslo", c="rome")).instant
    second = table.upsert(batch(2, a="oslo")).instant
    scan = plan_scan(table.state(), "changes", begin=first, columns=["id"])
    assert (len(scan.slices), len(scan.log_files), scan.base_files) == (1, 1, ())
    assert scan.times is not None
    assert (scan.times.after, scan.times.up_to) == (first, second)
    assert scan.read == ("id", "_hoodie_commit_time")
    assert pruned(scan) == {
        PruneReason.NOT_WRITTEN: (None, None),
        PruneReason.UNCHANGED: (0, 1),
        PruneReason.OLDER: (0, 1),
    }
    assert repr(scan).startswith(f"Scan(changes in ({first}, {second}]: 1 file slice in 1 partition, 0 base files of ")
    assert (
        read_scan(scan).to_pylist()
        == read_scan(plan_scan(table.state(), ScanKind.CHANGES, begin=first, columns=["id"])).to_pylist()
        == [{"id": "a"}]
    )


# --- cost ---


@BOTH
def test_planning_opens_no_data_file_and_running_lists_nothing(kind: str) -> None:
    table = made(kind)
    first = table.upsert(batch(1, a="oslo", b="rome")).instant
    table.upsert(batch(2, a="oslo"))
    whole = CountingStorage(table.storage)
    state = load_state(whole)
    whole.reset()
    read_table(state)
    counting = CountingStorage(table.storage)
    state = load_state(counting)
    counting.reset()
    scan = plan_scan(state)
    planned = dict(counting.calls)
    assert {folder for _, folder in planned} == {"", ".hoodie"}
    counting.reset()
    str(scan), scan.pruned
    assert not counting.calls
    read_scan(scan)
    assert {folder for _, folder in counting.calls} == {"oslo", "rome"}
    assert {method for method, _ in counting.calls}.isdisjoint({"list", "list_tree"})
    assert dict(whole.calls) == {call: planned.get(call, 0) + counting.calls.get(call, 0) for call in whole.calls}
    assert plan_scan(state, begin=first, kind="changes").state is state


# --- how it prints ---


def test_a_scan_prints_its_slices_files_bytes_and_what_it_leaves_out() -> None:
    table = made(MERGE_ON_READ)
    table.upsert(batch(1, a="oslo", b="rome"))
    second = table.upsert(batch(2, a="oslo")).instant
    scan = plan_scan(table.state(), columns=["id"], filters=[("ts", ">", 1)])
    files = f"2 base files of {scan.base_bytes} bytes and 1 log file of {scan.log_bytes} bytes"
    assert repr(scan) == f"Scan(snapshot: 2 file slices in 2 partitions, {files})"
    oslo, rome = scan.slices
    assert oslo.base is not None
    assert rome.base is not None
    assert str(scan).splitlines() == [
        "snapshot of trips: 2 file slices in 2 partitions",
        f"reads {files}; 1 slice merged with logs",
        "columns: id, ts (2 of 8)",
        "filter on the rows read: (ts > 1)",
        f"  oslo: {oslo.group.file_id}: base file {oslo.base.instant} of {oslo.base.size} bytes, 1 log file of "
        f"{scan.log_bytes} bytes",
        f"  rome: {rome.group.file_id}: base file {rome.base.instant} of {rome.base.size} bytes",
    ]
    assert repr(plan_scan(table.state(), as_of=second)).startswith(f"Scan(as_of {second}: ")
    optimized = plan_scan(table.state(), "read_optimized")
    (left,) = optimized.pruned
    assert f"pruned: 1 file ({left.bytes} bytes) log files, which a read-optimized query leaves out" in str(optimized)


def test_of_many_slices_the_first_are_named() -> None:
    table = made(COPY_ON_WRITE)
    table.upsert(batch(1, **{f"k{number:02}": f"city{number:02}" for number in range(53)}))
    lines = str(plan_scan(table.state())).splitlines()
    assert lines[-1] == "  and 3 more"
    assert sum(line.startswith("  city") for line in lines) == 50


def test_a_table_that_was_never_written_has_an_empty_scan() -> None:
    scan = plan_scan(made(COPY_ON_WRITE).state())
    assert (
        repr(scan)
        == "Scan(snapshot: 0 file slices in 0 partitions, 0 base files of 0 bytes and 0 log files of 0 bytes)"
    )
    assert scan.pruned == ()
    assert read_scan(scan).num_rows == 0


# --- what does not go together ---


def test_a_scan_that_makes_no_sense_is_refused() -> None:
    table = made(COPY_ON_WRITE)
    first = table.upsert(batch(1, a="oslo")).instant
    state = table.state()
    with pytest.raises(InvalidInput, match="kind 'newest': expected one of snapshot, as_of, read_optimized, changes"):
        plan_scan(state, "newest")
    with pytest.raises(InvalidInput, match="changes need begin"):
        plan_scan(state, "changes")
    with pytest.raises(InvalidInput, match="no partitions and no as_of"):
        plan_scan(state, "changes", begin=first, partitions=["oslo"])
    with pytest.raises(InvalidInput, match="begin and end are for changes"):
        plan_scan(state, "read_optimized", begin=first)
    with pytest.raises(InvalidInput, match="needs as_of"):
        plan_scan(state, "as_of")
    with pytest.raises(InvalidInput, match="expected yyyyMMddHHmmss"):
        plan_scan(state, as_of="yesterday")
