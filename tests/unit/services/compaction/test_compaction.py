"""Compaction of tables without Spark: planned, run, published, taken back, withdrawn; and whatever dies in between."""

import datetime as dt
import pickle
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.commit.markers import MarkerKind, create_marker, read_markers
from hoodie.commit.rollback_executor import resume_rollback, roll_back
from hoodie.errors import (
    CorruptFile,
    HoodieError,
    InstantNotFound,
    InvalidOption,
    InvalidPlan,
    UnsupportedTable,
    WriteConflict,
)
from hoodie.formats.avro.container import write_one
from hoodie.formats.avro.schema import to_avro
from hoodie.formats.log.blocks import encode_block
from hoodie.formats.log.content import avro_block, delete_block, rollback_block
from hoodie.formats.log.delete_block import deletes_of
from hoodie.formats.parquet.base_footer import read_footer
from hoodie.formats.parquet.bloom import might_contain
from hoodie.formats.timeline.plans import COMPACTION_PLAN, encode_compaction_plan
from hoodie.model.commit import Operation, WriteStat
from hoodie.model.files import parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.meta import FILE_NAME
from hoodie.model.plans import CompactionOperation, CompactionPlan
from hoodie.services.compaction.job import CompactionJob, begin_compaction
from hoodie.services.compaction.publish import publish_compaction
from hoodie.services.compaction.run import compact, run_on_driver, run_operation
from hoodie.services.compaction.schedule import schedule_compaction, unschedule_compaction, validate_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, split
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import REFUSED, ArrowTable, FailsAt
from hoodie.timeline.load import read_commit, read_compaction_plan
from hoodie.timeline.timeline import LAYOUT_1, new_time, utc_now
from hoodie.timeline.transition import create_requested, to_inflight
from hoodie.view.load import load_view
from hoodie.view.slices import latest_base_files, merged_slices
from support.compacting import FIRST, LATER, NOW, OPTIONS, batch, begun, fill, opened, schedule
from support.instants import next_time
from support.meanwhile import Meanwhile, calls_of
from support.nightly import WAYS_TO_DIE, each_call
from support.oracles import assert_same_rows, read_hudi_rs


def content(storage: Storage) -> pa.Table:
    return opened(storage).snapshot()


def notes(storage: Storage) -> dict[str, str]:
    rows = content(storage)
    return dict(zip(rows.column("id").to_pylist(), rows.column("note").to_pylist(), strict=True))


AFTER_SECOND = {"a": "first", "b": "second", "c": "second", "d": "f"}
AFTER_LATER = {"a": "later", "b": "second", "c": "later", "d": "f", "e": "later"}


def data_paths(storage: Storage) -> set[str]:
    tree = storage.list_tree("", skip=(".hoodie",))
    found = (
        (folder, parse_data_file(folder, entry.name, entry.size)) for folder, part in tree.items() for entry in part
    )
    return {file.path for _, file in found if file is not None}


def bases_of(storage: Storage, instant: str) -> set[str]:
    return {path for path in data_paths(storage) if path.endswith(f"_{instant}.parquet")}


def published(storage: Storage, instant: str) -> set[str | None]:
    state = load_state(storage)
    found = state.timeline.find(instant, Action.COMPACTION)
    assert found.state is State.COMPLETED
    return {stat.path for part in read_commit(storage, state.timeline, found).stats.values() for stat in part}


def assert_nothing_left(storage: Storage, instant: str) -> None:
    """No file of the compaction but those it published, no marker."""
    assert bases_of(storage, instant) == published(storage, instant)
    assert read_markers(storage, instant) == ()


def claims_end(storage: Storage) -> None:
    """As time goes by after their holders died."""
    storage.delete_tree(".hoodie/.locks")


def pending_states(storage: Storage, instant: str) -> list[str]:
    names = [entry.name for entry in storage.list(".hoodie")]
    return sorted(name.removeprefix(f"{instant}.") for name in names if name.startswith(f"{instant}."))


# --- planning ---


def test_a_plan_names_the_slices_with_logs(storage: MemoryStorage) -> None:
    instant = schedule_compaction(storage, Settings.of(NOW), {"job": "nightly"})
    state = load_state(storage)
    (pending,) = state.timeline.pending_compactions
    assert (pending.requested, pending.state) == (instant, State.REQUESTED)
    plan = read_compaction_plan(storage, state.timeline, pending)
    assert [operation.group.partition for operation in plan.operations] == ["oslo", "rome"]
    oslo = plan.operations[0]
    assert [f"oslo/{name}" for name in (oslo.base_file, *oslo.log_files)] == sorted(
        (path for path in data_paths(storage) if path.startswith("oslo/")),
        key=lambda path: (path.startswith("oslo/."), path),
    )
    assert oslo.metrics["TOTAL_LOG_FILES_SIZE"] == sum(storage.size(f"oslo/{name}") for name in oslo.log_files)
    assert plan.extra == {"job": "nightly"}
    assert notes(storage) == AFTER_SECOND


def test_a_compaction_that_is_not_due_is_not_planned(storage: MemoryStorage) -> None:
    before = storage.snapshot()
    assert schedule_compaction(storage, Settings.of({})) is None  # 3 delta commits of 5
    assert storage.snapshot() == before
    assert schedule_compaction(storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "3"})) is not None


def test_time_that_passed_makes_a_compaction_due(storage: MemoryStorage) -> None:
    options = {"hoodie.compact.inline.trigger.strategy": "TIME_ELAPSED"}
    assert schedule_compaction(storage, Settings.of(options)) is None
    later = utc_now() + dt.timedelta(seconds=3600)
    assert schedule_compaction(storage, Settings.of(options), clock=lambda: later) is not None


def test_without_logs_there_is_nothing_to_plan() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    assert schedule_compaction(storage, Settings.of(NOW)) is None
    opened(storage).upsert(batch(FIRST))
    before = storage.snapshot()
    assert schedule_compaction(storage, Settings.of(NOW)) is None
    assert storage.snapshot() == before


def test_a_slice_in_a_pending_plan_is_in_no_other(storage: MemoryStorage) -> None:
    first = schedule(storage, **{"hoodie.compaction.target.io": "0"})
    second = schedule(storage, **{"hoodie.compaction.target.io": "0"})
    assert schedule_compaction(storage, Settings.of(NOW)) is None
    opened(storage).upsert(batch(LATER))
    assert schedule_compaction(storage, Settings.of(NOW)) is None
    state = load_state(storage)
    plans = [read_compaction_plan(storage, state.timeline, instant) for instant in state.timeline.pending_compactions]
    assert [[operation.group.partition for operation in plan.operations] for plan in plans] == [["oslo"], ["rome"]]
    for instant in (second, first):  # in whatever order
        assert compact(storage, Settings.of({}), instant) is not None
        assert notes(storage) == AFTER_LATER


def test_a_slice_in_a_pending_log_compaction_is_left_to_it(storage: MemoryStorage) -> None:
    state = load_state(storage)
    groups = list(merged_slices(load_view(storage, state.timeline, state.config)))
    operations = tuple(
        CompactionOperation(group=group, base_instant="1", base_file="", log_files=())
        for group in groups
        if group.partition == "oslo"
    )
    plan = encode_compaction_plan(CompactionPlan(operations=operations))
    create_requested(
        storage, new_time(state.timeline, state.config.timezone, utc_now), Action.LOG_COMPACTION, plan, layout=LAYOUT_1
    )
    instant = schedule(storage)
    state = load_state(storage)
    plan_ = read_compaction_plan(storage, state.timeline, Instant(instant, Action.COMPACTION, State.REQUESTED))
    assert [operation.group.partition for operation in plan_.operations] == ["rome"]


def test_no_compaction_is_planned_while_a_write_is_pending(storage: MemoryStorage) -> None:
    pending = create_requested(storage, next_time(storage), Action.DELTA_COMMIT, layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match=f"deltacommit {pending.requested} is pending"):
        schedule_compaction(storage, Settings.of(NOW))
    assert load_state(storage).timeline.pending_compactions == ()


def test_a_copy_on_write_table_has_no_compaction() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, {**OPTIONS, "hoodie.datasource.write.table.type": "COPY_ON_WRITE"})
    opened(storage).upsert(batch(FIRST))
    for call in (
        lambda: schedule_compaction(storage, Settings.of(NOW)),
        lambda: compact(storage, Settings.of({})),
        lambda: unschedule_compaction(storage, Settings.of({}), "20240101000000000"),
    ):
        with pytest.raises(UnsupportedTable, match="Copy-on-Write table: it has no logs"):
            call()


def test_an_unknown_strategy_is_told_before_anything_else(storage: MemoryStorage) -> None:
    with pytest.raises(InvalidOption, match="NoSuchStrategy"):
        schedule_compaction(storage, Settings.of({"hoodie.compaction.strategy": "NoSuchStrategy"}))


# --- running ---


def test_a_compaction_makes_base_files_of_the_same_rows(storage: MemoryStorage) -> None:
    before = content(storage)
    instant = schedule(storage)
    result = compact(storage, Settings.of({}), instant)
    assert result.instant == instant
    after = content(storage)
    assert_same_rows(after, before, ignore=[FILE_NAME])
    state = load_state(storage)
    view = load_view(storage, state.timeline, state.config)
    slices = {group.partition: slice_ for group, slice_ in merged_slices(view).items()}
    assert {partition: len(slice_.logs) for partition, slice_ in slices.items()} == {"bern": 0, "oslo": 0, "rome": 0}
    assert {p: s.base_instant == instant for p, s in slices.items()} == {"bern": False, "oslo": True, "rome": True}
    for row in after.to_pylist():
        base = slices[row["city"]].base
        assert row[FILE_NAME] == base.name
    assert_nothing_left(storage, instant)
    assert pending_states(storage, instant) == ["commit", "compaction.inflight", "compaction.requested"]


def test_the_commit_says_what_was_compacted(storage: MemoryStorage) -> None:
    instant = schedule_compaction(storage, Settings.of(NOW), {"job": "nightly"})
    assert instant is not None
    state = load_state(storage)
    plan = read_compaction_plan(storage, state.timeline, state.timeline.pending_compactions[0])
    schema = next(state.commits()).schema
    compact(storage, Settings.of({}))
    state = load_state(storage)
    commit = state.timeline.find(instant, Action.COMMIT)
    assert commit is not None
    metadata = read_commit(storage, state.timeline, commit)
    assert (metadata.operation, metadata.compacted) == (Operation.COMPACT, True)
    assert metadata.extra == {"job": "nightly", "schema": schema}
    (oslo,), (rome,) = metadata.stats["oslo"], metadata.stats["rome"]
    assert (oslo.num_writes, oslo.num_updates, oslo.num_deletes, oslo.num_inserts) == (2, 1, 1, 0)
    assert (oslo.log_records, oslo.log_blocks, oslo.log_files_compacted, oslo.updated_records_compacted) == (1, 2, 2, 2)
    assert (rome.log_records, rome.log_blocks, rome.log_files_compacted, rome.updated_records_compacted) == (1, 1, 1, 1)
    for operation, stat in zip(plan.operations, (oslo, rome), strict=True):
        assert stat.log_size_compacted == operation.metrics["TOTAL_LOG_FILES_SIZE"] > 0
        assert stat.prev_commit == operation.base_instant
        assert stat.path is not None
        assert stat.file_size == stat.total_write_bytes == storage.size(stat.path)
        assert stat.log_version is None


def test_writes_between_plan_and_run_are_kept(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    opened(storage).upsert(batch(LATER))
    assert notes(storage) == AFTER_LATER
    compact(storage, Settings.of({}), instant)
    assert notes(storage) == AFTER_LATER
    opened(storage).upsert(batch({"a": ("oslo", 9, "last")}))
    assert notes(storage) == {**AFTER_LATER, "a": "last"}
    second = schedule(storage)
    compact(storage, Settings.of({}), second)
    assert notes(storage) == {**AFTER_LATER, "a": "last"}
    assert_nothing_left(storage, second)


def test_without_an_instant_the_oldest_plan_is_run_and_none_is_nothing_to_do(storage: MemoryStorage) -> None:
    first = schedule(storage, **{"hoodie.compaction.target.io": "0"})
    second = schedule(storage)
    results = [compact(storage, Settings.of({})), compact(storage, Settings.of({})), compact(storage, Settings.of({}))]
    assert [result.instant if result else None for result in results] == [first, second, None]


def test_a_base_file_of_a_compaction_carries_the_filter_and_the_range_of_its_keys(storage: MemoryStorage) -> None:
    compact(storage, Settings.of({}), schedule(storage))
    state = load_state(storage)
    for group, base in latest_base_files(load_view(storage, state.timeline, state.config)).items():
        footer = read_footer(storage.open_input(base.path), base.path)
        keys = pq.read_table(storage.open_input(base.path)).column("_hoodie_record_key")
        bloom = footer.bloom(base.path)
        assert bloom is not None
        assert all(might_contain(bloom, keys))
        assert (footer.min_key, footer.max_key) == {
            "oslo": ("a", "x"),
            "rome": ("c", "c"),
            "bern": ("d", "d"),
        }[group.partition]


def test_keys_that_are_only_in_logs_are_in_the_filter_and_the_range(storage: MemoryStorage) -> None:
    state = load_state(storage)
    slices = merged_slices(load_view(storage, state.timeline, state.config))
    (oslo,) = (slice_ for group, slice_ in slices.items() if group.partition == "oslo")
    row = content(storage).slice(0, 1)
    for name, value in {"_hoodie_record_key": "zz", "id": "zz", "note": "new"}.items():
        at = row.schema.get_field_index(name)
        row = row.set_column(at, row.schema.field(at), pa.array([value]))
    data = encode_block(avro_block(oslo.base_instant, to_avro(row.schema, "trips"), row))
    storage.write(f"oslo/.{oslo.group.file_id}_{oslo.base_instant}.log.9_9-9-9", data)
    instant = schedule(storage)
    result = compact(storage, Settings.of({}), instant)
    assert result.inserted == 1
    assert notes(storage) == {**AFTER_SECOND, "zz": "new"}
    (path,) = (path for path in result.files if path.startswith("oslo/"))
    footer = read_footer(storage.open_input(path), path)
    bloom = footer.bloom(path)
    assert bloom is not None
    assert list(might_contain(bloom, pa.array(["a", "b", "zz", "no"]))) == [True, True, True, False]
    assert (footer.min_key, footer.max_key) == ("a", "zz")


def test_logs_larger_than_the_memory_for_them_are_compacted_to_the_same_rows() -> None:
    storage = MemoryStorage()
    ArrowTable.create(storage, OPTIONS)
    table = opened(storage)
    numbers = range(3_000)
    for round_ in range(3):
        table.upsert(batch({f"k{n}": ("oslo", round_, f"{round_} {n}" * 9) for n in numbers[round_ * 500 :]}))
    before = content(storage)
    result = compact(storage, Settings.of({"hoodie.memory.merge.max.size": "20000"}), schedule(storage))
    assert result.updated == 2_500
    assert_same_rows(content(storage), before, ignore=[FILE_NAME])


def test_work_is_proportional_to_the_plan(storage: MemoryStorage) -> None:
    instant = schedule(storage, **{"hoodie.compaction.target.io": "0"})  # of oslo only
    counting = CountingStorage(storage)
    compact(counting, Settings.of({}), instant)
    assert counting.count("list", "oslo") > 0
    assert {folder for _, folder in counting.calls if folder in ("rome", "bern", "")} == set()


def test_what_a_task_needs_pickles(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    fill(storage)
    instant = schedule(storage)
    job = begun(storage, instant)
    stats = [
        run_operation(*pickle.loads(pickle.dumps((job.compaction, task))), attempt=number)
        for number, task in enumerate(job.tasks)
    ]
    publish_compaction(job, pickle.loads(pickle.dumps(stats)))
    assert notes(storage) == AFTER_SECOND
    assert_same_rows(content(storage), read_hudi_rs(tmp_path))


def test_a_runner_of_the_callers_own_carries_the_tasks_out(storage: MemoryStorage) -> None:
    ran = []

    def backwards(job: CompactionJob) -> Iterable[WriteStat | None]:
        for task in reversed(job.tasks):
            ran.append(task.slice.group.partition)
            yield run_operation(job.compaction, task)

    spread = {"hoodie.spark.driver.max.batch.bytes": "0"}
    result = compact(storage, Settings.of(spread), schedule(storage), run=backwards)
    assert (ran, result.route) == (["rome", "oslo"], "executors")
    assert notes(storage) == AFTER_SECOND


# --- slices without base file, or without rows ---


def log_only(storage: MemoryStorage, *logs: bytes) -> str:
    """A file group of logs in oslo, written as a delta commit; its instant."""
    state = load_state(storage)
    instant = new_time(state.timeline, state.config.timezone, utc_now)
    requested = create_requested(storage, instant, Action.DELTA_COMMIT, layout=LAYOUT_1)
    to_inflight(storage, requested, layout=LAYOUT_1)
    for version, data in enumerate(logs, 1):
        storage.create_new(f"oslo/.new-0_{instant}.log.{version}_0-0-{version}", data)
    storage.create_new(f".hoodie/{instant}.deltacommit", storage.read(state.timeline.path(state.timeline.commits[-1])))
    return instant


def test_all_blocks_rolled_back_and_no_base_file_make_no_file(storage: MemoryStorage) -> None:
    gone = deletes_of(pa.array(["z"]), pa.array(["oslo"]), None)
    target = "20240101000000000"
    block = encode_block(delete_block(target, "{}", gone))
    log_only(storage, block, encode_block(rollback_block("20240101000000001", target)))
    instant = schedule(storage)
    result = compact(storage, Settings.of({}), instant)
    assert result is not None
    assert len(result.files) == 2  # of oslo and rome
    assert not any("new-0" in path for path in bases_of(storage, instant))
    assert notes(storage) == AFTER_SECOND


def test_all_rows_deleted_make_a_file_without_rows(storage: MemoryStorage) -> None:
    opened(storage).delete(pa.table({"id": ["a", "b"], "city": ["oslo", "oslo"], "ts": pa.array([9, 9], pa.int64())}))
    instant = schedule(storage)
    result = compact(storage, Settings.of({}), instant)
    assert result is not None
    (stat,) = (stat for stat in result.stats if stat.partition == "oslo")
    assert stat.path is not None
    assert stat.num_writes == pq.read_table(storage.open_input(stat.path)).num_rows == 0
    assert notes(storage) == {"c": "second", "d": "f"}


# --- runs that die, fail or meet another ---


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_a_compaction_that_dies_anywhere_can_be_run_again(dying: Dying) -> None:
    start = MemoryStorage()
    fill(start)
    instant = schedule(start)
    opened(start).upsert(batch(LATER))
    for writes in each_call():
        storage = start.copy()
        crashing = CrashAfter(storage, writes, dying)
        try:
            compact(crashing, Settings.of({"hoodie.memory.merge.max.size": "1000000"}), instant, run=one_by_one)
        except Crash:
            assert notes(storage) == AFTER_LATER
            if load_state(storage).timeline.pending_compactions:
                claims_end(storage)
                compact(storage, Settings.of({}), instant)
                assert_nothing_left(storage, instant)
        assert notes(storage) == AFTER_LATER
        assert bases_of(storage, instant) == published(storage, instant)
        if not crashing.dead:
            assert writes > 5
            return


def one_by_one(job: CompactionJob) -> list[WriteStat | None]:
    return run_on_driver(job, threads=1)


def test_taking_back_a_run_that_died_may_die_too(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    job = begun(storage, instant)
    run_on_driver(job)
    for writes in each_call():
        copy = storage.copy()
        crashing = CrashAfter(copy, writes)
        try:
            begin_compaction(crashing, Settings.of({}), instant)
        except Crash:
            assert compact(copy, Settings.of({}), instant) is not None
            assert_nothing_left(copy, instant)
            assert notes(copy) == AFTER_SECOND
        else:
            assert writes > 3
            return


@pytest.mark.parametrize("dying", WAYS_TO_DIE)
def test_a_death_while_a_plan_takes_late_logs_in_loses_no_row(storage: MemoryStorage, dying: Dying) -> None:
    instant = schedule(storage)
    (log,) = [path for path in data_paths(storage) if path.startswith("rome/.")]
    storage.write(log.replace(".log.1_", ".log.2_"), storage.read(log))
    for writes in each_call(1):
        copy = storage.copy()
        crashing = CrashAfter(copy, writes, dying)
        try:
            compact(crashing, Settings.of({}), instant, run=one_by_one)
        except Crash:
            assert notes(copy) == AFTER_SECOND
            if load_state(copy).timeline.pending_compactions:
                claims_end(copy)
                compact(copy, Settings.of({}), instant)
                assert_nothing_left(copy, instant)
        assert notes(copy) == AFTER_SECOND
        assert bases_of(copy, instant) == published(copy, instant)
        (compacted,) = load_state(copy).timeline.completed({Action.COMMIT})
        stats = read_commit(copy, load_state(copy).timeline, compacted).all_stats
        assert [stat.log_files_compacted for stat in stats if stat.partition == "rome"] == [2]
        if not crashing.dead:
            return


def test_a_run_that_fails_leaves_the_plan_and_nothing_else(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    before = storage.snapshot()

    def fails(job: CompactionJob) -> list[WriteStat | None]:
        run_operation(job.compaction, job.tasks[0])
        raise ValueError("no more memory")

    with pytest.raises(ValueError, match="no more memory"):
        compact(storage, Settings.of({}), instant, run=fails)
    assert storage.snapshot() == before
    compact(storage, Settings.of({}), instant)
    assert notes(storage) == AFTER_SECOND


def test_one_failing_call_of_the_storage_leaves_the_plan(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    for at in each_call():
        copy = storage.copy()
        try:
            compact(FailsAt(copy, at), Settings.of({}), instant, run=one_by_one)
        except REFUSED:
            assert notes(copy) == AFTER_SECOND
            compact(copy, Settings.of({}), instant)
        assert notes(copy) == AFTER_SECOND
        assert bases_of(copy, instant) == published(copy, instant)
        if at > 30:
            return


def test_files_of_lost_attempts_are_removed_before_they_would_be_seen(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    job = begun(storage, instant)
    for task in job.tasks:
        run_operation(job.compaction, task, attempt=7)
    unmarked = bases_of(storage, instant).pop()
    storage.write(unmarked.replace("-7_", "-8_"), b"half")
    publish_compaction(job, [run_operation(job.compaction, task) for task in job.tasks])
    assert_nothing_left(storage, instant)
    assert notes(storage) == AFTER_SECOND


def test_files_that_a_run_without_markers_left_are_removed(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    job = begun(storage, instant)
    run_on_driver(job)
    storage.delete_tree(f".hoodie/.temp/{instant}")
    assert begin_compaction(storage, Settings.of({}), instant) is not None
    assert bases_of(storage, instant) == set()
    compact(storage, Settings.of({}), instant)
    assert_nothing_left(storage, instant)
    assert notes(storage) == AFTER_SECOND


def test_a_run_that_another_took_for_dead_publishes_nothing(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    slow = begun(storage, instant)
    written = run_on_driver(slow)
    quick = begun(storage, instant)
    with pytest.raises(WriteConflict, match="started another"):
        publish_compaction(slow, written)
    publish_compaction(quick, run_on_driver(quick))
    assert_nothing_left(storage, instant)
    assert notes(storage) == AFTER_SECOND


def test_of_two_runs_one_publishes_and_the_other_leaves_nothing(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    slow = begin_compaction(storage, Settings.of({}), instant)
    quick = begin_compaction(storage, Settings.of({}), instant)
    assert slow is not None
    assert quick is not None
    others = run_on_driver(slow)
    publish_compaction(quick, run_on_driver(quick))
    kept = storage.snapshot()
    with pytest.raises(WriteConflict):
        publish_compaction(slow, others)
    with pytest.raises(InstantNotFound, match="is over"):
        run_on_driver(slow)
    for stat in others:  # files that come even later
        assert stat is not None
        storage.write(str(stat.path), b"x" * stat.file_size)
    with pytest.raises(WriteConflict, match="another process has completed"):
        publish_compaction(slow, others)
    assert storage.snapshot() == kept
    assert bases_of(storage, instant) == published(storage, instant)
    assert notes(storage) == AFTER_SECOND


def test_a_run_that_fails_after_another_published_removes_its_own_files_only(storage: MemoryStorage) -> None:
    instant = schedule(storage)

    def overtaken(job: CompactionJob) -> list[WriteStat | None]:
        run_operation(job.compaction, job.tasks[0])
        other = begun(storage, instant)
        stats = run_on_driver(other)
        run_operation(job.compaction, job.tasks[1])
        publish_compaction(other, stats)
        run_operation(replace(job.compaction, spec=replace(job.compaction.spec, pending=None)), job.tasks[0])
        raise ValueError("lost")

    with pytest.raises(ValueError, match="lost"):
        compact(storage, Settings.of({}), instant, run=overtaken)
    assert bases_of(storage, instant) == published(storage, instant)
    assert notes(storage) == AFTER_SECOND


def test_publishing_twice_is_refused_and_what_is_published_stays(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    job = begun(storage, instant)
    stats = run_on_driver(job)
    publish_compaction(job, stats)
    kept = storage.snapshot()
    with pytest.raises(WriteConflict, match="has completed"):
        publish_compaction(job, stats)
    assert storage.snapshot() == kept


def test_statistics_that_do_not_fit_the_plan_are_not_published(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    job = begun(storage, instant)
    oslo, rome = run_on_driver(job)
    assert oslo is not None
    assert rome is not None
    for stats, problem in [
        ([oslo], "were not compacted"),
        ([oslo, None], "were not compacted"),
        ([oslo, rome, rome], "was compacted twice"),
        ([oslo, rome, replace(rome, file_id="other-0")], "is not in the plan"),
        ([oslo, replace(rome, path="rome/elsewhere.parquet")], "is not a base file"),
        ([oslo, replace(rome, path=oslo.path)], "is not a base file"),
    ]:
        with pytest.raises(HoodieError, match=problem):
            publish_compaction(job, stats)
    assert len(load_state(storage).timeline.pending_compactions) == 1
    publish_compaction(job, [oslo, rome])
    assert notes(storage) == AFTER_SECOND


def test_a_marker_of_something_else_is_not_taken_for_a_base_file(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    (log,) = [path for path in data_paths(storage) if path.startswith("rome/.")]
    create_marker(storage, instant, log, MarkerKind.APPEND)
    with pytest.raises(CorruptFile, match="not a base file of it"):
        compact(storage, Settings.of({}), instant)
    assert storage.exists(log)


def test_a_rollback_of_a_compaction_as_hudi_makes_it_keeps_the_plan(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    opened(storage).upsert(batch(LATER))
    job = begun(storage, instant)
    run_on_driver(job)
    rollback = roll_back(storage, job.instant, next_time(storage), layout=LAYOUT_1)
    assert pending_states(storage, instant) == ["compaction.requested"]
    assert bases_of(storage, instant) == set()
    assert notes(storage) == AFTER_LATER
    storage.delete(f".hoodie/{rollback.requested}.rollback")
    resume_rollback(storage, replace(rollback, state=State.INFLIGHT), layout=LAYOUT_1)
    assert pending_states(storage, instant) == ["compaction.requested"]


# --- plans that cannot be run ---


def test_an_instant_that_is_no_pending_compaction_is_an_error(storage: MemoryStorage) -> None:
    delta = load_state(storage).timeline.commits[0].requested
    done = schedule(storage)
    compact(storage, Settings.of({}), done)
    for call in (
        lambda instant: compact(storage, Settings.of({}), instant),
        lambda instant: validate_compaction(storage, instant),
        lambda instant: unschedule_compaction(storage, Settings.of({}), instant),
    ):
        for instant, problem in [
            ("20200101000000000", "is not on the timeline"),
            (delta, "is a deltacommit, not a compaction"),
            (done, "is completed already"),
        ]:
            with pytest.raises(InstantNotFound, match=f"{instant} {problem}"):
                call(instant)


def test_a_plan_of_an_unknown_version_is_an_error(storage: MemoryStorage) -> None:
    record = {"operations": [], "extraMetadata": {}, "version": 3, "strategy": None, "preserveHoodieMetadata": False}
    at = next_time(storage)
    create_requested(storage, at, Action.COMPACTION, write_one(COMPACTION_PLAN.document, record), layout=LAYOUT_1)
    for call in (lambda: compact(storage, Settings.of({}), at), lambda: validate_compaction(storage, at)):
        with pytest.raises(UnsupportedTable, match="version 3; versions 1 and 2 are known"):
            call()


def test_missing_files_are_named_and_the_plan_is_not_begun(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    assert validate_compaction(storage, instant) == []
    missing = sorted(path for path in data_paths(storage) if path.startswith("rome/"))
    for path in missing:
        storage.delete(path)
    problems = validate_compaction(storage)
    assert sorted(line.split(": ")[1] for line in problems) == [f"{split(path)[1]} is missing" for path in missing]
    with pytest.raises(InvalidPlan, match="is missing") as raised:
        compact(storage, Settings.of({}), instant)
    assert all(split(path)[1] in str(raised.value) for path in missing)
    assert pending_states(storage, instant) == ["compaction.requested"]


def test_committed_rows_that_the_plan_does_not_know_of_are_not_lost(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    (log,) = [path for path in data_paths(storage) if path.startswith("rome/.")]
    late = log.replace(".log.1_", ".log.2_")
    storage.write(late, storage.read(log))
    assert validate_compaction(storage, instant) == []
    dead = storage.copy()
    assert compact(storage, Settings.of({}), instant) is not None
    assert notes(storage) == AFTER_SECOND
    (compacted,) = load_state(storage).timeline.completed({Action.COMMIT})
    stats = read_commit(storage, load_state(storage).timeline, compacted).all_stats
    assert [stat.log_files_compacted for stat in stats if stat.partition == "rome"] == [2]
    plan = read_compaction_plan(storage, load_state(storage).timeline, replace(compacted, action=Action.COMPACTION))
    assert split(late)[1] in {name for operation in plan.operations for name in operation.log_files}
    planned = dead.read(f".hoodie/{instant}.compaction.requested")
    dead.write(late, encode_block(rollback_block("20240101000000001", "20240101000000000")))
    assert compact(dead, Settings.of({}), instant) is not None  # nothing in it counts
    assert dead.read(f".hoodie/{instant}.compaction.requested") == planned


def test_rows_that_were_written_while_the_plan_was_made_are_compacted(storage: MemoryStorage) -> None:
    """By two writers without a lock: between the listing that the plan is made of and the plan."""
    at_plan = calls_of("create_new", ".compaction.requested")
    schedule(Meanwhile(storage, at_plan, lambda: opened(storage).upsert(batch(LATER))))
    assert notes(storage) == AFTER_LATER
    opened(storage).upsert(batch({"a": ("oslo", 4, "last")}))
    assert compact(storage, Settings.of({})) is not None
    assert notes(storage) == {**AFTER_LATER, "a": "last"}


# --- withdrawing ---


def test_a_plan_can_be_withdrawn(storage: MemoryStorage) -> None:
    before = storage.snapshot()
    instant = schedule(storage)
    unschedule_compaction(storage, Settings.of({}), instant)
    assert storage.snapshot() == before
    assert compact(storage, Settings.of({}), schedule(storage)) is not None


def test_a_run_that_died_is_withdrawn_with_its_files(storage: MemoryStorage) -> None:
    before = storage.snapshot()
    instant = schedule(storage)
    job = begun(storage, instant)
    stats = run_on_driver(job)
    unschedule_compaction(storage, Settings.of({}), instant)
    assert storage.snapshot() == before
    with pytest.raises(WriteConflict):
        publish_compaction(job, stats)


def test_a_run_that_ends_after_its_plan_was_withdrawn_leaves_no_files(storage: MemoryStorage) -> None:
    before = storage.snapshot()
    instant = schedule(storage)
    job = begun(storage, instant)
    unschedule_compaction(storage, Settings.of({}), instant)
    with pytest.raises(InstantNotFound):
        publish_compaction(job, run_on_driver(job))
    storage.delete_tree(f".hoodie/.temp/{instant}")
    assert storage.snapshot() == before


def test_a_plan_that_logs_were_written_for_must_be_run(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    opened(storage).upsert(batch(LATER))
    with pytest.raises(InvalidPlan, match=r"2 log files, such as .*Run it instead"):
        unschedule_compaction(storage, Settings.of({}), instant)
    assert pending_states(storage, instant) == ["compaction.requested"]
    assert notes(storage) == AFTER_LATER


def test_a_plan_is_not_withdrawn_while_a_write_is_pending(storage: MemoryStorage) -> None:
    instant = schedule(storage)
    create_requested(storage, next_time(storage), Action.DELTA_COMMIT, layout=LAYOUT_1)
    with pytest.raises(WriteConflict, match="is pending"):
        unschedule_compaction(storage, Settings.of({}), instant)
    assert pending_states(storage, instant) == ["compaction.requested"]
