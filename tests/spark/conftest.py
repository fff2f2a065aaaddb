"""One Spark session for all tests that need one: starting it costs more than most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from hoodie.spark.session import local_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """local[2] in UTC, with small shuffles and a JVM set up to start fast: tests move few rows."""
    session = local_session(
        "hoodie-tests",
        cores=2,
        memory="2g",
        **{
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse"),
        },
    )
    yield session
    session.stop()
