"""What each operation makes of a table, against plain Python; read by Spark, by Arrow and by hudi-rs."""

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

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
ORDERED_PAYLOAD = {"hoodie.datasource.write.payload.class": "DefaultHoodieRecordPayload"}


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


# --- insert ---


@ROUTES
def test_insert_can_be_told_to_replace_rows_of_the_files_that_it_fills(spark, tmp_path, route):
    table = new_table(spark, tmp_path / "t")
    batch = [Row("a", "oslo", 2, "again"), Row("x", "rome", 2), Row("x", "rome", 2)]
    result = table.insert(frame(spark, batch), options={**route, "hoodie.merge.allow.duplicate.on.inserts": "false"})
    assert counts(result) == (1, 1, 0)
    holds(table, [batch[0], *FIRST[1:], batch[1]])


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
            result = getattr(table, operation)(frame(spark, rows), options={"_note": "kept"})
            assert result.metadata.extra["_note"] == "kept"
            by_file = [(s.partition, s.num_writes, s.num_inserts, s.num_updates, s.num_deletes) for s in result.stats]
            told.append((counts(result), sorted(by_file)))
        meta = ["_hoodie_record_key", "_hoodie_partition_path"]
        read = hoodie.open_table(table.path).snapshot(columns=[*meta, *Row._fields]).to_arrow()
        rows_by_key = sorted(tuple(row.values()) for row in read.to_pylist())
        seen.append((told, rows_by_key, read.schema))
        holds(table, [Row(*row[2:]) for row in rows_by_key])
        for stat in result.stats:
            assert Path(table.path, stat.path or "").stat().st_size == stat.file_size
    assert seen[0] == seen[1]
