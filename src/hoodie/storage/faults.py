"""Faults of storage as typed errors that say what to do; the original is kept as the cause.

Storages raise OSError or what their driver has (`hoodie.storage.protocol`), and code inside relies on that. Calls that
people make, and the functions that Spark's workers run, end in `typed_errors`.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import TypeVar

from hoodie.display.progress import reporting
from hoodie.errors import (
    AccessDenied,
    BucketNotFound,
    CredentialsRejected,
    FileGone,
    HoodieError,
    InvalidOption,
    NameTooLong,
    StorageFailed,
    StorageFull,
    StorageUnavailable,
    WrongRegion,
)
from hoodie.storage.at_uri import UriStorage
from hoodie.storage.driver_errors import (
    chain,
    from_driver,
    is_transient,
    missing_bucket,
    no_bucket,
    refuses_options,
    rejects_credentials,
    status_of,
    wrong_region,
)
from hoodie.storage.protocol import redacted_path

_Client = TypeVar("_Client", bound=type)

_FULL = {errno.ENOSPC, errno.EDQUOT}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def typed_errors() -> Iterator[None]:
    """Around a call, or as its decorator: a fault of storage is raised as a `StorageFailed` that keeps it as its cause.

    An option that the storage's driver does not know is an `InvalidOption`. Errors of ours, and what is no fault of
    storage, pass as they are.
    """
    try:
        yield
    except Exception as error:
        if refuses_options(error):
            raise InvalidOption(
                f"The storage's driver does not take its options: {error}. Names are those of s3fs (key, secret, "
                "token, endpoint_url, client_kwargs, config_kwargs, …), in storage_options or as hoodie.storage.*"
            ) from error
        fault = fault_of(error)
        if fault is None:
            raise
        for note in getattr(error, "__notes__", ()):
            fault.add_note(note)
        raise fault from error


def typed_calls(client: _Client) -> _Client:
    """A class whose public methods raise faults of storage as errors of ours, by `typed_errors` around each, and show
    that they are under way when they take long."""
    for name, member in list(vars(client).items()):
        if isinstance(member, FunctionType) and (name == "__init__" or not name.startswith("_")):
            call = typed_errors()(member)
            setattr(client, name, call if name == "__init__" else reporting(name, call))
    return client


def fault_of(error: BaseException) -> StorageFailed | None:
    """The storage fault behind an error; None when it is an error of ours or does not come from storage."""
    if isinstance(error, HoodieError) or not (isinstance(error, OSError) or from_driver(error)):
        return None
    number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
    problem = _in_the_way(error) or f"{type(error).__name__}: {error}".rstrip(".")
    region, kind = wrong_region(error), _kind(error)
    if region is not None:
        kind, where = WrongRegion, f"the bucket is in {f'the region {region}' if region else 'another region'}"
    else:
        where = missing_bucket(error) if kind is BucketNotFound else ""
    if where and where not in problem:
        problem = f"{problem}: {where}"
    root = _root(error)
    return kind(number, f"{root}: {problem}" if root and root not in problem else problem)


def _root(error: BaseException) -> str:
    """The base path of the storage whose driver raised an error, which itself may name no path; "" for others."""
    part = error.__traceback__
    while part is not None:
        owner = part.tb_frame.f_locals.get("self")
        if isinstance(owner, UriStorage):
            return redacted_path(owner.root)
        part = part.tb_next
    return ""


def _in_the_way(error: BaseException) -> str:
    """What lies where the table has something else, if it is that."""
    if isinstance(error, IsADirectoryError) and error.filename:
        return (
            f"{os.fsdecode(error.filename)} is a folder, where the table has a file: move it away, and restore the file"
        )
    if isinstance(error, NotADirectoryError) and error.filename:
        return f"{os.fsdecode(error.filename)} leads through a file, where the table has a folder: move that file away"
    return ""


def _kind(error: BaseException) -> type[StorageFailed]:
    causes = list(chain(error))
    numbers = {cause.errno for cause in causes if isinstance(cause, OSError)}
    statuses = {status_of(cause) for cause in causes}
    if rejects_credentials(error):
        return CredentialsRejected
    if numbers & _FULL or 507 in statuses:
        return StorageFull
    if errno.ENAMETOOLONG in numbers:
        return NameTooLong
    if numbers & _DENIED or 403 in statuses or isinstance(error, PermissionError):
        return AccessDenied
    if no_bucket(error):
        return BucketNotFound
    if isinstance(error, FileNotFoundError) or 404 in statuses:
        return FileGone
    return StorageUnavailable if is_transient(error) else StorageFailed
