"""Threads of one process write at once, into one table or several: what was acknowledged is there, each key once, every
failure is an error of ours, and the process is as it was: its output, warning filters, environment and folder.

Without a lock several writers of one table are a mistake (docs/concurrency.md): rows of refused writes may be there.
"""

from __future__ import annotations

import os
import random
import sys
import warnings

import pytest

from hoodie.doctor.examine import Severity, examine
from hoodie.storage import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import by_day
from support.writers import ALONE, BY_STORAGE, IN_PROCESS, TABLE, Shaken, Worker, check_rows, rows_of, run_at_once

THREADS = 4
#: The default suite has one, the nightly run the other; a longer search sets more.
SEEDS = range(int(os.environ.get("HOODIE_THREAD_SEEDS", "2")))


@pytest.mark.parametrize("seed", by_day(SEEDS, lambda seed: seed == 0 or "HOODIE_THREAD_SEEDS" in os.environ))
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("tables", "locks"),
    [("own", ALONE), ("one", IN_PROCESS), ("one", BY_STORAGE), ("one", ALONE), ("several", IN_PROCESS)],
    ids=["own tables", "one table", "one table, lock in storage", "one table, unlocked", "several tables"],
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
