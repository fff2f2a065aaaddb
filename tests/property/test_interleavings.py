"""Two writers of one table, their storage calls mixed in every order by a schedule; on their machines clocks differ,
leases expire, and one of them sleeps and wakes up late.

What must hold at the end of each schedule: the rows are those of the writes that were acknowledged, as if these had
come one after the other; nothing of the others is there; the next write succeeds.
"""

from __future__ import annotations

import datetime as dt
import itertools
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest

from hoodie.commit import transaction as transactions
from hoodie.commit.heartbeat import Heartbeat
from hoodie.commit.transaction import begin, describe, publish
from hoodie.config.options import Options
from hoodie.config.write import WriteOperation
from hoodie.errors import (
    HoodieError,
    InstantNotFound,
    LockLost,
    LockTimeout,
    MetadataTableIgnored,
    WriteConflict,
)
from hoodie.locks import choose
from hoodie.locks.lock_files import StorageLock
from hoodie.locks.protocol import Lock
from hoodie.metadata.validate import validate_metadata
from hoodie.model.commit import CommitMetadata
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.finish import abandoned_on_error
from hoodie.writing.planning import TaskResults
from hoodie.writing.result import Phases
from hoodie.writing.run import write_batch
from hoodie.writing.write import Write, action_of, check, with_transaction, writable_state
from support.background import by_hand
from support.nightly import by_day, nightly, scaled
from support.trips import TRIPS

TABLE = {
    **TRIPS,
    "hoodie.spark.driver.threads": "1",
    "hoodie.table.services.enabled": "false",
    "hoodie.parquet.small.file.limit": "0",
}
ALONE: dict[str, str] = {}
LOCKED = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "StorageBasedLockProvider",
    "hoodie.write.lock.storage.validity.timeout.secs": "60",
    "hoodie.write.lock.wait_time_ms": "10000",
    "hoodie.write.lock.client.num_retries": "0",
}
PATIENT = LOCKED | {"hoodie.write.lock.wait_time_ms": "1000000"}
NON_BLOCKING = LOCKED | {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.table.version": "9",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "1",
}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]

Rows = dict[str, tuple[str, str]]  # id -> (city, note)
BEFORE: Rows = {"a": ("oslo", "old"), "b": ("oslo", "old"), "d": ("oslo", "old"), "c": ("rome", "old")}
FIRST: Rows = {"a": ("oslo", "first"), "d": ("oslo", "first"), "f": ("bern", "first")}
SECOND: Rows = {"a": ("oslo", "second"), "b": ("oslo", "second"), "s": ("bern", "second")}
ELSEWHERE: Rows = {"c": ("rome", "second"), "s": ("bern", "second")}
LATER: Rows = {"b": ("oslo", "later")}

#: What a writer that loses is told.
TOLD = (WriteConflict, InstantNotFound, LockLost, LockTimeout)


def batch(rows: Rows) -> pa.Table:
    keys, cities = list(rows), [row[0] for row in rows.values()]
    notes = [row[1] for row in rows.values()]
    return pa.table(
        {"id": keys, "city": cities, "ts": [1] * len(keys), "note": notes}
        | {"_hoodie_record_key": keys, "_hoodie_partition_path": cities}
    )


def read(storage: Storage) -> Rows:
    found = ArrowTable(storage).snapshot().to_pylist()
    rows = {row["id"]: (row["city"], row["note"]) for row in found}
    assert len(rows) == len(found), "a key occurs twice"
    return rows


@dataclass
class World:
    """One storage with its clock, and the seconds that pass for everybody."""

    storage: MemoryStorage
    now: float = 1_000_000.0

    def __post_init__(self) -> None:
        self.storage.clock = lambda: int(self.now * 1000)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Locks and heartbeats of this process live in this world's time."""
    here = World(MemoryStorage())

    def lock(*given: Any, **more: Any) -> Lock:
        return Lock(*given, **more, sleep=pause, monotonic=lambda: here.now)

    def pause(seconds: float) -> None:
        here.sleep(seconds)
        heart = HEARTS.get(threading.get_ident())
        if heart is not None:  # a writer that waits is alive
            heart.beat()
        gate = GATES.get(threading.get_ident())
        if gate is not None:
            gate.step(lambda: None)

    def beating(storage: Storage, instant: str, options: Any) -> Heartbeat:
        interval, expiry = options.heartbeat_interval / 1000, options.heartbeat_expiry / 1000
        heart = Heartbeat(here.storage, instant, interval, expiry, monotonic=lambda: here.now, run=by_hand).start()
        HEARTS[threading.get_ident()] = heart
        return heart

    monkeypatch.setattr(choose, "Lock", lock)
    monkeypatch.setattr(choose, "StorageLock", partial(StorageLock, monotonic=lambda: here.now, run=by_hand))
    monkeypatch.setattr(transactions, "start_heartbeat", beating)
    return here


# --- writers, phase by phase ---


@dataclass
class Writer:
    """One write. `clock` is how far its machine's clock is off, in seconds."""

    world: World
    storage: Storage
    rows: Rows
    options: dict[str, str]
    clock: float = 0.0
    told: BaseException | None = None
    job: Write | None = None
    outcome: TaskResults | None = None
    acknowledged: bool = False

    def now(self) -> dt.datetime:
        return dt.datetime(2030, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=self.world.now - 1_000_000 + self.clock)

    def phases(self) -> Iterator[str]:
        """The write. It stops where it is named."""
        settings = Settings.read(Options({**TABLE, **self.options}))
        state = writable_state(self.storage, settings)
        rows = batch(self.rows)
        checked = check(state, WriteOperation.UPSERT, rows.schema.remove(5).remove(4), settings)
        yield "checked"
        action = action_of(WriteOperation.UPSERT, checked.kind)
        begun = begin(state, WriteOperation.UPSERT, action, self.now, settings.writers)
        write = with_transaction(checked, begun)
        with abandoned_on_error(write):
            self.job = write
            yield "begun"
            self.job, self.outcome = write_batch(self.job, MemoryBatch(rows), Phases())
            yield "written"
            publish(self.job.begun, self.metadata(), unseeing=self.job.unseeing)
        self.acknowledged = True

    def metadata(self) -> CommitMetadata:
        assert self.job is not None
        assert self.outcome is not None
        return describe(self.job.begun, self.outcome.stats, {}, {"schema": self.job.avro_schema})

    def run(self) -> None:
        """All phases that are left."""
        try:
            for _ in self.phases():
                pass
        except TOLD as error:
            self.told = error


def table(world: World, kind: str = "COPY_ON_WRITE", options: Mapping[str, str] = MappingProxyType({})) -> None:
    """An empty world gets a table with the rows of BEFORE."""
    made = ArrowTable.create(world.storage, {**TABLE, "hoodie.datasource.write.table.type": kind, **options})
    made.upsert(batch(BEFORE))


def merged(*writes: Rows) -> Rows:
    return {key: row for rows in (BEFORE, *writes) for key, row in rows.items()}


def require_serial(world: World, writers: Sequence[Writer], options: dict[str, str]) -> None:
    """The rows are those of acknowledged writes one after the other, and stay so when the next write comes."""
    done = [writer.rows for writer in writers if writer.acknowledged]
    orders = [merged(*order) for order in itertools.permutations(done)]
    found = read(world.storage)
    assert found in orders, (found, [writer.told for writer in writers])
    world.sleep(10_000)  # whoever died is seen to be dead
    later = Writer(world, world.storage, LATER, options)
    later.run()
    assert later.acknowledged, later.told
    assert read(world.storage) == found | LATER
    left = [path for path in world.storage.snapshot() if "/.locks/" in path or "/.heartbeat/" in path]
    assert left == []


# --- in every order of their phases ---

ORDERS = sorted(set(itertools.permutations((0,) * 4 + (1,) * 4)))


@pytest.mark.parametrize("options", [ALONE, LOCKED], ids=["alone", "locked"])
@pytest.mark.parametrize(
    ("kind", "second", "skew"),
    [
        pytest.param(TYPES[0], SECOND, 0, id="same group"),
        nightly(TYPES[0], SECOND, -3600, id="clock behind"),
        nightly(TYPES[0], SECOND, 3600, id="clock ahead"),
        nightly(TYPES[0], ELSEWHERE, 0, id="other groups"),
        pytest.param(TYPES[1], SECOND, 0, id="logs of one group"),
        nightly(TYPES[1], ELSEWHERE, 0, id="logs of other groups"),
    ],
)
def test_two_writes_in_every_order_of_their_phases(world, kind, second, options, skew):
    table(world, kind)
    before = world.storage.copy()
    every = scaled(7, 1 + (options is LOCKED)) if kind == TYPES[0] and not skew and second is SECOND else scaled(13, 4)
    for order in [*ORDERS[::every], ORDERS[-1]]:
        world.storage = before.copy()
        World.__post_init__(world)
        writers = [
            Writer(world, world.storage, FIRST, options),
            Writer(world, world.storage, second, options, clock=skew),
        ]
        running = [writer.phases() for writer in writers]
        for number in order:
            world.sleep(0.01)
            try:
                next(running[number], None)
            except TOLD as error:
                writers[number].told = error
        one_by_one = order in (ORDERS[0], ORDERS[-1])
        acknowledged = sum(writer.acknowledged for writer in writers)
        assert acknowledged >= 1, [writer.told for writer in writers]
        if one_by_one or (options is LOCKED and second is ELSEWHERE):
            assert acknowledged == 2, [writer.told for writer in writers]
        require_serial(world, writers, options)


@pytest.mark.parametrize("skew", [0, nightly(-3600), nightly(3600)])
def test_two_writes_that_do_not_wait_for_one_another_are_both_acknowledged(world, skew):
    table(world, TYPES[1], NON_BLOCKING)
    before = world.storage.copy()
    for order in [*ORDERS[:: scaled(15, 4)], ORDERS[-1]]:
        world.storage = before.copy()
        World.__post_init__(world)
        writers = [
            Writer(world, world.storage, FIRST, NON_BLOCKING),
            Writer(world, world.storage, SECOND, NON_BLOCKING, clock=skew),
        ]
        running = [writer.phases() for writer in writers]
        for number in order:
            world.sleep(0.01)
            next(running[number], None)
        assert all(writer.acknowledged for writer in writers)
        require_serial(world, writers, NON_BLOCKING)


@pytest.mark.parametrize(
    ("kind", "second", "options"),
    [
        pytest.param(TYPES[0], SECOND, ALONE, id="COPY_ON_WRITE-alone"),
        nightly(TYPES[0], SECOND, LOCKED, id="COPY_ON_WRITE-locked"),
        nightly(TYPES[1], ELSEWHERE, ALONE, id="MERGE_ON_READ-alone"),
        pytest.param(TYPES[1], ELSEWHERE, LOCKED, id="MERGE_ON_READ-locked"),
    ],
)
def test_two_writes_keep_a_metadata_table_in_every_order_of_their_phases(world, kind, second, options):
    """Its file lists are never wrong, and readers have no reason to doubt them once a writer is done."""
    options = {**options, "hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    table(world, kind, options)
    before = world.storage.copy()
    for order in [*ORDERS[:: scaled(18, 9)], ORDERS[-1]]:
        world.storage = before.copy()
        World.__post_init__(world)
        writers = [Writer(world, world.storage, rows, options) for rows in (FIRST, second)]
        running = [writer.phases() for writer in writers]
        for number in order:
            world.sleep(0.01)
            try:
                next(running[number], None)
            except TOLD as error:
                writers[number].told = error
        require_serial(world, writers, options)
        with warnings.catch_warnings():
            warnings.simplefilter("error", MetadataTableIgnored)
            read(world.storage)
        state = load_state(world.storage)
        told = validate_metadata(world.storage, state.config, state.timeline)
        assert told.problems == ()


# --- in every order of their calls ---

#: By thread: where it waits for its turn, and the heart of its write.
GATES: dict[int, Gate] = {}
HEARTS: dict[int, Heartbeat] = {}


class Gate(WrappedStorage):
    """Lets a call of the writer's thread to the table's folder of metadata through when the schedule says so."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.go, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.ended, self.thread = False, 0

    def step(self, call: Callable[[], Any]) -> Any:
        self.go.acquire()
        try:
            return call()
        finally:
            self.done.release()

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        gated = path.startswith(".hoodie") and threading.get_ident() == self.thread
        return self.step(call) if gated else call()

    def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        return self.mutate(name, path, call)

    def start(self, work: Callable[[], None]) -> None:
        """Run up to before the first call."""

        def run() -> None:
            self.thread = threading.get_ident()
            GATES[self.thread] = self
            try:
                work()
            finally:
                GATES.pop(self.thread, None)
                HEARTS.pop(self.thread, None)
                self.ended = True
                self.done.release()

        threading.Thread(target=run, daemon=True).start()

    def one(self) -> None:
        """Let one call through, and wait until it is done; nothing happens once the work has ended."""
        if not self.ended:
            self.go.release()
            assert self.done.acquire(timeout=60)


def run_calls(gates: Sequence[Gate], schedule: Iterable[int | Callable[[], None]]) -> None:
    """Carry a schedule out, call by call; then everybody goes on to the end, the first one first."""
    for item in schedule:
        if callable(item):
            item()
        else:
            gates[item].one()
    for gate in gates:
        while not gate.ended:
            gate.one()


def mixed(world: World, writers: Sequence[Writer], work: Sequence[Callable[[], None]], schedule: Any) -> None:
    gates = [writer.storage for writer in writers]
    assert all(isinstance(gate, Gate) for gate in gates)
    for gate, each in zip(gates, work, strict=True):
        gate.start(each)  # type: ignore[attr-defined]
    run_calls(gates, schedule)  # type: ignore[arg-type]


def calls_of(world: World, options: dict[str, str], rows: Rows) -> int:
    """How many steps a write takes when nobody is in its way."""
    storage, now = world.storage, world.now
    world.storage = storage.copy()
    World.__post_init__(world)
    gate = Gate(world.storage)
    writer = Writer(world, gate, rows, options)
    gate.start(writer.run)
    steps = 0
    while not gate.ended:
        gate.one()
        steps += 1
    assert writer.acknowledged, writer.told
    world.storage, world.now = storage, now
    return steps


@dataclass
class Prepared:
    """Two writes with all their files, that only need to be published; to be taken up again and again."""

    storage: MemoryStorage
    now: float
    writers: list[Writer] = field(default_factory=list)


def prepare(world: World, second: Rows, options: dict[str, str]) -> Prepared:
    writers = [Writer(world, world.storage, rows, options) for rows in (FIRST, second)]
    running = [writer.phases() for writer in writers]
    # Both look at the table before either begins: without a lock nobody rolls the other back.
    for _ in range(3):
        for each in running:
            world.sleep(0.01)
            next(each)
    for writer in writers:
        transaction = writer.job and writer.job.transaction
        assert transaction is not None
    return Prepared(world.storage, world.now, writers)


def publishing(prepared: Prepared, world: World) -> tuple[list[Writer], list[Callable[[], None]]]:
    """The two writes as prepared, on a copy of the storage."""
    world.storage, world.now = prepared.storage.copy(), prepared.now
    World.__post_init__(world)
    writers: list[Writer] = []
    work: list[Callable[[], None]] = []
    for old in prepared.writers:
        gate = Gate(world.storage)
        assert old.job is not None
        begun = old.job.begun
        heart = begun.heart and Heartbeat(
            world.storage, begun.time, 60, 120, monotonic=lambda: world.now, run=by_hand, _last=world.now
        )
        begun = replace(begun, state=replace(begun.state, storage=gate), heart=heart)
        writer = replace(old, storage=gate, job=replace(old.job, transaction=begun), told=None, acknowledged=False)

        def run(writer: Writer = writer) -> None:
            assert writer.job is not None
            if writer.job.begun.heart is not None:
                HEARTS[threading.get_ident()] = writer.job.begun.heart
            try:
                with abandoned_on_error(writer.job):
                    publish(writer.job.begun, writer.metadata())
                writer.acknowledged = True
            except TOLD as error:
                writer.told = error

        writers.append(writer)
        work.append(run)
    return writers, work


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        pytest.param(ALONE, TYPES[0], id="alone-COPY_ON_WRITE"),
        nightly(ALONE, TYPES[1], id="alone-MERGE_ON_READ"),
        nightly(LOCKED, TYPES[0], id="locked-COPY_ON_WRITE"),
        pytest.param(LOCKED, TYPES[1], id="locked-MERGE_ON_READ"),
    ],
)
def test_two_writes_of_one_file_group_are_published_at_once(world, kind, options):
    """The first stops after any call, the second after any of its own; the first ends, then the second."""
    table(world, kind)
    prepared = prepare(world, SECOND, options)
    lost_both = 0
    steps, every = (26, 3) if options is LOCKED else (16, 2)
    if kind != TYPES[0]:
        every += 2
    every += scaled(2, 0)
    for first, second in itertools.product(range(0, steps, every - 1), range(0, steps, every)):
        writers, work = publishing(prepared, world)
        mixed(world, writers, work, [*[0] * first, *[1] * second])
        acknowledged = sum(writer.acknowledged for writer in writers)
        assert acknowledged < 2
        lost_both += acknowledged == 0
        require_serial(world, writers, options)
    assert options is ALONE or lost_both == 0


def test_a_writer_that_sleeps_in_its_publication_wakes_up_to_a_table_that_went_on(world):
    """Its lease and its heartbeat have expired; the other has waited for the lock and taken it."""
    table(world)
    prepared = prepare(world, SECOND, PATIENT)
    ends = set()
    for calls in range(0, 30, scaled(2, 1)):
        writers, work = publishing(prepared, world)

        def night(awake: Writer = writers[1]) -> None:
            for _ in range(4):
                world.sleep(50)
                assert awake.job is not None
                assert awake.job.begun.heart is not None
                assert awake.job.begun.heart.beat()

        mixed(world, writers, work, [*[0] * calls, night, *[1] * 400])
        assert sum(writer.acknowledged for writer in writers) == 1, [writer.told for writer in writers]
        ends.add(next(number for number, writer in enumerate(writers) if writer.acknowledged))
        require_serial(world, writers, PATIENT)
    assert ends == {0, 1}


@pytest.mark.parametrize(
    ("kind", "options"),
    by_day(itertools.product(TYPES, (ALONE, PATIENT)), lambda case: (case[0] == TYPES[0]) == (case[1] is PATIENT)),
    ids=lambda value: value if isinstance(value, str) else "locked" if value else "alone",
)
def test_a_writer_that_sleeps_anywhere_and_wakes_up_after_another_has_come(world, kind, options):
    table(world, kind)
    before = world.storage
    steps = calls_of(world, options, FIRST)
    for calls in range(0, steps, scaled(2, 1) if kind == TYPES[0] else scaled(4, 3)):
        world.storage = before.copy()
        World.__post_init__(world)
        writers = [Writer(world, Gate(world.storage), rows, options) for rows in (FIRST, SECOND)]
        mixed(world, writers, [w.run for w in writers], [*[0] * calls, lambda: world.sleep(1000), *[1] * 2000])
        assert writers[1].acknowledged or writers[0].acknowledged, (calls, [writer.told for writer in writers])
        require_serial(world, writers, options)


@pytest.mark.parametrize("options", [nightly(ALONE, id="alone"), pytest.param(LOCKED, id="locked")])
def test_a_second_writer_that_comes_at_any_call_of_the_first_and_is_stopped_itself(world, options):
    table(world)
    before = world.storage
    steps = calls_of(world, options, FIRST)
    for first, second in itertools.product(range(2, steps, scaled(11, 5)), range(1, steps, scaled(10, 4))):
        world.storage = before.copy()
        World.__post_init__(world)
        writers = [Writer(world, Gate(world.storage), rows, options) for rows in (FIRST, SECOND)]
        mixed(world, writers, [w.run for w in writers], [*[0] * first, *[1] * second])
        require_serial(world, writers, options)


def test_a_writer_that_is_rolled_back_while_it_publishes(world):
    """The second considers the first dead, and stops somewhere in rolling it back; the first goes on."""
    table(world)
    prepared = prepare(world, SECOND, ALONE)
    ends = set()
    for first, second in itertools.product(range(3, 11, scaled(2, 1)), range(4, 60, scaled(8, 3))):
        writers, work = publishing(prepared, world)
        storage = Gate(world.storage)
        writers[1] = Writer(world, storage, SECOND, ALONE)
        mixed(world, writers, [work[0], writers[1].run], [*[0] * first, *[1] * second])
        ends.add(tuple(writer.acknowledged for writer in writers))
        require_serial(world, writers, ALONE)
    assert (False, True) in ends


def test_the_oracle_sees_a_lost_write(world):
    """The same schedules over writers that do not look at each other lose writes: the check can fail."""
    table(world)
    prepared = prepare(world, SECOND, ALONE)
    writers, work = publishing(prepared, world)
    for writer in writers:
        assert writer.job is not None
    original = transactions.require_no_conflict
    transactions.require_no_conflict = lambda *given, **more: None  # type: ignore[assignment]
    try:
        mixed(world, writers, work, [])
    finally:
        transactions.require_no_conflict = original
    assert all(writer.acknowledged for writer in writers)
    with pytest.raises(AssertionError):
        require_serial(world, writers, ALONE)


def test_errors_name_instants_file_groups_and_what_to_do(world):
    table(world)
    prepared = prepare(world, SECOND, LOCKED)
    writers, work = publishing(prepared, world)
    mixed(world, writers, work, [])
    assert isinstance(writers[1].told, HoodieError)
    text = str(writers[1].told)
    assert writers[0].job is not None
    assert writers[0].job.begun.time in text
    assert "file group oslo/" in text
    assert "hoodie.write.num.retries.on.conflict.failures" in text


@pytest.mark.parametrize(
    ("options", "kind", "second"),
    [
        pytest.param(ALONE, TYPES[1], SECOND, id="alone-same group"),
        nightly(ALONE, TYPES[1], ELSEWHERE, id="alone-other groups"),
        nightly(ALONE, TYPES[0], SECOND, id="alone-Copy-on-Write"),
        nightly(LOCKED, TYPES[0], SECOND, id="locked-same group"),
        nightly(LOCKED, TYPES[0], ELSEWHERE, id="locked-other groups"),
    ],
)
def test_two_writes_are_published_at_once_beside_a_metadata_table(world, kind, options, second):
    """What readers take of its file lists are the rows of the acknowledged writes, at any time."""
    options = {**options, "hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "true"}
    table(world, kind, options)
    prepared = prepare(world, second, options)
    for first, then in itertools.product(range(0, 40, scaled(13, 6)), range(0, 40, scaled(15, 7))):
        writers, work = publishing(prepared, world)
        mixed(world, writers, work, [*[0] * first, *[1] * then])
        require_serial(world, writers, options)
        with warnings.catch_warnings():
            warnings.simplefilter("error", MetadataTableIgnored)
            read(world.storage)
