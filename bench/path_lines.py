"""Lines of the library that one upsert runs, by package, and modules that call each other: python -m bench.path_lines

An upsert of 200 rows, 100 of them new, into a table of three commits, without Spark and by the driver of a session: the
fourth of its process, so that modules are loaded and commits are known. `--modules` prints them by module.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import hoodie

_PACKAGE = Path(hoodie.__file__).parent


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.path_lines", description=__doc__)
    parser.add_argument("--modules", action="store_true", help="by module instead of by package")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for session in (None, hoodie.spark.local_session("bench", cores=2)):
            for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
                _measure(session, f"{folder}/{kind}-{session is None}", kind, given.modules)


def _measure(session: Any, path: str, kind: str, modules: bool) -> None:
    settings = {"name": "t", "record_key": "id", "partition_by": "p", "ordering": "ts", "table_type": kind}
    table = hoodie.create_table(path, spark=session, **settings)
    for low, high in ((0, 1000), (500, 700), (100, 300)):
        table.upsert(_rows(low, high))
    batch = _rows(900, 1100) if session is None else session.createDataFrame(_rows(900, 1100))
    path_of = path_of_call(lambda: table.upsert(batch))
    told = Counter[str]()
    for module, count in path_of.lines.items():
        told[module if modules else module.partition("/")[0]] += count
    who = "without Spark" if session is None else "by Spark's driver"
    print(f"{kind} {who}: {path_of.lines.total()} lines, {len(path_of.lines)} modules, {len(path_of.pairs)} pairs")
    for name, count in told.most_common():
        print(f"{count:7} {name}")


@dataclass(frozen=True)
class CallPath:
    """The lines of functions that ran, by module; and the pairs of modules, caller and called."""

    lines: Counter[str]
    pairs: frozenset[tuple[str, str]]


def path_of_call(call: Callable[[], object]) -> CallPath:
    """What a call runs of the library, in all threads."""
    lines: dict[str, set[int]] = defaultdict(set)
    pairs: set[tuple[str, str]] = set()
    within = f"{_PACKAGE}/"

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(within):
            return None
        module = file.removeprefix(within)
        here = lines[module]
        here.add(frame.f_lineno)
        caller = "" if frame.f_back is None else frame.f_back.f_code.co_filename
        if caller.startswith(within) and caller != file:
            pairs.add((caller.removeprefix(within), module))

        def moved(frame: FrameType, event: str, argument: Any) -> Any:
            here.add(frame.f_lineno)
            return moved

        return moved

    threading.settrace(entered)
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]  # None ends it, whatever its stub says
    return CallPath(Counter({module: len(of_module) for module, of_module in lines.items()}), frozenset(pairs))


def _rows(low: int, high: int) -> pa.Table:
    ids = range(low, high)
    return pa.table({"id": [f"k{n}" for n in ids], "p": [str(n % 4) for n in ids], "ts": [1] * len(ids), "v": ids})


if __name__ == "__main__":
    main()
