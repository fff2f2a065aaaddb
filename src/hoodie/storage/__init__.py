"""The Storage protocol and what implements it. fsspec is imported with the first path that needs a driver of it."""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hoodie.config.driver_options import driver_options
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Entry, InputFile, OutputFile, Storage, is_temporary, join, split
from hoodie.storage.wrapped import WrappedStorage

if TYPE_CHECKING:
    from hoodie.storage.fsspec_store import FsspecStorage
    from hoodie.storage.hdfs import HdfsStorage

__all__ = [
    "Entry",
    "FsspecStorage",
    "HdfsStorage",
    "InputFile",
    "LocalStorage",
    "OutputFile",
    "Storage",
    "WrappedStorage",
    "is_temporary",
    "join",
    "split",
    "storage_at",
    "storage_beside",
    "storage_for",
]


def __getattr__(name: str) -> Any:
    match name:
        case "FsspecStorage":
            from hoodie.storage.fsspec_store import FsspecStorage

            return FsspecStorage
        case "HdfsStorage":
            from hoodie.storage.hdfs import HdfsStorage

            return HdfsStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]+):(?=/)")  # two letters at least: "C:/" is a drive


def storage_for(path_or_uri: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Storage:
    """The storage of the table at a path or URI.

    path_or_uri  a local path, in which ~ is the home folder, "file:///path" (as Hadoop takes it: nothing is
                 percent-decoded), or a URI that fsspec has a driver for: s3, s3a, gs, abfs, abfss, memory, ...; or one
                 of HDFS: hdfs, viewfs
    options      of that driver; a local table has none
    Raises       InvalidInput for a URI without "//", or a file's with a host; InvalidOption for a scheme without an
                 installed driver, or for options that are Hoodie's own
    """
    if ours := sorted(key for key in options or {} if key.startswith("hoodie.")):
        raise InvalidOption(f"{', '.join(ours)}: no option of a storage driver; give it in options")
    text = os.fspath(path_or_uri)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return LocalStorage(os.path.expanduser(text))
    path = text[scheme.end() :]
    if scheme[1].lower() not in ("file", "local"):
        if not path.startswith("//"):
            raise InvalidInput(f"{text}: expected {scheme[1]}://host-or-bucket/path")
        if scheme[1].lower() in ("hdfs", "viewfs"):
            from hoodie.storage.hdfs import HdfsStorage

            return HdfsStorage(text, options)
        from hoodie.storage.fsspec_store import FsspecStorage

        return FsspecStorage(text, options)
    if path.startswith("//"):
        host = urlsplit(text).netloc
        if host not in ("", "localhost"):
            raise InvalidInput(f"{text}: a file URI on another host; mount it, or write file:///path")
        path = path[2 + len(host) :]
    return LocalStorage(path)


def storage_at(
    path_or_uri: str | os.PathLike[str], options: Mapping[str, str], storage_options: Mapping[str, Any] | None = None
) -> Storage:
    """The storage of a table as a call names it.

    options          of the call: `hoodie.storage.*` are the driver's
    storage_options  of the driver, over those
    Raises           as `storage_for`; InvalidInput on `storage_options` that are no mapping
    """
    options_of_driver: Any = {} if storage_options is None else storage_options
    if not isinstance(options_of_driver, Mapping) or not all(isinstance(key, str) for key in options_of_driver):
        raise InvalidInput(
            f"storage_options={storage_options!r}: expected options of the driver by name, {{'key': '…'}}"
        )
    return storage_for(path_or_uri, {**driver_options(options), **options_of_driver})


def storage_beside(storage: Storage, path_or_uri: str) -> Storage:
    """The storage of another path, reached as a table's is: with the driver's options of the table's storage where the
    scheme is the same. Raises as `storage_for`
    """
    return storage_for(path_or_uri, storage.options_for(path_or_uri))
