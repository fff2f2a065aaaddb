"""A process that dies at every single operation on storage, in three ways, in each operation on a table.

After each death: a reader sees the table as before or as after, in all views; the next write succeeds and loses
nothing; an operation that was planned can be run again; and the doctor finds nothing wrong. What a dead process left
that takes space only (temporary files, markers of a write that is published) is counted, and a repair removes it.
"""

import contextlib
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie.doctor.examine import Severity, examine
from hoodie.doctor.repair import repair
from hoodie.errors import DamagedLog, HoodieError, MetadataTableIgnored, TableNotFound
from hoodie.metadata.validate import validate_metadata
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable

Rows = dict[str, tuple[str, int, str]]  # key -> city, ts, note
Act = Callable[[ArrowTable], object]

TABLE = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.spark.driver.threads": "1",  # the same calls in the same order each time
    "hoodie.table.services.enabled": "false",  # they have cases of their own
}
METADATA = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    # Names of files are drawn, and say which file group has their records: of several, another number each time.
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}

#: What the write after the death brings.
LATER: Rows = {"b": ("oslo", 90, "later"), "z": ("kiel", 90, "later")}


@dataclass(frozen=True)
class Case:
    """One operation on one table.

    prepare  makes what is there before, from an empty storage
    act      the operation
    again    what a user does after the death before anything else can go on; None: nothing
    between  readers may meanwhile see the table as of any commit that is being taken back
    also     what a user does later; it must not change the rows: a planned compaction is run
    """

    name: str
    prepare: Act
    act: Act
    again: Act | None = None
    between: bool = False
    also: Act | None = None
    options: dict[str, str] = field(default_factory=dict)

    def table(self, storage: Storage) -> ArrowTable:
        return ArrowTable(storage, {**TABLE, **self.options})


@dataclass(frozen=True)
class Views:
    """What readers see; None: no table. `as_of` by instant."""

    snapshot: Rows | None
    optimized: Rows | None = None
    as_of: tuple[tuple[str, Rows], ...] = ()


@dataclass(frozen=True)
class Failure:
    """What went wrong after a death at a mutating call, counted from 0."""

    case: str
    dying: Dying
    call: int
    problem: str


@dataclass(frozen=True)
class TaskResults:
    """One line of the table: what came of one operation that died everywhere."""

    case: str
    points: int
    failures: tuple[Failure, ...]
    leftovers: int  # what the dead left that takes space only, over all points
    seconds: float


def batch(rows: Rows) -> pa.Table:
    keys = list(rows)
    cities, stamps, notes = ([row[i] for row in rows.values()] for i in range(3))
    return pa.table({"id": keys, "city": cities, "ts": pa.array(stamps, pa.int64()), "note": notes})


def rows_of(table: pa.Table) -> Rows:
    """The rows by key. Raises AssertionError when a key occurs twice."""
    found = {row["id"]: (row["city"], row["ts"], row["note"]) for row in table.to_pylist()}
    if len(found) != table.num_rows:
        raise AssertionError(f"a key occurs twice: {table.num_rows} rows of {len(found)} keys")
    return found


def views(table: ArrowTable, instants: Iterable[str] = ()) -> Views:
    """What readers see now, and as of instants."""
    try:
        state = table.state()
    except TableNotFound:
        return Views(None)
    if not state.timeline.commits:
        return Views({}, {})
    as_of = tuple((instant, rows_of(table.as_of(instant))) for instant in instants)
    return Views(rows_of(table.snapshot()), rows_of(table.read_optimized()), as_of)


def torture(case: Case, stride: int = 1, *, in_turn: bool = False, twice: bool = False) -> TaskResults:
    """Let an operation die at every mutating call.

    stride   1: at every one; n: at every n-th and the last
    in_turn  at each call in one of the three ways, in turn, not in all of them
    twice    the write after the death dies, too
    """
    begun = time.monotonic()
    warnings.simplefilter("ignore", DamagedLog)  # a torn log is what dying in it leaves
    before = MemoryStorage()
    case.prepare(case.table(before))
    calls, after = _whole_run(case, before)
    instants = _comparable_instants(case, before, after)
    failures: list[Failure] = []
    points = leftovers = 0
    between = _earlier(case, before) if case.between else []
    expected = (views(case.table(before), instants), views(case.table(after), instants))
    for number, call in enumerate(_points(calls, stride)):
        for dying in [tuple(Dying)[number % len(Dying)]] if in_turn else Dying:
            points += 1
            storage = before.copy()
            try:
                leftovers += _one_point(
                    case, storage, call, dying, expected, instants, between, second=call if twice else None
                )
            except Exception as error:
                failures.append(Failure(case.name, dying, call, _told(error)))
    return TaskResults(case.name, points, tuple(failures), leftovers, time.monotonic() - begun)


def _points(calls: int, stride: int) -> list[int]:
    return sorted({*range(0, calls, stride), calls - 1})


def _told(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({where.name}:{where.lineno})"


def _whole_run(case: Case, before: MemoryStorage) -> tuple[int, MemoryStorage]:
    """The number of mutating calls of the operation, and the table after it."""
    storage = before.copy()
    living = CrashAfter(storage, 1_000_000)
    case.act(case.table(living))
    calls = 1_000_000 - living.remaining
    assert calls > 0, f"{case.name} changes nothing"
    return calls, storage


def _comparable_instants(case: Case, before: MemoryStorage, after: MemoryStorage) -> list[str]:
    """Instants of before that can still be read as of afterwards, with the same rows."""
    try:
        times = [instant.requested for instant in case.table(before).state().timeline.commits]
    except TableNotFound:
        return []
    kept = []
    for instant in times:
        try:
            was, is_now = (rows_of(case.table(storage).as_of(instant)) for storage in (before, after))
        except (HoodieError, FileNotFoundError):
            continue
        if was == is_now:
            kept.append(instant)
    return kept


def _earlier(case: Case, before: MemoryStorage) -> list[Rows]:
    """The table as of each of its commits."""
    table = case.table(before)
    return [rows_of(table.as_of(instant.requested)) for instant in table.state().timeline.commits]


def _one_point(
    case: Case,
    storage: MemoryStorage,
    call: int,
    dying: Dying,
    expected: tuple[Views, Views],
    instants: list[str],
    between: list[Rows],
    second: int | None,
) -> int:
    """Die at one call and look; how much was left that takes space only. Raises AssertionError"""
    try:
        case.act(case.table(CrashAfter(storage, call, dying)))
        raise AssertionError(f"call {call} was not made: the operation does not repeat itself")
    except Crash:
        pass
    storage.clock = an_hour_later  # leases and heartbeats of the dead have ended
    table = case.table(storage)
    seen = views(table, instants)
    assert seen in expected or (case.between and seen.snapshot in between), (
        f"a reader sees neither before nor after: {_difference(seen, expected)}"
    )
    rows = dict(seen.snapshot or {})
    if second is not None and case.again is None:
        with contextlib.suppress(Crash):  # a short write is over by then
            case.table(CrashAfter(storage, second % 9, dying)).upsert(batch(LATER))
        storage.clock = lambda: an_hour_later() + 3_600_000  # so they have of this one
        assert rows_of_now(table) in (rows, rows | LATER), "the second death was seen"
        rows = rows_of_now(table)
    if case.again is not None:
        case.again(table)
        rows = rows_of_now(table)
        assert rows == expected[1].snapshot, "run again, it comes to something else"
    table.upsert(batch(LATER))
    rows |= LATER
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)  # from the next write on it is right
        assert rows_of_now(table) == rows, "the next write did not add up"
    if case.also is not None:
        case.also(table)
        assert rows_of_now(table) == rows, f"what was to be done later changed the rows: {rows_of_now(table)}, {rows}"
    return _healthy(storage)


def rows_of_now(table: ArrowTable) -> Rows:
    return views(table).snapshot or {}


def an_hour_later() -> int:
    return time.time_ns() // 1_000_000 + 3_600_000


def _healthy(storage: MemoryStorage) -> int:
    state = load_state(storage)
    told = validate_metadata(storage, state.config, state.timeline)
    assert told is None or not told.problems, f"the metadata table is wrong: {'; '.join(told.problems)}"
    found = examine(storage, grace=0, now=an_hour_later())
    wrong = [finding for finding in found if finding.severity > Severity.NOTE]
    assert not wrong, f"the doctor found: {'; '.join(map(str, wrong))}"
    if found:
        repair(storage, dry_run=False, grace=0, now=an_hour_later())
        left = examine(storage, grace=0, now=an_hour_later())
        assert not left, f"after a repair: {'; '.join(map(str, left))}"
    return len(found)


def _difference(seen: Views, expected: tuple[Views, Views]) -> str:
    before, after = expected
    return f"{seen.snapshot} and optimized {seen.optimized}; before {before.snapshot}, after {after.snapshot}"


# --- what can die: see torture.operations ---


def report(outcomes: Iterable[TaskResults]) -> str:
    """The table of crash points, as Markdown."""
    lines = ["| operation | points tried | failures | left over | seconds |", "|---|---|---|---|---|"]
    total = [0, 0, 0, 0.0]
    for outcome in outcomes:
        line = (outcome.points, len(outcome.failures), outcome.leftovers, outcome.seconds)
        total = [a + b for a, b in zip(total, line, strict=True)]
        lines.append(f"| {outcome.case} | {line[0]} | {line[1]} | {line[2]} | {line[3]:.1f} |")
    lines.append(f"| all | {total[0]} | {total[1]} | {total[2]} | {total[3]:.1f} |")
    return "\n".join(lines)
