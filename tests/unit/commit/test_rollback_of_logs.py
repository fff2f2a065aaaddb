"""Writers of Merge-on-Read tables that die: what readers see, what the next writer makes of it."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import pytest

from hoodie.commit.rollback_executor import roll_back
from hoodie.commit.transaction import clean_up
from hoodie.errors import DamagedLog
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.timeline.services import decode_rollback_metadata, decode_rollback_plan
from hoodie.model.files import LogFile, parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.storage.protocol import Storage, split
from hoodie.table.state import load_state
from hoodie.testing.storage import Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from support import undoing
from support.compacting import OPTIONS, Rows, batch
from support.nightly import WAYS_TO_DIE
from support.own_indexes import EXACT
from support.undoing import read_rs

BEFORE: Rows = {"a": ("oslo", 1, "old"), "b": ("oslo", 1, "old"), "c": ("rome", 1, "old")}
LOGGED: Rows = {"b": ("oslo", 2, "logged")}
CHANGES: Rows = {"a": ("oslo", 3, "new"), "c": ("rome", 3, "new"), "d": ("bern", 3, "new")}
LATER: Rows = {"b": ("oslo", 4, "later"), "c": ("rome", 4, "later"), "e": ("bern", 4, "later")}


def opened(storage: Storage) -> ArrowTable:
    return ArrowTable(storage, {key: value for key, value in OPTIONS.items() if "driver" in key or "limit" in key})


def upsert(storage: Storage, rows: Rows, options: Mapping[str, str] | None = None) -> str:
    return opened(storage).upsert(batch(rows), options=options).instant


def table() -> MemoryStorage:
    """Two slices, one of them with a log."""
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    upsert(storage, BEFORE)
    upsert(storage, LOGGED)
    return storage


START = {**BEFORE, **LOGGED}


def read(storage: Storage, torn: bool = False) -> Rows:
    """What a snapshot reader sees; it warns of nothing but files that were written in part."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if torn else "error", DamagedLog)
        found = opened(storage).snapshot().to_pylist()
    rows = {row["id"]: (row["city"], row["ts"], row["note"]) for row in found}
    assert len(rows) == len(found), "a key occurs twice"
    return rows


def dead_write(rows: Rows = CHANGES) -> tuple[MemoryStorage, Instant]:
    """A table in which a writer died right before it published; its instant."""
    left = undoing.dying(Dying.BEFORE, table(), lambda storage: upsert(storage, rows))
    for storage in reversed(left):
        pending = load_state(storage).timeline.pending()
        if pending and pending[0].state is State.INFLIGHT:
            return storage, pending[0]
    raise AssertionError


def logs(storage: MemoryStorage) -> dict[str, bytes]:
    return {path: data for path, data in storage.snapshot().items() if ".log." in path and not path.startswith(".hood")}


def targets(data: bytes) -> list[str | None]:
    """The instants that command blocks of a log file take back."""
    return [block.header.target for block in read_blocks(data, "log") if block.kind is BlockKind.COMMAND]


def version(path: str) -> int:
    log = parse_data_file(*split(path), 0)
    assert isinstance(log, LogFile)
    return log.version


def commands(storage: MemoryStorage) -> list[str | None]:
    return [target for data in logs(storage).values() for target in targets(data)]


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_a_writer_that_dies_anywhere_leaves_the_old_rows_or_the_new(dying: Dying):
    left = undoing.dying(dying, table(), lambda storage: upsert(storage, CHANGES))
    assert len(left) > 10  # requested, inflight, markers, logs, metafile, base file, completed, markers again
    seen = []
    for storage in left:
        torn = dying is Dying.TORN
        found = read(storage, torn)
        assert found in (START, {**START, **CHANGES})
        seen.append(found != START)
        upsert(storage, LATER)
        assert read(storage, torn) == {**found, **LATER}
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (False, True)


@pytest.mark.parametrize("dying", [Dying.BEFORE, Dying.AFTER])
def test_hudi_rs_reads_the_same_rows_after_a_rollback(tmp_path: Path, dying: Dying):
    left = undoing.dying(dying, table(), lambda storage: upsert(storage, CHANGES))
    for number, storage in enumerate(left[3::2]):
        assert read_rs(storage, tmp_path / f"{number}-dead") == read(storage)
        clean_up(load_state(storage))
        assert read_rs(storage, tmp_path / f"{number}-clean") == read(storage)
        upsert(storage, LATER)
        assert read_rs(storage, tmp_path / f"{number}-later") == read(storage)


def test_a_rollback_takes_blocks_back_by_a_command_block_after_them_and_deletes_base_files():
    storage, dead = dead_write()
    before, new = logs(storage), [path for path in storage.snapshot() if dead.requested in path and "parquet" in path]
    assert len([path for path in new if not path.startswith(".hoodie")]) == 1
    clean_up(load_state(storage))
    after = logs(storage)
    assert {path: after[path] for path in before} == before  # what a reader has listed is still there
    added = {path: data for path, data in after.items() if path not in before}
    assert [targets(data) for data in added.values()] == [[dead.requested]] * 2  # of oslo and rome
    for path, data in added.items():
        folder, name = split(path)
        log = parse_data_file(folder, name, 0)
        assert isinstance(log, LogFile)
        others = [parse_data_file(*split(other), 0) for other in before if split(other)[0] == folder]
        of_slice = [one for one in others if isinstance(one, LogFile) and one.base_instant == log.base_instant]
        assert log.version == max(one.version for one in of_slice) + 1
        assert log.token == "1-0-1"
        (block,) = read_blocks(data, path)
        assert (block.header.instant, len(data)) == (load_state(storage).timeline.newest, 105)
    assert not [path for path in storage.snapshot() if dead.requested in path.rpartition("/")[2]]
    assert read(storage) == START


def test_the_rollbacks_plan_and_outcome_are_on_the_timeline_as_hudi_has_them():
    storage, dead = dead_write()
    clean_up(load_state(storage))
    (done,) = load_state(storage).timeline.completed({Action.ROLLBACK})
    path = f".hoodie/{done.requested}.rollback"
    plan = decode_rollback_plan(storage.read(f"{path}.requested"), path)
    outcome = decode_rollback_metadata(storage.read(path), path)
    appended = [request for request in plan.requests if request.log_blocks]
    assert len(appended) == 2
    assert all(request.file_id and request.base_instant and not request.delete for request in appended)
    assert [len(request.delete) for request in plan.requests if not request.log_blocks] == [1]
    for partition in ("oslo", "rome"):
        part = outcome.partitions[partition]
        assert list(part.command_logs.values()) == [105]
        assert {f"{partition}/{name}": size for name, size in part.failed_logs.items()} == {
            path: len(data)
            for path, data in logs(storage).items()
            if any(f"{partition}/{name}" == path for name in part.failed_logs)
        }
    assert outcome.commits == (dead.requested,)
    assert not storage.list_tree(".hoodie/.temp")


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_a_rollback_that_died_anywhere_is_taken_up_and_each_slice_gets_one_command_block(dying: Dying):
    dead, failed = dead_write()
    left = undoing.dying(dying, dead, lambda storage: clean_up(load_state(storage)))
    assert len(left) > 10
    for storage in left:
        assert read(storage) == START
        clean_up(load_state(storage))
        assert commands(storage) == [failed.requested] * 2
        upsert(storage, LATER)
        assert read(storage) == {**START, **LATER}
        rollbacks = [i.state for i in load_state(storage).timeline.instants if i.action is Action.ROLLBACK]
        assert rollbacks == [State.COMPLETED]


def test_rolling_back_twice_is_as_once():
    storage, _ = dead_write()
    clean_up(load_state(storage))
    once = storage.snapshot()
    clean_up(load_state(storage))
    assert storage.snapshot() == once


def test_blocks_of_a_failed_write_stay_hidden_when_its_time_leaves_the_active_timeline():
    # An instant before the active timeline counts as completed: only the command block keeps these blocks out.
    storage, dead = dead_write()
    upsert(storage, LATER)
    expected = read(storage)
    for path in list(storage.snapshot()):
        name = path.removeprefix(".hoodie/")
        if path.startswith(".hoodie/2") and name < load_state(storage).timeline.newest_commit:
            storage.delete(path)
    assert load_state(storage).timeline.instants[0].requested > dead.requested
    assert read(storage) == expected


def test_a_log_file_that_appears_after_its_write_was_rolled_back_stays_hidden():
    storage, dead = dead_write()
    late = {path: data for path, data in logs(storage).items() if dead.requested.encode() in data}
    assert len(late) == 2
    for path in late:
        storage.delete(path)
    before = set(logs(storage))
    clean_up(load_state(storage))
    added = sorted(set(logs(storage)) - before)
    assert [version(path) for path in added] == [version(path) + 1 for path in sorted(late)]
    for path, data in late.items():
        storage.write(path, data)
    upsert(storage, LATER)
    assert read(storage) == {**START, **LATER}


def test_a_torn_log_file_is_passed_by_after_the_rollback():
    left = undoing.dying(Dying.TORN, table(), lambda storage: upsert(storage, CHANGES))
    torn = [storage for storage in left if any(b"#HUDI#" in data and _torn(data) for data in logs(storage).values())]
    assert torn
    for storage in torn:
        upsert(storage, LATER)
        assert read(storage, torn=True) == {**START, **LATER}


def _torn(data: bytes) -> bool:
    return any(block.kind is BlockKind.CORRUPT for block in read_blocks(data, "log"))


def test_log_files_of_a_group_that_the_failed_write_made_are_deleted():
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    left = undoing.dying(Dying.BEFORE, storage, lambda storage: upsert(storage, CHANGES, EXACT))
    dead = left[-4]
    assert logs(dead)
    assert load_state(dead).timeline.pending()
    clean_up(load_state(dead))
    assert logs(dead) == {}


def test_two_rollbacks_of_one_write_at_once_do_not_take_each_others_files():
    storage, dead = dead_write()
    other = storage.copy()
    roll_back(other, dead, "20990101000000000", layout=LAYOUT_1)
    for path, data in logs(other).items():
        if path not in logs(storage):
            storage.write(path, data)  # what the other one wrote so far
    clean_up(load_state(storage))
    assert commands(storage) == [dead.requested] * 4
    assert read(storage) == START
