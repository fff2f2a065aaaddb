"""Lines of the library that one upsert runs, by package: python -m bench.path_lines

An upsert of 200 rows, 100 of them new, by driver threads into a table of three commits: the fourth of its process, so
that modules are loaded and commits are known. `--modules` prints them by module.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
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
        spark = hoodie.local_session("bench", cores=2)
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            table = hoodie.create_table(
                spark, f"{folder}/{kind}", name="t", record_key="id", partition_by="p", ordering="ts", table_type=kind
            )
            for low, high in ((0, 1000), (500, 700), (100, 300)):
                table.upsert(_rows(low, high))
            batch = spark.createDataFrame(_rows(900, 1100))
            run = lines_of(lambda t=table, b=batch: t.upsert(b))  # type: ignore[misc]
            told = Counter[str]()
            for module, count in run.items():
                told[module if given.modules else module.partition("/")[0]] += count
            print(f"{kind}: {sum(run.values())} lines in {len(run)} modules")
            for name, count in told.most_common():
                print(f"{count:7} {name}")


def lines_of(call: Callable[[], object]) -> Counter[str]:
    """How many lines of functions a call runs, in all threads, by module."""
    lines: dict[str, set[int]] = defaultdict(set)
    within = f"{_PACKAGE}/"

    def entered(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(within):
            return None
        here = lines[file.removeprefix(within)]
        here.add(frame.f_lineno)

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
    return Counter({module: len(of_module) for module, of_module in lines.items()})


def _rows(low: int, high: int) -> pa.Table:
    ids = range(low, high)
    return pa.table({"id": [f"k{n}" for n in ids], "p": [str(n % 4) for n in ids], "ts": [1] * len(ids), "v": ids})


if __name__ == "__main__":
    main()
