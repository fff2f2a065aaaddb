"""What each operation makes of a table, against plain Python; read by Spark, by Arrow and by hudi-rs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from hoodie.model.commit import Operation
from hoodie.model.instant import Action
from support.nightly import nightly
from support.oracles import read_hudi_rs
from support.routes import ROUTES, SPREAD

NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
DELETABLE = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
ORDERED_PAYLOAD = {"hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload"}
LATEST_PAYLOAD = {"hoodie.datasource.write.payload.class": "OverwriteWithLatestAvroPayload"}


class Row(NamedTuple):
    id: str
    city: str
    ts: int = 1
    note: str = "first"


FIRST = [Row("a", "oslo"), Row("b", "oslo"), Row("c", "rome"), Row("d", "rome"), Row("e", "bern")]


def frame(spark: SparkSession, rows: Sequence[Sequence[Any]], schema: pa.Schema = SCHEMA) -> DataFrame:
    """Rows that Spark knows the size of, so that small batches of all operations go near."""
    values = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return spark.createDataFrame(pa.Table.from_arrays(values, schema=schema))


def new_table(
    spark: SparkSession, path: Path, rows: Iterable[Row] = FIRST, options: Mapping[str, Any] | None = None
) -> HoodieTable:
    table = hoodie.create_table(
        str(path), spark=spark, name="t", record_key="id", partition_by="city", ordering="ts", options=options
    )
    rows = list(rows)
    if rows:
        table.insert(frame(spark, rows))
    return table


def holds(table: HoodieTable, expected: Iterable[Row]) -> None:
    """The table has these rows, each as often as it is given, for every reader."""
    wanted = Counter(expected)
    read = {
        "without Spark": hoodie.open_table(table.path).snapshot(columns=list(Row._fields)).to_arrow(),
        "snapshot": table.snapshot().select(*Row._fields).toArrow(),
        "hudi-rs": read_hudi_rs(table.path, Row._fields),
    }
    for reader, rows in read.items():
        assert Counter(Row(**row) for row in rows.to_pylist()) == wanted, reader


def counts(result: hoodie.WriteResult) -> tuple[int, int, int]:
    return result.inserted, result.updated, result.deleted


def files(path: str | Path) -> dict[str, str]:
    """Every file below the path with a hash of its content."""
    root = Path(path)
    found = sorted(file for file in root.rglob("*") if file.is_file())
    return {str(file.relative_to(root)): hashlib.sha256(file.read_bytes()).hexdigest() for file in found}


def groups(table: HoodieTable) -> set[tuple[str, str]]:
    return {(slice_.group.partition, slice_.group.file_id) for slice_ in table.file_slices()}


# --- upsert ---


@ROUTES
def test_upsert_inserts_and_updates(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    before = groups(table)
    batch = [Row("a", "oslo", 2, "new"), Row("d", "rome", 2, "new"), Row("x", "oslo", 2, "new"), Row("y", "lima", 2)]
    result = table.upsert(frame(spark, batch), options=route)
    assert result.route == ("executors" if route else "driver")
    assert counts(result) == (2, 2, 0)
    holds(table, [*batch, FIRST[1], FIRST[2], FIRST[4]])
    new = groups(table) - before
    assert [partition for partition, _ in new] == ["lima"]  # the others' small files took the inserts
    assert before <= groups(table)
    untouched = {s.group.partition: s.base_instant for s in table.file_slices()}["bern"]
    assert untouched < result.instant
    assert sorted(Path(name).parent.name for name in result.files) == ["lima", "oslo", "rome"]


@pytest.mark.nightly
@ROUTES
def test_the_last_row_of_a_key_is_taken_when_combining_is_off(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    batch = [Row("a", "oslo", 5, "loses"), Row("a", "oslo", 3, "wins")]
    result = table.upsert(frame(spark, batch).coalesce(1), options={**route, "hoodie.combine.before.upsert": "false"})
    assert counts(result) == (0, 1, 0)
    assert len(hoodie.open_table(table.path).snapshot().to_arrow()) == len(FIRST)
    if not route:  # a shuffle keeps no order
        holds(table, [batch[1], *FIRST[1:]])


@pytest.mark.nightly
@ROUTES
@pytest.mark.parametrize("payload", [nightly(LATEST_PAYLOAD, id="latest"), pytest.param({}, id="ordered")])
def test_rows_marked_deleted_delete_their_key(spark, tmp_path, route, payload):
    table = new_table(spark, tmp_path / "t", options=payload)
    rows = [
        (*Row("a", "oslo", 2), True),  # there
        (*Row("c", "rome", 2), False),
        (*Row("d", "rome", 0), True),  # there, but newer than this
        (*Row("x", "oslo", 2), True),  # not there
        (*Row("y", "lima", 2), True),  # not even its partition
        (*Row("z", "lima", 2), None),
    ]
    result = table.upsert(frame(spark, rows, DELETABLE), options=route)
    kept = [] if payload else [FIRST[3]]
    holds(table, [FIRST[1], Row("c", "rome", 2), *kept, FIRST[4], Row("z", "lima", 2)])
    assert counts(result) == (1, 1, 2 if payload else 1)
    result = table.upsert(frame(spark, rows[:1], DELETABLE), options=route)  # again: it is not there any more
    assert counts(result) == (0, 0, 0)
    assert "_hoodie_is_deleted" in table.snapshot().columns


# --- insert ---


@pytest.mark.nightly
@ROUTES
def test_insert_fills_small_files_and_keeps_duplicates(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    before = groups(table)
    batch = [Row("a", "oslo", 2, "again"), Row("x", "rome", 2), Row("x", "rome", 3)]
    result = table.insert(frame(spark, batch), options=route)
    assert counts(result) == (3, 0, 0)
    holds(table, [*FIRST, *batch])
    assert groups(table) == before
    result = table.insert(frame(spark, [Row("y", "rome")]), options={**route, **NO_SMALL_FILES})
    assert len(groups(table)) == len(before) + 1
    holds(table, [*FIRST, *batch, Row("y", "rome")])


@ROUTES
def test_insert_can_be_told_to_replace_rows_of_the_files_that_it_fills(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    batch = [Row("a", "oslo", 2, "again"), Row("x", "rome", 2), Row("x", "rome", 2)]
    result = table.insert(frame(spark, batch), options={**route, "hoodie.merge.allow.duplicate.on.inserts": "false"})
    assert counts(result) == (1, 1, 0)
    holds(table, [batch[0], *FIRST[1:], batch[1]])


@pytest.mark.nightly
@ROUTES
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", nightly("insert_overwrite")])
def test_combining_before_insert_leaves_each_key_of_the_batch_once(spark, tmp_path, route, operation):
    table = new_table(spark, tmp_path / "t", rows=[])
    batch = [Row("a", "oslo", 2, "wins"), Row("a", "oslo", 1), Row("b", "rome", 1), Row("a", "rome", 1)]
    result = getattr(table, operation)(frame(spark, batch), options={**route, "hoodie.combine.before.insert": "true"})
    assert counts(result) == (3, 0, 0)
    holds(table, [batch[0], *batch[2:]])
    result = getattr(table, operation)(frame(spark, batch), options={**route, **NO_SMALL_FILES})
    assert counts(result) == (4, 0, 0)


# --- bulk insert ---


@pytest.mark.parametrize("mode", ["NONE", nightly("PARTITION_SORT"), "GLOBAL_SORT"])
@ROUTES
def test_bulk_insert_sorts_as_told(spark, tmp_path, mode, route):
    rows = [Row(f"k{(i * 7919) % 500:04d}", ("oslo", "rome")[i % 2], i) for i in range(500)]
    table = new_table(spark, tmp_path / "t", rows=[])
    options = {**route, "hoodie.bulkinsert.sort.mode": mode, "hoodie.bulkinsert.shuffle.parallelism": "3"}
    result = table.bulk_insert(frame(spark, rows), options=options)
    assert result.route == ("executors" if route else "driver")
    assert counts(result) == (500, 0, 0)
    holds(table, rows)
    keys = {name: pq.read_table(Path(table.path, name)).column("id").to_pylist() for name in result.files}
    in_order = all(found == sorted(found) for found in keys.values())
    assert in_order == (mode != "NONE")
    if mode == "GLOBAL_SORT":
        # Spark partitions are ranges of (partition path, key): 3 of them cut 2 partition paths into at most 4 files.
        assert len(keys) <= 4
        for city in ("oslo", "rome"):
            ranges = sorted((found[0], found[-1]) for name, found in keys.items() if name.startswith(city))
            assert all(before[1] < after[0] for before, after in pairwise(ranges))
    assert all(stat.num_inserts == len(keys[stat.path or ""]) for stat in result.stats)


@pytest.mark.parametrize("mode", ["PARTITION_PATH_REPARTITION", nightly("PARTITION_PATH_REPARTITION_AND_SORT")])
def test_a_bulk_insert_by_partition_path_makes_a_file_of_each(spark, tmp_path, mode):
    rows = [Row(f"k{(i * 7919) % 500:04d}", ("oslo", "rome", "bern")[i % 3], i) for i in range(500)]
    table = new_table(spark, tmp_path / "t", rows=[])
    result = table.bulk_insert(
        frame(spark, rows).repartition(4), options={**SPREAD, "hoodie.bulkinsert.sort.mode": mode}
    )
    assert sorted(Path(name).parent.name for name in result.files) == ["bern", "oslo", "rome"]
    holds(table, rows)


def test_a_bulk_insert_makes_no_more_spark_partitions_than_its_rows_come_in(spark, tmp_path):
    """Jobs ask for 200 by habit; rows of one Spark partition and one partition path then make one file, not 60."""
    rows = [Row(f"k{i:04d}", "oslo", i) for i in range(60)]
    table = new_table(spark, tmp_path / "t", rows=[])
    options = {
        **SPREAD,
        "hoodie.bulkinsert.shuffle.parallelism": "200",
        "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
    }
    result = table.bulk_insert(frame(spark, rows).coalesce(1), options=options)
    assert len(result.files) == 1
    holds(table, rows)


# --- file sizes ---


LIMIT = 200_000
SIZED = {
    "hoodie.parquet.max.file.size": LIMIT,
    "hoodie.parquet.small.file.limit": 150_000,
    "hoodie.copyonwrite.record.size.estimate": 120,
    "hoodie.parquet.compression.codec": "uncompressed",
}


def wide(first: int, count: int, city: str = "oslo") -> list[Row]:
    """Rows of about 130 bytes each in a file: text that does not compress."""
    return [
        Row(f"k{i:06d}", city, i, hashlib.sha512(str(i).encode()).hexdigest()[:90]) for i in range(first, first + count)
    ]


def sizes(table: HoodieTable) -> dict[tuple[str, str], int]:
    return {(s.group.partition, s.group.file_id): s.base.size for s in table.file_slices() if s.base is not None}


@ROUTES
@pytest.mark.parametrize("operation", [nightly("insert"), "bulk_insert", nightly("upsert")])
def test_files_keep_to_their_maximum_size(spark, tmp_path, operation, route):
    table = new_table(spark, tmp_path / "t", rows=[], options={**SIZED, **route})
    rows = wide(0, 6000) + wide(6000, 500, "rome")
    result = getattr(table, operation)(frame(spark, rows))
    assert counts(result) == (6500, 0, 0)
    found = sizes(table)
    assert all(size <= 1.2 * LIMIT for size in found.values()), found
    oslo = sorted(size for (city, _), size in found.items() if city == "oslo")
    assert len(oslo) <= 8  # about 5 are needed
    holds(table, rows)


@pytest.mark.nightly
@ROUTES
def test_inserts_fill_small_files_before_they_open_new_ones(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t", rows=[], options={**SIZED, **route})
    first, second, third = wide(0, 400), wide(1000, 300), wide(2000, 2500)
    table.insert(frame(spark, first))
    ((group, size),) = sizes(table).items()
    assert size < 150_000
    table.insert(frame(spark, second))
    assert sizes(table).keys() == {group}
    assert sizes(table)[group] > size
    table.upsert(frame(spark, third))
    found = sizes(table)
    assert group in found
    assert len(found) > 1
    assert found[group] > 150_000  # filled up, so that it is small no more
    assert all(value <= 1.2 * LIMIT for value in found.values()), found
    holds(table, first + second + third)
    result = table.insert(frame(spark, wide(9000, 5)))
    assert group[1] not in {stat.file_id for stat in result.stats}


# --- delete ---


@pytest.mark.nightly
@ROUTES
def test_delete_takes_known_keys_once_and_ignores_others(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    keys = pa.schema([("id", pa.string()), ("city", pa.string())])
    gone = [("a", "oslo"), ("a", "oslo"), ("c", "rome"), ("nobody", "oslo"), ("e", "oslo"), ("x", "nowhere")]
    result = table.delete(frame(spark, gone, keys), options=route)
    assert counts(result) == (0, 0, 2)
    assert result.metadata.operation is Operation.DELETE
    holds(table, [FIRST[1], FIRST[3], FIRST[4]])  # e is in bern
    before = groups(table)
    result = table.delete(frame(spark, [("nobody", "oslo")], keys), options=route)
    assert (counts(result), result.files) == ((0, 0, 0), ())
    # A file group without rows goes on: its file takes the next inserts.
    assert counts(table.delete(frame(spark, [("b", "oslo")], keys), options=route)) == (0, 0, 1)
    assert table.snapshot(partitions=["oslo"]).count() == 0
    assert counts(table.upsert(frame(spark, [Row("a", "oslo", 3)]), options=route)) == (1, 0, 0)
    assert groups(table) == before
    holds(table, [Row("a", "oslo", 3), FIRST[3], FIRST[4]])


# --- overwriting ---


@ROUTES
def test_insert_overwrite_replaces_its_partitions_and_no_other(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    before = groups(table)
    batch = [Row("a", "oslo", 0, "over"), Row("z", "lima", 2), Row("z", "lima", 3)]
    result = table.insert_overwrite(frame(spark, batch), options=route)
    assert counts(result) == (3, 0, 0)
    assert result.metadata.operation is Operation.INSERT_OVERWRITE
    assert {partition: len(ids) for partition, ids in result.metadata.replaced.items()} == {"oslo": 1}
    holds(table, [*batch, *FIRST[2:]])
    kept = {(partition, file_id) for partition, file_id in before if partition != "oslo"}
    assert kept < groups(table)
    assert not (before - kept) & groups(table)
    assert table.history()[0][0].action is Action.REPLACE_COMMIT
    # Updates find the rows that replaced the others, and none of the replaced ones.
    assert counts(table.upsert(frame(spark, [Row("a", "oslo", 5), Row("b", "oslo", 5)]), options=route)) == (1, 1, 0)
    holds(table, [Row("a", "oslo", 5), Row("b", "oslo", 5), *batch[1:], *FIRST[2:]])


@pytest.mark.nightly
@ROUTES
def test_insert_overwrite_table_hides_partitions_that_the_batch_lacks(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    before = table.history()[0][0].requested
    result = table.insert_overwrite_table(frame(spark, [Row("a", "oslo", 9)]), options=route)
    assert counts(result) == (1, 0, 0)
    assert sorted(result.metadata.replaced) == ["bern", "oslo", "rome"]
    holds(table, [Row("a", "oslo", 9)])
    earlier = table.as_of(before).select(*Row._fields).toArrow()
    assert sorted(row["id"] for row in earlier.to_pylist()) == ["a", "b", "c", "d", "e"]
    assert counts(table.upsert(frame(spark, [Row("c", "rome", 5)]), options=route)) == (1, 0, 0)
    holds(table, [Row("a", "oslo", 9), Row("c", "rome", 5)])


# --- what writes tell ---


@ROUTES
def test_explain_writes_nothing_and_says_what_upsert_will_do(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t", options={"hoodie.index.type": "BLOOM", **route})
    batch = frame(spark, [Row("a", "oslo", 2), Row("b", "oslo", 2), Row("x", "rome", 2), Row("y", "lima", 2)])
    before = files(table.path)
    explained = table.explain_upsert(batch)
    assert files(table.path) == before
    assert explained.route == ("executors" if route else "driver")
    result = table.upsert(batch)
    assert explained.route == result.route
    planned = {
        (task.group.partition, task.group.file_id if task.slice else "new"): (task.updates, task.inserts)
        for task in explained.plan.tasks
    }
    old = {task.group.file_id for task in explained.plan.tasks if task.slice}
    done = {
        (stat.partition, stat.file_id if stat.file_id in old else "new"): (stat.num_updates, stat.num_inserts)
        for stat in result.stats
    }
    assert planned == done
    assert (explained.index.hits, explained.index.files) == (result.index.hits, result.index.files) == (2, 2)
    text = str(explained)
    for part in ("2 new and 2 present keys", "3 partitions", "lima: new file group: 0 updates, 1 inserts", "BLOOM"):
        assert part in text


@pytest.mark.nightly
@ROUTES
def test_the_history_tells_each_write(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t", options=route)
    table.upsert(frame(spark, [Row("a", "oslo", 2)]), options={"_note": "kept", "hoodie.index.type": "SIMPLE"})
    table.delete(frame(spark, FIRST[:1]))
    table.insert_overwrite(frame(spark, [Row("z", "oslo")]))
    history = table.history()
    assert [metadata.operation for _, metadata in history] == [
        Operation.INSERT_OVERWRITE,
        Operation.DELETE,
        Operation.UPSERT,
        Operation.INSERT,
    ]
    times = [instant.requested for instant, _ in history]
    assert times == sorted(times, reverse=True)
    assert history[2][1].extra["_note"] == "kept"
    for instant, metadata in history:
        for partition, stats in metadata.stats.items():
            for stat in stats:
                assert stat.path is not None
                assert stat.path.startswith(f"{partition}/")
                assert instant.requested in stat.path
                assert pq.ParquetFile(Path(table.path, stat.path)).metadata.num_rows == stat.num_writes
                assert Path(table.path, stat.path).stat().st_size == stat.file_size
    assert "insert_overwrite" in str(history[0][1].operation).lower()


def test_both_routes_make_equal_tables(spark, tmp_path):
    seen = []
    for route in ({}, SPREAD):
        table = new_table(spark, tmp_path / f"t{len(route)}", rows=[], options={**route, **ORDERED_PAYLOAD})
        told = []
        steps: list[tuple[str, list[Row]]] = [
            ("bulk_insert", FIRST),
            (
                "upsert",
                [Row("a", "oslo", 0), Row("b", "oslo", 4), Row("b", "oslo", 3), Row("f", "rome"), Row("g", "x y")],
            ),
            ("insert", [Row("h", "oslo"), Row("h", "bern")]),
            ("delete", [Row("d", "rome"), Row("zz", "rome")]),
            ("insert_overwrite", [Row("i", "bern", 2)]),
            ("upsert", [Row("i", "bern", 1), Row("e", "bern", 1), Row("c", "rome", 9)]),
        ]
        for operation, rows in steps:
            result = getattr(table, operation)(frame(spark, rows))
            by_file = [(s.partition, s.num_writes, s.num_inserts, s.num_updates, s.num_deletes) for s in result.stats]
            told.append((counts(result), sorted(by_file)))
        meta = ["_hoodie_record_key", "_hoodie_partition_path"]
        read = hoodie.open_table(table.path).snapshot(columns=[*meta, *Row._fields]).to_arrow()
        rows_by_key = sorted(tuple(row.values()) for row in read.to_pylist())
        seen.append((told, rows_by_key, read.schema))
        holds(table, [Row(*row[2:]) for row in rows_by_key])
    assert seen[0] == seen[1]
