"""One Spark session for all tests that need one: starting it costs more than most of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from hoodie.spark.session import local_session
from support.spark_settings import SMALL


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """local[2] in UTC, set up for tests, which move few rows."""
    session = local_session(
        "hoodie-tests",
        cores=2,
        memory="2g",
        **{
            **SMALL,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": tmp_path_factory.mktemp("warehouse"),
        },
    )
    yield session
    session.stop()
