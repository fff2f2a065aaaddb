"""Very many small commits with cleaning and archiving after each: a commit costs the same all the while.

Time is measured; calls to storage and files in `.hoodie` are counted, and tell the same on any machine.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hoodie.doctor.examine import Severity, examine
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.testing.storage import CountingStorage
from hoodie.testing.tables import ArrowTable

OPTIONS = {
    "hoodie.table.name": "soak",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
}
KEYS = 200  # all of them; each commit changes a few
CHANGED = 10
PARTITIONS = 2


@dataclass(frozen=True)
class Commit:
    """What one commit cost."""

    seconds: float
    cpu: float  # seconds of the processor, of all threads
    lists: int  # listings, of one folder or a tree
    calls: int  # of all kinds
    files: int  # in .hoodie afterwards, archived ones left out


@dataclass(frozen=True)
class Soak:
    """All commits of a run."""

    commits: tuple[Commit, ...]
    warm: int  # first commits that are not counted: until cleaning and archiving have begun
    wrong: tuple[str, ...]

    def window(self, size: int, last: bool) -> Sequence[Commit]:
        counted = self.commits[self.warm :]
        return counted[-size:] if last else counted[:size]

    def growth(self, of: Callable[[Commit], float], size: int = 100) -> float:
        """The middle of the last commits, compared with the first ones after warming up."""
        size = min(size, (len(self.commits) - self.warm) // 2)
        first, last = (statistics.median(map(of, self.window(size, end))) for end in (False, True))
        return last / first

    def report(self, size: int = 100) -> str:
        size = min(size, (len(self.commits) - self.warm) // 2)
        lines = [f"| | first {size} | last {size} | ratio |", "|---|---|---|---|"]
        for name, of in MEASURES.items():
            first, last = (statistics.median(map(of, self.window(size, end))) for end in (False, True))
            lines.append(f"| {name} | {first:.4g} | {last:.4g} | {last / first:.2f} |")
        return "\n".join([*lines, *self.wrong])


MEASURES: dict[str, Callable[[Commit], float]] = {
    "milliseconds a commit": lambda commit: commit.seconds * 1000,
    "processor milliseconds a commit": lambda commit: commit.cpu * 1000,
    "listings a commit": lambda commit: commit.lists,
    "calls to storage a commit": lambda commit: commit.calls,
    "files in .hoodie": lambda commit: commit.files,
}
#: Those that depend on what else the machine does.
TIMES = ("milliseconds a commit", "processor milliseconds a commit")


def soak(
    commits: int,
    warm: int,
    storage: Storage | None = None,
    table_type: str = "COPY_ON_WRITE",
    extra: Mapping[str, str] | None = None,
) -> Soak:
    """Write so many commits.

    warm     of them are not counted
    storage  for the table; None: a temporary folder
    extra    options of the writes besides the defaults
    """
    if storage is None:
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            return soak(commits, warm, LocalStorage(Path(folder)), table_type, extra)
    counting = CountingStorage(storage)
    options = {**OPTIONS, "hoodie.datasource.write.table.type": table_type, **(extra or {})}
    ArrowTable.create(storage, options)
    table = ArrowTable(counting, options)
    expected: dict[str, int] = {}
    done = []
    for number in range(commits):
        rows = _rows(number)
        counting.reset()
        begun, worked = time.perf_counter(), time.process_time()
        table.upsert(rows)
        if table_type == "MERGE_ON_READ" and schedule_compaction(counting, Settings.of(options)):
            compact(counting, Settings.of(options))
        seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
        lists = counting.count("list") + counting.count("list_tree")
        done.append(Commit(seconds, cpu, lists, counting.count(), len(storage.list(".hoodie"))))
        expected.update(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True))
    found = table.snapshot()
    there = dict(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))
    wrong = [] if there == expected and found.num_rows == len(there) else ["the rows are not those that were written"]
    wrong += [str(finding) for finding in examine(storage, grace=0) if finding.severity > Severity.NOTE]
    return Soak(tuple(done), warm, tuple(wrong))


def _rows(number: int) -> pa.Table:
    keys = range(KEYS) if number == 0 else [(number * CHANGED + i) % KEYS for i in range(CHANGED)]
    return pa.table(
        {
            "id": [f"k{key}" for key in keys],
            "p": [f"p{key % PARTITIONS}" for key in keys],
            "ts": pa.array([number] * len(keys), pa.int64()),
        }
    )
