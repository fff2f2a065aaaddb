"""Real engines on loopback, one of a kind for the whole run. `make engines` runs these tests; ENGINES chooses.

What is missing (a Java, Maven, an artifact that is not served) skips the tests that need it, with the reason. An engine
starts when the first test asks for it, and ends with the file that uses it.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from pyspark.sql import SparkSession

from support.hbase import HBase
from support.hive3 import Hive
from support.hudi_engine import HudiEngine
from support.kafka import Kafka
from support.metastore import Metastore
from support.query_servers import CATALOGS, QueryServer
from support.servers import Startable, running
from support.spark_settings import small_session
from support.versitygw import Versitygw
from tools.engines import HUDI, USUAL_HUDI, Missing, hdfs_jars, java_home

S = TypeVar("S", bound=Startable)
#: The cases and files of the quick part: one table of each kind, by Hudi in both directions, Trino and Hive.
_QUICK_CASES = ("cow_plain", "mor_plain")
_QUICK_FILES = ("test_hudi_reads_ours", "test_ours_reads_hudi", "test_trino", "test_hive")
_ALL = "hudi trino presto hive hbase hdfs kafka s3"
#: Each runs files of the ordinary suite in a process of its own, whose tests have limits themselves. In seconds.
_WHOLE_FILES = ("test_hdfs", "test_hbase", "test_s3")
_OF_FILES = 3600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.engines)
            if item.path.stem in _WHOLE_FILES:
                item.add_marker(pytest.mark.timeout(_OF_FILES))
            if item.path.stem in _QUICK_FILES and any(f"{name}]" in item.name for name in _QUICK_CASES):
                item.add_marker(pytest.mark.quick)


def _require(names: set[str]) -> None:
    if not names & set(os.environ.get("ENGINES", _ALL).split()):
        pytest.skip(f"ENGINES does not name {' or '.join(sorted(names))}")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The library's own session, beside the engines."""
    with small_session(tmp_path_factory.mktemp("warehouse")) as session:
        yield session


def _started(names: set[str], make: Callable[[], S]) -> Iterator[S]:
    """A server that runs, where ENGINES has one of its names and nothing is missing."""
    _require(names)
    try:
        server = make()
    except Missing as error:
        pytest.skip(str(error))
    with running(server):
        yield server


@pytest.fixture(scope="session", params=sorted(HUDI))
def hudi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiEngine]:
    """Each release in turn."""
    version = request.param
    names = {f"hudi-{version}", *(["hudi"] if version in USUAL_HUDI else [])}
    yield from _started(names, lambda: HudiEngine(version, tmp_path_factory.mktemp("hudi")))


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Hive metastore 2.3, from the jars of pyspark. Each engine has its own: names are the same."""
    with running(Metastore(tmp_path_factory.mktemp("metastore"))) as server:
        yield server.uri


@pytest.fixture(scope="module")
def trino(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryServer]:
    yield from _query_server("trino", request, tmp_path_factory)


@pytest.fixture(scope="module")
def presto(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[QueryServer]:
    yield from _query_server("presto", request, tmp_path_factory)


def _query_server(name: str, request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Iterator[QueryServer]:
    def make() -> QueryServer:
        return QueryServer(name, folders.mktemp(name), CATALOGS[name](request.getfixturevalue("metastore")))

    yield from _started({name}, make)


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hive]:
    yield from _started({"hive"}, lambda: Hive(tmp_path_factory.mktemp("hive")))


@pytest.fixture(scope="module")
def hbase_2_5(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBase]:
    yield from _started({"hbase"}, lambda: HBase(tmp_path_factory.mktemp("hbase") / "hbase"))


@pytest.fixture(scope="module")
def hdfs_3() -> str:
    """The Java and the jars of HDFS, as HOODIE_TEST_HDFS has them."""
    _require({"hdfs"})
    try:
        return f"{java_home(17) / 'bin' / 'java'}:{hdfs_jars()}"
    except Missing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from _started({"kafka"}, lambda: Kafka(tmp_path_factory.mktemp("kafka")))


@pytest.fixture(scope="module")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Versitygw]:
    yield from _started({"s3"}, lambda: Versitygw(tmp_path_factory.mktemp("s3")))
