"""The metadata table's own compaction, cleaning and archiving."""

import warnings

import pytest

from hoodie.config.options import Options
from hoodie.errors import UnsupportedTable
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.read import partition_slices, slice_records, whole_view
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.metadata.validate import validate_metadata
from hoodie.model.instant import Action, State
from hoodie.reading.row_keys import read_keys
from hoodie.recovery.rollback import rollback
from hoodie.services.metadata_upkeep import archive_table, keep_up, may_be_due
from hoodie.sync import after_commit
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash, CrashAfter, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.view.slices import slice_before
from support.metadata_tables import METADATA, WITH_RECORDS, table_files
from support.nightly import nightly
from support.real_tables import files_of
from unit.metadata.test_metadata_changes import decoded, entries
from unit.metadata.test_metadata_keeping import INDEXES, KINDS, TABLE, assert_kept, file_names, rows, times

SERVICED = {
    "hoodie.table.services.enabled": "true",
    "hoodie.metadata.compact.max.delta.commits": "3",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
}


def metadata_of(made: ArrowTable) -> MetadataTable:
    state = made.state()
    table = open_metadata(made.storage, state.config, state.timeline)
    assert table is not None
    return table


@pytest.mark.parametrize(("kind", "indexes"), [nightly("COW", {}, id="COW"), pytest.param("MOR", INDEXES, id="MOR")])
def test_a_long_history_leaves_a_short_metadata_table(kind: str, indexes: dict[str, str]) -> None:
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS[kind], **SERVICED, **indexes})
    for ts in range(26):
        made.upsert(rows(("a", "oslo"), (f"k{ts % 5}", "rome"), ts=ts))
        if ts % 7 == 0:
            assert_kept(made)
    assert_kept(made)
    table = metadata_of(made)
    assert len(table.timeline.instants) < 60
    assert len(made.state().timeline.instants) < 20  # archived, though its metadata table has a say in it
    assert len(file_names(made)) < 60
    assert table.timeline.completed({Action.COMMIT})
    assert table.timeline.completed({Action.CLEAN})
    assert made.storage.list(f"{METADATA}.hoodie/archived")
    assert table.timeline.instants[0].requested <= table.data.instants[0].requested


@pytest.mark.parametrize("name", [*WITH_RECORDS, "hudi-tables/v6_mor_nested_types"])
def test_compactions_come_to_what_hudis_came_to(name: str) -> None:
    storage = MemoryStorage(table_files(name))
    state = load_state(storage)
    table = open_metadata(storage, state.config, state.timeline)
    assert table is not None
    view, compared = whole_view(table, MetadataPartition.FILES), 0
    compactions = {instant.requested for instant in table.timeline.completed({Action.COMMIT})}
    for group, files in view.groups.items():
        for base in files.bases:
            before = slice_before(view, group, base.instant) if base.instant in compactions else None
            if before is None or before.base is None:
                continue
            theirs = decoded(storage.read(f"{METADATA}{base.path}"), base.path)
            live = {entry for entry in entries(theirs) if not entry[3]}
            assert entries(slice_records(table, MetadataPartition.FILES, before)) == live
            compared += 1
    assert compared


def test_a_compaction_waits_for_what_is_pending_on_the_table() -> None:
    made = ArrowTable.create(MemoryStorage(), TABLE)
    for ts in range(4):
        made.upsert(rows(("a", "oslo"), ts=ts))
    options = Options({**made.options, "hoodie.metadata.compact.max.delta.commits": "3"})
    made.storage.create_new(".hoodie/20200101000000000.commit.requested", b"")
    keep_up(made.storage, Settings.read(options))
    assert times(made, Action.COMMIT) == []
    made.storage.delete(".hoodie/20200101000000000.commit.requested")
    keep_up(made.storage, Settings.read(options))
    assert times(made, Action.COMMIT) == [f"{made.state().timeline.newest_commit}001"]
    assert_kept(made)


def test_upkeep_is_due_at_a_compaction_or_where_a_service_was_begun() -> None:
    """In between a commit does not look after its metadata table: nothing of it gets old."""
    made = ArrowTable.create(MemoryStorage(), TABLE)
    options = Options({**made.options, "hoodie.metadata.compact.max.delta.commits": "4"})
    due = []  # building it was the first delta commit
    for ts in range(4):
        made.upsert(rows(("a", "oslo"), ts=ts))
        due.append(may_be_due(made.state(), Settings.read(options)))
    assert due == [False, False, True, True]
    with pytest.raises(Crash):
        keep_up(CrashAfter(made.storage, 2), Settings.read(options))
    made.upsert(rows(("a", "oslo"), ts=5))
    assert may_be_due(made.state(), Settings.of({**made.options, "hoodie.metadata.compact.max.delta.commits": "99"}))
    keep_up(made.storage, Settings.read(options))
    assert not may_be_due(made.state(), Settings.read(options))
    made.storage.create_new(f"{METADATA}.hoodie/20990101000000000.clean.requested", b"")
    assert may_be_due(made.state(), Settings.read(options))


def test_a_commit_does_not_look_after_a_metadata_table_before_that_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    monkeypatch.setattr(after_commit, "keep_up", lambda *_: kept.append(len(made.state().timeline.commits)))
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **SERVICED, "hoodie.clean.automatic": "false"})
    for ts in range(4):
        made.upsert(rows(("a", "oslo"), ts=ts))
    assert kept == [2, 3, 4]  # building it was the first delta commit


def test_a_file_group_that_was_empty_when_it_was_compacted_takes_what_came_meanwhile() -> None:
    """The compaction gives it no base file, and the slice that its plan opened has a log by then."""
    groups = {"hoodie.metadata.index.bloom.filter.file.group.count": "1"}
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **INDEXES, **groups})
    made.upsert(rows(("a", "oslo")))
    rollback(made.storage, Settings.read(made.options))
    options = Options({**made.options, "hoodie.metadata.compact.max.delta.commits": "1"})
    with pytest.raises(Crash):
        keep_up(CrashAfter(made.storage, 2), Settings.read(options))
    (compaction,) = metadata_of(made).timeline.pending_compactions
    made.upsert(rows(("b", "rome")))
    keep_up(made.storage, Settings.read(options))
    (slice_,) = partition_slices(metadata_of(made), MetadataPartition.BLOOM_FILTERS)
    assert (slice_.base_instant, slice_.base, len(slice_.logs)) == (compaction.requested, None, 1)
    assert_kept(made)


def test_a_compaction_that_died_in_another_writer_is_finished() -> None:
    """Its plan has partitions that are gone, and it left a base file that is cut short."""
    made = ArrowTable(MemoryStorage(table_files("mdt_cow")), {"hoodie.table.services.enabled": "false"})
    before = made.snapshot()
    some = before.drop_columns([name for name in before.column_names if name.startswith("_hoodie_")]).slice(0, 1)
    time = "20261122021804014001"
    made.storage.delete(f"{METADATA}.hoodie/{time}.commit")
    (base,) = [name for name in file_names(made) if name.endswith(f"_{time}.hfile")]
    made.storage.write(f"{METADATA}files/{base}", made.storage.read(f"{METADATA}files/{base}")[:100])
    made = ArrowTable(made.storage, {**made.options, **INDEXES})
    made.upsert(some)
    assert_kept(made, "record_index")
    keep_up(made.storage, Settings.of(made.options))
    assert times(made, Action.COMMIT)[-1] == time
    assert base not in file_names(made)
    assert_kept(made, "record_index")


def test_a_table_is_archived_no_further_than_its_metadata_table_was_compacted() -> None:
    """Readers take a log block only while its instant is on the table's timeline."""
    made = ArrowTable.create(MemoryStorage(), TABLE)
    for ts in range(8):
        made.upsert(rows(("a", "oslo"), ts=ts))
    short = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    assert made.archive(short).instants == ()
    options = Options({**made.options, "hoodie.metadata.compact.max.delta.commits": "3"})
    keep_up(made.storage, Settings.read(options))
    made.upsert(rows(("a", "oslo"), ts=9))
    assert len(made.archive(short).instants) > 3
    assert_kept(made)


def test_an_instant_that_hudi_archived_before_older_ones_counts_still() -> None:
    """It archives cleans apart from commits, each up to the newest compaction of the metadata table."""
    made = ArrowTable.create(MemoryStorage(), TABLE)
    for ts in range(6):
        made.upsert(rows(("a", "oslo"), ts=ts))
    keep_up(made.storage, Settings.of({**made.options, "hoodie.metadata.compact.max.delta.commits": "3"}))
    archived = made.state().timeline.commits[2].requested
    for name in (f"{archived}.commit", f"{archived}.commit.requested", f"{archived}.inflight"):
        made.storage.delete(f".hoodie/{name}")
    assert metadata_of(made).unknown([archived]) == []
    made.upsert(rows(("b", "rome"), ts=9))
    assert times(made, Action.ROLLBACK) == []
    assert_kept(made)


def test_archiving_by_call_compacts_the_metadata_table_first() -> None:
    """Of a table whose services do not run by themselves."""
    made = ArrowTable.create(MemoryStorage(), {**TABLE, "hoodie.metadata.compact.max.delta.commits": "3"})
    for ts in range(8):
        made.upsert(rows(("a", "oslo"), ts=ts))
    short = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.cleaner.commits.retained": "1"}
    assert archive_table(made.storage, Settings.of({**made.options, **short}), dry_run=True).instants == ()
    assert times(made, Action.COMMIT) == []
    assert len(archive_table(made.storage, Settings.of({**made.options, **short})).instants) > 3
    assert_kept(made)


def test_upkeep_leaves_tables_of_earlier_versions_alone() -> None:
    storage = MemoryStorage(files_of("hudi-tables/v5_cow_nonpartitioned"))
    before = storage.copy().snapshot()
    with pytest.raises(UnsupportedTable, match="version 5 can be read"):
        archive_table(storage, Settings.of({"hoodie.metadata.compact.max.delta.commits": "1"}))
    assert storage.snapshot() == before


def test_what_a_compacted_commit_added_is_deleted_by_its_rollback() -> None:
    """Its entries are in base files, which no command block reaches."""
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **INDEXES})
    for ts in range(4):
        made.upsert(rows(("a", "oslo"), (f"k{ts}", f"city{ts}"), ts=ts))
    keep_up(made.storage, Settings.of({**made.options, "hoodie.metadata.compact.max.delta.commits": "3"}))
    undone = rollback(made.storage, Settings.read(made.options)).target
    assert undone not in times(made)
    assert_kept(made)
    made.upsert(rows(("z", "rome")))
    assert_kept(made)


def test_a_metadata_table_that_hudi_compacted_goes_on() -> None:
    made = ArrowTable(MemoryStorage(table_files("mdt_cow")), {"hoodie.table.services.enabled": "false"})
    before = made.snapshot()
    some = before.drop_columns([name for name in before.column_names if name.startswith("_hoodie_")]).slice(0, 1)
    made = ArrowTable(made.storage, {**made.options, **INDEXES})
    made.upsert(some)
    keep_up(made.storage, Settings.of({**made.options, "hoodie.metadata.compact.max.delta.commits": "2"}))
    assert times(made, Action.COMMIT)[-1] == f"{made.state().timeline.newest_commit}001"
    assert_kept(made, "record_index")
    assert all(instant.state is State.COMPLETED for instant in metadata_of(made).timeline.instants)


def test_a_compaction_does_not_rewrite_what_nobody_has_written_to() -> None:
    """A record index keeps its base files while writes only update rows, however long that is ago; keys that come are
    written into some of them."""
    made = ArrowTable.create(MemoryStorage(), {**TABLE, **KINDS["COW"], **SERVICED})
    made.upsert(rows(*((f"k{number}", "oslo") for number in range(100))))
    made.upsert(rows(("k1", "oslo"), ts=1), {"hoodie.metadata.record.index.enable": "true"})

    def bases() -> list[str]:
        return sorted(e.name for e in made.storage.list(f"{METADATA}record_index") if e.name.endswith(".hfile"))

    before = bases()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ts in range(2, 15):
            made.upsert(rows((f"k{ts}", "oslo"), ts=ts), {"hoodie.index.type": "RECORD_INDEX"})
        assert bases() == before
        assert len(metadata_of(made).timeline.completed({Action.COMMIT})) >= 1
        made.upsert(rows(("new", "oslo"), ts=30), {"hoodie.index.type": "RECORD_INDEX"})
        for ts in range(31, 40):
            made.upsert(rows(("new", "oslo"), ts=ts), {"hoodie.index.type": "RECORD_INDEX"})
    assert len(set(bases()) - set(before)) == 1
    state = made.state()
    told = validate_metadata(made.storage, state.config, state.timeline, read_keys=read_keys)
    assert (told.problems, told.partitions["record_index"]) == ((), 101)
