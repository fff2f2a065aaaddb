"""Random histories that a Spark without an S3 connector carries out on S3: every reader sees what the model says."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from support.nightly import nightly
from support.s3_server import running_s3
from support.spark_histories import SparkHistory, run_histories
from support.strategies import Shape


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    with running_s3("histories") as options:
        yield options


@pytest.mark.parametrize(
    ("table_type", "number", "examples", "most"),
    [
        nightly("MERGE_ON_READ", 22, 2, 2),
        nightly("COPY_ON_WRITE", 23, 6, 6),
        nightly("MERGE_ON_READ", 24, 6, 6),
    ],
)
def test_all_readers_see_what_a_dict_of_rows_holds_after_a_history_on_s3(
    spark: SparkSession,
    s3: dict[str, Any],
    tmp_path: Path,
    table_type: str,
    number: int,
    examples: int,
    most: int,
) -> None:
    numbers = itertools.count()

    def new(shape: Shape, payload: str) -> SparkHistory:
        uri, copy = f"s3://histories/{uuid4().hex}/table", tmp_path / str(next(numbers))
        return SparkHistory(spark, uri, shape, payload, table_type, s3, copy)

    routes = run_histories(new, number=number, examples=examples, least=2, most=most)
    assert routes == {"driver", "executors"}
