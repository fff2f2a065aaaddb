"""Jobs of Hudi's data source run as they are: the same options, the rows that they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidOption, TableNotFound
from support.hudi_jobs import JOBS, Job

COLUMNS = "id int, name string, city string, qty int, ts long"
FIRST = [(1, "a", "oslo", 1, 10), (2, "b", "rome", 2, 10), (3, "c", "oslo", 3, 10)]
LATER = [(1, "a", "oslo", 1, 5), (2, "b", "rome", 2, 20), (4, "d", "rome", 4, 20)]


def options_of(job: Job, path: str) -> dict[str, Any]:
    return {key: value.format(path=path) if isinstance(value, str) else value for key, value in job.options.items()}


@pytest.mark.parametrize(
    "job",
    [job for job in JOBS if not job.refused and "deleted" not in job.name],
    ids=lambda job: job.name,
)
def test_a_job_writes_and_reads_its_table(job: Job, spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    options = options_of(job, path)
    hoodie.write(spark.createDataFrame(FIRST, COLUMNS), path, options, mode=job.mode)
    hoodie.write(spark.createDataFrame(LATER, COLUMNS), path, options)
    rows = hoodie.read(spark, path, {**options, "hoodie.datasource.query.type": "snapshot"})
    assert {"_hoodie_record_key", *COLUMNS.replace(",", "").split()[::2]} <= set(rows.columns)
    found = sorted((row.id, row.ts) for row in rows.collect())
    operation = options.get("hoodie.datasource.write.operation", "upsert")
    if operation == "bulk_insert":
        assert found == sorted((row[0], row[4]) for row in [*FIRST, *LATER])
    elif "1.x" in job.name:  # by event time the older version of row 1 loses
        assert found == [(1, 10), (2, 20), (3, 10), (4, 20)]
    else:
        assert found == [(1, 5), (2, 20), (3, 10), (4, 20)]


@pytest.mark.parametrize("job", [job for job in JOBS if job.refused], ids=lambda job: job.name)
def test_a_job_that_is_refused_writes_nothing(job: Job, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "stock"
    with pytest.raises(InvalidOption):
        hoodie.write(spark.createDataFrame(FIRST, COLUMNS), str(path), job.options)
    assert not path.exists()


def test_a_job_that_deletes_takes_its_keys_away(spark: SparkSession, tmp_path: Path) -> None:
    upsert, delete = JOBS[0], next(job for job in JOBS if "deleted" in job.name)
    path = str(tmp_path / "stock")
    hoodie.write(spark.createDataFrame(FIRST, COLUMNS), path, upsert.options)
    hoodie.write(spark.createDataFrame(FIRST[:1], COLUMNS), path, delete.options)
    assert sorted(row.id for row in hoodie.read(spark, path).collect()) == [2, 3]


def test_another_path_in_the_options_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    df = spark.createDataFrame(FIRST, COLUMNS)
    with pytest.raises(InvalidOption, match="give one path"):
        hoodie.write(df, path, {**JOBS[0].options, "path": str(tmp_path / "other")})
    with pytest.raises(TableNotFound):
        hoodie.open_table(spark, path)
