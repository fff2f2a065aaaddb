"""An S3 over HTTP on loopback, and the same with a network between that fails as it is told."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from hoodie.storage import FsspecStorage
from support.http_faults import FaultyProxy
from support.s3_server import running_s3

pytest.register_assert_rewrite("hoodie.testing.storage_suite", "hoodie.testing.index_suite")


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, Any]]:
    """An S3 emulator's fsspec options; there is a bucket "contract"."""
    with running_s3("contract") as options:
        yield options


@pytest.fixture(scope="session")
def proxy(s3: dict[str, Any]) -> Iterator[FaultyProxy]:
    """The network between."""
    to = urlsplit(s3["client_kwargs"]["endpoint_url"])
    assert to.hostname
    assert to.port
    made = FaultyProxy(to.hostname, to.port)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def over_proxy(s3: dict[str, Any], proxy: FaultyProxy) -> dict[str, Any]:
    """fsspec options of a client that goes through the proxy, waits as long as a busy machine may take, and whose
    library does not try again by itself: what is tried again is our doing."""
    config = {"retries": {"total_max_attempts": 1}, "read_timeout": 120, "connect_timeout": 120}
    return {**s3, "client_kwargs": {"endpoint_url": proxy.url}, "config_kwargs": config}


@pytest.fixture
def storage(over_proxy: dict[str, Any]) -> FsspecStorage:
    """Of a table's folder that nobody has used, over the network that fails."""
    return FsspecStorage(f"s3://contract/{uuid4().hex}/table", over_proxy)


@pytest.fixture
def server(s3: dict[str, Any], storage: FsspecStorage) -> FsspecStorage:
    """The same files without the network between."""
    return FsspecStorage(storage.root, s3)
