"""Writes keep the file lists of a table's metadata table, as Hudi does: same instants, same files, same records."""

import json
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.api.write_client import HoodieWriteClient
from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.errors import HoodieError, MetadataTableDropped, MetadataTableIgnored
from hoodie.formats.log.blocks import BlockKind, encode_block, read_blocks
from hoodie.metadata.changes import FileChanges, of_rollback
from hoodie.metadata.encode import record_delete_block
from hoodie.metadata.keeping.follow import follow_change
from hoodie.metadata.keys import FOLDER, MetadataPartition, bloom_filter_key
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.partitions.kind import Change
from hoodie.metadata.read import read_records
from hoodie.metadata.table import open_metadata
from hoodie.metadata.validate import validate_metadata
from hoodie.model.files import BaseFile
from hoodie.model.instant import Action, State
from hoodie.model.plans import RollbackMetadata
from hoodie.reading.row_keys import read_keys
from hoodie.reading.snapshot import read_table
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Entry, join
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.view.load import data_files
from support.metadata_tables import METADATA, metadata_of, table_files
from support.nightly import WAYS_TO_DIE, by_day, scaled
from support.trips import TRIPS

TABLE = {
    **TRIPS,
    "hoodie.table.services.enabled": "false",
    "hoodie.metadata.enable": "true",
}
#: Beside the file lists.
INDEXES = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
KINDS: Mapping[str, dict[str, str]] = {
    "COW": {},
    "MOR": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "CDC": {"hoodie.table.cdc.enabled": "true"},
}


def rows(*pairs: tuple[str, str], ts: int = 1) -> pa.Table:
    return pa.table(
        {"id": [p[0] for p in pairs], "city": [p[1] for p in pairs], "ts": pa.array([ts] * len(pairs), pa.int64())}
    )


def table(kind: str = "COW", **options: str) -> ArrowTable:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS[kind], **options})
    made.upsert(rows(("a", "oslo"), ("b", "rome")))
    return made


def assert_kept(made: ArrowTable, *more: str) -> None:
    """The file lists tell what is on the storage, and reads by them give the rows of reads without."""
    state = made.state()
    indexes = ("bloom_filters", "column_stats") if INDEXES.items() <= made.options.items() else ()
    assert state.config.metadata_partitions == tuple(sorted(("files", *indexes, *more)))
    told = validate_metadata(made.storage, state.config, state.timeline, read_keys=read_keys)
    assert told.problems == ()
    assert told.unread == ()
    if indexes and "city" in made.snapshot().column_names:
        assert_complete(made)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        by_lists = read_table(state)
    by_storage = read_table(state, settings=ReadSettings.read(Options({"hoodie.metadata.enable": "false"})))
    assert by_lists.sort_by("_hoodie_record_key").equals(by_storage.sort_by("_hoodie_record_key"))


def assert_complete(made: ArrowTable) -> None:
    """Each base file of a completed instant has statistics and a filter, and no other has."""
    metadata = metadata_of(made.state())
    listed = data_files(listed_folders(metadata).marked)
    bases = {file.name: file for file in listed if isinstance(file, BaseFile)}
    statistics = read_records(metadata, MetadataPartition.COLUMN_STATS)
    files = [name for name in statistics.column("file").to_pylist() if not name.startswith(".")]
    assert set(files) <= bases.keys()
    for name in bases.keys() - set(files):  # without rows, as a delete may leave it
        assert pq.read_metadata(pa.BufferReader(made.storage.read(bases[name].path))).num_rows == 0
    assert set(statistics.column("column").to_pylist()) >= {"_hoodie_record_key", "id", "city", "ts"}
    filters = read_records(metadata, MetadataPartition.BLOOM_FILTERS).column("row").to_pylist()
    assert sorted(filters) == sorted(bloom_filter_key(file.group.partition, name) for name, file in bases.items())


def times(made: ArrowTable, action: Action = Action.DELTA_COMMIT) -> list[str]:
    metadata = metadata_of(made.state())
    return [i.requested for i in metadata.timeline.instants if i.action is action and i.state is State.COMPLETED]


def file_names(made: ArrowTable) -> list[str]:
    return sorted(entry.name for entry in made.storage.list(f"{METADATA}files") if not entry.is_dir)


def test_a_list_that_moves_on_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its compaction and cleaning take logs away that a reader is about to list."""
    made = table()
    made.upsert(rows(("c", "bern")))
    state, real, missed = made.state(), MemoryStorage.list, list[str]()

    def late(storage: MemoryStorage, folder: str = "") -> list[Entry]:
        entries = real(storage, folder)
        if f"{folder}/" != f"{METADATA}files/" or missed:
            return entries
        missed.append(max(entry.name for entry in entries if ".log." in entry.name))
        made.upsert(rows(("d", "wien")))
        return [entry for entry in entries if entry.name not in missed]

    monkeypatch.setattr(MemoryStorage, "list", late)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        assert sorted(read_table(state).column("id").to_pylist()) == ["a", "b", "c"]
    assert missed


# --- every action ---


def delete(made: ArrowTable) -> None:
    made.delete(rows(("a", "oslo")))


def overwrite(made: ArrowTable) -> None:
    made.insert_overwrite(rows(("x", "oslo"), ("y", "bern")))


def compaction(made: ArrowTable) -> None:
    made.upsert(rows(("a", "oslo"), ts=2))
    options = Options({**made.options, "hoodie.compact.inline.max.delta.commits": "1"})
    if made.state().config.merge_on_read:
        assert schedule_compaction(made.storage, Settings.read(options)) is not None
        made.upsert(rows(("b", "rome"), ts=3))  # beside the plan
        assert compact(made.storage, Settings.read(made.options)) is not None


def cleaning(made: ArrowTable) -> None:
    for ts in range(2, 6):
        made.upsert(rows(("a", "oslo"), ts=ts))
    compaction(made)
    options = Options({**made.options, "hoodie.cleaner.commits.retained": "1"})
    assert clean(made.storage, Settings.read(options)).paths


def rolling_back(made: ArrowTable) -> None:
    made.upsert(rows(("a", "oslo"), ("n", "new"), ts=2))
    rollback(made.storage, Settings.read(made.options))


def rolling_back_twice(made: ArrowTable) -> None:
    """The second rollback deletes logs that the first one put into the lists."""
    rollback(made.storage, Settings.read(made.options), made.upsert(rows(("a", "oslo"), ts=2)).instant)
    first = made.state().timeline.commits[0].requested
    rollback(made.storage, Settings.read(made.options), first)
    made.upsert(rows(("a", "oslo"), ("b", "rome"), ts=3))


def failing(made: ArrowTable) -> None:
    made.fail_next(8, None)
    with pytest.raises((OSError, HoodieError)):
        made.upsert(rows(("a", "oslo"), ("n", "new"), ts=2))


def restoring(made: ArrowTable) -> None:
    saved = make_savepoint(made.storage, Settings.read(made.options)).instant
    compaction(made)
    overwrite(made)
    restore(made.storage, Settings.read(made.options), saved)


ACTIONS: Mapping[str, Callable[[ArrowTable], object]] = {
    "upsert": lambda made: made.upsert(rows(("a", "oslo"), ("n", "new"), ts=2)),
    "insert": lambda made: made.insert(rows(("m", "oslo"))),
    "bulk_insert": lambda made: made.bulk_insert(rows(("m", "oslo"), ("n", "new"))),
    "delete": delete,
    "insert_overwrite": overwrite,
    "insert_overwrite_table": lambda made: made.insert_overwrite_table(rows(("x", "oslo"))),
    "delete_partitions": lambda made: made.delete_partitions(["rome"]),
    "savepoint": lambda made: make_savepoint(made.storage, Settings.read(made.options)),
    "compaction": compaction,
    "clean": cleaning,
    "rollback": rolling_back,
    "a rollback of what is beneath another": rolling_back_twice,
    "failed write": failing,
    "restore": restoring,
}


#: By day each action beside all partitions and beside file lists alone, each time with another kind of table.
BY_DAY = {
    (action, kind, partitions)
    for number, action in enumerate(ACTIONS)
    for partitions, kind in [(("all", "files")[number % 2], list(KINDS)[number % 3])]
} | {("compaction", "MOR", "all"), ("clean", "MOR", "all")}


@pytest.mark.parametrize(
    ("action", "kind", "partitions"), by_day(product(ACTIONS, KINDS, ("files", "all")), BY_DAY.__contains__)
)
def test_the_metadata_table_follows_every_action(action: str, kind: str, partitions: str) -> None:
    made = table(kind, **(INDEXES if partitions == "all" else {}))
    ACTIONS[action](made)
    assert_kept(made)
    made.upsert(rows(("b", "rome"), ("l", "later"), ts=9))
    assert_kept(made)


def test_a_table_without_partitions_has_one_list() -> None:
    options = {key: value for key, value in TABLE.items() if "partitionpath" not in key}
    made = ArrowTable.create(MemoryStorage(), options)
    for ts in range(3):
        made.upsert(rows(("a", "oslo"), (f"k{ts}", "rome"), ts=ts))
        assert_kept(made)
    rollback(made.storage, Settings.read(made.options))
    assert_kept(made)


def test_a_partition_that_cleaning_removes_leaves_the_list_and_may_come_back() -> None:
    made = table()
    made.delete_partitions(["rome"])
    for ts in range(2, 4):
        made.upsert(rows(("a", "oslo"), ts=ts))
    options = Options({**made.options, "hoodie.cleaner.commits.retained": "1"})
    assert clean(made.storage, Settings.read(options)).partitions == ("rome",)
    assert_kept(made)
    assert lists(made) == {"oslo"}
    made.upsert(rows(("b", "rome"), ts=5))
    assert_kept(made)
    assert lists(made) == {"oslo", "rome"}


def lists(made: ArrowTable) -> set[str]:
    metadata = metadata_of(made.state())
    return set(listed_folders(metadata).marked)


def test_an_overwrite_of_the_whole_table_removes_it_and_the_next_write_builds_it() -> None:
    made = table()
    made.replace(rows(("n", "new")), made.options)
    assert made.state().config.metadata_partitions == ()
    assert not made.storage.list(METADATA[:-1])
    made.upsert(rows(("m", "oslo")))
    assert_kept(made)


def test_a_metadata_table_has_an_instant_for_each_of_its_tables() -> None:
    made = table()
    cleaning(made)
    done = made.state().timeline
    assert times(made) == ["00000000000000010", *(i.requested for i in done.instants if i.state is State.COMPLETED)]


def test_a_rollback_writes_its_own_instant_and_takes_back_that_of_the_commit() -> None:
    made = table("MOR")
    undone = made.upsert(rows(("a", "oslo"), ts=2)).instant
    by = rollback(made.storage, Settings.read(made.options)).instant
    assert by in times(made)
    assert undone not in times(made)
    assert times(made, Action.ROLLBACK) == [f"{by}006"]
    commands = [name for name in file_names(made) if name.endswith("_1-0-1")]
    (block,) = read_blocks(made.storage.read(f"{METADATA}files/{commands[0]}"), "log")
    assert (block.kind, block.header.instant, block.header.target) == (BlockKind.COMMAND, f"{by}006", undone)


def test_a_log_of_a_failed_write_may_have_the_size_that_hudi_lists_it_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """1, where Hudi 0.15 rolled it back by markers (tests/vectors/mdt_rollback.json): all in it is taken back."""

    def by_markers(metadata: RollbackMetadata, listed: Mapping[str, Collection[str]] | None = None) -> FileChanges:
        parts = {
            path: replace(part, failed_logs=dict.fromkeys(part.failed_logs, 1))
            for path, part in metadata.partitions.items()
        }
        return of_rollback(replace(metadata, partitions=parts), listed)

    made = table("MOR")
    made.upsert(rows(("a", "oslo"), ts=2))
    monkeypatch.setattr("hoodie.commit.rollback_executor.of_rollback", by_markers)
    rollback(made.storage, Settings.read(made.options))
    assert_kept(made)
    made.upsert(rows(("a", "oslo"), ts=3))
    assert_kept(made)


# --- as Hudi has it ---


def test_a_new_metadata_table_has_hudis_settings_and_files() -> None:
    made = table()
    theirs = table_files("mdt_cow")
    ours = settings(made.storage.read(f"{METADATA}.hoodie/hoodie.properties"))
    assert ours == {**settings(theirs[f"{METADATA}.hoodie/hoodie.properties"]), **names_of("trips", ours)}
    first = ".files-0000-0_00000000000000010.log.1_0-0-0"
    assert made.storage.read(f"{METADATA}files/{first}") == theirs[f"{METADATA}files/{first}"]
    assert settings(made.storage.read(f"{METADATA}files/.hoodie_partition_metadata")) == settings(
        theirs[f"{METADATA}files/.hoodie_partition_metadata"]
    )


def settings(data: bytes) -> dict[str, str]:
    return dict(line.split("=", 1) for line in data.decode().splitlines() if line and not line.startswith("#"))


def names_of(name: str, ours: Mapping[str, str]) -> dict[str, str]:
    return {"hoodie.table.name": f"{name}_metadata", "hoodie.table.checksum": ours["hoodie.table.checksum"]}


#: What differs from run to run: names, sizes and times.
LOOSE = {
    "path",
    "totalWriteBytes",
    "fileSizeInBytes",
    "runtimeStats",
    "baseFile",
    "logFiles",
    "prevCommit",
    "logVersion",
}


def shape(document: Any) -> Any:
    """A commit of the metadata table without what differs from run to run."""
    if isinstance(document, dict):
        return {key: type(value).__name__ if key in LOOSE else shape(value) for key, value in document.items()}
    return [shape(item) for item in document] if isinstance(document, list) else document


@pytest.mark.parametrize(
    ("theirs", "number"), [("00000000000000010.deltacommit", 0), ("20261122021713647.deltacommit", 1)]
)
def test_instants_say_what_hudis_say(theirs: str, number: int) -> None:
    made = table()
    for suffix in ("", ".inflight", ".requested"):
        hudis = table_files("mdt_cow")[f"{METADATA}.hoodie/{theirs}{suffix}"]
        ours = made.storage.read(f"{METADATA}.hoodie/{times(made)[number]}.deltacommit{suffix}")
        if not hudis:
            assert not ours
            continue
        one, other = json.loads(hudis), json.loads(ours)
        for document in (one, other):  # of the file lists alone, and of as many lists
            document["partitionToWriteStats"] = {"files": document["partitionToWriteStats"]["files"]}
            for stat in document["partitionToWriteStats"]["files"]:
                counts = ("numWrites", "numUpdateWrites", "numInserts")
                stat |= {name: stat[name] > 0 for name in counts if name in stat}
        assert shape(one) == shape(other)


# --- tables of real Hudi ---


@pytest.mark.parametrize("name", ["mdt_cow", "mdt_mor_1group"])
def test_a_table_by_hudi_is_carried_on_with_the_partitions_that_are_kept(name: str) -> None:
    storage = MemoryStorage(table_files(name))
    made = ArrowTable(storage, {"hoodie.table.services.enabled": "false"})
    before = made.snapshot()
    some = before.drop_columns([column for column in before.column_names if column.startswith("_hoodie_")]).slice(0, 2)
    made = ArrowTable(storage, {**made.options, **INDEXES})
    made.upsert(some)
    assert_kept(made, "record_index")
    assert made.snapshot().num_rows == before.num_rows
    folders = {path.split("/")[2] for path in storage.list_tree(METADATA[:-1]) if path.count("/") > 1}
    assert folders - {".hoodie"} == {"bloom_filters", "column_stats", "files", "record_index"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableDropped)
        made.upsert(some)
    assert_kept(made, "record_index")


# --- what cannot be kept goes ---


def test_a_metadata_table_that_another_writer_left_behind_is_removed_before_the_commit() -> None:
    made = table()
    without = {path: data for path, data in snapshot_of(made.storage).items() if path.startswith(METADATA)}
    made.upsert(rows(("c", "oslo")))
    for path in snapshot_of(made.storage):
        if path.startswith(METADATA):
            made.storage.delete(path)
    for path, data in without.items():
        made.storage.write(path, data)
    with pytest.warns(MetadataTableDropped, match="it is behind"):
        made.upsert(rows(("d", "oslo")))
    state = made.state()
    assert state.config.metadata_partitions == ()
    assert not made.storage.list(METADATA[:-1])
    assert set(made.snapshot()["id"].to_pylist()) == {"a", "b", "c", "d"}


def test_a_damaged_metadata_table_is_removed_before_the_commit() -> None:
    made = table()
    (base,) = [name for name in file_names(made) if name.endswith(".hfile")]
    made.storage.delete(f"{METADATA}files/{base}")
    with pytest.warns(MetadataTableDropped, match="is gone"):
        made.upsert(rows(("d", "oslo")))
    assert made.state().config.metadata_partitions == ()


def snapshot_of(storage: Any) -> dict[str, bytes]:
    tree = storage.list_tree("")
    paths = [f"{folder}/{e.name}" if folder else e.name for folder, entries in tree.items() for e in entries]
    return {path: storage.read(path) for path in paths}


def test_false_removes_it_and_without_the_option_nothing_is_built() -> None:
    made = table()
    made.upsert(rows(("c", "oslo")), {"hoodie.metadata.enable": "false"})
    assert made.state().config.metadata_partitions == ()
    assert not made.storage.list(METADATA[:-1])
    unset = ArrowTable(made.storage, {k: v for k, v in TABLE.items() if k != "hoodie.metadata.enable"})
    unset.upsert(rows(("d", "oslo")))
    assert not made.storage.list(METADATA[:-1])
    made.upsert(rows(("e", "oslo")))  # true builds it from what is there
    assert_kept(made)
    assert times(made)[0].endswith("010")
    assert len(times(made)[0]) == 20


def test_it_is_not_built_while_an_instant_is_pending() -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS["MOR"], "hoodie.metadata.enable": "false"})
    made.upsert(rows(("a", "oslo")))
    made.upsert(rows(("a", "oslo"), ts=2))
    options = Options({**made.options, "hoodie.compact.inline.max.delta.commits": "1"})
    assert schedule_compaction(made.storage, Settings.read(options)) is not None
    made.upsert(rows(("b", "oslo")), {"hoodie.metadata.enable": "true"})
    assert made.state().config.metadata_partitions == ()
    assert compact(made.storage, Settings.read(made.options)) is not None
    made.upsert(rows(("c", "oslo")), {"hoodie.metadata.enable": "true"})
    assert_kept(made)


# --- died in between ---


def after_each_death(start: ArrowTable, dying: Dying, calls: range) -> Iterator[ArrowTable]:
    """A copy of a table for each call at which a write died, once readers have seen the rows of before or after it and
    another write has gone through."""
    before = set(start.snapshot()["id"].to_pylist())
    for call in calls:
        storage = start.storage.copy()  # type: ignore[attr-defined]
        try:
            ArrowTable(CrashAfter(storage, call, dying), start.options).upsert(rows(("a", "oslo"), ("n", "new"), ts=2))
        except Crash:
            pass
        else:
            return
        made = ArrowTable(storage, start.options)
        assert set(made.snapshot()["id"].to_pylist()) in (before, before | {"n"})
        made.upsert(rows(("z", "rome")))
        yield made
    pytest.fail("the write has more calls than were tried")


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_readers_never_use_lists_of_a_write_that_died(kind: str, dying: Dying) -> None:
    for made in after_each_death(table(kind, **INDEXES), dying, range(0, 90, scaled(8, 3))):
        assert_kept(made)


def test_a_clean_that_died_after_its_lists_were_written_is_finished_without_writing_them_again() -> None:
    made = table()
    for ts in range(2, 6):
        made.upsert(rows(("a", "oslo"), ts=ts))
    options = Options({**made.options, "hoodie.cleaner.commits.retained": "1"})
    assert clean(made.storage, Settings.read(options)).paths
    (done,) = made.state().timeline.completed({Action.CLEAN})
    made.storage.delete(f".hoodie/{done.requested}.clean")
    files = file_names(made)
    assert clean(made.storage, Settings.read(options)).finished == (done.requested,)
    assert file_names(made) == files
    assert_kept(made)


def test_what_a_writer_left_in_the_metadata_table_whose_instant_is_gone_is_taken_back() -> None:
    made = table("MOR")
    made.upsert(rows(("a", "oslo"), ts=2))
    options = Options({**made.options, "hoodie.compact.inline.max.delta.commits": "1"})
    planned = schedule_compaction(made.storage, Settings.read(options))
    assert compact(made.storage, Settings.read(made.options)) is not None
    for suffix in ("commit", "compaction.inflight", "compaction.requested"):  # unscheduled, after its lists were there
        made.storage.delete(f".hoodie/{planned}.{suffix}")
    for slice_ in made.slices():
        if slice_.base is not None and slice_.base.instant == planned:
            made.storage.delete(slice_.base.path)
    made.upsert(rows(("c", "rome")))
    assert planned not in times(made)
    assert_kept(made)


def test_what_a_writer_wrote_that_began_since_the_timeline_was_loaded_stays() -> None:
    """Without a lock it may come between the two listings."""
    made = table("MOR")
    state = made.state()
    later = made.upsert(rows(("c", "rome"))).instant
    by = f"{int(later) + 1:017}"
    follow_change(Change(made.storage, state.config, state.timeline, by, FileChanges()))
    assert times(made)[-2:] == [later, by]
    assert times(made, Action.ROLLBACK) == []


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_a_rollback_in_the_metadata_table_that_died_is_finished_by_the_next_action(dying: Dying) -> None:
    start = table("MOR", **INDEXES)
    start.upsert(rows(("a", "oslo"), ts=2))
    for call in range(1, 60, scaled(9, 4)):
        storage = start.storage.copy()  # type: ignore[attr-defined]
        try:
            rollback(CrashAfter(storage, call, dying), Settings.read(start.options))
        except Crash:
            pass
        else:
            return
        made = ArrowTable(storage, start.options)
        made.upsert(rows(("z", "rome")))
        assert_kept(made)
        state = made.state()
        metadata = open_metadata(storage, state.config, state.timeline)
        assert all(instant.state is State.COMPLETED for instant in metadata.timeline.instants)
    pytest.fail("the rollback has more calls than were tried")


# --- several writers ---


def test_writers_under_a_lock_keep_it_together() -> None:
    locked = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "StorageBasedLockProvider",
        "hoodie.table.services.enabled": "true",
        "hoodie.metadata.compact.max.delta.commits": "4",
        "hoodie.write.num.retries.on.conflict.failures": "9",
    }
    made = table("MOR", **locked, **INDEXES)

    def write(city: str) -> None:
        for ts in range(2, 8):
            made.upsert(rows((f"{city}{ts}", city), (city, city), ts=ts))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, ["bern", "kiel", "lyon"]))
    assert_kept(made)
    assert len(made.snapshot()) == 2 + 3 * 7
    assert times(made, Action.COMMIT)


@pytest.mark.parametrize("kind", ["COW", "MOR"])
def test_what_a_slower_writer_put_behind_the_block_of_one_that_died_is_listed(kind: str, tmp_path: Path) -> None:
    locked = {
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "StorageBasedLockProvider",
    }
    made = ArrowTable.create(LocalStorage(tmp_path), {**TABLE, **KINDS[kind], **locked})
    made.upsert(rows(("a", "oslo")))
    slower, later = (HoodieWriteClient(str(tmp_path), made.options) for _ in range(2))
    earlier, died = slower.start_commit(), later.start_commit()
    later.upsert(rows(("b", "rome")), died)
    for file in [*tmp_path.glob(f".hoodie/{died}.*commit"), *tmp_path.glob(f"{METADATA}.hoodie/{died}.*commit")]:
        file.unlink()
    slower.upsert(rows(("c", "bern")), earlier)
    assert_kept(made)
    metadata = metadata_of(made.state())
    assert metadata.newest > died  # Hudi 0.15 ends its scan at the first block that is later
    assert sorted(made.snapshot()["id"].to_pylist()) == ["a", "c"]


@pytest.mark.parametrize("partition", [MetadataPartition.COLUMN_STATS, MetadataPartition.BLOOM_FILTERS])
def test_records_that_another_writer_deleted_by_their_keys_are_gone(partition: MetadataPartition) -> None:
    """As Hudi 1.2 does in tables of version 6 with the statistics of cleaned files."""
    made = table(**INDEXES)

    def keys() -> list[str]:
        metadata = metadata_of(made.state())
        return read_records(metadata, partition).column("row").to_pylist()

    before, newest = keys(), times(made)[-1]
    block = encode_block(record_delete_block(newest, partition, pa.array(before[:1])))
    logs = [
        join(folder, entry.name)
        for folder, entries in made.storage.list_tree(f"{FOLDER}/{partition}").items()
        for entry in entries
        if ".log." in entry.name
    ]
    path = max(logs, key=lambda path: path.rpartition(".log.")[2])
    made.storage.write(path, made.storage.read(path) + block)
    assert sorted(keys()) == sorted(before[1:])
