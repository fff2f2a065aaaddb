"""Independent calls, made at once by threads: they wait for a storage, or for Arrow, which lets other threads run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hoodie.storage.protocol import Storage

#: Calls at once that wait rather than compute.
AT_ONCE = 32

A = TypeVar("A")
B = TypeVar("B")


def in_threads(call: Callable[[A], B], items: Iterable[A], threads: int = AT_ONCE, name: str = "hoodie") -> list[B]:
    """The call's results in the order of the items. Raises the first failure, once the calls that had begun have ended.

    threads  calls at once, at most
    name     of the threads
    """
    items = list(items)
    if len(items) < 2 or threads < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix=name) as pool:
        return list(pool.map(call, items))


def together(storage: Storage, first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """The results of two calls that do not need each other: at once on a remote storage, else one after the other.

    Raises what the first raises, else what the second raises. On a remote storage the second is made in any case, and
    has ended by then
    """
    if not storage.remote:
        return first(), second()
    with ThreadPoolExecutor(1, thread_name_prefix="hoodie-storage") as pool:
        other = pool.submit(second)
        return first(), other.result()
