"""Batches larger than what may be held: they pass through temporary files, and so much memory is enough."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput
from hoodie.writing.batch.stage import Stage
from support.hbase_parts import MOVES
from support.nightly import by_day, covering
from support.own_indexes import EXACT, EXACT_GLOBAL

if TYPE_CHECKING:
    from hoodie.testing.hbase import HBaseGateway  # tests run without the package, too

CONSISTENT = {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "CONSISTENT_HASHING"}
SPILLS = {"hoodie.spark.driver.max.batch.bytes": 0}


def make(path: Path, **more: object) -> hoodie.HoodieTable[hoodie.Rows]:
    return hoodie.create_table(path, name="t", record_key="id", partition_by="p", ordering="ts", **more)  # type: ignore[call-overload, no-any-return]


def rows(count: int, first: int = 0, ts: int = 1) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": list(ids), "p": [f"p{n % 3}" for n in ids], "ts": [ts] * count, "v": [n * 2 for n in ids]})


def content(table: hoodie.HoodieTable[hoodie.Rows]) -> list[tuple[object, ...]]:
    found = table.snapshot(columns=["id", "p", "ts", "v"]).to_arrow().sort_by("id")
    return list(zip(*found.to_pydict().values(), strict=True))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_new_row_is_written_though_other_keys_are_in_two_file_groups(tmp_path: Path, table_type: str) -> None:
    table = make(tmp_path / "t", table_type=table_type, options={**SPILLS, "hoodie.parquet.small.file.limit": 0})
    for first in (0, 2):
        table.bulk_insert(pa.table({"id": [first, first + 1, 2], "p": ["p"] * 3, "ts": [1] * 3, "v": [1] * 3}))
    assert table.upsert(pa.table({"id": [0, 2, 3, 9], "p": ["p"] * 4, "ts": [2] * 4, "v": [2] * 4})).inserted == 1
    assert sorted({(row[0], row[2]) for row in content(table)}) == [(0, 2), (1, 1), (2, 2), (3, 2), (9, 2)]


INDEXES = (
    {},
    {"hoodie.index.type": "BLOOM"},
    {"hoodie.index.type": "GLOBAL_SIMPLE"},
    {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2},
    EXACT,
    EXACT_GLOBAL,
)


@pytest.mark.parametrize(
    ("table_type", "index"),
    [
        *by_day(
            itertools.product(["COPY_ON_WRITE", "MERGE_ON_READ"], INDEXES),
            lambda case: INDEXES.index(case[1]) < 3 and (case[0] == "MERGE_ON_READ") == INDEXES.index(case[1]) % 2,
        ),
        ("MERGE_ON_READ", {**CONSISTENT, "hoodie.bucket.index.num.buckets": 2}),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(map(str, given.values())) or "default",
)
def test_a_spilled_batch_does_what_one_in_memory_does(
    tmp_path: Path, table_type: str, index: dict[str, object]
) -> None:
    spilled = make(tmp_path / "spilled", table_type=table_type, options={**index, **SPILLS})
    held = make(tmp_path / "held", table_type=table_type, options=index)
    late = pa.concat_tables([rows(40, 60, ts=0), rows(10, 95, ts=2), rows(10, 95, ts=3)])
    for write in (
        lambda table: table.upsert(rows(100).to_reader(max_chunksize=7)),
        lambda table: table.upsert(late),
        lambda table: table.delete(rows(30)),
        lambda table: table.insert(rows(20, 200)),
        lambda table: table.insert_overwrite(rows(9, 300)),
    )[: 4 if CONSISTENT.items() <= index.items() else 5]:  # its file groups cannot be replaced
        one, other = write(spilled), write(held)
        assert (one.inserted, one.updated, one.deleted) == (other.inserted, other.updated, other.deleted)
        assert content(spilled) == content(held)
    assert spilled.check() == ()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_hbase_index_learns_of_a_spilled_batch(tmp_path: Path, table_type: str, hbase: HBaseGateway) -> None:
    index = {**hbase.options(hbase.create_table()), **MOVES}
    other_index = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    spilled = make(tmp_path / "spilled", table_type=table_type, options={**index, **SPILLS})
    held = make(tmp_path / "held", table_type=table_type, options=other_index)
    elsewhere = rows(60, 20, ts=2).set_column(1, "p", pa.array([f"p{n % 5}" for n in range(60)]))
    for batch in (rows(100), elsewhere, rows(40, 90, ts=3)):
        one, other = spilled.upsert(batch), held.upsert(batch)
        assert (one.inserted, one.updated, one.deleted) == (other.inserted, other.updated, other.deleted)
    spilled.delete(rows(30))
    held.delete(rows(30))
    assert content(spilled) == content(held)
    assert spilled.check() == ()


@pytest.mark.parametrize(
    ("index", "table_type"),
    covering([*INDEXES, {"hoodie.index.type": "GLOBAL_BLOOM"}], ["COPY_ON_WRITE", "MERGE_ON_READ"]),
)
def test_a_large_batch_is_not_brought_back_whole(
    tmp_path: Path, table_type: str, index: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", table_type=table_type, options={**index, **SPILLS})
    monkeypatch.setattr(Stage, "rows", lambda stage: pytest.fail("all rows at once"))
    table.upsert(rows(100))
    table.insert(rows(10, 200))
    result = table.upsert(rows(50, 80, ts=2))
    table.delete(rows(120))
    assert result.updated + result.inserted == 50
    assert [row[0] for row in content(table)] == [*range(120, 130), *range(200, 210)]


@pytest.mark.parametrize(("moves", "table_type"), covering(["true", "false"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_rows_of_a_spilled_batch_move_as_those_of_one_in_memory(tmp_path: Path, table_type: str, moves: str) -> None:
    index = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": moves}
    spilled = make(tmp_path / "spilled", table_type=table_type, options={**index, **SPILLS})
    held = make(tmp_path / "held", table_type=table_type, options=index)
    elsewhere = rows(60, 20, ts=2).set_column(1, "p", pa.array([f"p{n % 5}" for n in range(60)]))
    late = rows(10, ts=0).set_column(1, "p", pa.array(["p9"] * 10))
    for batch in (rows(100), elsewhere, late, pa.concat_tables([rows(30, 90, ts=3), rows(30, 90, ts=4)])):
        one, other = spilled.upsert(batch), held.upsert(batch)
        assert (one.inserted, one.updated, one.deleted) == (other.inserted, other.updated, other.deleted)
        assert content(spilled) == content(held)
        assert spilled.delete(batch.slice(3, 4)).deleted == held.delete(batch.slice(3, 4)).deleted
        assert content(spilled) == content(held)
    assert spilled.check() == ()


@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT", "PARTITION_SORT"])
def test_a_spilled_bulk_insert_is_sorted_as_asked(tmp_path: Path, mode: str) -> None:
    table = make(tmp_path / "t", options={**SPILLS, "hoodie.bulkinsert.sort.mode": mode})
    backwards = rows(60).sort_by([("id", "descending")])
    table.bulk_insert(backwards)
    assert content(table) == [(n, f"p{n % 3}", 1, n * 2) for n in range(60)]
    keys = table.snapshot(partitions=["p0"], meta=True).to_arrow().column("_hoodie_record_key").to_pylist()
    assert keys == (sorted(keys) if mode != "NONE" else sorted(keys, key=int, reverse=True))


def test_a_spilled_batch_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    table = make(tmp_path / "t", options=SPILLS)
    with pytest.raises(InvalidInput, match="1 rows have a record key that is null"):
        table.upsert(rows(3).set_column(0, "id", pa.array([1, None, 3])))
    with pytest.raises(InvalidInput, match="1 rows have no ordering value"):
        table.upsert(rows(3).set_column(2, "ts", pa.array([1, None, 3])))
    assert table.history() == []
    table.upsert(rows(3))
    assert list((tmp_path / "temporary").iterdir()) == []


WRITES = """
import resource, sys
import numpy as np, pyarrow as pa
import hoodie

table = hoodie.create_table(
    sys.argv[1], name="t", record_key="id", partition_by="p", options={"hoodie.spark.driver.max.batch.bytes": 16 << 20}
)
table.insert(pa.table({"id": ["warm"], "p": ["warm"], "v": ["v"], "w": [0]}))
filler = pa.array(np.char.mod("%0180d", np.arange(20_000)))

def batches(count, rows=20_000):
    for number in range(count):
        ids = np.arange(number * rows, (number + 1) * rows)
        paths = pa.array(np.char.mod("p%02d", ids % 16))
        yield pa.record_batch({"id": pa.array(ids).cast("string"), "p": paths, "v": filler, "w": pa.array(ids)})

schema = next(batches(1, 20_000)).schema
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
table.upsert(pa.RecordBatchReader.from_batches(schema, batches(int(sys.argv[2]))))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
READS = """
import resource, sys
import hoodie

table = hoodie.open_table(sys.argv[1])
table.snapshot(partitions=["warm"], meta=True).to_arrow()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(len(batch) for batch in table.snapshot().to_batches()))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def printed(source: str, *arguments: object) -> list[int]:
    command = [sys.executable, "-c", source, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.nightly
def test_the_memory_of_a_load_and_of_a_read_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    batches, size = 100, 4_600  # KB that a batch takes in memory
    (written,) = printed(WRITES, tmp_path / "t", batches)
    rows, read = printed(READS, tmp_path / "t")
    assert rows == batches * 20_000 + 1
    assert written < batches * size * 0.75
    assert read < batches * size * 0.75
