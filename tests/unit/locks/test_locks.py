"""Locks: what all providers keep, and what becomes of a lease whose holder is late, dead, or has another clock."""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations

import pytest

from hoodie.config.locks import LockOptions, LockProvider
from hoodie.config.options import Options
from hoodie.errors import InvalidOption, LockLost, LockNotReleased, LockTimeout
from hoodie.locks.background import background
from hoodie.locks.clock import LOCKS
from hoodie.locks.lock_files import FileLock, StorageLock
from hoodie.locks.protocol import Grant, Lock, Refused
from hoodie.storage import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.settings import Writers
from hoodie.testing.storage import MemoryStorage
from support.background import by_hand
from support.nightly import covering

LOCAL = [LockProvider.STORAGE, LockProvider.FILE_SYSTEM, LockProvider.IN_PROCESS]
PROVIDER = "hoodie.write.lock.provider"


def options(provider: str, **more: str) -> Options:
    given = {
        PROVIDER: provider,
        "hoodie.write.lock.wait_time_ms": "30",
        "hoodie.write.lock.client.num_retries": "0",
        **{f"hoodie.write.lock.{key}": value for key, value in more.items()},
    }
    return Options(given)


@pytest.fixture(params=["memory", "local"])
def storage(request, tmp_path) -> Storage:
    return MemoryStorage() if request.param == "memory" else LocalStorage(tmp_path)


@pytest.mark.parametrize("provider", LOCAL)
def test_a_second_writer_waits_for_the_first(provider, storage):
    first, second = (Writers.read(options(provider)).lock_on(storage) for _ in range(2))
    with first:
        first.check()
        assert not second.acquire(0)
        assert not second.acquire(0.02)
        with pytest.raises(LockLost):
            second.check()
    assert second.acquire(0)
    second.check()
    second.release()


@pytest.mark.parametrize("provider", LOCAL)
def test_a_writer_that_waited_in_vain_is_told_who_holds_the_lock(provider, storage):
    with (
        Writers.read(options(provider)).lock_on(storage),
        pytest.raises(LockTimeout, match=threading.current_thread().name),
    ):
        Writers.read(options(provider)).lock_on(storage).__enter__()


def test_a_lock_that_another_holds_is_tried_again_as_often_as_the_options_say():
    attempts, pauses = [], []

    def attempt(seconds: float) -> Refused:
        attempts.append(seconds)
        return Refused("another")

    lock = Lock("lock", attempt, LockOptions(wait=0, retries=2, retry_wait=700), sleep=pauses.append)
    assert not lock.acquire()
    assert (len(attempts), pauses) == (3, [0.7, 0.7])
    with pytest.raises(LockTimeout, match=r"within 1\.4 s; another holds it"):
        lock.__enter__()


@pytest.mark.parametrize("provider", LOCAL)
def test_locks_of_other_names_are_independent(provider, storage):
    with (
        Writers.read(options(provider)).lock_on(storage),
        Writers.read(options(provider)).lock_on(storage, "compaction-1") as other,
    ):
        assert not Writers.read(options(provider)).lock_on(storage, "compaction-1").acquire(0)
        with Writers.read(options(provider)).lock_on(storage, "compaction-2"):
            other.check()


@pytest.mark.parametrize("provider", LOCAL)
def test_a_lock_is_not_reentrant_and_says_so(provider, storage):
    with Writers.read(options(provider)).lock_on(storage) as lock, pytest.raises(LockTimeout, match="not reentrant"):
        lock.acquire(0)


@pytest.mark.parametrize("provider", LOCAL)
def test_of_racing_threads_one_has_the_lock_at_a_time(provider, storage):
    inside, most, turns = [], [], []

    def work() -> None:
        for _ in range(3):
            lock = Writers.read(options(provider, wait_time_ms="20000")).lock_on(storage)
            with lock:
                inside.append(1)
                most.append(len(inside))
                lock.check()
                inside.pop()
                turns.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(turns) == 18
    assert max(most) == 1


@pytest.mark.parametrize("provider", [LockProvider.STORAGE, LockProvider.FILE_SYSTEM])
def test_a_released_lock_leaves_no_file(provider):
    storage = MemoryStorage()
    for _ in range(2):
        with Writers.read(options(provider)).lock_on(storage):
            assert not Writers.read(options(provider)).lock_on(storage).acquire(0)
    assert storage.snapshot() == {}


def test_without_a_provider_everybody_has_the_lock():
    assert not Writers.read(Options()).lock_on(MemoryStorage()).real
    with (
        Writers.read(Options()).lock_on(MemoryStorage()) as first,
        Writers.read(Options()).lock_on(MemoryStorage()) as second,
    ):
        first.check()
        second.check()
        assert not first.real


def test_hudis_class_names_are_accepted_long_and_short():
    for name in ("InProcessLockProvider", "org.apache.hudi.client.transaction.lock.InProcessLockProvider"):
        assert Writers.read(Options({PROVIDER: name})).lock_on(MemoryStorage()).real
        assert Writers.read(Options({PROVIDER: name})).lock_on(MemoryStorage()).real


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({PROVIDER: "RedisLockProvider"}, "expected one of ZookeeperBasedLockProvider"),
        ({PROVIDER: "ZookeeperBasedLockProvider"}, "base_path and hoodie.write.lock.zookeeper.lock_key"),
        ({"hoodie.write.lock.zookeeper.base_path": "hudi"}, "expected an absolute path"),
        ({"hoodie.write.lock.zookeeper.lock_key": "a/b"}, "without '/'"),
    ],
)
def test_options_that_name_no_lock_are_refused(given, said):
    with pytest.raises(InvalidOption, match=said):
        Writers.read(Options(given)).lock_on(MemoryStorage())


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider", "in a table of DynamoDB"),
        (
            "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider",
            "in a table of DynamoDB",
        ),
        ("org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider", "in a Hive metastore"),
        ("HiveMetastoreBasedLockProvider", "in a Hive metastore"),
    ],
)
def test_a_provider_of_hudi_that_is_not_here_is_refused_with_what_to_take(name, where):
    with pytest.raises(
        InvalidOption, match=rf"{name}' keeps its lock {where}.* take StorageBasedLockProvider.*Zookeeper"
    ):
        Options({PROVIDER: name}).read(LockOptions)
    with pytest.raises(InvalidOption, match="is no lock"):
        Options({PROVIDER: "NoopLockProvider"}).read(LockOptions)


def test_several_writers_that_name_no_lock_take_one_in_the_storage():
    several = Options({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"})
    storage = MemoryStorage()
    assert Writers.read(several).lock_on(MemoryStorage()).real
    with Writers.read(several).lock_on(storage) as held:
        assert held.real
        assert [path for path in storage.snapshot() if path.startswith(".hoodie/.locks/table.")]
        assert not Writers.read(options(LockProvider.STORAGE)).lock_on(storage).acquire(0)
    assert storage.snapshot() == {}
    zookeeper = Options({**several, "hoodie.write.lock.zookeeper.url": "zk1:2181"})
    with pytest.raises(InvalidOption, match="base_path"):  # named in Hudi's way
        Writers.read(zookeeper).lock_on(storage)


def test_zookeeper_without_kazoo_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    given = {"zookeeper.url": "127.0.0.1:1", "zookeeper.base_path": "/hudi", "zookeeper.lock_key": "trips"}
    with pytest.raises(InvalidOption, match=r"hoodie\[zookeeper\]"):
        Writers.read(options("ZookeeperBasedLockProvider", **given)).lock_on(MemoryStorage()).acquire(0)


# --- leases ---


@dataclass
class World:
    """A storage with its own clock; each machine has its own, too. Seconds."""

    now: float = 1_000_000.0
    storage: MemoryStorage = field(init=False)

    def __post_init__(self) -> None:
        self.storage = MemoryStorage(clock=lambda: int(self.now * 1000))

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def lock(self, kind: str, storage: Storage | None = None) -> Callable[[float], Grant | Refused]:
        """The lock as one writer tries it: 60 s of lease, renewed when the test says so."""
        where = storage or self.storage
        if kind == "storage":
            made = StorageLock(where, "table", "lock", 60, 20, monotonic=lambda: self.now, run=by_hand)
            return made.attempt
        return FileLock(where, ".hoodie/lock", "lock", 60, monotonic=lambda: self.now, run=by_hand).attempt


KINDS = ["storage", "file"]


def had(answer: Grant | Refused) -> Grant:
    assert not isinstance(answer, Refused), answer.holder
    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_that_is_not_renewed_ends_for_its_holder_before_it_does_for_others(kind):
    world = World()
    first = had(world.lock(kind)(0))
    world.pause(50)
    first.check()
    world.pause(5)
    with pytest.raises(LockLost, match="not renewed for 55"):
        first.check()
    assert isinstance(world.lock(kind)(0), Refused)
    world.pause(7)
    second = had(world.lock(kind)(0))
    second.check()
    first.release()  # late, and not its own any more
    second.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_lease_that_is_renewed_stays(kind):
    world = World()
    first = had(world.lock(kind)(0))
    for _ in range(10):
        world.pause(40)
        assert first.renew()  # type: ignore[attr-defined]
        assert isinstance(world.lock(kind)(0), Refused)
    first.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_holder_that_slept_does_not_renew_what_another_has(kind):
    world = World()
    first = had(world.lock(kind)(0))
    world.pause(100)
    second = had(world.lock(kind)(0))
    there = world.storage.snapshot()
    assert not first.renew()  # type: ignore[attr-defined]
    assert world.storage.snapshot() == there
    second.check()
    with pytest.raises(LockLost):
        first.check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ahead", [-86_400, 86_400])
def test_the_clock_of_a_writer_does_not_count(kind, ahead):
    """The file's age is told by the storage's clock; the writer's own is a day off."""
    world = World()
    had(world.lock(kind)(0))
    skewed = StorageLock(world.storage, "table", "lock", 60, 20, monotonic=lambda: world.now + ahead, run=by_hand)
    if kind == "file":
        late = FileLock(world.storage, ".hoodie/lock", "lock", 60, monotonic=lambda: world.now + ahead, run=by_hand)
    else:
        late = skewed  # type: ignore[assignment]
    assert isinstance(late.attempt(0), Refused)
    world.pause(59)
    assert isinstance(late.attempt(0), Refused)
    world.pause(3)
    had(late.attempt(0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_renewal_that_fails_is_tried_again_until_the_lease_ends(kind):
    class Broken(WrappedStorage):
        broken = False

        def observe(self, name, path, call):
            if self.broken:
                raise OSError("no network")
            return call()

    world = World()
    storage = Broken(world.storage)
    lease = had(world.lock(kind, storage)(0))
    storage.broken = True
    world.pause(30)
    assert lease.renew()  # type: ignore[attr-defined]
    storage.broken = False
    world.pause(20)
    assert lease.renew()  # type: ignore[attr-defined]
    world.pause(50)
    lease.check()


class Turns(WrappedStorage):
    """Runs one storage call each time the schedule gives this thread its turn."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.go, self.done, self.ended = threading.Semaphore(0), threading.Semaphore(0), False

    def step(self, call):
        self.go.acquire()
        try:
            return call()
        finally:
            self.done.release()

    def mutate(self, name, path, call):
        return self.step(call)

    def observe(self, name, path, call):
        return self.step(call)


def race(world: World, kind: str, order: tuple[int, ...]) -> list[Grant | Refused]:
    """Two writers try the lock, call by call in the given order; then each runs on to its end."""
    turns = [Turns(world.storage), Turns(world.storage)]
    answers: list[Grant | Refused | None] = [None, None]

    def run(number: int) -> None:
        answers[number] = world.lock(kind, turns[number])(0)
        turns[number].ended = True
        turns[number].done.release()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for number in [*order, *[0] * 40, *[1] * 40]:
        if not turns[number].ended:
            turns[number].go.release()
            turns[number].done.acquire()
    for turn in turns:
        turn.go.release(100)  # for checks of the test
    for thread in threads:
        thread.join(10)
    return [answer for answer in answers if answer is not None]


@pytest.mark.parametrize(("kind", "expired"), covering(KINDS, {"free": False, "expired": True}))
def test_two_writers_never_both_have_the_lock_however_their_calls_mix(kind, expired):
    orders = sorted(set(permutations((0,) * 5 + (1,) * 5)))[::3]
    assert len(orders) > 80
    winners = 0
    for order in orders:
        world = World()
        if expired:
            had(world.lock(kind)(0))
            world.pause(100)
        answers = race(world, kind, order)
        grants = [answer for answer in answers if not isinstance(answer, Refused)]
        holding = []
        for grant in grants:
            try:
                grant.check()
            except LockLost:
                continue
            holding.append(grant)
        assert len(holding) <= 1
        winners += len(holding)
    assert winners > len(orders) // 2


def test_a_lease_is_renewed_beside_the_work():
    storage = MemoryStorage()
    lease = had(StorageLock(storage, "table", "lock", 60, 0.01).attempt(0))
    path = f"{LOCKS}/table.0000000001"
    before = storage.list(LOCKS)[0].mtime
    while storage.list(LOCKS)[0].mtime <= before:  # until the test's time is up
        threading.Event().wait(0.01)
    lease.check()
    lease.release()
    assert not storage.exists(path)


def test_work_beside_the_work_ends_when_it_says_so():
    calls: list[int] = []
    over = threading.Event()

    def work() -> bool:
        calls.append(1)
        over.set()
        return False

    stop = background(0.001, work)
    assert over.wait(5)
    stop()
    assert calls == [1]


def test_hudis_empty_lock_file_is_respected():
    storage = MemoryStorage({".hoodie/lock": b""})
    lock = Writers.read(options(LockProvider.FILE_SYSTEM)).lock_on(storage)
    assert not lock.acquire(0)
    with pytest.raises(LockTimeout, match=r"if it is dead, delete memory://table/\.hoodie/lock"):
        lock.__enter__()
    storage.delete(".hoodie/lock")
    assert lock.acquire(0)


class Stuck:
    def check(self) -> None: ...

    def release(self) -> None:
        raise OSError("no network")


def test_a_fault_within_outlives_one_of_the_release():
    lock = Lock("lock", lambda seconds: Stuck(), LockOptions())
    with pytest.raises(ZeroDivisionError) as caught, lock:
        _ = 1 / 0
    assert "releasing the lock failed: no network" in caught.value.__notes__[0]


def test_a_release_that_fails_is_told_and_undoes_nothing():
    lock = Lock("lock", lambda seconds: Stuck(), LockOptions())
    with pytest.warns(LockNotReleased, match="releasing the lock failed: no network"), lock:
        pass
    with pytest.raises(LockLost, match="is not held"):
        lock.check()


@pytest.mark.parametrize("kind", KINDS)
def test_on_a_storage_that_keeps_no_times_nobody_is_considered_dead(kind):
    world = World()
    timeless = MemoryStorage(clock=lambda: 0)
    had(world.lock(kind, timeless)(0))
    world.pause(1_000_000)
    assert isinstance(world.lock(kind, timeless)(0), Refused)
