"""How large Spark takes a DataFrame to be, before any of it is evaluated."""

import re
from types import FunctionType

from pyspark.sql import DataFrame

_SIZE = re.compile(r"sizeInBytes=([\d.]+(?:E[+-]?\d+)?) ?([KMGTPE]i)?B")
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}


def estimated_bytes(frame: DataFrame) -> int | None:
    """Spark's estimate of the frame's size, from the text of its plan; None when it has none."""
    match = _SIZE.search(_explained(frame))
    return int(float(match[1]) * _UNITS[match[2] or ""]) if match else None


def _explained(frame: DataFrame) -> str:
    """What `DataFrame.explain(mode="cost")` prints, without it being printed.

    The statistics of a plan have one public API that classic Spark and Spark Connect share, `explain`, and it prints.
    `sys.stdout` belongs to the whole process: to redirect it, if only for a moment, takes other threads' output away
    and mixes their plans up. So the method runs with a `print` of its own, which nobody else sees. `EXPLAIN COST` as a
    SQL statement would need a temporary view, and dropping that removes the caller's frame from Spark's cache.
    """
    explain = getattr(type(frame), "explain", None)
    if not isinstance(explain, FunctionType) or "print" not in explain.__code__.co_names:
        return ""  # a PySpark that we do not know: the size is unknown, and the batch is staged
    lines: list[str] = []

    def keep(*parts: object) -> None:
        lines.append(" ".join(map(str, parts)))

    quiet = FunctionType(
        explain.__code__,
        {**explain.__globals__, "print": keep},
        explain.__name__,
        explain.__defaults__,
        explain.__closure__,
    )
    quiet(frame, mode="cost")
    return "\n".join(lines)
