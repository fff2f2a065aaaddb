"""Arguments of calls with a session: the values of other libraries are taken, and what is none is refused in words."""

import datetime as dt
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import InvalidInput

DAY = dt.date(2024, 1, 1)


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Any:
    table = hoodie.create_table(tmp_path_factory.mktemp("t") / "t", record_key="id", partition_by="day", spark=spark)
    table.upsert(pa.table({"id": [1, 2, 3], "day": [DAY, DAY, DAY + dt.timedelta(1)], "fare": [1.5, 2.5, 3.5]}))
    return table


def ids(frame: Any) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def test_filters_and_partitions_are_taken_as_without_spark(table: Any):
    assert ids(table.snapshot(filters=[("id", "in", iter([1, 2]))])) == [1, 2]
    assert ids(table.snapshot(filters=[("id", "in", pa.array([1]))])) == [1]
    assert ids(table.snapshot(filters=[("id", "=", pa.scalar(1))])) == [1]
    assert ids(table.snapshot(filters=[("day", "=", np.datetime64("2024-01-01"))])) == [1, 2]
    assert ids(table.scan(partitions=iter([DAY])).rows()) == [1, 2]


def test_an_update_takes_the_values_of_pandas_numpy_and_arrow(table: Any):
    for value, stored in ((pa.scalar(4.5), 4.5), (pd.NA, None), (np.float32(2.5), 2.5), (pd.NaT, None)):
        assert table.update({"fare": value}, "id = 1").updated == 1
        assert table.snapshot(filters="id = 1").collect()[0].fare == stored


def test_what_is_no_session_or_name_is_refused(spark: SparkSession, table: Any):
    calls: list[tuple[Any, str]] = [
        (lambda: hoodie.register(None), "register takes a SparkSession first"),  # type: ignore[arg-type]
        (lambda: hoodie.register(spark, shadow="no"), "shadow='no': expected True or False"),  # type: ignore[arg-type]
        (lambda: hoodie.spark.ship(None), "ship takes a SparkSession first"),  # type: ignore[arg-type]
        (lambda: hoodie.spark.sql("select 1", spark), "sql takes a SparkSession first"),  # type: ignore[arg-type]
        (lambda: hoodie.spark.sql(spark, None), "sql takes a statement as text"),  # type: ignore[arg-type]
        (lambda: hoodie.spark.sql(spark, " ;"), "sql takes a statement, and there is none: ' ;'"),
        (lambda: hoodie.spark.refresh_view(spark, None), "there is no view None"),  # type: ignore[arg-type]
        (lambda: hoodie.spark.register_table(spark, None, "/t"), "table name None"),  # type: ignore[arg-type]
        (lambda: hoodie.spark.register_table(spark, "t", ""), "location='': expected the path"),
        (lambda: hoodie.spark.register_table("t", spark, "/t"), "takes a SparkSession"),  # type: ignore[arg-type]
        (lambda: hoodie.spark.unregister_table(spark, None), "table name None"),  # type: ignore[arg-type]
        (lambda: table.stream_upsert("s")(pa.table({"id": [1]}), 1), "a stream's batch is a Spark DataFrame"),
    ]
    for call, problem in calls:
        with pytest.raises(InvalidInput, match=problem):
            call()


def test_numbers_that_spark_has_no_type_for_are_compared(table: Any):
    assert ids(table.snapshot(filters=[("id", "=", np.uint8(1))])) == [1]
    assert ids(table.snapshot(filters=[("id", "in", [np.uint64(1), 2**70])])) == [1]
    assert ids(table.snapshot(filters=[("id", "<", 2**70)])) == [1, 2, 3]


def test_a_text_without_quotes_is_told_how_to_stand_in_them(spark: SparkSession, tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", spark=spark)
    source = spark.createDataFrame([(1, "oslo")], "id long, city string")
    table.upsert(source)
    merge = table.merge(source)
    calls: list[tuple[Any, str]] = [
        (lambda: table.update({"city": "new york"}, "id = 1"), "'new york'"),
        (lambda: table.update({"city": "it's"}, "id = 1"), "'it''s'"),
        (lambda: merge.when_matched_update({"city": "bergen"}).execute(), "'bergen'"),
    ]
    for call, quoted in calls:
        with pytest.raises(InvalidInput, match="A value that is text stands in quotes: ") as refused:
            call()
        assert str(refused.value).endswith(f'"{quoted}"')
    with pytest.raises(AnalysisException):
        table.update({"city": "upper(town)"}, "id = 1")


def test_a_time_without_a_zone_is_one_of_the_session(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        clock = dt.datetime(2024, 1, 1, 5)
        moment = pa.array([dt.datetime(2000, 1, 1, tzinfo=dt.UTC)])
        table = hoodie.create_table(tmp_path / "t", record_key="id", spark=spark)
        table.upsert(pa.table({"id": [1], "local": pa.array([dt.datetime(2000, 1, 1)]), "at": moment}))
        for value in (clock, np.datetime64(clock), pa.scalar(clock)):
            table.update({"local": value, "at": value})
            (row,) = hoodie.open_table(tmp_path / "t").to_arrow(columns=["local", "at"]).to_pylist()
            assert row == {"local": clock, "at": clock.replace(tzinfo=dt.UTC)}  # the tests' session is in UTC
            table.update({"local": "local - interval 1 day", "at": "at - interval 1 day"})
    finally:
        monkeypatch.undo()
        time.tzset()
