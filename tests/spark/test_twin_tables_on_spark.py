"""A Copy-on-Write and a Merge-on-Read table take the same random histories through a Spark session."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.nightly import nightly
from support.twin_histories import Histories, run_histories


@pytest.mark.timeout(3600)  # minutes on a quiet machine; what interrupts a call of the JVM takes the session with it
@pytest.mark.parametrize(("count", "steps"), [(1, 3), nightly(20, 30)])
def test_both_table_types_hold_the_same_rows_after_every_step(
    spark: SparkSession, tmp_path: Path, count: int, steps: int
) -> None:
    session = spark

    class OnSpark(Histories):
        spark = session
        folder = str(tmp_path / "twins")

    run_histories(count, steps, OnSpark)
