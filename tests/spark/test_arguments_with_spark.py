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


def test_nested_values_are_taken_and_refused_as_without_spark(spark: SparkSession, tmp_path: Path):
    struct = pa.struct([("a", pa.int32()), ("b", pa.timestamp("us"))])
    kinds = {"id": pa.int64(), "l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.list_(pa.int32())), "s": struct}
    twins = [
        hoodie.create_table(tmp_path / "spark", record_key="id", spark=spark),
        hoodie.create_table(tmp_path / "own", record_key="id"),
    ]
    first = {"id": 1, "l": [1], "m": [("a", [1])], "s": {"a": 1, "b": None}}
    for table in twins:
        table.upsert(pa.Table.from_pylist([first], pa.schema(list(kinds.items()))))

    def outcome(table: Any, column: str, value: Any) -> Any:
        try:
            table.update({column: value})
        except hoodie.HoodieError as problem:
            return f"{type(problem).__name__}: {problem}"
        return hoodie.open_table(table.path).snapshot(columns=[column[0]]).to_arrow().to_pylist()

    taken: list[tuple[str, Any]] = [
        ("m", {"b": [2, None], "c": None}),
        ("m", {}),
        ("s", {"a": 2.0, "b": dt.datetime(2024, 1, 1, 12)}),
        ("s", pa.scalar({"a": 3, "b": None}, struct)),
        ("l", [2.0, None]),
        ("l", np.array([3, 4])),
        ("s.a", 5),
    ]
    refused = [
        ("l", [1.5]),
        ("l", "array(1.5D)"),
        ("m", {"b": [2**40]}),
        ("s.a", 1.5),
        ("m", {1: [1]}),
        ("l", [10**20]),
        ("l", ["a"]),
    ]
    for values, fits in ((taken, True), (refused, False)):
        for column, value in values:
            ours, own = (outcome(table, column, value) for table in twins)
            assert ours == own, (column, value)
            assert isinstance(own, list) is fits, own


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
