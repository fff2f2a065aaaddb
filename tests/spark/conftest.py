"""One Spark session for all tests that need one: starting it costs more than most of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from hoodie.sources.register import unregister
from hoodie.spark.own_sql import takes_sql
from support.spark_settings import small_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with small_session(tmp_path_factory.mktemp("warehouse")) as session:
        yield session


@pytest.fixture(scope="module", autouse=True)
def registered_for_one_file() -> Iterator[None]:
    """`hoodie.register` is the whole process's: what a file of tests says ends with it."""
    yield
    session = SparkSession.getActiveSession()
    if takes_sql() and session is not None:
        unregister(session)
