"""Scripts in the form of Hudi's guides run as they are, once `hoodie.register(spark)` has been said."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hoodie

SCRIPTS = Path(__file__).with_name("quick_start")


@pytest.fixture
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    hoodie.register(spark)
    yield spark
    hoodie.spark.unregister(spark)


def run(spark: SparkSession, name: str, path: Path) -> dict[str, Any]:
    given = {"spark": spark, "tableName": path.name, "basePath": path.as_uri()}
    return runpy.run_path(str(SCRIPTS / f"{name}.py"), given)


def fares(path: Path) -> list[tuple[str, float]]:
    rows = hoodie.open_table(str(path)).snapshot(columns=["rider", "fare"]).to_arrow().to_pylist()
    return sorted((row["rider"], row["fare"]) for row in rows)


NOW = [("rider-A", 19.1), ("rider-C", 27.7), ("rider-D", 339.0), ("rider-J", 17.85)]


@pytest.mark.nightly  # test_spark_calls has the same calls in fewer rows
def test_the_quick_start_and_the_guide_to_streams(registered: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    done = run(registered, "basics", path)
    assert fares(path) == NOW
    assert [row.fare for row in done["tripsIncrementalDF"].collect()] == [339.0]
    run(registered, "streaming", path)
    for query in registered.streams.active:
        query.awaitTermination()
    assert fares(tmp_path / "trips_streaming") == NOW


@pytest.mark.nightly
def test_the_guide_to_table_types(registered: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "trips"
    done = run(registered, "merge_on_read", path)
    assert done["fares"] == [[10.0, 20.0, 30.0], [11.0, 20.0, 30.0]]
    assert fares(path) == [("rider-A", 11.0), ("rider-D", 40.0)]
    assert (path / "city=oslo").is_dir()
