"""Servers on loopback: HDFS, Azurite for Azure, an emulator of Google Cloud Storage. `make stores` brings what they
need and runs these tests."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.azurite import running_azurite
from support.gcs import running_gcs
from support.hdfs import Hdfs
from support.servers import running
from support.stores import Store

pytest.register_assert_rewrite("hoodie.testing.storage_suite")


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running(Hdfs(tmp_path_factory.mktemp("hdfs"))) as server:
        yield server


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The options of Azure's driver."""
    with running_azurite(tmp_path_factory.mktemp("azurite")) as options:
        yield options


@pytest.fixture(scope="session")
def gcs() -> Iterator[dict[str, Any]]:
    """The options of the driver of Google Cloud Storage."""
    with running_gcs("contract") as options:
        yield options


@pytest.fixture(params=["hdfs", "azure", "gcs"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each server in turn."""
    if request.param == "hdfs":
        return Store(f"hdfs://{request.getfixturevalue('hdfs').address}/lake")
    if request.param == "gcs":
        return Store("gs://contract/lake", request.getfixturevalue("gcs"))
    return Store("abfs://contract/lake", request.getfixturevalue("azure"))
