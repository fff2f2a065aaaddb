"""Sixty days of a table of orders, without Spark: python -m bench.days. Hoodie against delta-rs, and pyiceberg where it
is installed (pip install deltalake 'pyiceberg[sql-sqlite]'). With --commits: as many upserts of three rows on a table
whose archiving is off, and what each costs the processor.

Each day new orders come and older ones change, cancelled ones are deleted, a report sums the day by city, and the table
is counted as it was the day before. All contenders give the same answers, or the run fails. Printed are seconds of
processor time and of the clock, and how many lines each contender is.
"""

import argparse
import importlib.util
import inspect
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

import hoodie

CITIES = ["bern", "oslo", "rome", "wien"]


class Contender(Protocol):
    """A table of orders in a folder."""

    def __init__(self, folder: Path, first: pa.Table) -> None: ...
    def upsert(self, batch: pa.Table) -> object: ...
    def delete(self) -> object: ...
    def report(self, day: int) -> pa.Table: ...
    def mark(self) -> Any: ...
    def count_at(self, mark: Any) -> int: ...


def batches(days: int, rows: int) -> Iterator[pa.Table]:
    """A batch of each day: two thirds are new orders, the others change orders of earlier days."""
    chosen, known = np.random.default_rng(7), 0
    for day in range(days):
        new = np.arange(known, known + (rows if not day else rows * 2 // 3))
        changed = chosen.choice(known, rows - len(new), replace=False) if day else new[:0]
        ids, known = np.concatenate([new, changed]), known + len(new)
        yield pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "city": pa.array(CITIES).take(pa.array(ids % len(CITIES))),
                "day": pa.array(np.full(len(ids), day), pa.int64()),
                "amount": pa.array(chosen.integers(1, 10_000, len(ids)) / 100),
                "status": pa.array(["open", "cancelled"]).take(pa.array((chosen.random(len(ids)) < 0.02).astype(int))),
            }
        )


class Hoodie:
    def __init__(self, folder: Path, first: pa.Table) -> None:
        self.table = hoodie.create_table(folder, record_key="id")

    def upsert(self, batch: pa.Table) -> object:
        return self.table.upsert(batch)

    def delete(self) -> object:
        return self.table.delete(where="status = 'cancelled'")

    def report(self, day: int) -> pa.Table:
        rows = self.table.to_arrow(columns=["city", "amount"], filters=f"day = {day}")
        return rows.group_by("city").aggregate([("amount", "sum")])

    def mark(self) -> str:
        return self.table.history()[0][0].requested

    def count_at(self, mark: str) -> int:
        return self.table.as_of(mark).count()


class HoodieLogs(Hoodie):
    def __init__(self, folder: Path, first: pa.Table) -> None:
        self.table = hoodie.create_table(folder, record_key="id", table_type="MERGE_ON_READ")


class HoodieLogsByBucket(Hoodie):
    """New rows go to logs, too, and all keys stay in two file groups."""

    def __init__(self, folder: Path, first: pa.Table) -> None:
        index = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}
        self.table = hoodie.create_table(folder, record_key="id", table_type="MERGE_ON_READ", options=index)


class Delta:
    def __init__(self, folder: Path, first: pa.Table) -> None:
        from deltalake import DeltaTable

        self.table = DeltaTable.create(str(folder), first.schema)

    def upsert(self, batch: pa.Table) -> object:
        merge = self.table.merge(batch, "target.id = source.id", source_alias="source", target_alias="target")
        return merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def delete(self) -> object:
        return self.table.delete("status = 'cancelled'")

    def report(self, day: int) -> pa.Table:
        rows = self.table.to_pyarrow_table(columns=["city", "amount"], filters=[("day", "=", day)])
        return rows.group_by("city").aggregate([("amount", "sum")])

    def mark(self) -> int:
        return int(self.table.version())

    def count_at(self, mark: int) -> int:
        from deltalake import DeltaTable

        return int(DeltaTable(self.table.table_uri, version=mark).to_pyarrow_dataset().count_rows())


class Iceberg:
    def __init__(self, folder: Path, first: pa.Table) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        folder.mkdir()
        catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
        catalog.create_namespace("bench")
        self.table = catalog.create_table("bench.orders", schema=first.schema)

    def upsert(self, batch: pa.Table) -> object:
        return self.table.upsert(batch, join_cols=["id"])

    def delete(self) -> object:
        return self.table.delete("status = 'cancelled'")

    def report(self, day: int) -> pa.Table:
        rows = self.table.scan(f"day = {day}", selected_fields=("city", "amount")).to_arrow()
        return rows.group_by("city").aggregate([("amount", "sum")])

    def mark(self) -> int:
        return int(self.table.current_snapshot().snapshot_id)

    def count_at(self, mark: int) -> int:
        return int(self.table.scan(snapshot_id=mark).count())


def run(kind: Callable[[Path, pa.Table], Contender], days: int, rows: int) -> tuple[dict[str, float], list[Any]]:
    """Seconds by what was done, and the answers."""
    folder = Path(tempfile.mkdtemp(prefix="hoodie-days-"))
    spent, answers = dict.fromkeys(("upsert", "delete", "report", "count", "clock"), 0.0), list[Any]()
    try:
        table, mark, begin = None, None, time.perf_counter()

        def timed(what: str, call: Callable[[], Any]) -> Any:
            at = time.process_time()
            answer = call()
            spent[what] += time.process_time() - at
            return answer

        for day, batch in enumerate(batches(days, rows)):
            table = table or kind(folder / "orders", batch)
            timed("upsert", lambda: table.upsert(batch))  # noqa: B023
            timed("delete", table.delete)
            sums = timed("report", lambda: table.report(day))  # noqa: B023
            answers.append(sorted((row["city"], round(row["amount_sum"], 2)) for row in sums.to_pylist()))
            if mark is not None:
                answers.append(timed("count", lambda: table.count_at(mark)))  # noqa: B023
            mark = table.mark()
        spent["clock"] = time.perf_counter() - begin
    finally:
        shutil.rmtree(folder)
    return spent, answers


def contenders() -> list[type]:
    peers = (("deltalake", Delta), ("pyiceberg", Iceberg))
    return [
        Hoodie,
        HoodieLogs,
        HoodieLogsByBucket,
        *(kind for package, kind in peers if importlib.util.find_spec(package)),
    ]


def lines(kind: type) -> int:
    """Lines of code, those that it takes from the class above it included."""
    own = (c for c in kind.__mro__ if c is not object)
    return sum(len([line for line in inspect.getsource(c).splitlines() if line.strip()]) for c in list(own)[-1:])


def commits(count: int) -> None:
    """Print what a small upsert costs as instants add up."""
    with tempfile.TemporaryDirectory(prefix="hoodie-commits-") as folder:
        table = hoodie.create_table(Path(folder, "t"), record_key="id", options={"hoodie.archive.automatic": False})
        for number in range(0, count, 50):
            spent = []
            for value in range(number, number + 50):
                at = time.process_time()
                table.upsert(pa.table({"id": [1, 2, 3], "value": [value] * 3}))
                spent.append(time.process_time() - at)
            print(f"{number + 50:6} commits{sorted(spent)[25] * 1000:8.1f} ms of processor time each", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("bench.days", description=__doc__)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--rows", type=int, default=3000, help="of a day")
    parser.add_argument("--without", default="", help="a contender to leave out")
    parser.add_argument("--commits", type=int, help="with archiving off, instead")
    options = parser.parse_args(arguments)
    if options.commits:
        commits(options.commits)
        return
    print(f"{'':20}{'lines':>6}{'clock':>8}{'cpu':>8}   of it")
    expected: list[Any] | None = None
    for kind in contenders():
        if options.without and options.without in kind.__name__.lower():
            continue
        spent, answers = run(kind, options.days, options.rows)
        expected = expected or answers
        if answers != expected:
            raise SystemExit(f"{kind.__name__} gives other answers")
        clock = spent.pop("clock")
        parts = ", ".join(f"{what} {seconds:.1f}" for what, seconds in spent.items())
        print(f"{kind.__name__:20}{lines(kind):6}{clock:8.1f}{sum(spent.values()):8.1f}   {parts}")


if __name__ == "__main__":
    main()
