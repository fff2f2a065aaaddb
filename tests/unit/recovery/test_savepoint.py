"""Savepoints: what they keep, when they are refused, and that reads as of them stay right."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hoodie.errors import HoodieError, InstantNotFound, InvalidInput, InvalidPlan, WriteConflict
from hoodie.formats.timeline.services import encode_clean_metadata, encode_clean_plan
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie.recovery.savepoint import make_savepoint, read_savepoints, savepointed_files
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.savepoint import delete_savepoint
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, split
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import complete, create_requested, instant_path, to_inflight
from support.oracles import assert_same_rows, read_hudi_rs
from support.undoing import (
    COW,
    LATER,
    MOR,
    NOW,
    THIRD,
    Meanwhile,
    batch,
    data_files,
    dying,
    newest,
    opened,
    table,
    upsert,
)


def as_of(storage: Storage, instant: str) -> dict[str, str]:
    return {row["id"]: row["note"] for row in opened(storage).as_of(instant).to_pylist()}


def clean_all_but(storage: MemoryStorage, kept: frozenset[str]) -> None:
    """Remove what is in no newest slice and not kept, as the sharpest cleaning would."""
    latest = {file.path for each in opened(storage).slices() for file in (each.base, *each.logs) if file}
    for path in data_files(storage) - latest - kept:
        storage.delete(path)


@pytest.mark.parametrize("texts", [{"comment": "caf\udce9"}, {"user": "\ud800"}])
def test_a_savepoint_whose_texts_are_no_unicode_is_refused_before_anything_is_written(texts: dict[str, str]):
    storage = table(COW)
    files = storage.snapshot()
    with pytest.raises(InvalidInput, match="no Unicode text"):
        make_savepoint(storage, Settings.of({}), **texts)
    assert storage.snapshot() == files


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_a_table_reads_as_of_a_savepoint_after_all_else_is_cleaned(options):
    storage = table(options)
    made = make_savepoint(storage, Settings.of({}), comment="before the migration", user="ann", millis=lambda: 17)
    assert made.instant == newest(storage).requested
    then = as_of(storage, made.instant)
    upsert(storage, THIRD)
    if options is MOR:
        compact(storage, Settings.of({}), schedule_compaction(storage, Settings.of(NOW)))
    opened(storage).insert_overwrite_table(batch(LATER))
    upsert(storage, THIRD)
    clean_all_but(storage, savepointed_files(load_state(storage)))
    assert as_of(storage, made.instant) == then == {"a": "first", "b": "second", "c": "second"}
    assert read_savepoints(load_state(storage)) == [made]
    assert (made.user, made.comment, made.at) == ("ann", "before the migration", 17)


def test_a_savepoint_names_base_and_log_files_of_the_slices_that_a_reader_of_then_needs():
    storage = table(MOR)
    made = make_savepoint(storage, Settings.of({}))
    assert made.files == data_files(storage)
    assert any(".log." in path for path in made.files)


def test_a_savepoint_while_a_compaction_is_pending_keeps_the_base_file_it_reads():
    storage = table(MOR)
    planned = schedule_compaction(storage, Settings.of(NOW))
    upsert(storage, THIRD)
    made = make_savepoint(storage, Settings.of({}))
    assert made.files == data_files(storage)
    then = as_of(storage, made.instant)
    compact(storage, Settings.of({}), planned)
    assert as_of(storage, made.instant) == then


def test_a_savepoint_of_a_real_table_says_what_hudis_said(fixture_table: Callable[[str], Path]):
    storage = LocalStorage(fixture_table("cow_savepoint"))
    state = load_state(storage)
    (saved,) = state.timeline.completed({Action.SAVEPOINT})
    (theirs,) = read_savepoints(state)
    schema, record = avro(storage.read(instant_path(saved, layout=LAYOUT_1)))
    delete_savepoint(storage, Settings.of({}), saved.requested)
    with pytest.raises(InvalidPlan, match="keeps nothing older than"):
        make_savepoint(storage, Settings.of({}), saved.requested)
    for path in list(storage.list(".hoodie")):  # the cleanings knew of Hudi's savepoint
        if ".clean" in path.name:
            storage.delete(f".hoodie/{path.name}")
    ours = make_savepoint(storage, Settings.of({}), saved.requested, user=theirs.user, millis=lambda: theirs.at)
    assert ours == theirs
    own_schema, own_record = avro(storage.read(instant_path(saved, layout=LAYOUT_1)))
    assert own_record == record
    assert [field["name"] for field in own_schema["fields"]] == [field["name"] for field in schema["fields"]]
    assert storage.size(f".hoodie/{saved.requested}.savepoint.inflight") == 0


def avro(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    reader = fastavro.reader(io.BytesIO(data))
    return reader.writer_schema, next(reader)


def test_a_real_savepoint_reads_as_of_then(fixture_table: Callable[[str], Path]):
    folder = fixture_table("cow_savepoint")
    (saved,) = load_state(LocalStorage(folder)).timeline.completed({Action.SAVEPOINT})
    ours = ArrowTable(LocalStorage(folder)).as_of(saved.requested)
    assert_same_rows(ours, read_hudi_rs(folder, as_of=saved.requested))
    assert len(ours) > 0


def test_a_deleted_savepoint_is_gone_and_may_be_made_again():
    storage = table()
    before = storage.snapshot()
    made = make_savepoint(storage, Settings.of({}))
    assert savepointed_files(load_state(storage)) == made.files
    delete_savepoint(storage, Settings.of({}), made.instant)
    assert storage.snapshot() == before
    assert savepointed_files(load_state(storage)) == frozenset()
    assert make_savepoint(storage, Settings.of({}), made.instant).files == made.files


def test_a_savepoint_that_is_deleted_while_savepoints_are_read_is_none():
    storage = table()
    made = make_savepoint(storage, Settings.of({}))
    state = load_state(storage)
    delete_savepoint(storage, Settings.of({}), made.instant)
    assert read_savepoints(state) == []
    assert savepointed_files(state) == frozenset()


# --- what is refused, with nothing changed ---


def refused(storage: MemoryStorage, kind: type[HoodieError], match: str, instant: str | None = None) -> None:
    before = storage.snapshot()
    with pytest.raises(kind, match=match):
        make_savepoint(storage, Settings.of({}), instant)
    assert storage.snapshot() == before


def test_only_a_completed_commit_can_be_a_savepoint():
    storage = table()
    create_requested(storage, "20990101000000000", Action.COMMIT, layout=LAYOUT_1)
    refused(storage, InstantNotFound, "is not completed", "20990101000000000")
    refused(storage, InstantNotFound, "not a commit of the active timeline", "20200101000000000")
    empty = MemoryStorage()
    ArrowTable.create(empty, COW)
    refused(empty, InstantNotFound, "no completed commit")
    with pytest.raises(InstantNotFound, match="Savepoints: none"):
        delete_savepoint(storage, Settings.of({}), "20990101000000000")


def test_a_second_savepoint_of_a_commit_is_refused():
    storage = table()
    make_savepoint(storage, Settings.of({}))
    refused(storage, InvalidInput, "is a savepoint already")


def cleaned(
    storage: Storage, paths: set[str], *, done: bool, earliest: str = "", time: str = "20980101000000000"
) -> None:
    """A cleaning that removed, or is to remove, files."""
    names: dict[str, tuple[str, ...]] = {}
    for path in sorted(paths):
        names[split(path)[0]] = (*names.get(split(path)[0], ()), split(path)[1])
    kept = (earliest, "commit", "COMPLETED") if earliest else None
    plan = encode_clean_plan(CleanPlan(policy="", earliest=kept, files=names), storage.root)
    begun = create_requested(storage, time, Action.CLEAN, plan, layout=LAYOUT_1)
    if done:
        parts = {
            partition: CleanedPartition(policy="", planned=found, deleted=found) for partition, found in names.items()
        }
        done_ = CleanMetadata(start=time, earliest=earliest, partitions=parts)
        complete(
            storage, to_inflight(storage, begun, plan, layout=LAYOUT_1), encode_clean_metadata(done_), layout=LAYOUT_1
        )
        for path in paths:
            storage.delete(path)


@pytest.mark.parametrize("done", [False, True])
def test_a_commit_that_cleaning_has_reached_is_refused(done: bool):
    storage = table()
    second = newest(storage).requested
    mine = {each.base.path for each in opened(storage).slices() if each.base}
    upsert(storage, THIRD)
    by_commits = storage.copy()
    cleaned(by_commits, set(), done=done, earliest=newest(storage).requested)
    refused(by_commits, InvalidPlan, "keeps nothing older than", second)
    make_savepoint(by_commits, Settings.of({}))  # what is newest stays
    latest = {each.base.path for each in opened(storage).slices() if each.base}
    by_versions = storage.copy()
    cleaned(by_versions, mine - latest, done=done)
    refused(by_versions, InvalidPlan, "removes ", second)
    older = storage.copy()
    cleaned(older, data_files(storage) - mine - latest, done=done)
    make_savepoint(older, Settings.of({}), second)


def test_groups_that_were_replaced_before_may_be_cleaned():
    storage = table()
    gone = data_files(storage)
    opened(storage).insert_overwrite_table(batch(LATER))
    saved = newest(storage).requested
    upsert(storage, THIRD)
    cleaned(storage, gone, done=True)
    assert make_savepoint(storage, Settings.of({}), saved).instant == saved


def test_a_cleaning_that_was_planned_before_the_savepoint_was_there_is_seen():
    storage = table()
    second = newest(storage).requested
    upsert(storage, THIRD)
    mine = next(path for path in data_files(storage) if second in path)
    racing = Meanwhile(storage, ".savepoint.inflight", lambda inner: cleaned(inner, {mine}, done=False))
    with pytest.raises(InvalidPlan, match="removes"):
        make_savepoint(racing, Settings.of({}), second)
    assert read_savepoints(load_state(storage)) == []
    assert not [path for path in storage.snapshot() if "savepoint" in path]


def test_no_savepoint_is_made_or_deleted_during_a_restore():
    storage = table()
    make_savepoint(storage, Settings.of({}))
    create_requested(storage, "20990101000000000", Action.RESTORE, layout=LAYOUT_1)
    refused(storage, WriteConflict, "is being restored", newest(storage).requested)
    with pytest.raises(WriteConflict, match="is being restored"):
        delete_savepoint(storage, Settings.of({}), newest(storage).requested)


# --- dying ---


@pytest.mark.parametrize("how", Dying)
def test_a_savepoint_that_died_anywhere_is_there_or_not_and_can_be_made_again(how: Dying):
    storage = table(MOR)
    files = data_files(storage)
    for died in dying(how, storage, lambda storage: make_savepoint(storage, Settings.of({}))):
        there = read_savepoints(load_state(died))
        assert [each.files for each in there] in ([], [files])
        if not there:
            make_savepoint(died, Settings.of({}))
        assert savepointed_files(load_state(died)) == files
        upsert(died, THIRD)


@pytest.mark.parametrize("how", Dying)
def test_a_deletion_that_died_anywhere_can_be_done_again(how: Dying):
    storage = table()
    instant = make_savepoint(storage, Settings.of({})).instant
    for died in dying(how, storage, lambda storage: delete_savepoint(storage, Settings.of({}), instant)):
        assert len(read_savepoints(load_state(died))) in (0, 1)
        if load_state(died).timeline.find(instant, Action.SAVEPOINT):
            delete_savepoint(died, Settings.of({}), instant)
        assert load_state(died).timeline.find(instant, Action.SAVEPOINT) is None


def test_a_savepoint_that_only_began_keeps_nothing_and_can_be_deleted():
    storage = table()
    instant = newest(storage).requested
    to_inflight(storage, Instant(instant, Action.SAVEPOINT, State.INFLIGHT), layout=LAYOUT_1)
    assert savepointed_files(load_state(storage)) == frozenset()
    assert make_savepoint(storage, Settings.of({})).instant == instant
