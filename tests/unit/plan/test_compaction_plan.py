"""When a compaction is due, which slices each strategy takes, what its plan says, and how it compares with storage."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from hoodie.config.compaction import CompactionOptions, Trigger
from hoodie.config.options import read_options
from hoodie.errors import InvalidOption
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile, base_file_name, log_file_name
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CompactionPlan
from hoodie.plan.compaction import candidates, compaction_is_due, find_files, operation_of, plan_compaction, problems
from hoodie.plan.compaction_strategies import Planning, partition_day, strategy_named
from hoodie.timeline.timeline import Timeline
from hoodie.view.load import build_view
from hoodie.view.slices import group_files

MB = 1024 * 1024
TODAY = dt.date(2024, 3, 20)
BASE = "20240301000000000"


def at(minute: int) -> str:
    return f"20240301{minute // 60:02d}{minute % 60:02d}00000"


def timeline(deltas: Iterable[int] = (), commits: Iterable[int] = (), plans: Iterable[int] = ()) -> Timeline:
    """Instants at minutes."""
    instants = [Instant(at(minute), Action.DELTA_COMMIT, State.COMPLETED) for minute in deltas]
    instants += [Instant(at(minute), Action.COMMIT, State.COMPLETED) for minute in commits]
    instants += [Instant(at(minute), Action.COMPACTION, State.REQUESTED) for minute in plans]
    return Timeline(tuple(sorted(instants)))


def slice_of(partition: str, number: int = 0, logs: Sequence[int] = (MB,), base: int | None = 10 * MB) -> FileSlice:
    """logs: their sizes in bytes"""
    group = FileGroupId(partition, f"f{number}-0")
    file = base_file_name(group.file_id, "0-0-0", BASE)
    return FileSlice(
        group,
        BASE,
        None if base is None else BaseFile(group, BASE, "0-0-0", base, file),
        tuple(
            LogFile(group, BASE, version, "0-0-0", size, log_file_name(group.file_id, BASE, version, "0-0-0"))
            for version, size in enumerate(logs, 1)
        ),
    )


def planned(
    name: str, slices: Sequence[FileSlice], partitions: Iterable[str] | None = None, **options: object
) -> list[str]:
    """`<partition> <file id>` of the slices that a strategy takes, in order."""
    plan = plan_of(name, slices, partitions, **options)
    return [f"{operation.group.partition} {operation.group.file_id[:-2]}" for operation in plan.operations]


def plan_of(
    name: str, slices: Sequence[FileSlice], partitions: Iterable[str] | None = None, **options: object
) -> CompactionPlan:
    planning = Planning(replace(CompactionOptions(), **options), 120 * MB, TODAY)  # type: ignore[arg-type]
    known = {slice_.group.partition for slice_ in slices} if partitions is None else set(partitions)
    return plan_compaction(strategy_named(name), slices, planning, known)


# --- when ---


@pytest.mark.parametrize(
    ("trigger", "deltas", "commits", "plans", "now", "due"),
    [
        (Trigger.NUM_COMMITS, range(1, 5), [], [], 5, False),
        (Trigger.NUM_COMMITS, range(1, 6), [], [], 6, True),
        (Trigger.NUM_COMMITS, range(1, 9), [4], [], 9, False),
        (Trigger.NUM_COMMITS, range(1, 10), [4], [], 10, True),
        (Trigger.NUM_COMMITS, range(1, 10), [], [4], 10, True),
        (Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, range(1, 9), [], [4], 10, False),
        (Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, range(1, 10), [], [4], 10, True),
        (Trigger.NUM_COMMITS_AFTER_LAST_REQUEST, range(1, 10), [6], [], 10, False),
        (Trigger.TIME_ELAPSED, [1], [], [], 60, False),
        (Trigger.TIME_ELAPSED, [1], [], [], 61, True),
        (Trigger.TIME_ELAPSED, [1, 70], [30], [], 89, False),
        (Trigger.TIME_ELAPSED, [1, 70], [30], [], 90, True),
        (Trigger.NUM_AND_TIME, range(1, 6), [], [], 6, False),
        (Trigger.NUM_AND_TIME, [1], [], [], 90, False),
        (Trigger.NUM_AND_TIME, range(1, 6), [], [], 61, True),
        (Trigger.NUM_OR_TIME, range(1, 6), [], [], 6, True),
        (Trigger.NUM_OR_TIME, [1], [], [], 61, True),
        (Trigger.NUM_OR_TIME, [1], [], [], 6, False),
    ],
)
def test_a_compaction_is_due(
    trigger: Trigger, deltas: Iterable[int], commits: Iterable[int], plans: Iterable[int], now: int, due: bool
) -> None:
    assert compaction_is_due(timeline(deltas, commits, plans), at(now), CompactionOptions(trigger=trigger)) is due


@pytest.mark.parametrize("trigger", Trigger)
def test_a_table_without_delta_commits_is_never_due(trigger: Trigger) -> None:
    assert not compaction_is_due(
        timeline(), at(1), CompactionOptions(trigger=trigger, delta_commits=1, delta_seconds=1)
    )


def test_pending_delta_commits_count() -> None:
    pending = Timeline((Instant(at(1), Action.DELTA_COMMIT, State.INFLIGHT),))
    assert compaction_is_due(pending, at(2), CompactionOptions(delta_commits=1))


# --- strategies ---

SIZES = [slice_of("p", 0, [5 * MB]), slice_of("p", 1, [9 * MB]), slice_of("q", 0, [MB] * 7), slice_of("q", 1, [9 * MB])]


def test_the_default_takes_the_largest_logs_first() -> None:
    assert planned(CompactionOptions().strategy, SIZES) == ["p f1", "q f1", "q f0", "p f0"]


def test_slices_with_fewer_log_bytes_than_the_threshold_are_left() -> None:
    assert planned("LogFileSizeBasedCompactionStrategy", SIZES, size_threshold=7 * MB) == ["p f1", "q f1", "q f0"]
    assert planned("LogFileSizeBasedCompactionStrategy", SIZES, size_threshold=7 * MB + 1) == ["p f1", "q f1"]


def test_by_number_the_slice_with_most_logs_comes_first() -> None:
    assert planned("LogFileNumBasedCompactionStrategy", SIZES) == ["q f0", "p f0", "p f1", "q f1"]
    assert planned("LogFileNumBasedCompactionStrategy", SIZES, number_threshold=2) == ["q f0"]


def test_bounded_io_goes_on_until_the_target_is_reached_and_keeps_the_order() -> None:
    # Reading base and logs and writing the base: 25, 29, 27, 29 MB.
    for target, taken in [(0, 1), (25, 1), (26, 2), (54, 2), (55, 3), (10_000, 4)]:
        assert (
            planned("BoundedIOCompactionStrategy", SIZES, target_io=target) == ["p f0", "p f1", "q f0", "q f1"][:taken]
        )
    assert planned("LogFileSizeBasedCompactionStrategy", SIZES, target_io=30) == ["p f1", "q f1"]
    assert planned("LogFileNumBasedCompactionStrategy", SIZES, target_io=1) == ["q f0"]


def test_unbounded_takes_all_in_their_order() -> None:
    assert planned("UnBoundedCompactionStrategy", SIZES, target_io=0) == ["p f0", "p f1", "q f0", "q f1"]


DAYS = [f"2024/03/{day:02d}" for day in range(1, 21)]


def test_day_based_takes_the_newest_days_first() -> None:
    slices = [slice_of(day, number) for day in DAYS for number in (0, 1)]
    newest = [f"{day} f{number}" for day in reversed(DAYS) for number in (0, 1)]
    assert planned("DayBasedCompactionStrategy", slices) == newest[:20]
    assert planned("DayBasedCompactionStrategy", slices, target_days=1) == newest[:2]


def test_partitions_without_logs_count_among_the_newest_days() -> None:
    assert planned("DayBasedCompactionStrategy", [slice_of(DAYS[0]), slice_of(DAYS[11])], DAYS) == ["2024/03/12 f0"]


def test_days_since_ten_days_ago_are_bounded_and_those_before_are_not() -> None:
    slices = [slice_of(day) for day in DAYS]
    assert planned("BoundedPartitionAwareCompactionStrategy", slices) == [f"{day} f0" for day in reversed(DAYS[9:])]
    assert planned("UnBoundedPartitionAwareCompactionStrategy", slices) == [f"{day} f0" for day in reversed(DAYS[:9])]
    future = [slice_of("2024/03/21"), slice_of("2023/12/31")]
    assert planned("BoundedPartitionAwareCompactionStrategy", future, target_days=1) == ["2024/03/21 f0"]
    assert planned("UnBoundedPartitionAwareCompactionStrategy", future, target_days=10**9) == []


@pytest.mark.parametrize(
    "path", ["2024/01/31", "year=2024/month=01/day=31", "dt=2024/01/31", "2024/1/31", "2024-01-31"]
)
def test_a_partition_path_is_a_day(path: str) -> None:
    assert partition_day(path) == dt.date(2024, 1, 31)


@pytest.mark.parametrize("name", ["DayBased", "BoundedPartitionAware", "UnBoundedPartitionAware"])
@pytest.mark.parametrize("path", ["oslo", "", "2024/02/30", "2024/01", "2024/01/01/05"])
def test_a_partition_path_that_is_no_day_is_an_error(name: str, path: str) -> None:
    with pytest.raises(InvalidOption, match=r"is no day \(yyyy/MM/dd\)"):
        planned(name, [slice_of(path)])


@pytest.mark.parametrize(
    "short",
    [
        "LogFileSizeBasedCompactionStrategy",
        "LogFileNumBasedCompactionStrategy",
        "BoundedIOCompactionStrategy",
        "UnBoundedCompactionStrategy",
        "DayBasedCompactionStrategy",
        "BoundedPartitionAwareCompactionStrategy",
        "UnBoundedPartitionAwareCompactionStrategy",
    ],
)
def test_a_strategy_has_its_full_and_its_short_name(short: str) -> None:
    full = f"org.apache.hudi.table.action.compact.strategy.{short}"
    assert strategy_named(full) is strategy_named(short) is strategy_named(short.removesuffix("CompactionStrategy"))
    assert strategy_named(short).name == short


@pytest.mark.parametrize("name", ["", "NoSuch", "com.acme.MyCompactionStrategy"])
def test_an_unknown_strategy_names_those_there_are(name: str) -> None:
    with pytest.raises(InvalidOption, match="expected one of LogFileSizeBasedCompactionStrategy"):
        strategy_named(name)


# --- a strategy of the user's own ---


def smallest(slices: Sequence[FileSlice], planning: Planning) -> Iterable[FileSlice]:
    return sorted(slices, key=lambda slice_: slice_.logs[0].size)[:2]


def same_twice(slices: Sequence[FileSlice], planning: Planning) -> Iterable[FileSlice]:
    return [*slices, slices[0]]


def made_up(slices: Sequence[FileSlice], planning: Planning) -> Iterable[FileSlice]:
    return [replace(slices[0], logs=slices[0].logs[:-1])]


def of_another_type(slices: Sequence[FileSlice], planning: Planning) -> object:
    return ["f0-0"]


def nothing_at_all(slices: Sequence[FileSlice], planning: Planning) -> object:
    return None


not_callable = 1


def own(function: object) -> str:
    return f"{__name__}:{getattr(function, '__name__', function)}"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    import sys

    monkeypatch.setitem(sys.modules, __name__, request.module)


def test_a_function_of_ones_own_chooses() -> None:
    assert planned(own(smallest), SIZES) == ["q f0", "p f0"]


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (same_twice, "took the slice of file group .*f0-0.* twice"),
        (made_up, "none of the slices it was given"),
        (of_another_type, "took 'f0-0', which is none of the slices"),
        (nothing_at_all, "returned NoneType"),
        ("not_callable", r"is no function\(slices, planning\)"),
        ("missing", "cannot be imported"),
    ],
)
def test_a_function_that_chooses_wrongly_is_named(function: object, problem: str) -> None:
    with pytest.raises(InvalidOption, match=problem) as raised:
        planned(own(function), SIZES)
    assert own(function) in str(raised.value)


@pytest.mark.parametrize("path", [":", "module:", ":function", "no.such.module:function"])
def test_an_import_path_that_names_nothing_is_an_error(path: str) -> None:
    with pytest.raises(InvalidOption, match=r"hoodie\.compaction\.strategy"):
        strategy_named(path)


# --- the plan ---


def test_an_operation_has_names_and_metrics() -> None:
    operation = operation_of(slice_of("p", 3, [MB, 5]), 120 * MB)
    assert (operation.group, operation.base_instant) == (FileGroupId("p", "f3-0"), BASE)
    assert operation.base_file == f"f3-0_0-0-0_{BASE}.parquet"
    assert operation.log_files == (f".f3-0_{BASE}.log.1_0-0-0", f".f3-0_{BASE}.log.2_0-0-0")
    assert operation.metrics == {
        "TOTAL_LOG_FILES": 2.0,
        "TOTAL_LOG_FILES_SIZE": MB + 5.0,
        "TOTAL_IO_READ_MB": 11.0,
        "TOTAL_IO_WRITE_MB": 10.0,
        "TOTAL_IO_MB": 21.0,
    }


def test_a_slice_without_base_file_is_taken_to_write_a_full_one() -> None:
    operation = operation_of(slice_of("p", logs=[3 * MB - 1], base=None), 120 * MB)
    assert operation.base_file == ""
    assert [operation.metrics[f"TOTAL_IO_{what}MB"] for what in ("READ_", "WRITE_", "")] == [2.0, 120.0, 122.0]


def test_nothing_to_compact_is_a_plan_without_operations() -> None:
    assert plan_of("DayBased", [], ["oslo"]) == CompactionPlan()
    assert plan_of("LogFileSizeBased", SIZES, size_threshold=10**12) == CompactionPlan()


# --- candidates ---


def test_candidates_are_the_newest_slices_with_logs_that_no_plan_holds() -> None:
    with_logs = {number: slice_of("p", number) for number in range(5)}
    plain = slice_of("p", 9, logs=[])
    files = [file for s in (*with_logs.values(), plain) for file in (s.base, *s.logs) if file is not None]
    newer = replace(with_logs[4].logs[0], base_instant=at(3), name=".f4-0_x.log.1_0-0-0")
    newest = BaseFile(with_logs[4].group, at(3), "0-0-0", MB, "f4-0_x.parquet")
    instants = timeline([0, 1, 3], plans=[5])
    view = build_view(instants, [*files, newer, newest])
    operation = operation_of(with_logs[0], MB)
    view = replace(
        view,
        compacting={operation.group: at(5)},
        clustering={with_logs[1].group: at(6)},
        replaced={with_logs[2].group: at(2)},
    )
    found = {slice_.group.file_id: slice_ for slice_ in candidates(view)}
    assert found.keys() == {"f3-0", "f4-0"}
    assert found["f3-0"] == with_logs[3]
    assert (found["f4-0"].base, found["f4-0"].logs) == (newest, (newer,))
    assert [s.group.file_id for s in candidates(view, {with_logs[3].group})] == ["f4-0"]


# --- a plan against what is there ---


def test_a_plan_finds_its_files_and_what_is_beside_them() -> None:
    slice_ = slice_of("p", 0, [1, 2])
    plan = CompactionPlan(operations=(operation_of(slice_, MB),))
    unknown = replace(slice_.logs[0], version=3, name="third")
    later = replace(slice_.logs[0], base_instant=at(7), name="later")
    assert slice_.base is not None
    leftover = replace(slice_.base, instant=at(7), name="leftover")
    groups = group_files([slice_.base, *slice_.logs, unknown, later, leftover])
    (found,) = find_files(plan, at(7), groups)
    assert (found.slice, found.missing) == (slice_, ())
    assert (found.unknown, found.later, found.leftover) == ((unknown,), (later,), (leftover,))
    assert problems([found]) == []  # the run takes the third log in


def test_missing_files_are_named() -> None:
    slice_ = slice_of("p", 0, [1, 2])
    plan = CompactionPlan(operations=(operation_of(slice_, MB),))
    (found,) = find_files(plan, at(7), group_files([slice_.logs[1]]))
    assert problems([found]) == [
        f"file group f0-0 of partition 'p': f0-0_0-0-0_{BASE}.parquet is missing",
        f"file group f0-0 of partition 'p': .f0-0_{BASE}.log.1_0-0-0 is missing",
    ]
    assert len(find_files(plan, at(7), {})[0].missing) == 3


# --- options ---


def test_options_have_hudis_names_and_defaults() -> None:
    given = {
        "hoodie.compact.inline.trigger.strategy": "num_or_time",
        "hoodie.compact.inline.max.delta.commits": "3",
        "hoodie.compact.inline.max.delta.seconds": "60",
        "hoodie.compaction.strategy": "UnBoundedCompactionStrategy",
        "hoodie.compaction.target.io": "7",
        "hoodie.compaction.logfile.size.threshold": "8",
        "hoodie.compaction.logfile.num.threshold": "9",
        "hoodie.compaction.daybased.target.partitions": "2",
    }
    assert read_options(CompactionOptions, given) == CompactionOptions(
        trigger=Trigger.NUM_OR_TIME,
        delta_commits=3,
        delta_seconds=60,
        strategy="UnBoundedCompactionStrategy",
        target_io=7,
        size_threshold=8,
        number_threshold=9,
        target_days=2,
    )
    for key in given:
        if key != "hoodie.compaction.strategy":
            with pytest.raises(InvalidOption, match=key.replace(".", r"\.")):
                read_options(CompactionOptions, {key: "-1"})
