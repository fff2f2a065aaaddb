"""Plans that do not fit their table any more: made to fit, or withdrawn."""

import pytest

from hoodie.errors import InstantNotFound, InvalidPlan, UnsupportedTable, WriteConflict
from hoodie.formats.avro.container import write_one
from hoodie.formats.timeline.plans import COMPACTION_PLAN
from hoodie.model.instant import Action
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import (
    pending_compactions,
    repair_compaction,
    unschedule_compaction,
    validate_compaction,
)
from hoodie.storage.protocol import split
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested
from support.compacting import AFTER_LATER, AFTER_SECOND, LATER, batch, begun, notes, opened, schedule
from support.instants import next_time


def logs(storage: MemoryStorage, partition: str) -> list[str]:
    return sorted(path for path in storage.snapshot() if path.startswith(f"{partition}/.") and ".log." in path)


def base(storage: MemoryStorage, partition: str) -> str:
    (path,) = (path for path in storage.snapshot() if path.startswith(f"{partition}/") and path.endswith(".parquet"))
    return path


def test_a_plan_that_fits_stays_as_it_is(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    before = storage.snapshot()
    assert repair_compaction(storage, Settings.of({}), instant) == []
    assert storage.snapshot() == before


def test_a_log_that_is_gone_is_named_and_can_be_left_out(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    opened(storage).upsert(batch(LATER))
    (gone, *_) = logs(storage, "rome")
    storage.delete(gone)
    with pytest.raises(InvalidPlan, match=split(gone)[1]):
        compact(storage, Settings.of({}), instant)
    with pytest.raises(InvalidPlan, match="repair it first if its files are missing"):
        unschedule_compaction(storage, Settings.of({}), instant)
    (line,) = repair_compaction(storage, Settings.of({}), instant)
    assert split(gone)[1] in line
    assert validate_compaction(storage, instant) == []
    compact(storage, Settings.of({}), instant)
    assert notes(storage) == AFTER_LATER  # what the lost log said of c was said again


def test_a_log_that_the_plan_does_not_know_is_taken_in(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    opened(storage).upsert(batch(LATER))
    (log, *_) = logs(storage, "rome")
    late = log.replace(".log.1_", ".log.2_")
    storage.write(late, storage.read(log))
    assert validate_compaction(storage, instant) == []  # a run takes it in, too
    (line,) = repair_compaction(storage, Settings.of({}), instant)
    assert line.endswith(f"{split(late)[1]} is added")
    (_, plan) = pending_compactions(load_state(storage))[0]
    (rome,) = (operation for operation in plan.operations if operation.group.partition == "rome")
    assert [f"rome/{name}" for name in rome.log_files] == [log, late]
    assert rome.metrics["TOTAL_LOG_FILES"] == 2
    assert rome.metrics["TOTAL_LOG_FILES_SIZE"] == 2 * storage.size(log)
    compact(storage, Settings.of({}), instant)
    assert notes(storage) == AFTER_LATER


def test_a_base_file_that_is_gone_is_named_and_the_plan_can_be_withdrawn(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    gone = base(storage, "rome")
    content = storage.read(gone)
    storage.delete(gone)
    before = storage.snapshot()
    with pytest.raises(InvalidPlan, match=split(gone)[1]):
        compact(storage, Settings.of({}), instant)
    with pytest.raises(InvalidPlan, match=f"{gone}. Restore it"):
        repair_compaction(storage, Settings.of({}), instant)
    assert storage.snapshot() == before
    unschedule_compaction(storage, Settings.of({}), instant)
    assert pending_compactions(load_state(storage)) == []
    storage.write(gone, content)
    compact(storage, Settings.of({}), schedule(storage))
    assert notes(storage) == AFTER_SECOND


def test_files_of_a_run_that_died_are_removed_by_the_repair(storage: MemoryStorage) -> None:
    from hoodie.services.compaction.run import run_on_driver

    instant = schedule(storage)
    job = begun(storage, instant)
    run_on_driver(job)
    storage.delete(logs(storage, "rome")[0])
    assert repair_compaction(storage, Settings.of({}), instant) != []
    assert not [path for path in storage.snapshot() if path.endswith(f"_{instant}.parquet")]
    assert [i.state.name for i, _ in pending_compactions(load_state(storage))] == ["REQUESTED"]


def test_what_cannot_be_repaired_is_told(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    with pytest.raises(InstantNotFound, match="not on the timeline"):
        repair_compaction(storage, Settings.of({}), "20200101000000000")
    create_requested(storage, next_time(storage), Action.DELTA_COMMIT, layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match=f"before compaction {instant} is repaired"):
        repair_compaction(storage, Settings.of({}), instant)


def test_a_plan_of_an_unknown_version_is_neither_repaired_nor_withdrawn(storage: MemoryStorage) -> None:
    record = {"operations": [], "extraMetadata": {}, "version": 3, "strategy": None, "preserveHoodieMetadata": False}
    at = next_time(storage)
    create_requested(storage, at, Action.COMPACTION, write_one(COMPACTION_PLAN.document, record), layout=LAYOUT_1)
    before = storage.snapshot()
    for call in (repair_compaction, unschedule_compaction):
        with pytest.raises(UnsupportedTable, match="version 3; versions 1 and 2 are known"):
            call(storage, Settings.of({}), at)
    assert storage.snapshot() == before
