"""Whole tables on S3: histories beside a model, and several writers with the lock in the table's storage."""

import random
from typing import Any
from uuid import uuid4

import pytest
import tenacity

from hoodie.doctor.examine import Severity, examine
from hoodie.storage import FsspecStorage, retry
from hoodie.testing.tables import ArrowTable
from support.http_faults import Fault, FaultyProxy, every
from support.nightly import nightly
from support.store_histories import steps_of_histories
from support.writers import BY_STORAGE, TABLE, Worker, check_rows, run_at_once


# test_s3_faults has a history of a Copy-on-Write table by day.
@pytest.mark.parametrize(("kind", "examples"), [("MERGE_ON_READ", 2), nightly("COPY_ON_WRITE", 12)])
def test_a_table_holds_what_a_dict_of_rows_does_after_each_write(s3: dict[str, Any], kind: str, examples: int) -> None:
    def new() -> FsspecStorage:
        return FsspecStorage(f"s3://contract/{uuid4().hex}/table", s3)

    assert steps_of_histories(new, kind, examples=examples, longest=4, number=3) >= 3


@pytest.mark.nightly  # beside two writers in test_s3_faults
@pytest.mark.parametrize(("kind", "threads", "writes"), [("MERGE_ON_READ", 2, 2), ("COPY_ON_WRITE", 3, 4)])
def test_threads_that_write_at_once_over_a_bad_network_lose_nothing(
    s3: dict[str, Any],
    over_proxy: dict[str, Any],
    proxy: FaultyProxy,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    threads: int,
    writes: int,
) -> None:
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    monkeypatch.setattr(retry._policy, "wait", tenacity.wait_none())
    options: dict[str, Any] = {**TABLE, **BY_STORAGE, "hoodie.datasource.write.table.type": kind}
    server = FsspecStorage(f"s3://contract/{uuid4().hex}/table", s3)
    ArrowTable.create(server, options)
    storage = FsspecStorage(server.root, {**over_proxy, "config_kwargs": {"retries": {"total_max_attempts": 1}}})
    workers = [Worker(f"w{n}", [ArrowTable(storage, options)], random.Random(n)) for n in range(threads)]
    with proxy.faults(every(7, Fault.BUSY, Fault.LOST, Fault.CUT)) as met:
        run_at_once(workers, writes)
    assert set(met) == {Fault.BUSY, Fault.LOST, Fault.CUT}
    assert [str(error) for worker in workers for error in worker.refused] == []
    check_rows(server, workers)
    assert [str(found) for found in examine(server) if found.severity is Severity.ERROR] == []
