"""Compaction: all logs of the spread batch against plain Spark; planning against its listing; a writer beside one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import hoodie
from bench import normaliser
from bench.cases import PLAIN, Case, Contender, checksum, size
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import base_file_name, log_file_name
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.table.create import create
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.view.load import list_partitions

if TYPE_CHECKING:
    from bench.cases import Bench

SLICES = 100_000
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}

Phases = Mapping[str, float]


def cases(bench: Bench) -> Iterator[Case]:
    """The bench's table type must be MERGE_ON_READ."""
    yield _all_logs(bench)
    yield _beside(bench)
    yield _planning(bench.made)


def _all_logs(bench: Bench) -> Case:
    """Every row of the spread batch stands in logs, or, new ones, in base files; all slices with logs are compacted."""
    logged, _, _ = bench.after_spread()
    changes = bench.spark.read.parquet(str(bench.workload.batch("spread")))

    def copy(folder: Path) -> None:
        shutil.copytree(logged, folder / "table")
        assert schedule_compaction(LocalStorage(folder / "table"), Settings.of(NOW)) is not None

    def rewrite(folder: Path) -> Phases:
        normaliser.rewrite(bench.spark, bench.workload.base, changes, folder / "table")
        return {}

    def on_driver(folder: Path) -> Phases:
        return compacted(folder, {})

    def on_executors(folder: Path) -> Phases:
        return compacted(folder, {"hoodie.spark.driver.max.batch.bytes": 0})

    def compacted(folder: Path, options: Mapping[str, object]) -> Phases:
        result = hoodie.open_table(str(folder / "table"), spark=bench.spark, options=options).compact()
        assert result is not None
        return result.seconds

    def plain_rows(folder: Path) -> object:
        return checksum(normaliser.read(bench.spark, folder / "table"))

    rows = partial(_rows, bench)
    return Case(
        "compaction of spread",
        size(bench.workload.batch("spread")),
        (
            Contender(PLAIN, lambda folder: None, rewrite, plain_rows),
            Contender("compact, driver", copy, on_driver, rows),
            Contender("compact, executors", copy, on_executors, rows),
        ),
    )


def _beside(bench: Bench) -> Case:
    """The recent batch upserted while another process compacts the logs of the spread one."""
    logged, _, _ = bench.after_spread()
    changes = bench.spark.read.parquet(str(bench.workload.batch("recent")))
    compactors: list[subprocess.Popen[bytes]] = []

    def copy(folder: Path) -> None:
        shutil.copytree(logged, folder / "table")
        assert schedule_compaction(LocalStorage(folder / "table"), Settings.of(NOW)) is not None

    def with_compactor(folder: Path) -> None:
        copy(folder)
        command = [sys.executable, "-m", "hoodie.cli", "compactor", "run", str(folder / "table"), "--engine", "local"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not list((folder / "table" / ".hoodie").glob("*.compaction.inflight")):
            assert process.poll() is None, "the compaction is over before the write begins"
        compactors.append(process)

    def upsert(folder: Path) -> Phases:
        return hoodie.open_table(str(folder / "table"), spark=bench.spark).upsert(changes).seconds

    def end(folder: Path) -> None:
        assert compactors.pop().wait() == 0

    rows = partial(_rows, bench)
    alone = Contender("upsert alone", copy, upsert, rows)
    beside = Contender("upsert beside a compactor", with_compactor, upsert, rows, end)  # CPU: of both
    return Case("recent, beside a compaction", size(bench.workload.batch("recent")), (alone, beside))


def _rows(bench: Bench, folder: Path) -> object:
    return checksum(hoodie.open_table(str(folder / "table"), spark=bench.spark).snapshot())


def _planning(made: Path) -> Case:
    """A plan for a table of 100,000 file slices with a log each, against listing its 200,000 files."""
    table = made / "slices"
    if not table.exists():
        _make_slices(table)

    def restore(folder: Path) -> None:
        for plan in (table / ".hoodie").glob("*.compaction.requested"):
            plan.unlink()

    def listing(folder: Path) -> Phases:
        listed = list_partitions(LocalStorage(table))
        assert sum(map(len, listed.values())) > 2 * SLICES
        return {}

    def planning(folder: Path) -> Phases:
        assert schedule_compaction(LocalStorage(table), Settings.of(NOW)) is not None
        return {}

    return Case(
        f"planning {SLICES:,} slices",
        0,
        (
            Contender("listing", restore, listing, lambda folder: SLICES),
            Contender("schedule_compaction", restore, planning, lambda folder: SLICES),
        ),
    )


def _make_slices(table: Path) -> None:
    storage = LocalStorage(table)
    create(
        storage,
        {
            "hoodie.table.name": "slices",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "p",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        },
    )
    instant = "20240101000000000"
    for number in range(SLICES):
        partition = f"p{number % 100:02d}"
        folder = table / partition
        if number < 100:
            folder.mkdir()
            (folder / ".hoodie_partition_metadata").write_text(f"commitTime={instant}\npartitionDepth=1\n")
        file_id = f"{number:08d}-0000-4000-8000-000000000000-0"
        (folder / base_file_name(file_id, "0-0-0", instant)).touch()
        (folder / log_file_name(file_id, instant, 1, "0-0-1")).touch()
    metadata = CommitMetadata(operation=Operation.UPSERT)
    for state in (".requested", ".inflight", ""):
        storage.write(f".hoodie/{instant}.deltacommit{state}", b"" if state else encode_commit(metadata))
    assert load_state(storage).timeline.commits
