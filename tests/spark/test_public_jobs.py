"""Quick starts of Hudi and jobs in the forms that people publish run as they stand, after `hoodie.register(spark)`.

A script of `jobs/` takes `spark`, `base` (a path) and `name` (of a table), and leaves `rows` beside `expected`.
"""

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from support.nightly import by_day

JOBS = sorted(Path(__file__).with_name("jobs").glob("*.py"))
#: The others run by night: these have the calls that most jobs make.
BY_DAY = ("quick_start_0_5", "glue_upsert")


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    hoodie.register(spark)
    yield spark
    hoodie.spark.unregister(spark)


@pytest.mark.parametrize("job", by_day(JOBS, lambda job: job.stem in BY_DAY), ids=lambda job: job.stem)
def test_a_job_runs_as_it_stands(job: Path, registered: SparkSession, tmp_path: Path) -> None:
    done = runpy.run_path(str(job), {"spark": registered, "base": str(tmp_path / job.stem), "name": f"job_{job.stem}"})
    assert done["rows"] == done["expected"]
