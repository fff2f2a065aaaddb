"""Calls to Spark's JVM: how many some code makes, and which lines of the library make them.

`python -m bench.jvm_calls`: opening a table and the frame of its snapshot, of a Copy-on-Write table and of a
Merge-on-Read table with logs, in a session that has read before."""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.clientserver import JavaClient
from pyspark.sql import DataFrame, SparkSession

import hoodie

_SOURCES = str(Path(hoodie.__file__).parent)


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """The calls that are made meanwhile, by the line of this library that made them: "spark/read/route.py:60".

    Py4J's notes that an object is no longer used are left out: when they come is up to Python's garbage collector.
    """
    calls = Counter[str]()
    send = JavaClient.send_command

    def counting(client: Any, command: str, *arguments: Any, **named: Any) -> Any:
        if not command.startswith("m\n"):
            calls[_line()] += 1
        return send(client, command, *arguments, **named)

    JavaClient.send_command = counting
    try:
        yield calls
    finally:
        JavaClient.send_command = send


def _line() -> str:
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_SOURCES):
            return f"{file[len(_SOURCES) + 1 :]}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


def opened_snapshot(session: SparkSession, path: Path) -> DataFrame:
    """What is counted."""
    return hoodie.open_table(str(path), spark=session).snapshot()


def made_table(session: SparkSession, path: Path, table_type: str) -> None:
    """A table of two partitions with a column of floating numbers; the second commit changed rows of all its files."""
    table = hoodie.create_table(
        str(path),
        spark=session,
        name="trips",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
    )
    columns = ["cast(id as string) id", "concat('c', id % 2) city", "id ts", "id / 7 fare", "id % 5 seats"]
    rows = session.range(100).selectExpr(*columns)
    table.upsert(rows)
    table.upsert(rows.where("ts % 3 = 0").selectExpr("id", "city", "ts + 1000 ts", "fare + 1 fare", "seats"))


def main() -> None:
    session = hoodie.spark.local_session("hoodie-bench", cores=2)
    with tempfile.TemporaryDirectory() as folder:
        for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
            path = Path(folder) / table_type
            made_table(session, path, table_type)
            for age in ("first", "second"):
                with counted_calls() as calls:
                    rows = opened_snapshot(session, path)
                print(f"{table_type}, {age} snapshot: {calls.total()} calls")
                for line, count in calls.most_common():
                    print(f"{count:>6}  {line}")
                rows.count()
    session.stop()


if __name__ == "__main__":
    main()
