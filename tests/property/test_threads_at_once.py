"""Threads of one process write at once, into one table or several: what was acknowledged is there, each key once, every
failure is an error of ours, and the process is as it was: its output, warning filters, environment and folder.

Without a lock several writers of one table are a mistake (docs/concurrency.md): rows of refused writes may be there.
"""

import os
import random
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from hoodie.doctor.examine import Severity, examine
from hoodie.errors import PlanInUse
from hoodie.metadata.validate import validate_metadata
from hoodie.reading.row_keys import read_keys
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support import non_blocking
from support.nightly import by_day
from support.writers import ALONE, BY_STORAGE, IN_PROCESS, TABLE, Shaken, Worker, check_rows, rows_of, run_at_once

#: All partitions, kept under the lock and compacted often.
WITH_METADATA_TABLE = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "1",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
THREADS = 4
#: The default suite has one, the nightly run the other; a longer search sets more.
SEEDS = range(int(os.environ.get("HOODIE_THREAD_SEEDS", "2")))


@pytest.mark.parametrize("seed", by_day(SEEDS, lambda seed: seed == 0 or "HOODIE_THREAD_SEEDS" in os.environ))
@pytest.mark.parametrize(
    ("tables", "locks", "kind"),
    [
        pytest.param(*tables, kind, id=f"{name}-{kind}", marks=[] if kind == by_day_ else pytest.mark.nightly)
        for name, (*tables, by_day_) in {
            "own tables": ("own", ALONE, "COPY_ON_WRITE"),
            "one table": ("one", IN_PROCESS, "MERGE_ON_READ"),
            "one table, lock in storage": ("one", BY_STORAGE, ""),
            "one table, unlocked": ("one", ALONE, "MERGE_ON_READ"),
            "several tables": ("several", IN_PROCESS, "COPY_ON_WRITE"),
            "one table, metadata table": ("one", IN_PROCESS | WITH_METADATA_TABLE, ""),
        }.items()
        for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")
    ],
)
def test_threads_that_write_at_once(tmp_path, tables: str, locks: dict[str, str], kind: str, seed: int):
    options = {**TABLE, **locks, "hoodie.datasource.write.table.type": kind}
    count = {"own": THREADS, "one": 1, "several": 2}[tables]
    plain: list[Storage] = [LocalStorage(tmp_path / str(n)) if n % 2 else MemoryStorage() for n in range(count)]
    for storage in plain:
        ArrowTable.create(storage, options)
    workers = []
    for number in range(THREADS):
        mine = [plain[number]] if tables == "own" else plain
        seen = [ArrowTable(Shaken(storage, seed * 100 + number), options) for storage in mine]
        workers.append(Worker(f"w{number}", seen, random.Random(f"{seed} {number}")))
    before = sys.stdout, sys.stderr, list(warnings.filters), dict(os.environ), os.getcwd()
    run_at_once(workers, writes=8)
    assert (sys.stdout, sys.stderr, list(warnings.filters), dict(os.environ), os.getcwd()) == before
    if locks or tables == "own":
        assert [str(error) for worker in workers for error in worker.refused] == []
    for number, storage in enumerate(plain):
        owners = [workers[number]] if tables == "own" else workers
        check_rows(storage, owners, 0 if tables == "own" else number)
        ArrowTable(storage, options).upsert(rows_of(["after"], 1))
        if locks or tables == "own":
            assert [str(f) for f in examine(storage) if f.severity is Severity.ERROR] == []
        if WITH_METADATA_TABLE.items() <= locks.items():
            state = load_state(storage)
            assert state.config.metadata_partitions == ("bloom_filters", "column_stats", "files", "record_index")
            validated = validate_metadata(storage, state.config, state.timeline, read_keys=read_keys)
            assert validated.problems == ()


@pytest.mark.parametrize("seed", by_day(SEEDS, lambda seed: seed == 0 or "HOODIE_THREAD_SEEDS" in os.environ))
def test_threads_that_add_to_the_logs_of_the_same_file_groups(tmp_path, seed: int):
    """All of them write all keys, with growing ordering values, beside compactions: none is refused, and the greatest
    values stay."""
    storage = LocalStorage(tmp_path)
    non_blocking.table(storage=storage)
    options = {**non_blocking.TABLE, "hoodie.write.num.retries.on.conflict.failures": "0"}
    keys = [f"key-{number}" for number in range(6)]

    def write(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        there = ArrowTable(Shaken(storage, seed * 100 + number), options)
        for turn in range(1, 9):
            if chance.random() < 0.2:
                due = non_blocking.due(there)
                with suppress(PlanInUse):
                    schedule_compaction(there.storage, Settings.read(due))
                    compact(there.storage, Settings.read(due))
            there.upsert(rows_of(chance.sample(keys, 4), turn * THREADS + number))
        there.upsert(rows_of(keys, 1_000 + number))

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(write, number) for number in range(THREADS)]:
            done.result(timeout=500)
    check = ArrowTable(storage, options)
    greatest = [(key, 1_000 + THREADS - 1) for key in keys]
    assert sorted(zip(*check.snapshot().select(["id", "ts"]).to_pydict().values(), strict=True)) == greatest
    schedule_compaction(storage, Settings.read(non_blocking.due(check)))
    compact(storage, Settings.read(non_blocking.due(check)))
    assert sorted(zip(*check.snapshot().select(["id", "ts"]).to_pydict().values(), strict=True)) == greatest
    assert check.state().timeline.pending() == ()
    assert [str(found) for found in examine(storage) if found.severity is Severity.ERROR] == []
