"""Which errors of a store are worth another try, and what becomes of one that stays."""

import asyncio
import errno
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import tenacity

from hoodie.errors import AccessDenied
from hoodie.storage import FsspecStorage
from hoodie.storage import retry as retry_module
from hoodie.storage.driver_errors import is_transient
from hoodie.storage.faults import fault_of
from hoodie.storage.gcs import once_until_answered
from hoodie.storage.object_stores import give_up_the_unreachable
from hoodie.storage.retry import ATTEMPTS, RetryingInput, retry


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry_module._policy, "wait", tenacity.wait_none())


def driver_error(name: str, module: str, **attributes: object) -> Exception:
    error: Exception = type(name, (Exception,), {"__module__": module, **attributes})("what it said")
    return error


def boto(status: int) -> Exception:
    response = {"Error": {"Code": "Some"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return driver_error("ClientError", "botocore.exceptions", response=response)


PASSING = [
    TimeoutError("read"),
    ConnectionResetError("reset"),
    OSError(errno.EBUSY, "slow down"),
    OSError(errno.ETIMEDOUT, ""),
    boto(503),
    boto(500),
    boto(429),
    driver_error("ServerDisconnectedError", "aiohttp.client_exceptions"),
    driver_error("ReadTimeoutError", "botocore.exceptions"),
    driver_error("HttpError", "gcsfs.retry", code=503),
    driver_error("ServiceRequestError", "azure.core.exceptions", status_code=500),
    driver_error("FSTimeoutError", "fsspec.exceptions"),
    driver_error("ClientPayloadError", "aiohttp.client_exceptions"),
]
LASTING = [
    FileNotFoundError("x"),
    FileExistsError("x"),
    PermissionError("x"),
    OSError(errno.ENOSPC, "full"),
    boto(403),
    boto(404),
    boto(412),
    ValueError("x"),
    driver_error("NoCredentialsError", "botocore.exceptions"),
    driver_error("ConnectionSetting", "somebody.elses"),
    driver_error("HttpError", "gcsfs.retry", code=400),
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_passes_is_tried_again(error: Exception):
    assert is_transient(error)


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_what_stays_is_not_tried_again(error: Exception):
    assert not is_transient(error)
    calls = []

    def call() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)) as raised:
        retry(call)
    assert raised.value is error
    assert len(calls) == 1


def test_what_a_driver_wrapped_is_judged_by_what_it_wrapped():
    outer = OSError(errno.EIO, "driver")
    outer.__cause__ = boto(503)
    assert is_transient(outer)
    outer.__cause__ = boto(403)
    assert not is_transient(outer)


@pytest.mark.parametrize("fails", [0, 1, ATTEMPTS - 1])
def test_a_call_that_gets_through_in_time_is_a_success(fails: int):
    left = [TimeoutError("read")] * fails

    def call() -> str:
        if left:
            raise left.pop()
        return "done"

    assert retry(call) == "done"


def test_a_fault_that_stays_is_an_os_error_after_some_tries():
    calls = []

    def call() -> None:
        calls.append(1)
        raise driver_error("EndpointConnectionError", "botocore.exceptions")

    with pytest.raises(OSError, match="EndpointConnectionError: what it said") as raised:
        retry(call)
    assert len(calls) == ATTEMPTS
    assert type(raised.value.__cause__).__name__ == "EndpointConnectionError"


class Flaky(io.BytesIO):
    """Moves on and breaks at every second read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        found = super().read(size)
        if self.reads % 2:
            raise ConnectionResetError("reset")
        return found


def test_a_right_that_gcsfs_tells_by_its_text_alone_is_a_permission_error():
    def denied() -> None:
        raise OSError("Forbidden: b/lake/o\nno right to do it")

    with pytest.raises(PermissionError, match="b/lake/o") as raised:
        retry(denied)
    assert type(fault_of(raised.value)) is AccessDenied


def test_a_file_is_read_on_where_it_broke():
    with RetryingInput(Flaky(b"0123456789")) as file:
        assert file.read(3) == b"012"
        assert file.tell() == 3
        assert file.read() == b"3456789"


def test_a_deletion_whose_answer_got_lost_has_deleted(monkeypatch: pytest.MonkeyPatch):
    storage = FsspecStorage("memory://lost-deletion/t")
    storage.write("f", b"1")
    remove, answers = storage.fs.rm_file, iter([TimeoutError("read"), None])

    def rm_file(path: str) -> None:
        remove(path)
        if error := next(answers):
            raise error

    monkeypatch.setattr(storage.fs, "rm_file", rm_file)
    assert storage.delete("f")
    assert not storage.delete("f")


def test_patience_goes_on_after_the_usual_attempts() -> None:
    tries = []

    def starting() -> str:
        tries.append(None)
        if len(tries) < 3 * ATTEMPTS:
            raise BlockingIOError(errno.EAGAIN, "Name node is in safe mode")
        return "there"

    assert retry(starting, lambda error: isinstance(error, BlockingIOError), patience=60.0) == "there"
    tries.clear()
    with pytest.raises(BlockingIOError):
        retry(starting, lambda error: isinstance(error, BlockingIOError))
    assert len(tries) == ATTEMPTS


# --- servers that nobody reaches ---


class Empty(BaseHTTPRequestHandler):
    """A bucket with one object without bytes, whatever the name."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def listening(port: int) -> Iterator[int]:
    """A server on a port; 0: on a free one."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Empty)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def s3_at(port: int) -> FsspecStorage:
    pytest.importorskip("s3fs")
    options = {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"}}
    return FsspecStorage("s3://bucket/table", options)


def gcs_at(port: int) -> FsspecStorage:
    pytest.importorskip("gcsfs")
    return FsspecStorage("gs://bucket/table", {"endpoint_url": f"http://127.0.0.1:{port}", "token": "anon"})


def azure_at(port: int) -> FsspecStorage:
    pytest.importorskip("adlfs")
    account = f"AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:{port}/a;"
    return FsspecStorage("abfs://bucket/table", {"connection_string": f"DefaultEndpointsProtocol=http;{account}"})


@pytest.mark.parametrize("store", [s3_at, gcs_at, azure_at])
def test_a_refused_connection_is_told_at_once(store: Callable[[int], FsspecStorage]):
    with socket.socket() as taken:  # and nobody listens
        taken.bind(("127.0.0.1", 0))
        storage = store(taken.getsockname()[1])
        began = time.monotonic()
        with pytest.raises(OSError, match=r"(?i)could not connect to the endpoint|cannot connect to host"):
            storage.size("file")
    assert time.monotonic() - began < 20  # half a minute, and up to seven, where the drivers repeat the call


def test_azures_client_repeats_calls_once_the_server_has_answered():
    class Policy:
        async def send(self, request: str) -> str:
            return request

        def increment(self, settings: object, request: str, response: object = None, error: object = None) -> bool:
            return True

    policy, refused = Policy(), driver_error("ServiceRequestError", "azure.core.exceptions")
    give_up_the_unreachable(policy)
    assert not policy.increment({}, "GET", error=refused)
    assert policy.increment({}, "GET", error=driver_error("ServiceResponseError", "azure.core.exceptions"))
    asyncio.run(policy.send("GET"))
    assert policy.increment({}, "GET", error=refused)


def test_gcsfs_repeats_calls_once_the_server_has_answered():
    problems = [driver_error("ClientConnectorError", "aiohttp.client_exceptions"), ValueError()]
    calls: list[str] = []

    async def once(path: str) -> str:
        calls.append("once")
        if problems:
            raise problems.pop(0)
        return path

    async def often(path: str) -> str:
        calls.append("often")
        return path

    request = once_until_answered(once, often)
    with pytest.raises(Exception, match="what it said"):
        asyncio.run(request("b"))
    assert asyncio.run(request("b")) == asyncio.run(request("b")) == "b"
    assert calls == ["once", "once", "often", "often"]


def test_a_server_that_was_there_is_waited_for():
    with listening(0) as port:
        storage = s3_at(port)
        assert storage.size("file") == 0
    sizes: list[int] = []
    asking = threading.Thread(target=lambda: sizes.append(storage.size("file")))
    asking.start()
    time.sleep(0.5)
    with listening(port):
        asking.join()
    assert sizes == [0]
