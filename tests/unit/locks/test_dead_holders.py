"""Holders of a lock that are dead, and lines about waiting for those that are not."""

import json
import logging
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hoodie.config.options import Options
from hoodie.locks.lease import Owner, decode_owner
from hoodie.locks.process import Process
from hoodie.locks.protocol import Lock, Refused
from hoodie.storage import LocalStorage
from hoodie.table.settings import Writers
from hoodie.testing.storage import MemoryStorage

pytestmark = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="without /proc nobody is known as dead")

PROVIDER = "hoodie.write.lock.provider"
FILE = {PROVIDER: "FileSystemBasedLockProvider"}  # never expires
EXPIRING = {**FILE, "hoodie.write.lock.filesystem.expire": "5"}
STORAGE = {PROVIDER: "StorageBasedLockProvider"}
KINDS = pytest.mark.parametrize("options", [FILE, EXPIRING, STORAGE], ids=["file", "expiring file", "storage"])

#: Takes the lock of a table and ends without releasing it, or waits to be killed.
HOLDER = """
import os, sys
from hoodie.config.options import Options
from hoodie.table.settings import Writers
from hoodie.storage import LocalStorage
assert Writers.read(Options({options!r})).lock_on(LocalStorage({path!r})).acquire(0)
print(flush=True)
if {waits}:
    sys.stdin.read()
os._exit(0)
"""


def holder(path: Path, options: dict[str, str], *, waits: bool = False) -> subprocess.Popen[bytes]:
    """A process that has the lock."""
    script = HOLDER.format(options=options, path=str(path), waits=waits)
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


@KINDS
def test_the_lock_of_a_process_that_died_here_is_taken_over_at_once(options: dict[str, str], tmp_path: Path, caplog):
    process = holder(tmp_path, options, waits=True)
    lock = Writers.read(Options(options)).lock_on(LocalStorage(tmp_path))
    assert not lock.acquire(0)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie: nobody has asked for its end
    assert lock.acquire(0)
    lock.check()
    assert f"process {process.pid} on {socket.gethostname()}, which held the lock of table" in caplog.text
    process.communicate()
    lock.release()
    assert lock.acquire(0)


def own() -> Process:
    return Process.own()


def dead() -> Process:
    """A process of this machine that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return replace(own(), pid=process.pid)


def test_a_process_is_dead_when_it_ended_here_and_in_no_case_of_doubt() -> None:
    ended = dead()
    assert ended.is_dead
    assert not own().is_dead
    assert replace(own(), started=own().started - 1).is_dead  # of a number that was used again
    assert not replace(own(), pid=os.getppid()).is_dead or os.getppid() == 0
    doubts = (
        {"host": "elsewhere"},
        {"boot": "another boot"},
        {"boot": ""},
        {"space": "pid:[4]"},
        {"space": ""},
        {"started": 0},
        {"pid": 0},
        {"pid": -1},
    )
    for doubt in doubts:
        assert not replace(ended, **doubt).is_dead, doubt


@KINDS
@pytest.mark.parametrize("doubt", [{"host": "elsewhere"}, {"boot": "b"}, {"space": "pid:[4]"}, None])
def test_the_lock_of_a_process_elsewhere_is_waited_for(options: dict[str, str], doubt: dict[str, str] | None) -> None:
    storage = MemoryStorage()
    lock = Writers.read(Options(options)).lock_on(storage)
    assert lock.acquire(0)
    (path,) = storage.snapshot()
    owner = decode_owner(storage.read(path))
    assert owner is not None
    process = None if doubt is None else replace(dead(), **doubt)
    storage.write(path, replace(owner, process=process).encode())
    assert not Writers.read(Options(options)).lock_on(storage).acquire(0)


def test_a_lock_file_without_a_process_is_read_as_before() -> None:
    content = json.dumps({"owner": "process 7 on there", "token": "t", "validitySecs": 60}).encode()
    assert decode_owner(content) == Owner("t", "process 7 on there", 60)
    assert Owner("t", "process 7 on there", 60).encode() == content
    for wrong in ({"pid": 1}, 7, "x"):
        assert decode_owner(json.dumps({**json.loads(content), "process": wrong}).encode()) is None


# --- waiting ---


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def lock(self, attempt) -> Lock:
        return Lock("lock of table t", attempt, sleep=self.sleep, monotonic=lambda: self.now)


def lines(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and r.name == "hoodie.locks"]


@KINDS
def test_after_five_seconds_a_line_says_who_is_waited_for(options: dict[str, str], caplog) -> None:
    storage, clock = MemoryStorage(), Clock()
    assert Writers.read(Options(options)).lock_on(storage).acquire(0)
    lock = clock.lock(Writers.read(Options(options)).lock_on(storage).attempt)
    assert not lock.acquire(4.9)
    assert lines(caplog) == []
    assert not lock.acquire(60)
    (line,) = lines(caplog)
    who = f"waiting for the lock of process {os.getpid()} on {socket.gethostname()}, held for 0 s, "
    assert line.startswith(who)
    assert line.endswith(" (lock of table t)")
    ends = {"StorageBasedLockProvider": "expires in 301 s"}.get(
        options[PROVIDER], "expires in 301 s" if options is EXPIRING else "never expires (if it is dead, delete "
    )
    assert ends in line


def test_a_line_about_waiting_comes_again_after_a_minute(caplog) -> None:
    assert not Clock().lock(lambda seconds: Refused("somebody")).acquire(130)
    assert lines(caplog) == ["waiting for the lock of somebody (lock of table t)"] * 3


def test_who_waits_for_a_thread_of_this_process_is_told_too(monkeypatch, caplog, tmp_path) -> None:
    import hoodie.locks.in_process as module
    import hoodie.locks.protocol as protocol

    for each in (module, protocol):
        monkeypatch.setattr(each, "TELL_AFTER", 0.02)
    options = Options({PROVIDER: "InProcessLockProvider"})
    with Writers.read(options).lock_on(LocalStorage(tmp_path)):
        assert not Writers.read(options).lock_on(LocalStorage(tmp_path)).acquire(0.2)
    assert lines(caplog)[0].startswith("waiting for the lock of thread MainThread of this process (")


def test_a_line_about_a_lock_that_never_expires_asks_no_clock(caplog) -> None:
    storage, clock = MemoryStorage(), Clock()
    assert Writers.read(Options(FILE)).lock_on(storage).acquire(0)
    before = storage.snapshot()
    writes: list[str] = []
    create = storage.create_new
    storage.create_new = lambda path, data: (writes.append(path), create(path, data))[1]  # type: ignore[method-assign]
    clock.lock(Writers.read(Options(FILE)).lock_on(storage).attempt).acquire(6)
    assert lines(caplog)
    assert writes == []
    assert storage.snapshot() == before
