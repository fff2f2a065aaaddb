"""Archiving of tables without Spark: what leaves the timeline, what history tells, and whatever dies in between."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.commit.markers import MarkerKind, create_marker, read_markers
from hoodie.config.services import ArchiveOptions
from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, DamagedLog, HoodieError, InvalidOption, ServiceFailed, WriteConflict
from hoodie.formats.avro.container import write_one
from hoodie.formats.log.blocks import read_blocks
from hoodie.formats.timeline import schemas
from hoodie.formats.timeline.archive_log import commit_record, encode_entries
from hoodie.formats.timeline.services import CLEAN_METADATA
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import FileGroupId
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.model.plans import CleanMetadata
from hoodie.plan.archive import Cleaning, instants_to_archive
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.archive import archive, history
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.table.state import declared_schema, load_state
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable, FailsAt
from hoodie.timeline.archive import (
    archive_files,
    archived_among,
    archived_cleans,
    archived_commits,
    archived_entries,
    newest_archived,
    read_archive_file,
    replaced_in_archive,
)
from hoodie.timeline.completions import history_files
from hoodie.timeline.history import history_rows
from hoodie.timeline.timeline import LAYOUT_1, Timeline
from hoodie.timeline.transition import create_requested
from support.nightly import WAYS_TO_DIE, each_call
from support.trips import TRIPS, WRITES, rows

OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
SHORT = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def made(
    storage: Storage, options: Mapping[str, str] | None = None, table: Mapping[str, str] | None = None
) -> ArrowTable:
    ArrowTable.create(storage, {**TRIPS, **(table or {})})
    return ArrowTable(storage, {**WRITES, **(options or {})})


def updated(table: ArrowTable, times: int, city: str = "oslo") -> list[str]:
    return [table.upsert(rows("a", city=city, ts=ts)).instant for ts in range(1, times + 1)]


def active(storage: Storage) -> list[str]:
    return [instant.requested for instant in load_state(storage).timeline.commits]


def told(storage: Storage) -> list[str]:
    """Times of all commits, oldest first."""
    return [instant.requested for instant, _ in reversed(history(load_state(storage), archived=True))]


def entries(storage: Storage) -> list[Instant]:
    return [entry.instant for entry in archived_entries(storage, load_state(storage).config)]


def on_timeline(storage: Storage) -> set[str]:
    return {entry.name for entry in storage.list(".hoodie") if entry.name[0].isdigit()}


# --- what goes ---


def test_the_oldest_commits_leave_the_timeline_and_history_has_them() -> None:
    storage = MemoryStorage()
    table = made(storage, {**SHORT, "hoodie.cleaner.commits.retained": "100"})
    seen: list[str] = []
    for ts in range(1, 9):
        result = table.upsert(rows("a", ts=ts))
        seen.append(result.instant)
        assert 2 <= len(active(storage)) <= 3 or ts == 1
        assert told(storage) == seen
        (_, newest), *_ = history(load_state(storage))
        assert newest == result.metadata
    assert table.snapshot().column("ts").to_pylist() == [8]
    assert all(name.startswith(tuple(seen[-3:])) for name in on_timeline(storage))


def test_the_archive_lies_where_the_properties_say() -> None:
    """Hudi 1.0 makes tables of version 6 whose archive is in `.hoodie/history`."""
    storage = MemoryStorage()
    table = made(storage, OFF)
    update_properties(storage, {"hoodie.archivelog.folder": "history"})
    times = updated(table, 6)
    archive(storage, Settings.of(SHORT))
    folders = {path.rpartition("/")[0] for path in archive_files(storage, load_state(storage).config).values()}
    assert folders == {".hoodie/history"}
    assert storage.list(".hoodie/archived") == []
    assert told(storage) == times
    with pytest.raises(HoodieError, match="archived"):
        table.as_of(times[0])


def test_an_archived_commit_tells_what_it_did() -> None:
    storage = MemoryStorage()
    table = made(storage, OFF, MOR)
    results = [table.upsert(rows("a", "b", ts=1)), table.upsert(rows("a", ts=2)), table.insert_overwrite(rows("c"))]
    results += [table.upsert(rows("c", ts=ts)) for ts in range(2, 5)]
    before = dict(history(load_state(storage)))
    for result in results[:2]:
        for path in result.files:
            storage.delete(path)  # of replaced file groups: as a clean does
    kept = [result.files[0] for result in results[3:]]
    assert all(map(storage.exists, kept))
    options = {
        **SHORT,
        "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    clean_marks_replaced(storage, results[-1].instant)
    gone = archive(storage, Settings.of({**WRITES, **options}))
    assert [instant.requested for instant in gone.instants] == [result.instant for result in results[:4]]
    after = dict(history(load_state(storage), archived=True))
    assert list(after) == list(before)
    log_only = {"log_version": None, "log_offset": None, "base_file": None, "log_files": (), "scan_time": 0}
    for instant, metadata in before.items():
        then = {
            partition: tuple(replace(s, **log_only, upsert_time=0, create_time=0) for s in stats)  # type: ignore[arg-type]
            for partition, stats in metadata.stats.items()
        }
        now = {
            partition: tuple(replace(s, **log_only, upsert_time=0, create_time=0) for s in stats)  # type: ignore[arg-type]
            for partition, stats in after[instant].stats.items()
        }
        assert (now, after[instant].operation, dict(after[instant].replaced), dict(after[instant].extra)) == (
            then,
            metadata.operation,
            dict(metadata.replaced),
            dict(metadata.extra),
        )


def clean_marks_replaced(storage: MemoryStorage, up_to: str) -> None:
    """A completed clean of the past: what was replaced by then is gone."""
    at = f"{int(up_to) + 1}"
    record = {
        "startCleanTime": at,
        "timeTakenInMillis": 1,
        "totalFilesDeleted": 0,
        "earliestCommitToRetain": up_to,
        "lastCompletedCommitTimestamp": up_to,
        "partitionMetadata": {},
        "version": 2,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": {},
    }
    for state in (".requested", ".inflight", ""):
        storage.write(f".hoodie/{at}.clean{state}", write_one(CLEAN_METADATA.document, record))


def test_each_instant_file_has_an_entry_as_hudi_writes_it() -> None:
    storage = MemoryStorage(clock=lambda: 1_700_000_000_123)
    table = made(storage, OFF)
    instants = updated(table, 4)
    result = archive(
        storage,
        Settings.of({**WRITES, **SHORT, "hoodie.clean.automatic": "false", "hoodie.commits.archival.batch": "4"}),
    )
    assert result.file == ".hoodie/archived/.commits_.archive.1_1-0-1"
    states = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)
    assert entries(storage) == [Instant(t, Action.COMMIT, state) for t in instants[:2] for state in states]
    blocks = list(read_blocks(storage.read(result.file), result.file))
    assert [int.from_bytes(block.content[4:8]) for block in blocks] == [4, 2]
    first, *_ = read_archive_file(storage, result.file)
    assert first.column == "hoodieCommitMetadata"
    assert first.record == {
        "partitionToWriteStats": {},
        "extraMetadata": {"ROLLING_STAT": ""},
        "version": None,
        "operationType": "UNKNOWN",
    }
    assert first.changed == "20231114221320123"
    assert f"archived 2 instants to {result.file}" in str(result)


def test_cleans_and_rollbacks_are_counted_apart() -> None:
    def done(action: Action, *times: int) -> list[Instant]:
        return [Instant(f"{time:017d}", action, State.COMPLETED) for time in times]

    instants = [*done(Action.COMMIT, 1, 2), *done(Action.CLEAN, *range(10, 15)), *done(Action.ROLLBACK, *range(20, 24))]
    instants += [*done(Action.RESTORE, *range(30, 39)), *done(Action.INDEXING, *range(40, 49))]
    chosen = instants_to_archive(
        Timeline(tuple(sorted(instants))), ArchiveOptions(min_commits=3, max_commits=4), Cleaning()
    )
    assert chosen == tuple(done(Action.CLEAN, 10, 11))


def test_markers_that_are_left_go_with_their_instant() -> None:
    storage = MemoryStorage()
    instants = updated(made(storage, OFF), 4)
    for instant in instants:
        create_marker(storage, instant, "oslo/x.parquet", MarkerKind.CREATE)
    archive(storage, Settings.of({**SHORT, **OFF}))
    assert [bool(read_markers(storage, instant)) for instant in instants] == [False, False, True, True]


# --- what stays ---


def instant(time: int, action: Action = Action.COMMIT, state: State = State.COMPLETED) -> Instant:
    return Instant(f"{time:02d}", action, state)


def chosen(
    *others: Instant,
    cleaning: Cleaning | None = None,
    delta_commits: int | None = None,
    beyond: bool = False,
    action: Action = Action.COMMIT,
) -> list[int]:
    """Which of ten commits, 10, 20, up to 100, go when two are to stay, with other instants on the timeline."""
    commits = [instant(10 * number, action) for number in range(1, 10)] + [Instant("99", action, State.COMPLETED)]
    timeline = Timeline(tuple(sorted({*commits, *others})))
    options = ArchiveOptions(min_commits=2, max_commits=3, beyond_savepoint=beyond)
    found = instants_to_archive(timeline, options, cleaning or Cleaning(automatic=False), delta_commits)
    return [int(each.requested) for each in found if each.action in COMMITS]


def test_nothing_is_archived_that_something_needs() -> None:
    everything = [10, 20, 30, 40, 50, 60, 70, 80]
    assert chosen() == everything
    # Reads as of the earliest commit that cleaning retains.
    assert chosen(cleaning=Cleaning("60", automatic=False)) == [10, 20, 30, 40]
    # Commits that cleaning has not looked at.
    done = CleanMetadata(start="95", earliest="40", last_completed="90")
    assert chosen(cleaning=Cleaning("", done)) == [10, 20, 30]
    assert chosen(cleaning=Cleaning("", replace(done, earliest=""))) == everything
    assert chosen(cleaning=Cleaning("", replace(done, earliest="", last_completed="50"))) == [10, 20, 30, 40]
    # A pending write, and the completed commit before it.
    assert chosen(instant(55, Action.DELTA_COMMIT, State.INFLIGHT)) == [10, 20, 30, 40]
    assert chosen(instant(5, Action.COMPACTION, State.REQUESTED)) == []
    assert chosen(instant(35, Action.RESTORE, State.REQUESTED)) == [10, 20]
    # Savepoints.
    saved = instant(40, Action.SAVEPOINT)
    assert chosen(saved) == [10, 20, 30]
    assert chosen(replace(saved, state=State.INFLIGHT)) == [10, 20, 30]
    assert chosen(saved, beyond=True) == [each for each in everything if each != 40]


def test_replaced_file_groups_are_known_until_they_are_cleaned() -> None:
    replaced = instant(45, Action.REPLACE_COMMIT)
    done = CleanMetadata(start="95", earliest="60", last_completed="90")
    assert chosen(replaced) == [10, 20, 30, 40]
    assert chosen(replaced, cleaning=Cleaning("", done, automatic=False)) == [10, 20, 30, 40, 45, 50, 60, 70, 80]
    assert chosen(replaced, cleaning=Cleaning("", replace(done, earliest="45"), automatic=False)) == [10, 20, 30, 40]
    by_versions = replace(done, earliest="", last_completed="45")
    assert 45 in chosen(replaced, cleaning=Cleaning("", by_versions, automatic=False))
    by_versions = replace(by_versions, last_completed="44")
    assert chosen(replaced, cleaning=Cleaning("", by_versions, automatic=False)) == [10, 20, 30, 40]
    # A savepoint keeps files of groups that were replaced after it.
    saved = instant(20, Action.SAVEPOINT)
    options = {"cleaning": Cleaning("", done, automatic=False), "beyond": True}
    assert chosen(replaced, saved, **options) == [10, 30, 40]  # type: ignore[arg-type]


def test_a_compaction_finds_the_delta_commits_that_it_counts() -> None:
    delta = Action.DELTA_COMMIT
    assert chosen(action=delta, delta_commits=5) == [10, 20, 30, 40, 50]
    assert chosen(action=delta, delta_commits=50) == []
    compacted = instant(65)
    assert chosen(compacted, action=delta, delta_commits=5) == [10, 20, 30, 40, 50, 60]
    assert chosen(compacted, action=delta, delta_commits=2) == [10, 20, 30, 40, 50, 60, 65, 70, 80]


def test_files_of_replaced_groups_keep_their_replacement_on_the_timeline() -> None:
    storage = MemoryStorage()
    table = made(storage, OFF)
    table.upsert(rows("a"))
    replaced = table.insert_overwrite(rows("b")).instant
    updated(table, 5, "rome")
    clean_marks_replaced(storage, active(storage)[-1])  # it says so, and the files are there
    archive(storage, Settings.of({**SHORT, **OFF}))
    assert active(storage)[0] == replaced
    assert sorted(table.snapshot().column("id").to_pylist()) == ["a", "b"]  # of rome, and of oslo
    table.clean(options={"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS"})
    archive(storage, Settings.of({**SHORT, **OFF}))
    assert len(active(storage)) == 2
    assert sorted(table.snapshot().column("id").to_pylist()) == ["a", "b"]


def test_the_columns_of_the_table_are_known_after_archiving() -> None:
    storage = MemoryStorage()
    table = made(storage, {**OFF, "hoodie.compact.inline.max.delta.commits": "1"}, MOR)
    updated(table, 2)
    for _ in range(4):  # the newest commits are compactions, which do not say what columns there are
        table.upsert(rows("a", ts=9))
        schedule_compaction(storage, Settings.read(table.options))
        compact(storage, Settings.read(table.options))
    schema = declared_schema(load_state(storage))
    newest = max(i.requested for i in load_state(storage).timeline.completed({Action.DELTA_COMMIT}))
    archive(storage, Settings.of({**table.options, "hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2"}))
    assert active(storage)[0] == newest
    assert declared_schema(load_state(storage)) == schema


def test_a_savepoint_stays_with_all_after_it() -> None:
    storage = MemoryStorage()
    table = made(storage, {**SHORT, "hoodie.cleaner.commits.retained": "1"})
    instants = updated(table, 2)
    make_savepoint(storage, Settings.of({}), instants[1])
    later = updated(table, 4)
    assert active(storage) == [instants[1], *later]
    assert told(storage) == [*instants, *later]
    assert table.as_of(instants[1]).column("ts").to_pylist() == [2]


# --- what a person sees ---


def test_a_dry_run_tells_what_would_go_and_changes_nothing() -> None:
    storage = MemoryStorage()
    table = made(storage, OFF)
    instants = updated(table, 5)
    before = storage.snapshot()
    told = table.archive(options=SHORT, dry_run=True)
    assert storage.snapshot() == before
    assert [i.requested for i in told.instants] == instants[:3]
    assert "would archive 3 instants" in str(told)
    assert instants[0] in str(told)
    assert table.archive(options=SHORT).instants == told.instants
    assert table.archive(options=SHORT).instants == ()


def test_limits_that_contradict_each_other_are_refused() -> None:
    storage = MemoryStorage()
    table = made(storage, OFF)
    before = storage.snapshot()
    limits = {"hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "5"}
    for call in (lambda: table.upsert(rows("a"), options=limits), lambda: table.archive(options=limits)):
        with pytest.raises(InvalidOption, match=r"hoodie\.keep\.max\.commits=5 must be greater"):
            call()
    assert storage.snapshot() == before


def test_nothing_is_archived_while_a_restore_is_pending() -> None:
    storage = MemoryStorage()
    table = made(storage, OFF)
    updated(table, 5)
    create_requested(storage, "9" * 17, Action.RESTORE, layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match="restore"):
        table.archive(options=SHORT)


def test_an_instant_that_cannot_be_read_is_not_archived() -> None:
    storage = MemoryStorage()
    table = made(storage, {**OFF, **SHORT})
    instants = updated(table, 5)
    path = f".hoodie/{instants[0]}.commit"
    storage.write(path, b"{broken")
    with pytest.warns(ServiceFailed, match="archiving after it failed: CorruptFile"):
        table.upsert(rows("a", ts=9), options={"hoodie.archive.automatic": "true"})
    assert storage.exists(path)
    assert not archive_files(storage, load_state(storage).config)
    assert table.snapshot().column("ts").to_pylist() == [9]


# --- whatever dies ---


def archivable() -> MemoryStorage:
    storage = MemoryStorage()
    table = made(storage, OFF)
    updated(table, 6)
    create_marker(storage, active(storage)[0], "oslo/x.parquet", MarkerKind.CREATE)
    return storage


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_an_archiver_that_dies_anywhere_loses_nothing_and_tells_nothing_twice(dying: Dying) -> None:
    before = archivable()
    history_before, snapshot = told(before), ArrowTable(before).snapshot()
    for writes in each_call():
        storage = before.copy()
        try:
            archive(CrashAfter(storage, writes, dying), Settings.of({**SHORT, **OFF}))
        except Crash:
            assert told(storage) == history_before
            assert ArrowTable(storage).snapshot().equals(snapshot)
            assert not load_state(storage).timeline.pending()
            archive(storage, Settings.of({**SHORT, **OFF}))
            finished = False
        else:
            finished = True
        assert told(storage) == history_before
        assert active(storage) in (history_before[-2:], history_before[-3:])  # a last one is left for the next time
        assert len(entries(storage)) == len(set(entries(storage))) == 12
        table = ArrowTable(storage, {**WRITES, **SHORT, "hoodie.cleaner.commits.retained": "1"})
        new = updated(table, 2)
        assert told(storage) == [*history_before, *new]
        assert len(entries(storage)) == len(set(entries(storage)))
        if finished:
            break
    assert writes >= 12


def test_a_storage_that_refuses_a_call_leaves_the_rest_to_the_next() -> None:
    before = archivable()
    for at in range(14):
        storage = before.copy()
        try:
            archive(FailsAt(storage, at), Settings.of({**SHORT, **OFF}))
        except OSError:
            archive(storage, Settings.of({**SHORT, **OFF}))
        assert told(storage) == told(before)
        assert len(active(storage)) <= 3


def test_what_another_archiver_wrote_meanwhile_is_not_written_again() -> None:
    storage = archivable()
    other = storage.copy()
    archive(other, Settings.of({**SHORT, **OFF}))
    (path,) = archive_files(other, load_state(other).config).values()

    class Overtaken(FailsAt):
        def create_new(self, name: str, data: bytes) -> None:
            if name == path and not storage.exists(path):
                storage.write(path, other.read(path))
            super().create_new(name, data)

    result = archive(Overtaken(storage, -1), Settings.of({**SHORT, **OFF}))
    assert result.file == ""
    assert len(result.instants) == 4
    assert len(entries(storage)) == 12
    assert active(storage) == active(other)


# --- reading back ---


def entry(time: str, state: State = State.COMPLETED, **more: object) -> dict[str, object]:
    record = commit_record(CommitMetadata(operation=Operation.INSERT, extra={"schema": "s"}))
    made: dict[str, object] = {
        "commitTime": time,
        "actionType": "commit",
        "actionState": state.name,
        "version": 1,
        "hoodieCommitMetadata": record,
    }
    return {**made, **more}


def archive_with(*contents: bytes) -> tuple[MemoryStorage, TableConfig]:
    storage = MemoryStorage()
    made(storage)
    for number, content in enumerate(contents, 1):
        storage.write(f".hoodie/archived/.commits_.archive.{number}_1-0-1", content)
    return storage, load_state(storage).config


def test_files_are_read_by_number_the_newest_first() -> None:
    storage, config = archive_with(*(encode_entries([entry(f"{number}")], 10) for number in range(1, 12)))
    assert list(archive_files(storage, config)) == list(range(11, 0, -1))
    assert [int(found.instant.requested) for found in archived_entries(storage, config)] == list(range(11, 0, -1))


def test_a_merged_file_that_is_not_finished_is_skipped() -> None:
    good = encode_entries([entry("1")], 10)
    storage, config = archive_with(good, b"half a file that is no log")
    with pytest.raises(CorruptFile):
        list(archived_entries(storage, config))
    plan = {
        "version": 1,
        "candidate": [".commits_.archive.1_1-0-1"],
        "mergedArchiveFileName": ".commits_.archive.2_1-0-1",
    }
    storage.write(".hoodie/archived/mergeArchivePlan", write_one(schemas.MERGE_ARCHIVE_PLAN, plan))
    assert [found.instant.requested for found in archived_entries(storage, config)] == ["1"]
    storage.write(".hoodie/archived/.commits_.archive.2_1-0-1", good)  # finished, its parts not yet deleted
    assert len(archived_commits(storage, config)) == 1


def test_a_block_cut_short_is_a_warning() -> None:
    good = encode_entries([entry("1")], 10)
    storage, config = archive_with(good + good[:200])
    with pytest.warns(DamagedLog, match=r"archive\.1"):
        assert [found.instant.requested for found in archived_entries(storage, config)] == ["1"]


def test_an_empty_file_of_the_archive_is_no_shorter_history_that_says_nothing() -> None:
    """Gaps between the numbers of the files say nothing: a merge of older ones leaves them."""
    storage, _ = archive_with(encode_entries([entry("1")], 10), b"")
    with pytest.warns(
        DamagedLog, match=r"archive\.2\S* at byte 0: the file is empty.*instants of the history are lost"
    ):
        commits = history(load_state(storage), archived=True)
    assert commits[-1][0].requested == "1"


def damaged(change: Callable[[bytes], bytes]) -> bytes:
    return change(encode_entries([entry("1"), entry("2")], 10))


@pytest.mark.parametrize(
    "content",
    [
        encode_entries([entry("no time")], 1),
        encode_entries([entry("1", actionType="dance")], 1),
        encode_entries([{**entry("1"), "actionState": "DONE"}], 1),
        encode_entries([entry("")], 1),
        damaged(lambda data: data.replace(b"commitTime", b"commitTimf")),
        damaged(lambda data: data.replace(b"\0\0\0\x03\0\0\0\x02", b"\0\0\0\x03\0\0\0\x03")),
        damaged(lambda data: data.replace(b"\0\0\0\x03\0\0\0\x02", b"\0\0\0\x03\0\0\0\x01")),
        damaged(lambda data: data.replace(b"\0\0\0\x03\0\0\0\x02", b"\0\0\0\x07\0\0\0\x02")),
        damaged(lambda data: data.replace(b'"type":"record"', b'"type":"recorc"')),
    ],
)
def test_an_archive_that_is_damaged_is_no_shorter_history(content: bytes) -> None:
    storage, config = archive_with(content)
    with pytest.raises(CorruptFile, match=r"\.commits_\.archive\.1"):
        archived_commits(storage, config)


def history_of(name: str, rows: Iterable[tuple[str, Action, bytes]]) -> MemoryStorage:
    """A history of one file. rows: time, action and metadata; completed as the next digit"""
    times, actions, contents = zip(*rows, strict=True)
    completed = [str(int(time) + 1) for time in times]
    columns = {"instantTime": times, "completionTime": completed, "action": actions}
    table = pa.table({**columns, "metadata": pa.array(contents, pa.binary())})
    storage, folder = MemoryStorage(), ".hoodie/timeline/history"
    with storage.open_output(f"{folder}/{name}") as file:
        pq.write_table(table, file)
    storage.write(f"{folder}/_version_", b"1")
    storage.write(f"{folder}/manifest_1", json.dumps({"files": [{"fileName": name, "fileLen": 1}]}).encode())
    return storage


_FIELDS = dict.fromkeys(("partitionToWriteStats", "compacted", "extraMetadata", "version", "operationType"))
_UPSERT = write_one(schemas.COMMIT_METADATA, {**_FIELDS, "operationType": "UPSERT", "extraMetadata": {"schema": "s"}})
_OVERWRITE = write_one(
    schemas.REPLACE_COMMIT_METADATA,
    {**_FIELDS, "operationType": "INSERT_OVERWRITE", "partitionToReplaceFileIds": {"oslo": ["f-0"]}},
)


def test_the_history_of_layout_2_is_read() -> None:
    name = "10_30_0.parquet"
    rows = [("10", Action.DELTA_COMMIT, _UPSERT), ("20", Action.CLEAN, b""), ("30", Action.REPLACE_COMMIT, _OVERWRITE)]
    storage = history_of(name, rows)
    config = TableConfig(name="t", version=8, layout=2)
    (newer, replaced), (older, metadata) = archived_commits(storage, config)
    assert newer == Instant("30", Action.REPLACE_COMMIT, State.COMPLETED, "31")
    assert older == Instant("10", Action.DELTA_COMMIT, State.COMPLETED, "11")
    assert replaced.replaced == {"oslo": ("f-0",)}
    assert metadata.schema == "s"
    with storage.open_output(f".hoodie/timeline/history/{name}") as file:
        file.write(b"broken")
    with pytest.raises(CorruptFile, match="no file of the history"):
        archived_commits(storage, config)


def test_an_archive_file_is_decoded_for_the_instants_that_it_names() -> None:
    storage = MemoryStorage()
    table = made(storage, {**OFF, **SHORT})
    first, *_, last = updated(table, 5)
    path = archive(storage, Settings.of(table.options)).file
    done = {time: Instant(time, Action.COMMIT, State.COMPLETED) for time in (first, last)}
    assert archived_among(storage, path, [*done.values()]) == {done[first]}
    storage.write("damaged", b"no archive file")
    assert archived_among(storage, "damaged", [*done.values()]) == set()


@pytest.mark.parametrize("name", ["20_40_0.parquet", "20_30_1.parquet"])
def test_names_of_the_history_do_not_count_on_a_table_that_was_upgraded(name: str) -> None:
    """Hudi names a file by its first and last row, and a merged one by the least first and the greatest last one."""
    clean = CLEAN_METADATA.write(CleanMetadata(start="60"))
    rows = [
        ("20", Action.DELTA_COMMIT, _UPSERT),
        ("60", Action.CLEAN, clean),
        ("50", Action.DELTA_COMMIT, _UPSERT),
        ("10", Action.REPLACE_COMMIT, _OVERWRITE),
        ("40", Action.DELTA_COMMIT, _UPSERT),
        ("30", Action.DELTA_COMMIT, _UPSERT),
    ]
    storage, initial = history_of(name, rows), {"hoodie.table.initial.version": "6"}
    config = TableConfig(name="t", version=9, layout=2, properties=initial)
    group = FileGroupId("oslo", "f-0")
    assert replaced_in_archive(storage, config, [group], "15") == {group}
    assert [clean.start for clean in archived_cleans(storage, config, "55")] == ["60"]
    assert newest_archived(storage, config, "70") == "50"


def test_what_an_archiver_that_died_put_into_the_history_is_not_put_there_twice_on_an_upgraded_table() -> None:
    """It counts, too, where the names of the history's files do not cover it, as those that Hudi gives do not."""
    storage, folder = MemoryStorage(), ".hoodie/timeline/history"
    updated(made(storage, OFF, {"hoodie.write.table.version": "9"}), 8)
    update_properties(storage, {"hoodie.table.initial.version": "6"})
    before = storage.copy()
    archive(storage, Settings.of(SHORT))
    (name,) = history_files(storage, folder)
    before.write(f"{folder}/10_20_0.parquet", storage.read(f"{folder}/{name}"))
    before.write(
        f"{folder}/manifest_1", storage.read(f"{folder}/manifest_1").replace(name.encode(), b"10_20_0.parquet")
    )
    before.write(f"{folder}/_version_", b"1")
    updated(ArrowTable(before, {**WRITES, **OFF}), 1)
    archive(before, Settings.of(SHORT))
    times = [row["instantTime"] for rows in history_rows(before, folder, 10) for row in rows]
    assert len(times) == len({*times}) > 5
