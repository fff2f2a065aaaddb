"""Writers and readers beside compactions, in every state of these: what the algorithm is for."""

from collections.abc import Callable
from functools import partial
from itertools import permutations

import pyarrow as pa
import pytest

from hoodie.commit.transaction import clean_up
from hoodie.model.files import FileSlice, LogFile
from hoodie.model.instant import Action
from hoodie.reading.slices.reader import slice_reader
from hoodie.reading.snapshot import merged_rows, read_slices_arrow, read_table
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.services.compaction.job import CompactionJob, begin_compaction
from hoodie.services.compaction.publish import publish_compaction
from hoodie.services.compaction.run import compact, run_on_driver
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Crash, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.view.load import data_files, list_partitions, load_view
from hoodie.view.slices import merged_slices
from support.compacting import (
    AFTER_LATER,
    AFTER_SECOND,
    BY_HAND,
    FIRST,
    LATER,
    OPTIONS,
    batch,
    claims_end,
    keys,
    notes,
    notes_of,
    opened,
    schedule,
)
from support.nightly import WAYS_TO_DIE, by_day, nightly


#: A plan is there; a run of it has begun; it has written its files; it has died.
def planned(storage: MemoryStorage, instant: str) -> CompactionJob | None:
    return None


def begun(storage: MemoryStorage, instant: str) -> CompactionJob | None:
    return begin_compaction(storage, Settings.of({}), instant)


def written(storage: MemoryStorage, instant: str) -> CompactionJob | None:
    job = begun(storage, instant)
    run_on_driver(job)
    return job


STATES = pytest.mark.parametrize("state", [planned, begun, written])
State = Callable[[MemoryStorage, str], CompactionJob | None]


def logs(storage: MemoryStorage) -> set[LogFile]:
    return {file for file in data_files(list_partitions(storage)) if isinstance(file, LogFile)}


def base_notes(storage: MemoryStorage) -> dict[str, str]:
    return notes_of(opened(storage).read_optimized())


@STATES
def test_updates_go_to_the_slice_that_the_plan_opened(state: State, storage: MemoryStorage) -> None:
    instant = schedule(storage)
    state(storage, instant)
    before = logs(storage)
    opened(storage).upsert(batch(LATER))
    assert {(log.group.partition, log.base_instant) for log in logs(storage) - before} == {
        ("oslo", instant),
        ("rome", instant),
    }
    assert notes(storage) == AFTER_LATER
    assert {slice_.base_instant for slice_ in opened(storage).slices() if len(slice_.logs) > 1} < {
        file.instant for file in data_files(list_partitions(storage)) if not isinstance(file, LogFile)
    }
    compact(storage, Settings.of({}), instant)
    assert notes(storage) == AFTER_LATER


@STATES
def test_the_read_optimized_view_keeps_the_old_base_files_until_the_compaction_is_completed(
    state: State, storage: MemoryStorage
) -> None:
    first = {key: note for key, (_, _, note) in FIRST.items()} | {"x": "deleted"}
    assert base_notes(storage) == first
    instant = schedule(storage)
    state(storage, instant)
    opened(storage).upsert(batch({**LATER, "e": ("bern", 3, "later")}))
    assert base_notes(storage) == {**first, "e": "later"}
    compact(storage, Settings.of({}), instant)
    assert base_notes(storage) == {**AFTER_SECOND, "e": "later"}


@STATES
def test_rows_deleted_while_a_compaction_is_pending_stay_deleted(state: State, storage: MemoryStorage) -> None:
    instant = schedule(storage)
    state(storage, instant)
    opened(storage).delete(keys(b="oslo", c="rome"))
    assert notes(storage) == {"a": "first", "d": "f"}
    compact(storage, Settings.of({}), instant)
    assert notes(storage) == {"a": "first", "d": "f"}
    opened(storage).upsert(batch({"b": ("oslo", 20, "again")}))
    assert notes(storage) == {"a": "first", "b": "again", "d": "f"}


@pytest.mark.parametrize("index", ["SIMPLE", nightly("BLOOM"), nightly("GLOBAL_SIMPLE"), "GLOBAL_BLOOM"])
@STATES
def test_a_key_that_comes_back_while_its_delete_is_compacted_occurs_once(
    state: State, index: str, storage: MemoryStorage
) -> None:
    instant = schedule(storage)  # deletes x
    state(storage, instant)
    table = opened(storage)
    options = {"hoodie.index.type": index}
    table.upsert(batch({"x": ("oslo", 10, "back"), "a": ("oslo", 10, "too")}), options=options)
    back = {**AFTER_SECOND, "a": "too", "x": "back"}
    assert notes(storage) == back
    compact(storage, Settings.of({}), instant)
    assert notes(storage) == back
    result = table.upsert(batch({"x": ("oslo", 11, "once more"), "y": ("oslo", 1, "new")}), options=options)
    assert (result.updated, result.inserted) == (1, 1)
    assert notes(storage) == {**back, "x": "once more", "y": "new"}
    second = schedule(storage)
    table.delete(keys(x="oslo"), options=options)
    compact(storage, Settings.of({}), second)
    assert notes(storage) == {**AFTER_SECOND, "a": "too", "y": "new"}
    table.upsert(batch({"x": ("oslo", 20, "new again")}), options=options)
    compact(storage, Settings.of({}), schedule(storage))
    table.upsert(batch({"x": ("oslo", 21, "the last")}), options=options)
    assert notes(storage) == {**AFTER_SECOND, "a": "too", "y": "new", "x": "the last"}


def logs_opened_by(storage: MemoryStorage, upsert: Callable[[CountingStorage], object]) -> int:
    """How many logs that were there an upsert opens."""
    before, counting, paths = set(storage.snapshot()), CountingStorage(storage), set[str]()
    observe = counting.observe
    counting.observe = lambda name, path, call: (paths.add(path), observe(name, path, call))[1]  # type: ignore
    upsert(counting)
    return sum(".log." in path and path in before for path in paths)


@pytest.mark.parametrize("compacted", [False, True])
def test_logs_of_archived_commits_are_read_only_for_new_keys_beside_a_compacted_file(compacted: bool) -> None:
    """The timeline no longer says who wrote the first logs, nor what made the base file."""
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    counts = {"hoodie.keep.min.commits": "4", "hoodie.keep.max.commits": "5", "hoodie.clean.commits.retained": "2"}
    keep = {**BY_HAND, **counts}
    table = opened(storage, keep)
    table.upsert(batch({"a": ("oslo", 50, "a"), "b": ("oslo", 50, "b"), "x": ("oslo", 50, "x")}))
    if compacted:
        table.delete(keys(x="oslo"))
        compact(storage, Settings.of({}), schedule(storage))
    for number in range(12):
        table.upsert(batch({"a": ("oslo", 60 + number, "a"), "b": ("oslo", 60 + number, "b")}))
    assert len(logs(storage)) >= 12 > len(load_state(storage).timeline.commits)
    known, new = batch({"a": ("oslo", 90, "a")}), batch({"a": ("oslo", 91, "a"), "new": ("oslo", 91, "n")})
    assert logs_opened_by(storage, lambda counting: opened(counting, keep).upsert(known)) == 0
    assert (logs_opened_by(storage, lambda counting: opened(counting, keep).upsert(new)) > 0) is compacted
    assert notes_of(opened(storage).snapshot())["new"] == "n"


def test_looking_up_keys_opens_no_log_unless_a_compaction_deleted_rows_that_may_be_back(storage: MemoryStorage) -> None:
    def logs_opened(oslo: str = "a") -> int:
        rows = batch({oslo: ("oslo", 50, "a"), "c": ("rome", 50, "c")})
        return logs_opened_by(storage, lambda counting: opened(counting).upsert(rows))

    assert logs_opened() == 0
    instant = schedule(storage)
    assert logs_opened() == 0
    compact(storage, Settings.of({}), instant)
    assert logs_opened() == 0  # all keys are in base files
    for new in (
        "new",
        "newer",
    ):  # of oslo the one written while x was being compacted away; of rome nothing was deleted
        assert logs_opened(new) == 1
    compact(storage, Settings.of({}), schedule(storage))
    assert logs_opened() == 0
    assert logs_opened() == 0


@pytest.mark.parametrize(
    "order", by_day([[*order] for order in permutations(range(3))], [[0, 2, 1], [2, 1, 0]].__contains__), ids=str
)
def test_plans_are_completed_in_any_order(order: str, storage: MemoryStorage) -> None:
    table = opened(storage)
    table.upsert(batch({"d": ("bern", 2, "second")}))
    one = {"hoodie.compaction.target.io": "0"}
    instants = [schedule(storage, **one) for _ in range(3)]
    expected = {**AFTER_SECOND, "d": "second"}
    for turn, place in enumerate(map(int, order)):
        table.upsert(batch({"a": ("oslo", 10 + turn, f"{turn}"), "d": ("bern", 10 + turn, f"{turn}")}))
        expected |= {"a": f"{turn}", "d": f"{turn}"}
        assert notes(storage) == expected
        result = compact(storage, Settings.of({}), instants[place])
        assert result.instant == instants[place]
        assert notes(storage) == expected
        assert notes_of(table.as_of(instants[0])) == {**AFTER_SECOND, "d": "second"}
    commits = [i.requested for i in load_state(storage).timeline.completed({Action.COMMIT})]
    assert commits == instants


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
@STATES
def test_a_write_that_dies_beside_a_compaction_is_rolled_back(
    state: State, dying: Dying, storage: MemoryStorage
) -> None:
    instant = schedule(storage)
    state(storage, instant)
    for calls in range(4, 30, 5):
        copy = storage.copy()
        table = opened(copy)
        table.fail_next(calls, dying)
        try:
            table.upsert(batch(LATER))
            died = False
        except Crash:
            claims_end(copy)
            died = not any(c.requested > instant for c in load_state(copy).timeline.commits)
        expected = AFTER_SECOND if died else AFTER_LATER
        assert notes(copy) == expected
        if calls % 2:
            clean_up(load_state(copy))
            assert notes(copy) == expected
        compact(copy, Settings.of({}), instant)
        assert notes(copy) == expected
        table.upsert(batch({"a": ("oslo", 99, "after")}))
        assert notes(copy) == {**expected, "a": "after"}


def test_a_write_that_began_while_a_compaction_was_pending_ends_after_it(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    job = begun(storage, instant)
    stats = run_on_driver(job)
    published: list[str] = []

    class Beside(CountingStorage):
        """Publishes the compaction once the write has made its first log."""

        def mutate(self, name, path, call):  # type: ignore[no-untyped-def]
            answer = call()
            if ".log." in path and not path.startswith(".hoodie") and not published:
                published.append(path)
                publish_compaction(job, stats)
            return answer

    opened(Beside(storage)).upsert(batch({**LATER, "x": ("oslo", 10, "back")}))
    assert published
    assert notes(storage) == {**AFTER_LATER, "x": "back"}
    opened(storage).upsert(batch({"x": ("oslo", 11, "once")}))
    assert notes(storage) == {**AFTER_LATER, "x": "once"}


def reader_of_now(storage: MemoryStorage) -> Callable[[], pa.Table]:
    """A reader that has listed the table, and opens its files when it is called."""
    state = load_state(storage)
    view = load_view(storage, state.timeline, state.config)
    schema = with_meta_fields(table_schema(state, view))
    slices: list[FileSlice] = list(merged_slices(view).values())
    merge = partial(merged_rows, slice_reader(state, schema))
    return lambda: read_slices_arrow(storage, slices, schema, merge=merge)


def test_a_reader_that_began_before_sees_what_it_began_with(storage: MemoryStorage) -> None:
    readers = [(reader_of_now(storage), AFTER_SECOND)]
    instant = schedule(storage)
    readers.append((reader_of_now(storage), AFTER_SECOND))
    opened(storage).upsert(batch(LATER))
    readers.append((reader_of_now(storage), AFTER_LATER))
    job = begun(storage, instant)
    readers.append((reader_of_now(storage), AFTER_LATER))
    stats = run_on_driver(job)
    readers.append((reader_of_now(storage), AFTER_LATER))
    publish_compaction(job, stats)
    readers.append((reader_of_now(storage), AFTER_LATER))
    opened(storage).upsert(batch({"a": ("oslo", 9, "last")}))
    for read, expected in readers:
        assert notes_of(read()) == expected


def test_each_instant_is_read_alike_before_and_after_the_compaction(storage: MemoryStorage) -> None:
    def as_of_each() -> dict[str, dict[str, str]]:
        state = load_state(storage)
        return {i.requested: notes_of(read_table(state, as_of=i.requested)) for i in state.timeline.commits}

    instant = schedule(storage)
    opened(storage).upsert(batch(LATER))
    opened(storage).delete(keys(d="bern", a="oslo"))
    before = as_of_each()
    compact(storage, Settings.of({}), instant)
    after = as_of_each()
    assert after.pop(instant) == AFTER_SECOND
    assert after == before
