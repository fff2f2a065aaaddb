"""Locks in a real ZooKeeper, beside the lock of Curator that Hudi's writers take."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from hoodie.config.options import Options
from hoodie.errors import LockLost, LockTimeout
from hoodie.locks import Lock
from hoodie.table.settings import Writers
from hoodie.testing.storage import MemoryStorage
from support.servers import running
from support.zookeeper import Curator, ZooKeeper, running_curator

STORAGE = MemoryStorage()


def options(address: str, key: str, **more: object) -> dict[str, str]:
    given = {
        "provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        "zookeeper.url": address,
        "zookeeper.base_path": "/hudi/locks",
        "zookeeper.lock_key": key,
        "zookeeper.session_timeout_ms": 20_000,
        "zookeeper.connection_timeout_ms": 60_000,
        "wait_time_ms": 100,
        "client.num_retries": 0,
        "num_retries": 1,
        "wait_time_ms_between_retry": 100,
        **more,
    }
    return {f"hoodie.write.lock.{name}": str(value) for name, value in given.items()}


def lock(address: str, key: str, name: str = "", **more: object) -> Lock:
    return Writers.read(Options(options(address, key, **more))).lock_on(STORAGE, name)


@pytest.fixture(scope="module")
def curator(zookeeper_server: str) -> Iterator[Curator]:
    with running_curator(zookeeper_server) as found:
        yield found


def test_a_second_writer_waits_for_the_first(zookeeper_server):
    with lock(zookeeper_server, "trips") as first:
        first.check()
        second = lock(zookeeper_server, "trips")
        assert not second.acquire(0)
        assert not second.acquire(0.2)
        with pytest.raises(LockTimeout, match=f"process {os.getpid()} on .*_c_.*-lock-"):
            second.__enter__()
    assert second.acquire(0)
    second.check()
    second.release()


def test_a_writer_that_waits_says_for_whom(zookeeper_server, monkeypatch, caplog):
    monkeypatch.setattr("hoodie.locks.zookeeper.TELL_AFTER", 0.1)
    with lock(zookeeper_server, "told"):
        assert not lock(zookeeper_server, "told").acquire(0.5)
    lines = [r.getMessage() for r in caplog.records if r.levelname == "WARNING" and r.name == "hoodie.locks"]
    who = (
        rf"waiting for the lock of process {os.getpid()} on \S+, held for \d s, expires with its session 0x[0-9a-f]+ \("
    )
    assert lines
    assert all(re.match(who, line) for line in lines)  # a slow server is told of again by the next attempt


def test_a_waiting_writer_gets_the_lock_when_it_is_free(zookeeper_server):
    first = lock(zookeeper_server, "queue")
    assert first.acquire(0)
    threading.Timer(0.3, first.release).start()
    started = time.monotonic()
    with lock(zookeeper_server, "queue", wait_time_ms=20_000) as second:
        second.check()
    assert time.monotonic() - started < 10


def test_locks_of_plans_are_independent_of_the_tables(zookeeper_server):
    with lock(zookeeper_server, "plans"), lock(zookeeper_server, "plans", "compaction-1"):
        assert not lock(zookeeper_server, "plans", "compaction-1").acquire(0)
        with lock(zookeeper_server, "plans", "compaction-2"):
            pass


def test_the_implicit_provider_locks_by_the_tables_path(zookeeper_server):
    given = options(zookeeper_server, "", provider="ZookeeperBasedImplicitBasePathLockProvider")
    given = {key: value for key, value in given.items() if not key.endswith(("base_path", "lock_key"))}
    with Writers.read(Options(given)).lock_on(STORAGE):
        assert not Writers.read(Options(given)).lock_on(STORAGE).acquire(0)


def test_curator_waits_for_this_lock(zookeeper_server, curator):
    mutex = curator.mutex("/hudi/locks/shared")
    with lock(zookeeper_server, "shared"):
        assert not curator.acquire(mutex, 0.2)
    assert curator.acquire(mutex, 5)
    mutex.release()


def test_this_lock_waits_for_curator(zookeeper_server, curator):
    mutex = curator.mutex("/hudi/locks/theirs")
    assert curator.acquire(mutex, 5)
    assert not lock(zookeeper_server, "theirs").acquire(0)
    assert not lock(zookeeper_server, "theirs").acquire(0.3)
    mutex.release()
    with lock(zookeeper_server, "theirs") as ours:
        ours.check()


def test_the_queue_is_one_for_curator_and_this_lock(zookeeper_server, curator):
    """Whoever comes first is served first: a third one waits behind a second one of the other kind."""
    mutex = curator.mutex("/hudi/locks/order")
    first = lock(zookeeper_server, "order")
    assert first.acquire(0)
    served: list[str] = []

    def theirs() -> None:
        if curator.acquire(mutex, 20):
            served.append("curator")
            mutex.release()

    def ours() -> None:
        with lock(zookeeper_server, "order", wait_time_ms=20_000):
            served.append("hoodie")

    waiting = [threading.Thread(target=theirs), threading.Thread(target=ours)]
    for place, thread in enumerate(waiting, 2):
        thread.start()
        while len(curator.client.getChildren().forPath("/hudi/locks/order")) < place:
            time.sleep(0.01)
    first.release()
    for thread in waiting:
        thread.join(30)
    assert served == ["curator", "hoodie"]


HOLDER = """
import sys, time
from hoodie.config.options import Options
from hoodie.table.settings import Writers
from hoodie.storage import LocalStorage
lock = Writers.read(Options({options!r})).lock_on(LocalStorage("."))
assert lock.acquire(5)
print("held", flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_free_after_its_session(zookeeper_server):
    given = options(zookeeper_server, "killed", **{"zookeeper.session_timeout_ms": 4000})
    holder = subprocess.Popen([sys.executable, "-c", HOLDER.format(options=dict(given))], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert not lock(zookeeper_server, "killed").acquire(0)
        holder.send_signal(signal.SIGKILL)
        started = time.monotonic()
        with lock(zookeeper_server, "killed", wait_time_ms=30_000) as after:
            after.check()
        assert time.monotonic() - started < 20
    finally:
        holder.kill()
        holder.wait()


def test_a_holder_that_loses_its_session_is_told(tmp_path):
    with running(ZooKeeper(tmp_path)) as server:
        holder = lock(server.address, "lost")
        assert holder.acquire(5)
        holder.check()
        server.stop()
        with pytest.raises(LockLost, match="does not answer"):
            holder.check()
        holder.release()
        with pytest.raises(LockTimeout, match=r"did not answer within 1 s.*zookeeper\.url"):
            lock(server.address, "lost", **{"zookeeper.connection_timeout_ms": 1000}).acquire(0)
