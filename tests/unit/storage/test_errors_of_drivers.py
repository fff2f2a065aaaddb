"""Whatever a driver raises comes to a user as an error of ours that keeps it as its cause."""

from typing import Any

import pytest

from hoodie.errors import (
    AccessDenied,
    CredentialsRejected,
    FileGone,
    HoodieError,
    StorageFailed,
    StorageUnavailable,
)
from hoodie.storage import FsspecStorage
from hoodie.storage.faults import typed_errors


def of(module: str, name: str, **attributes: object) -> Exception:
    return type(name, (Exception,), {"__module__": module, **attributes})("as it says")


def client_error(status: int, code: str) -> Exception:
    from botocore.exceptions import ClientError

    response: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "PutObject")


def read_timeout() -> Exception:
    from botocore.exceptions import ReadTimeoutError

    return ReadTimeoutError(endpoint_url="http://store")


ERRORS: dict[str, tuple[Any, type[HoodieError]]] = {
    "botocore: time-out": (read_timeout, StorageUnavailable),
    "botocore: denied": (lambda: client_error(403, "AccessDenied"), AccessDenied),
    "botocore: expired": (lambda: client_error(400, "ExpiredToken"), CredentialsRejected),
    "botocore: other": (lambda: client_error(400, "InvalidRequest"), StorageFailed),
    "azure: request": (lambda: of("azure.core.exceptions", "ServiceRequestError"), StorageUnavailable),
    "azure: response": (lambda: of("azure.core.exceptions", "ServiceResponseError"), StorageUnavailable),
    "azure: denied": (lambda: of("azure.core.exceptions", "HttpResponseError", status_code=403), AccessDenied),
    "azure: gone": (lambda: of("azure.core.exceptions", "ResourceNotFoundError", status_code=404), FileGone),
    "google: refresh": (lambda: of("google.auth.exceptions", "RefreshError"), CredentialsRejected),
    "google: api": (lambda: of("google.api_core.exceptions", "ServiceUnavailable", code=503), StorageUnavailable),
    "gcsfs": (lambda: of("gcsfs.retry", "HttpError", code=400), StorageFailed),
    "aiohttp": (lambda: of("aiohttp.client_exceptions", "ClientPayloadError"), StorageUnavailable),
    "asyncio": (lambda: TimeoutError("late"), StorageUnavailable),
}

#: As the code of a driver that raises an error of Python's own.
PLAIN = """
def cat_file(path, **_):
    try:
        raise cause
    except Exception as error:
        raise kind("Bad Request: as it says") from error
"""
PLAINS: dict[str, tuple[str, type[Exception], Exception, type[HoodieError]]] = {
    "gcsfs": ("gcsfs.retry", ValueError, Exception("of the store"), StorageFailed),
    "adlfs": (
        "adlfs.spec",
        RuntimeError,
        of("azure.core.exceptions", "HttpResponseError", status_code=403),
        AccessDenied,
    ),
    "adlfs, for a while": (
        "adlfs.spec",
        RuntimeError,
        of("azure.core.exceptions", "ServiceResponseTimeoutError"),
        StorageUnavailable,
    ),
}


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch) -> FsspecStorage:
    monkeypatch.setattr("time.sleep", lambda _: None)
    return FsspecStorage("memory://errors/t")


@pytest.mark.parametrize("which", ERRORS)
def test_errors_of_drivers_are_ours(which: str, storage: FsspecStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    make, expected = ERRORS[which]

    def fail(*_: Any, **__: Any) -> None:
        raise make()

    for name in ("cat_file", "ls", "pipe_file", "info"):
        monkeypatch.setattr(storage.fs, name, fail)
    for call in (
        lambda: storage.read("f"),
        lambda: storage.list("f"),
        lambda: storage.write("f", b""),
        lambda: storage.size("f"),
        lambda: storage.create_new("f", b""),
    ):
        with pytest.raises(HoodieError) as raised, typed_errors():
            call()
        assert type(raised.value) is expected
        assert raised.value.__cause__ is not None


@pytest.mark.parametrize("which", PLAINS)
def test_plain_errors_of_drivers_are_ours(which: str, storage: FsspecStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    module, kind, cause, expected = PLAINS[which]
    names: dict[str, Any] = {"__name__": module, "kind": kind, "cause": cause}
    exec(PLAIN, names)
    monkeypatch.setattr(storage.fs, "cat_file", names["cat_file"])
    with pytest.raises(HoodieError, match="as it says") as raised, typed_errors():
        storage.read("f")
    assert type(raised.value) is expected


def test_an_error_that_no_driver_raised_stays_what_it_is(storage: FsspecStorage, monkeypatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("of somebody else")

    monkeypatch.setattr(storage.fs, "cat_file", fail)
    with pytest.raises(ValueError, match="of somebody else"), typed_errors():
        storage.read("f")
