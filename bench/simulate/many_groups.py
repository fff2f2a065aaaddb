"""A table of very many file groups: its names, sizes and timeline are real, its data files are sparse.

What is measured is what knows files by their names alone: open, plan, look over, clean, archive. Each call runs in a
process of its own, so that its peak of memory is the call's.
"""

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hoodie.config.write import WriteOperation
from hoodie.doctor.examine import examine
from hoodie.errors import MissingFileIgnored
from hoodie.formats.avro.schema import to_avro
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import base_file_name, log_file_name
from hoodie.model.instant import Action, Instant, State
from hoodie.plan.write import PartitionProfile
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.services.archive import archive
from hoodie.services.clean import clean
from hoodie.services.compaction.schedule import preview_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, join
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import layout_of
from hoodie.writing.planning import plan_batch, prepared_files
from hoodie.writing.write import check

ROWS = pa.schema([("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("amount", pa.float64())])
OPTIONS = {
    "hoodie.table.name": "many_groups",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
}
#: Commits on the timeline; those that loaded the table are archived.
COMMITS = 60
#: Every so many of them rewrites base files, as a compaction does; the others write logs.
REWRITES = 6
BASE_BYTES = 96 << 20
LOG_BYTES = 1 << 20
ROWS_IN_FILE = 400_000
#: Partitions of the upserts that are planned.
UPSERTED = (10, 100)


@dataclass(frozen=True)
class Shape:
    """How large the table is. touched: partitions and groups in each of them that a commit of the timeline writes"""

    groups: int
    partitions: int
    touched: tuple[int, int] = (100, 10)

    @property
    def each(self) -> int:
        """File groups of a partition."""
        return self.groups // self.partitions


def partition_path(number: int) -> str:
    return f"p={number:05}"


def file_id(partition: int, number: int) -> str:
    """A file id as writers make them: 36 characters and a number."""
    return f"f{partition:07x}-{number:04x}-4000-8000-{partition * 7919 + number:012x}-0"


def loaded_at(partition: int) -> str:
    """The instant that loaded a partition, long archived."""
    return f"20240101{partition // 3600 % 24:02}{partition // 60 % 60:02}{partition % 60:02}000"


def commit_time(number: int) -> str:
    return f"202402{number // 24 + 1:02}{number % 24:02}0000000"


def make(folder: Path, shape: Shape) -> None:
    """Write the table."""
    storage = LocalStorage(folder)
    table = ArrowTable.create(storage, OPTIONS)
    config = table.state().config
    layout = layout_of(config)
    for partition in range(shape.partitions):
        path = folder / partition_path(partition)
        path.mkdir()
        text = f"#partition metadata\ncommitTime={loaded_at(partition)}\npartitionDepth=1\n"
        (path / ".hoodie_partition_metadata").write_text(text)
        for number in range(shape.each):
            token = f"{number}-1-{partition * shape.each + number}"
            _sparse(path / base_file_name(file_id(partition, number), token, loaded_at(partition)), BASE_BYTES)
    extra = {"schema": to_avro(ROWS, config.name)}
    bases: dict[tuple[int, int], str] = {}
    logs: dict[tuple[int, int], int] = {}
    for commit in range(COMMITS):
        rewrites = commit % REWRITES == REWRITES - 1
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for partition, numbers in _touched(shape, commit):
            part = tuple(_write(folder, partition, number, commit, rewrites, bases, logs) for number in numbers)
            stats[partition_path(partition)] = part
        operation = Operation.COMPACT if rewrites else Operation.UPSERT
        content = encode_commit(CommitMetadata(operation=operation, stats=stats, extra=extra, compacted=rewrites))
        action, begun = (Action.COMMIT, Action.COMPACTION) if rewrites else (Action.DELTA_COMMIT, Action.DELTA_COMMIT)
        for state in (State.REQUESTED, State.INFLIGHT):
            storage.write(layout.path(Instant(commit_time(commit), begun, state)), b"")
        storage.write(layout.path(Instant(commit_time(commit), action, State.COMPLETED)), content)


def _touched(shape: Shape, commit: int) -> Iterator[tuple[int, range]]:
    """The partitions that a commit writes, with the groups: a rewrite those of the commit before."""
    partitions, groups = min(shape.touched[0], shape.partitions), min(shape.touched[1], shape.each)
    first = (commit - (commit % REWRITES == REWRITES - 1)) * partitions
    for place in range(partitions):
        yield (first + place) % shape.partitions, range(groups)


def _write(
    folder: Path,
    partition: int,
    number: int,
    commit: int,
    rewrites: bool,
    bases: dict[tuple[int, int], str],
    logs: dict[tuple[int, int], int],
) -> WriteStat:
    """Write a base file or a log file, and describe it."""
    path, group, own = partition_path(partition), file_id(partition, number), (partition, number)
    before, token = bases.get(own, loaded_at(partition)), f"{number}-{commit + 2}-{number}"
    if rewrites:
        name, size = base_file_name(group, token, commit_time(commit)), BASE_BYTES
        bases[own] = commit_time(commit)
        logs.pop(own, None)
    else:
        logs[own] = logs.get(own, 0) + 1
        name, size = log_file_name(group, before, logs[own], token), LOG_BYTES
    _sparse(folder / path / name, size)
    return WriteStat(
        file_id=group,
        path=join(path, name),
        partition=path,
        prev_commit=before,
        num_writes=ROWS_IN_FILE if rewrites else 4000,
        num_updates=4000,
        total_write_bytes=size,
        file_size=size,
        log_version=None if rewrites else logs[own],
        log_offset=None if rewrites else 0,
        log_files=() if rewrites else (name,),
    )


def _sparse(path: Path, size: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.ftruncate(file, size)
    os.close(file)


# --- the calls ---


def _open(storage: Storage) -> int:
    return len(load_state(storage).timeline.instants)


def _plan_upsert(storage: Storage, partitions: int) -> int:
    """Plan an upsert of ten rows in each of ten groups of some partitions, and 1,000 new rows. Keys are not looked up:
    that opens files."""
    state = load_state(storage)
    write = check(state, WriteOperation.UPSERT, ROWS, Settings.of(OPTIONS))
    paths = frozenset(partition_path(number) for number in range(partitions))
    files = prepared_files(write, paths)
    profile = {
        path: PartitionProfile(1000, {slice_.group.file_id: 10 for slice_ in files.slices[path][:10]}) for path in paths
    }
    return len(plan_batch(write, files, profile, IndexStats()).plan.tasks)


def _plan_snapshot(storage: Storage, partitions: int | None) -> int:
    paths = None if partitions is None else [partition_path(number) for number in range(partitions)]
    scan = plan_read(load_state(storage), Read(partitions=paths))
    return len(scan.base_slices) + len(scan.log_slices)


def _clean(storage: Storage) -> int:
    return len(clean(storage, Settings.of(OPTIONS), dry_run=True).paths)


def _archive(storage: Storage) -> int:
    return len(archive(storage, Settings.of(OPTIONS), dry_run=True).instants)


def _plan_compaction(storage: Storage) -> int:
    return preview_compaction(load_state(storage), Settings.of(OPTIONS)).groups


def _doctor(storage: Storage) -> int:
    return len(examine(storage, rows=False))


@dataclass(frozen=True)
class Call:
    """What is measured: told says what the number means that it returns."""

    name: str
    run: Callable[[Storage], int]
    told: str
    few: bool = False  # about few partitions: its memory is bounded by them, not by the table


CALLS = (
    Call("open", _open, "instants", few=True),
    Call("plan a snapshot of 10 partitions", lambda storage: _plan_snapshot(storage, 10), "file slices", few=True),
    Call("plan an upsert of 10 partitions", lambda storage: _plan_upsert(storage, UPSERTED[0]), "tasks", few=True),
    Call("plan an upsert of 100 partitions", lambda storage: _plan_upsert(storage, UPSERTED[1]), "tasks", few=True),
    Call("plan a snapshot of the table", lambda storage: _plan_snapshot(storage, None), "file slices"),
    Call("plan a clean", _clean, "files to delete"),
    Call("plan an archive", _archive, "instants to move"),
    Call("plan a compaction", _plan_compaction, "file groups"),
    Call("doctor, names only", _doctor, "findings"),
)


@dataclass(frozen=True)
class Measured:
    """One call: seconds, requests of the storage, and the most memory of its process in bytes (idle: at its start)."""

    name: str
    answer: str
    seconds: float
    requests: int
    memory: int
    idle: int
    few: bool


def measure_all(folder: Path) -> Iterator[Measured]:
    """Each call in a process of its own, in order."""
    for number, call in enumerate(CALLS):
        command = [sys.executable, "-m", "bench.simulate.many_groups", str(folder), str(number)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        told: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
        yield Measured(
            call.name,
            f"{int(told['answer']):,} {call.told}",
            told["seconds"],
            int(told["requests"]),
            int(told["memory"]),
            int(told["idle"]),
            call.few,
        )


def measure_here(folder: Path, number: int) -> dict[str, float]:
    """One call in this process."""
    warnings.simplefilter("ignore", MissingFileIgnored)
    storage = CountingStorage(LocalStorage(folder))
    idle = _peak()
    begin = time.perf_counter()
    answer = CALLS[number].run(storage)
    seconds = time.perf_counter() - begin
    return {
        "answer": answer,
        "seconds": seconds,
        "requests": storage.count(),
        "memory": _peak(),
        "idle": idle,
    }


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(measure_here(Path(sys.argv[1]), int(sys.argv[2]))))
