"""What is Google Cloud Storage's own: answers that get lost, what it refuses, and bytes that its driver would lose."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from hoodie.errors import AccessDenied, CredentialsRejected, StorageFailed, TableNotFound
from hoodie.storage import FsspecStorage
from hoodie.storage.faults import typed_errors
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from support.http_faults import Fault, FaultyProxy, first
from support.undoing import COW, FIRST, SECOND, read, upsert

pytestmark = pytest.mark.stores


@pytest.fixture(scope="module")
def proxy(gcs: dict[str, Any]) -> Iterator[FaultyProxy]:
    to = urlsplit(gcs["endpoint_url"])
    made = FaultyProxy(str(to.hostname), int(to.port or 0))
    yield made
    made.stop()


@pytest.fixture
def server(gcs: dict[str, Any]) -> FsspecStorage:
    return FsspecStorage(f"gs://contract/{uuid4().hex}/table", gcs)


@pytest.fixture
def storage(gcs: dict[str, Any], proxy: FaultyProxy, server: FsspecStorage) -> FsspecStorage:
    """The same files over a network that fails."""
    return FsspecStorage(server.root, {**gcs, "endpoint_url": proxy.url})


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.CUT, Fault.BUSY])
@pytest.mark.parametrize("data", [b"", b"equal"])
def test_a_create_whose_answer_is_lost_is_ours_and_a_rivals_is_not(
    storage: FsspecStorage, server: FsspecStorage, proxy: FaultyProxy, fault: Fault, data: bytes
) -> None:
    with proxy.faults(first(1, fault, "POST")) as met:
        storage.create_new("ours", data)
    assert met[fault] == 1
    assert server.read("ours") == data
    server.create_new("rivals", data)
    with proxy.faults(first(1, fault, "POST")) as met, pytest.raises(FileExistsError):
        storage.create_new("rivals", data)
    assert met[fault] == 1
    assert server.read("rivals") == data


def test_a_stream_whose_last_answer_is_lost_is_there_whole(
    storage: FsspecStorage, server: FsspecStorage, proxy: FaultyProxy
) -> None:
    data = bytes(range(256)) * 4 * 10_000
    with storage.open_output("long") as file:
        file.write(data[: 9 << 20])
        proxy.choose = first(1, Fault.LOST, "POST")
        file.write(data[9 << 20 :])
    proxy.choose = lambda method, path: None
    assert server.read("long") == data


@pytest.mark.parametrize("size", [1, 100, 300_000, 10 << 20])
def test_bytes_that_end_with_a_carriage_return_are_kept_whole(server: FsspecStorage, size: int) -> None:
    data = b"x" * (size - 1) + b"\r"
    server.create_new("created", data)
    with pytest.raises(FileExistsError):
        server.create_new("created", data)
    server.write("written", data)
    with server.open_output("streamed") as file:
        file.write(data)
    for name in ("created", "written", "streamed"):
        assert server.read(name) == data


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.DENIED, AccessDenied), (Fault.UNKNOWN, CredentialsRejected)], ids=["denied", "unknown"]
)
def test_a_right_that_ends_in_the_middle_of_a_write_publishes_nothing(
    storage: FsspecStorage, server: FsspecStorage, proxy: FaultyProxy, fault: Fault, error: type[Exception]
) -> None:
    ArrowTable.create(server, COW)
    upsert(server, FIRST)
    before = load_state(server).timeline.commits
    uploads = 0

    def after_the_third(method: str, path: str) -> Fault | None:
        nonlocal uploads
        uploads += "/upload/" in path
        return fault if "/upload/" in path and uploads > 3 else None

    with proxy.faults(after_the_third) as met, pytest.raises(error), typed_errors():
        upsert(storage, SECOND)
    assert met[fault]
    assert load_state(server).timeline.commits == before
    assert read(server) == FIRST
    upsert(server, SECOND)
    assert read(server) == {**FIRST, **SECOND}


def test_a_bucket_that_is_not_there_is_no_empty_table(gcs: dict[str, Any]) -> None:
    storage = FsspecStorage("gs://no-such-bucket/table", gcs)
    with pytest.raises(TableNotFound, match="bucket does not exist"):
        load_state(storage)
    with pytest.raises((StorageFailed, TableNotFound), match="bucket does not exist"), typed_errors():
        ArrowTable.create(storage, COW)
