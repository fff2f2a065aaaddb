"""A lock in ZooKeeper: ephemeral sequential nodes below `<base_path>/<lock_key>`, the smallest number holds it.

Nodes are named as Curator's InterProcessMutex names them, `_c_<uuid>-lock-<10 digits>`, so that Hudi's own writers and
these wait for each other. Source: docs/format/table-services.md 7.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from hoodie.config.locks import LockOptions
from hoodie.errors import InvalidOption, LockLost, LockTimeout
from hoodie.locks.protocol import TELL_AFTER, Grant, Refused, tell_of_waiting

if TYPE_CHECKING:
    from kazoo.client import KazooClient
    from kazoo.recipe.lock import Lock as KazooLock

_MARK = "-lock-"


@dataclass(slots=True)
class ZooKeeperLock:
    """Attempts at one lock. Each connects a client, which stays connected while the lock is held."""

    path: str
    what: str
    options: LockOptions

    def attempt(self, seconds: float) -> Grant | Refused:
        """One attempt, which waits in the lock's queue for up to so many seconds.

        Raises  LockTimeout when no server answers
        """
        client = _connect(self.options, self.what)
        granted = False
        try:
            lock = _mutex(client, self.path)
            with _waiting_reported(client, self.path, self.what):
                granted = _acquire(lock, seconds)
            return _HeldLock(client, lock, self.what, self.options) if granted else Refused(_holder(client, self.path))
        finally:
            if not granted:
                _close(client)


@dataclass(slots=True)
class _HeldLock:
    """The first node of the queue is ours, as long as our ZooKeeper session lives."""

    client: KazooClient
    lock: KazooLock
    what: str
    options: LockOptions

    def check(self) -> None:
        from kazoo.exceptions import KazooException

        path, problem = f"{self.lock.path}/{self.lock.node}", ""
        try:
            stat = self.client.exists_async(path).get(timeout=self.options.zookeeper_connection_timeout / 1000)
            session = self.client.client_id[0] if self.client.client_id else None
            if stat is None or stat.ephemeralOwner != session:
                problem = "its ZooKeeper session ended"
        except (KazooException, self.client.handler.timeout_exception) as error:
            problem = f"ZooKeeper does not answer ({type(error).__name__})"
        if problem:
            raise LockLost(f"the {self.what} is lost: {problem}. Nothing is published; try the write again.")

    def release(self) -> None:
        from kazoo.exceptions import KazooException

        try:
            self.client.delete_async(f"{self.lock.path}/{self.lock.node}").get(
                timeout=self.options.zookeeper_connection_timeout / 1000
            )
        except (KazooException, self.client.handler.timeout_exception):
            pass  # the node goes with the session, which ends now or by its time-out
        finally:
            _close(self.client)


def lock_path(options: LockOptions, name: str) -> str:
    """The path of a lock in ZooKeeper. Raises InvalidOption when an option for it is missing"""
    key = options.zookeeper_lock_key
    missing = [
        f"hoodie.write.lock.zookeeper.{word}"
        for word, value in (("base_path", options.zookeeper_base_path), ("lock_key", key))
        if not value
    ]
    if missing:
        raise InvalidOption(
            f"ZookeeperBasedLockProvider needs {' and '.join(missing)}: the path of the table's lock, the same for "
            "all its writers"
        )
    return _path(options.zookeeper_base_path, key, name)


def implicit_path(table: str, name: str) -> str:
    """The path of a table's lock when the options name none, made from the table's identity.

    table  of `table_identity`
    """
    return _path("/hoodie/locks", hashlib.sha256(table.encode()).hexdigest()[:32], name)


def _path(base: str, key: str, name: str) -> str:
    return f"{base.rstrip('/')}/{key}{f'.{name}' if name else ''}"


def _connect(options: LockOptions, what: str) -> KazooClient:
    client_class, retry_class = _kazoo()
    seconds = options.zookeeper_connection_timeout / 1000
    client = client_class(
        hosts=_hosts(options),
        timeout=options.zookeeper_session_timeout / 1000,
        connection_retry=retry_class(
            max_tries=options.connect_retries + 1,
            delay=options.connect_wait / 1000,
            max_delay=options.connect_longest_wait / 1000,
        ),
    )
    try:
        client.start(timeout=seconds)
    except client.handler.timeout_exception as error:
        _close(client)
        raise LockTimeout(
            f"ZooKeeper ({options.zookeeper_url}) did not answer within {seconds:g} s; the {what} is kept there. "
            "Check hoodie.write.lock.zookeeper.url, and that ZooKeeper runs. Nothing has changed."
        ) from error
    return client


def _hosts(options: LockOptions) -> str:
    if not options.zookeeper_url:
        raise InvalidOption(
            "the addresses of ZooKeeper's servers are missing: hoodie.write.lock.zookeeper.url=host:port,host:port"
        )
    servers, slash, root = options.zookeeper_url.partition("/")
    hosts = [part.strip() for part in servers.split(",") if part.strip()]
    return (
        ",".join(p if p.rpartition(":")[2].isdigit() else f"{p}:{options.zookeeper_port}" for p in hosts) + slash + root
    )


def _kazoo() -> Any:
    try:
        from kazoo.client import KazooClient
        from kazoo.retry import KazooRetry
    except ImportError as error:
        raise InvalidOption("a lock in ZooKeeper needs the package kazoo: pip install 'hoodie[zookeeper]'") from error
    return KazooClient, KazooRetry


def _mutex(client: KazooClient, path: str) -> KazooLock:
    from kazoo.recipe.lock import Lock

    class Mutex(Lock):  # type: ignore[misc]
        """Kazoo's lock with the node names of Curator: any child with `lock-` and ten digits contends."""

        _NODE_NAME = _MARK
        _EXCLUDE_NAMES: ClassVar[list[str]] = ["lock-"]

    who = f"process {os.getpid()} on {socket.gethostname()} ({threading.current_thread().name})"
    lock = Mutex(client, path, who)
    lock.prefix = f"_c_{uuid4()}{_MARK}"
    lock.create_path = f"{path}/{lock.prefix}"
    return lock


def _acquire(lock: KazooLock, seconds: float) -> bool:
    from kazoo.exceptions import LockTimeout as KazooTimeout

    try:
        return bool(lock.acquire(timeout=seconds) if seconds > 0 else lock.acquire(blocking=False))
    except KazooTimeout:
        return False


@contextmanager
def _waiting_reported(client: KazooClient, path: str, what: str) -> Iterator[None]:
    """Say after a while who is waited for: an attempt keeps its place in the queue, and so lasts."""

    def tell() -> None:
        from kazoo.exceptions import KazooException

        with suppress(KazooException, client.handler.timeout_exception):
            tell_of_waiting(what, _wait(client, path))

    timer = threading.Timer(TELL_AFTER, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _wait(client: KazooClient, path: str) -> str:
    """What a line about waiting says of the holder. When it dies, its lock ends with its session."""
    from kazoo.exceptions import NoNodeError

    for name in _queue(client, path)[:1]:
        with suppress(NoNodeError):
            data, stat = client.get(f"{path}/{name}")
            who = data.decode(errors="replace").partition(" (")[0] or "a writer"
            held = max(0.0, time.time() - stat.ctime / 1000)
            return f"{who}, held for {held:.0f} s, expires with its session 0x{stat.ephemeralOwner:x}"
    return "a writer that is about to finish"


def _queue(client: KazooClient, path: str) -> list[str]:
    return sorted(client.get_children(path), key=lambda name: name.rpartition("lock-")[2])


def _holder(client: KazooClient, path: str) -> str:
    """Who is first in the queue, for messages."""
    from kazoo.exceptions import NoNodeError

    for name in _queue(client, path)[:1]:
        try:
            data, stat = client.get(f"{path}/{name}")
        except NoNodeError:
            break
        return f"{data.decode(errors='replace') or 'a writer'} (session 0x{stat.ephemeralOwner:x}, {path}/{name})"
    return "a writer that is about to finish"


def _close(client: KazooClient) -> None:
    client.stop()
    client.close()
