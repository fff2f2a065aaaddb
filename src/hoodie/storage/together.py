"""Independent calls to a storage, made at once where each of them waits for a network."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hoodie.storage.protocol import Storage

A = TypeVar("A")
B = TypeVar("B")


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
