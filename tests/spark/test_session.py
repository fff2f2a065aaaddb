"""The embedded session: found its Java, runs its workers with our Python."""

import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hoodie.spark.session import local_session


def test_workers_run_the_interpreter_of_the_driver(spark: SparkSession) -> None:
    def who(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"python": [sys.executable] * batch.num_rows})

    rows = spark.range(4, numPartitions=2).mapInArrow(who, "python string").distinct().collect()
    assert [row.python for row in rows] == [sys.executable]


def test_a_session_that_runs_is_taken_and_nothing_listens_for_the_world(spark: SparkSession) -> None:
    again = local_session("another", **{"spark.sql.shuffle.partitions": 2})
    assert again.sparkContext is spark.sparkContext
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


@pytest.mark.nightly
def test_a_session_prints_nothing_by_itself() -> None:
    source = """if True:
        import pandas as pd
        from hoodie.spark.session import local_session
        session = local_session(cores=1)
        frame = session.createDataFrame(pd.DataFrame({"id": ["a", "b"]}))
        assert len(frame.toPandas()) == 2
    """
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
