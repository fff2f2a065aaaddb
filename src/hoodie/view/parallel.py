"""Concurrent calls to storage, which wait rather than compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

#: Concurrent calls.
_THREADS = 32

A = TypeVar("A")
B = TypeVar("B")


def in_threads(call: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """The call's results in the order of items; several calls run at once."""
    if len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(min(_THREADS, len(items))) as pool:
        return list(pool.map(call, items))
