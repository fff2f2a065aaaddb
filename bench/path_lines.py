"""Lines of the library that one upsert runs, by package, and modules that call each other: python -m bench.path_lines

An upsert of 200 rows, 100 of them new, into a table of three commits, without Spark, by the driver of a session, as a
MERGE by key of SQL, and by pyiceberg where it is installed (pip install 'pyiceberg[sql-sqlite]'). It is the fourth of
its process, so that modules are loaded and commits are known. `--modules` prints them by module.
"""

from __future__ import annotations

import argparse
import importlib.util
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
_BATCHES, _LAST = ((500, 700), (100, 300)), (900, 1100)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.path_lines", description=__doc__)
    parser.add_argument("--modules", action="store_true", help="by module instead of by package")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if importlib.util.find_spec("pyiceberg"):
            _print("pyiceberg", _iceberg(folder), given.modules)
        for session in (None, hoodie.spark.local_session("bench", cores=2)):
            for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
                who = "without Spark" if session is None else "by Spark's driver"
                path_of = _upsert(session, f"{folder}/{kind}-{session is None}", kind)
                _print(f"{kind} {who}", path_of, given.modules)
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            _print(f"{kind} by SQL MERGE", _merge(session, f"{folder}/{kind}-merge", kind), given.modules)


def _print(who: str, path_of: CallPath, modules: bool) -> None:
    counts = Counter[str]()
    for module, count in path_of.lines.items():
        counts[module if modules else module.partition("/")[0]] += count
    print(f"{who}: {path_of.lines.total()} lines, {len(path_of.lines)} modules, {len(path_of.pairs)} pairs")
    for name, count in counts.most_common():
        print(f"{count:7} {name}")


def _table(session: Any, path: str, kind: str) -> hoodie.HoodieTable[Any]:
    settings = {"name": "t", "record_key": "id", "partition_by": "p", "ordering": "ts", "table_type": kind}
    table: hoodie.HoodieTable[Any] = hoodie.create_table(path, spark=session, **settings)
    table.upsert(_rows(0, 1000))
    return table


def _upsert(session: Any, path: str, kind: str) -> CallPath:
    table = _table(session, path, kind)
    for low, high in _BATCHES:
        table.upsert(_rows(low, high))
    batch = _rows(*_LAST) if session is None else session.createDataFrame(_rows(*_LAST))
    return path_of_call(lambda: table.upsert(batch))


def _merge(session: Any, path: str, kind: str) -> CallPath:
    _table(session, path, kind)
    statement = (
        f"MERGE INTO hudi.`{path}` t USING batch s ON t.id = s.id AND t.p = s.p "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    hoodie.register(session)
    for low, high in _BATCHES:
        session.createDataFrame(_rows(low, high)).createOrReplaceTempView("batch")
        session.sql(statement)
    session.createDataFrame(_rows(*_LAST)).createOrReplaceTempView("batch")
    return path_of_call(lambda: session.sql(statement))


def _iceberg(folder: str) -> CallPath:
    import pyiceberg
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("bench")
    table = catalog.create_table("bench.t", schema=_rows(0, 1).schema)
    for low, high in ((0, 1000), *_BATCHES):
        table.upsert(_rows(low, high), join_cols=["id"])
    return path_of_call(lambda: table.upsert(_rows(*_LAST), join_cols=["id"]), Path(pyiceberg.__path__[0]))


@dataclass(frozen=True)
class CallPath:
    """The lines of functions that ran, by module; and the pairs of modules, caller and called."""

    lines: Counter[str]
    pairs: frozenset[tuple[str, str]]


def path_of_call(call: Callable[[], object], package: Path = _PACKAGE) -> CallPath:
    """What a call runs of the library, in all threads."""
    lines: dict[str, set[int]] = defaultdict(set)
    pairs: set[tuple[str, str]] = set()
    within = f"{package}/"

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
