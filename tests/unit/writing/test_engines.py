"""One flow carries a write out, whoever runs its tasks: here an engine of the test's own, in processes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.config.write import WriteOperation
from hoodie.display.progress import Advance
from hoodie.lookup.batch import assign
from hoodie.storage.local import LocalStorage
from hoodie.sync.after_commit import after_commit
from hoodie.table.settings import Settings
from hoodie.table.state import TableFiles
from hoodie.testing.tables import ArrowTable
from hoodie.writing.batch.arrow import check_rows
from hoodie.writing.batch.memory import MemoryBatch, MemoryPlan
from hoodie.writing.batch.stage import Stage
from hoodie.writing.planning import BatchPlan, HeldBatch, TaskReports, task_runner
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.run import IncomingBatch, run
from hoodie.writing.write import Write
from support.trips import TRIPS

PROCESSES = "processes"


@dataclass(frozen=True)
class InProcesses:
    located: MemoryPlan
    pool: ProcessPoolExecutor

    @property
    def planned(self) -> BatchPlan:
        return self.located.planned

    def run(self, write: Write, advance: Advance) -> TaskReports:
        plan, tagged = self.planned.plan, self.located.tagged
        task = task_runner(write, write.spec(lingering=True))
        calls = [
            self.pool.submit(task, plan.tasks[number], tagged.batch.rows.take(pa.array(rows)), f"{number}-7-7")
            for number, rows in assign(tagged.batch, tagged.located, tagged.insert, plan)
        ]
        return TaskReports.of(call.result() for call in calls)

    def release(self) -> None:
        pass


@dataclass(frozen=True)
class ProcessBatch:
    held: MemoryBatch
    pool: ProcessPoolExecutor
    spread: Callable[[Write], HeldBatch] | None = None
    staged: Stage | None = None
    route: str = PROCESSES

    @property
    def partitions(self) -> frozenset[str]:
        return self.held.partitions

    def locate(self, write: Write, files: TableFiles) -> InProcesses:
        return InProcesses(self.held.locate(write, files), self.pool)

    def stream(self, write: Write) -> TaskReports:
        return self.held.stream(write)

    def release(self) -> None:
        pass


def write_in_processes(
    table: ArrowTable, operation: WriteOperation, rows: pa.Table, pool: ProcessPoolExecutor
) -> WriteResult:
    write, source = check_rows(table.storage, operation, rows.to_reader(), Settings.read(table.options))

    def acquire(write: Write, phases: Phases) -> ProcessBatch:
        return ProcessBatch(MemoryBatch(pa.Table.from_batches(source.batches(), source.schema)), pool)

    return run(IncomingBatch(write, acquire, after_commit))


def trips(*keys: str, fare: float) -> pa.Table:
    cities = ["oslo" if key < "c" else "rome" for key in keys]
    return pa.table({"id": keys, "city": cities, "ts": [int(fare)] * len(keys), "note": [f"{fare}"] * len(keys)})


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as pool:
        yield pool


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_third_engine_writes_the_same_rows(tmp_path: Path, kind: str, pool: ProcessPoolExecutor) -> None:
    tables = [
        ArrowTable.create(LocalStorage(tmp_path / name), {**TRIPS, "hoodie.datasource.write.table.type": kind})
        for name in ("threads", "processes")
    ]
    for operation, rows in (
        (WriteOperation.BULK_INSERT, trips("a", "b", fare=1)),
        (WriteOperation.UPSERT, trips("b", "c", "d", fare=2)),
        (WriteOperation.UPSERT, trips("a", "d", "e", fare=3)),
        (WriteOperation.DELETE, trips("c", fare=4)),
    ):
        ours = tables[0].write(operation, rows)
        theirs = write_in_processes(tables[1], operation, rows, pool)
        assert (theirs.inserted, theirs.updated, theirs.deleted) == (ours.inserted, ours.updated, ours.deleted)
        assert (ours.route, theirs.route) == ("driver", PROCESSES)
    columns = ["id", "city", "ts", "note"]
    expected, found = (table.snapshot().select(columns).sort_by("id").to_pylist() for table in tables)
    assert [row["id"] for row in found] == ["a", "b", "d", "e"]
    assert found == expected
