"""Jobs of Hudi's data source run as they are: the same options, the rows that they mean."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidInput, InvalidOption, NoRowsYet, TableNotFound
from support.hudi_jobs import JOBS, Job
from support.nightly import by_day

COLUMNS = "id int, name string, city string, qty int, ts long"
FIRST = [(1, "a", "oslo", 1, 10), (2, "b", "rome", 2, 10), (3, "c", "oslo", 3, 10)]
LATER = [(1, "a", "oslo", 1, 5), (2, "b", "rome", 2, 20), (4, "d", "rome", 4, 20)]


def options_of(job: Job, path: str) -> dict[str, Any]:
    return {key: value.format(path=path) if isinstance(value, str) else value for key, value in job.options.items()}


BY_DAY = ("quick start", "merge on read with inline compaction", "bulk load with the row writer", "release 1.x names")


@pytest.mark.parametrize(
    "job",
    by_day([job for job in JOBS if not job.refused and "deleted" not in job.name], lambda job: job.name in BY_DAY),
    ids=lambda job: job.name,
)
def test_a_job_writes_and_reads_its_table(job: Job, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    options = options_of(job, path)
    hoodie.hudi.write(spark.createDataFrame(FIRST, COLUMNS), path, options, mode=job.mode)
    hoodie.hudi.write(spark.createDataFrame(LATER, COLUMNS), path, options)
    rows = hoodie.hudi.read(path, {**options, "hoodie.datasource.query.type": "snapshot"}, spark=spark)
    assert {"_hoodie_record_key", *COLUMNS.replace(",", "").split()[::2]} <= set(rows.columns)
    found = sorted((row.id, row.ts) for row in rows.collect())
    operation = options.get("hoodie.datasource.write.operation", "upsert")
    if operation == "bulk_insert":
        assert found == sorted((row[0], row[4]) for row in [*FIRST, *LATER])
    elif "1.x" in job.name:  # by event time the older version of row 1 loses
        assert found == [(1, 10), (2, 20), (3, 10), (4, 20)]
    elif "without duplicates" in job.name:
        assert found == [(1, 10), (2, 10), (3, 10), (4, 20)]
    else:
        assert found == [(1, 5), (2, 20), (3, 10), (4, 20)]


@pytest.mark.parametrize("job", [job for job in JOBS if job.refused], ids=lambda job: job.name)
def test_a_job_that_is_refused_writes_nothing(job: Job, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "stock"
    with pytest.raises(InvalidOption):
        hoodie.hudi.write(spark.createDataFrame(FIRST, COLUMNS), str(path), job.options)
    assert not path.exists()


def test_a_job_that_deletes_takes_its_keys_away(spark: SparkSession, tmp_path: Path) -> None:
    upsert, delete = JOBS[0], next(job for job in JOBS if "deleted" in job.name)
    path = str(tmp_path / "stock")
    hoodie.hudi.write(spark.createDataFrame(FIRST, COLUMNS), path, upsert.options)
    hoodie.hudi.write(spark.createDataFrame(FIRST[:1], COLUMNS), path, delete.options)
    assert sorted(row.id for row in hoodie.hudi.read(path, spark=spark).collect()) == [2, 3]


def test_another_path_in_the_options_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    df = spark.createDataFrame(FIRST, COLUMNS)
    with pytest.raises(InvalidOption, match="give one path"):
        hoodie.hudi.write(df, path, {**JOBS[0].options, "path": str(tmp_path / "other")})
    with pytest.raises(TableNotFound):
        hoodie.open_table(path, spark=spark)


def test_overwrite_puts_another_table_in_place_unless_a_savepoint_forbids(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    hoodie.hudi.write(spark.createDataFrame(FIRST, COLUMNS), path, {**JOBS[0].options, "hoodie.index.type": "BLOOM"})
    other = {
        "hoodie.table.name": "names",
        "hoodie.datasource.write.recordkey.field": "name",
        "hoodie.datasource.write.precombine.field": "seen",
        "hoodie.datasource.write.partitionpath.field": "letter",
    }
    rows = spark.createDataFrame([("a", "x", 1), ("a", "x", 2), ("b", "y", 1)], "name string, letter string, seen int")
    hoodie.hudi.write(rows, path, other, mode="OVERWRITE")
    found = hoodie.hudi.read(path, spark=spark)
    assert sorted(found.columns) == sorted([*found.columns[:5], "name", "letter", "seen"])
    assert sorted((row.name, row.seen) for row in found.collect()) == [("a", 2), ("b", 1)]  # upserts combine the batch
    hoodie.hudi.write(rows, path, {**other, "hoodie.datasource.write.operation": "insert"}, mode="overwrite")
    table = hoodie.open_table(path, spark=spark)
    assert table.snapshot().count() == 3  # inserts do not
    kept = table.savepoint().instant
    with pytest.raises(InvalidInput, match=f"has savepoints .{kept}"):
        hoodie.hudi.write(rows, path, other, mode="overwrite")
    rows_alone = {"hoodie.datasource.write.operation": "insert_overwrite_table"}
    hoodie.hudi.write(rows.limit(1), path, {**other, **rows_alone}, mode="overwrite")
    assert table.snapshot().count() == 1
    with pytest.raises(InvalidOption, match="take mode append"):
        hoodie.hudi.write(rows, path, {**other, "hoodie.datasource.write.operation": "delete"}, mode="overwrite")


def test_an_overwrite_whose_rows_are_bad_leaves_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    hoodie.hudi.write(spark.createDataFrame(FIRST, COLUMNS), path, JOBS[0].options)
    bad = spark.createDataFrame([(None, "x")], "name string, letter string")
    other = {"hoodie.table.name": "names", "hoodie.datasource.write.recordkey.field": "name"}
    for rows in (bad, bad.drop("name")):
        with pytest.raises(InvalidInput):
            hoodie.hudi.write(rows, path, other, mode="overwrite")
    assert hoodie.hudi.read(path, spark=spark).count() == 3
    hoodie.hudi.write(spark.createDataFrame(LATER, COLUMNS), path, JOBS[0].options)
    assert hoodie.hudi.read(path, spark=spark).count() == 4


def test_times_and_properties_files(spark: SparkSession, tmp_path: Path) -> None:
    path, props = str(tmp_path / "stock"), tmp_path / "job.properties"
    props.write_text("".join(f"{key}={value}\n" for key, value in JOBS[0].options.items()), encoding="utf-8")
    first = hoodie.hudi.write(spark.createDataFrame(FIRST, COLUMNS), path, props=props).instant
    hoodie.hudi.write(spark.createDataFrame(LATER, COLUMNS), path, props=str(props))
    moment = dt.datetime.strptime(first, "%Y%m%d%H%M%S%f").replace(tzinfo=dt.UTC)
    for point in (moment, moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")):
        assert hoodie.hudi.read(path, {"as.of.instant": point}, spark=spark).count() == 3
        begin = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": point,
        }
        assert hoodie.hudi.read(path, begin, spark=spark, props=props).count() == 3
    table = hoodie.open_table(path, spark=spark)
    assert table.as_of(moment).count() == 3
    assert table.changes(moment).count() == 3
    with pytest.warns(NoRowsYet, match="has no rows yet: its first commit is"):
        assert table.as_of(dt.date(2001, 1, 1)).count() == 0
