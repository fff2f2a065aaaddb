"""Random histories on local disk: every reader sees what the model says."""

import itertools
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.nightly import by_day, scaled
from support.spark_histories import SparkHistory, run_histories
from support.strategies import Shape

SEEDS = {"COPY_ON_WRITE": 1, "MERGE_ON_READ": 2}


@pytest.mark.parametrize("table_type", by_day(SEEDS, lambda table_type: table_type == "MERGE_ON_READ"))
def test_all_readers_see_what_a_dict_of_rows_holds_after_a_history(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    numbers = itertools.count()

    def new(shape: Shape, payload: str) -> SparkHistory:
        return SparkHistory(spark, str(tmp_path / str(next(numbers))), shape, payload, table_type)

    routes = run_histories(new, number=SEEDS[table_type], examples=scaled(2, 4), least=4, most=6)
    assert routes == {"driver", "executors"}
