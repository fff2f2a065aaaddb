"""A real Hive metastore for the tests of this folder; HOODIE_TEST_METASTORE=thrift://host:port names one that runs."""

import os
from collections.abc import Iterator

import pytest

from support.metastore import Metastore
from support.servers import running


@pytest.fixture(scope="session")
def metastore_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if given := os.environ.get("HOODIE_TEST_METASTORE"):
        yield given
        return
    with running(Metastore(tmp_path_factory.mktemp("metastore"))) as server:
        yield server.uri
