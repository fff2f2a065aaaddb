"""Work dealt out to Spark tasks."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark.sql import SparkSession

T = TypeVar("T")

_FALLBACK_CORES = 8
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")


def balance(items: Sequence[T], size: Callable[[T], int], count: int) -> list[list[T]]:
    """The items in `count` hands of about equal size: largest first, each to the hand that has least."""
    hands: list[list[T]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for item in sorted(items, key=size, reverse=True):
        load, number = heapq.heappop(loads)
        hands[number].append(item)
        heapq.heappush(loads, (load + size(item), number))
    return hands


def cores(session: SparkSession) -> int:
    """Tasks that run at once, as far as settings tell: Spark Connect knows no more."""
    for key in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"):
        text = session.conf.get(key, None)
        if text:
            return int(text)
    local = _LOCAL.fullmatch(session.conf.get("spark.master", None) or "")
    if local is None:
        return _FALLBACK_CORES
    return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
