"""How each fsspec driver publishes a file: what is atomic and exclusive differs, and a wrong guess loses commits.

fsspec's own `pipe_file(mode="create")` looks first and writes then, and some drivers ignore the mode: only drivers
whose behaviour is known create exclusively here.
"""

from __future__ import annotations

import errno
import inspect
import io
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any
from uuid import uuid4

from hoodie.errors import UnsupportedTable
from hoodie.storage.protocol import OutputFile, temporary_beside
from hoodie.storage.ranged import RangedInput
from hoodie.storage.retry import RetryingInput, retrying

#: A stream up to so many bytes is kept and put at once; a longer one goes up in parts of this size.
_PART = 8 << 20
#: A longer range is read by several requests of this size at once.
_RANGE = 4 << 20
_MARK = "hoodie-create"  # metadata key of the creator's mark; S3 lower-cases keys, HTTP forbids '_' in some proxies
_ATTEMPTS = 4
#: Answers that say the file was not created, so there is nothing to resolve.
_REFUSED = (PermissionError, FileNotFoundError, IsADirectoryError, NotADirectoryError, NotImplementedError, TypeError)
#: Endpoints and buckets of S3 that were seen to refuse it.
_REFUSE_WHAT_EXISTS: set[tuple[str, str]] = set()
_log = logging.getLogger("hoodie.storage")
_IN_MEMORY = threading.Lock()  # fsspec's memory files are one store a process, whatever the instance


class Driver:
    """Publishing through an unknown fsspec driver: no exclusive create. Paths are the driver's.

    remote   whether each call waits for a network
    folders  whether folders exist by themselves
    """

    remote = True
    folders = True

    def __init__(self, fs: Any) -> None:
        self.fs = fs

    def takes(self, path: str) -> bool:
        """Whether the store keeps this name as it is: a file written under it is listed under it."""
        return True

    def create(self, path: str, data: bytes) -> None:
        raise UnsupportedTable(
            f"{path}: {type(self.fs).__module__}.{type(self.fs).__name__} is not known to create a file only if it is "
            "absent, which every commit needs. Tables there can be read. Write to a local or mounted disk, S3, GCS, "
            "Azure, or HDFS by hdfs://"
        )

    def overwrite(self, path: str, data: bytes) -> None:
        self.fs.pipe_file(path, data)

    @contextmanager
    def output(self, path: str) -> Iterator[OutputFile]:
        file = self.fs.open(path, "wb")
        try:
            yield file
            file.close()
        except BaseException:
            _abandon(file)
            raise

    def open_input(self, path: str, size: int | None) -> Any:
        """A file for random reads. size: of the file, where it is known"""
        # Parquet and log readers jump; the default block of some drivers is many times a footer.
        return RetryingInput(retrying(lambda: self.fs.open(path, "rb", block_size=4 << 20)))

    def read(self, path: str) -> bytes:
        data: bytes = self.fs.cat_file(path)
        return data

    def read_range(self, path: str, start: int, end: int) -> bytes:
        """Raises what the driver has for a range that begins behind the end."""
        data: bytes = self.fs.cat_file(path, start=start, end=end)
        return data

    def size(self, path: str) -> int | None:
        """Bytes in a file; None when there is none at the path."""
        self.fs.invalidate_cache(path)
        try:
            info: dict[str, Any] = self.fs.info(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return int(info["size"]) if info["type"] == "file" else None

    def find(self, path: str, beginning: str = "") -> dict[str, dict[str, Any]]:
        """The files at any depth below a folder, by the driver's path; empty when it is missing.

        beginning  only those whose path goes on so, behind the folder's; of stores without folders
        """
        self.fs.invalidate_cache(path)
        found: dict[str, dict[str, Any]] = self.fs.find(path, detail=True)
        return found

    def remove_folders(self, path: str) -> None:
        """Remove what is left of a folder whose files are removed; object stores have nothing left."""


class TaskResults(Enum):
    """The outcome, by reading back, of a create whose response is missing or in doubt."""

    OURS = 1
    ANOTHERS = 2
    ABSENT = 3


class ObjectStore(Driver):
    """Stores where one put is atomic and can be conditional, and an upload shows when it is complete.

    marks     whether objects keep metadata that this class can set and read: S3 and GCS
    arguments for the driver's conditional put
    """

    folders = False

    def __init__(self, fs: Any, marks: str = "", **arguments: Any) -> None:
        super().__init__(fs)
        self.marks, self.arguments = marks, arguments

    def create(self, path: str, data: bytes) -> None:
        """Drivers repeat a put whose answer got lost, and then the store refuses our own object: so FileExistsError is
        in doubt as a time-out is, and the mark in the object decides. Repeating with the same mark is harmless."""
        mark, in_doubt = uuid4().hex, False
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._put_new(path, data, mark)
            except FileExistsError:
                if (self.marks or in_doubt) and retrying(lambda: self._look(path, data, mark)) is TaskResults.OURS:
                    return
                raise
            except _REFUSED as error:
                # An upload in parts is unknown once it is completed: the answer to that may have got lost.
                if isinstance(error, FileNotFoundError) and self.is_ours(path, mark):
                    return
                raise
            except Exception as error:  # each driver has its own tree of network errors; all but the last are resolved
                in_doubt = True
                if self._settled(path, data, mark, error):
                    return
                if attempt == _ATTEMPTS:
                    raise
                time.sleep(0.2 * 2**attempt)
            else:
                return

    def find(self, path: str, beginning: str = "") -> dict[str, dict[str, Any]]:
        self.fs.invalidate_cache(path)
        found: dict[str, dict[str, Any]] = self.fs.find(path, detail=True, prefix=beginning)
        return found

    def open_input(self, path: str, size: int | None) -> Any:
        def ask() -> int:
            known = retrying(lambda: self.size(path))
            if known is None:
                raise FileNotFoundError(path)
            return known

        def fetch(start: int, end: int) -> bytes:
            try:
                return self._parts(path, start, end)
            except FileNotFoundError as gone:  # the store says "key", and not which
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from gone
            except Exception:
                if start < ask():
                    raise
                return b""  # it has become shorter; stores refuse a range behind the end, each with its own error

        return RangedInput(path, fetch, ask, size)

    def _parts(self, path: str, start: int, end: int) -> bytes:
        """Bytes of a file; a long range by several requests at once."""
        if end - start <= _RANGE:
            return retrying(lambda: self.read_range(path, start, end))
        starts = list(range(start, end, _RANGE))
        ends = [min(begin + _RANGE, end) for begin in starts]

        def at_once() -> list[bytes]:
            parts = self.fs.cat_ranges([path] * len(starts), starts, ends, on_error="raise")
            for part in parts:
                if isinstance(part, BaseException):  # older releases give it in place of the bytes all the same
                    raise part
            return list(parts)

        return b"".join(retrying(at_once))

    @contextmanager
    def output(self, path: str) -> Iterator[OutputFile]:
        upload = _Upload(self, path)
        try:
            yield upload
            upload.finish()
        except BaseException:
            upload.abandon()
            raise

    def begin_parts(self, path: str, mark: str) -> Any:
        """A file of the driver's, uploaded in parts, that shows once it is closed."""
        return self.fs.open(path, "wb", block_size=_PART, **self._marked(mark))

    def is_ours(self, path: str, mark: str) -> bool:
        """Whether the stored object has the mark."""
        return bool(self.marks) and retrying(lambda: self._look(path, b"", mark)) is TaskResults.OURS

    def _marked(self, mark: str) -> dict[str, Any]:
        return {self.marks: {_MARK: mark}} if self.marks else {}

    def _settled(self, path: str, data: bytes, mark: str, error: Exception) -> bool:
        try:
            outcome = self._look(path, data, mark)
        except Exception:  # the network is still down: `error` is raised after the last attempt
            return False
        if outcome is TaskResults.ANOTHERS:
            raise FileExistsError(path) from error
        return outcome is TaskResults.OURS

    def _put_new(self, path: str, data: bytes, mark: str) -> None:
        self.fs.pipe_file(path, data, mode="create", **self._marked(mark), **self.arguments)

    def _look(self, path: str, data: bytes, mark: str) -> TaskResults:
        self.fs.invalidate_cache(path)
        try:
            if self.marks:
                return TaskResults.OURS if self._mark_of(path) == mark else TaskResults.ANOTHERS
            return TaskResults.OURS if data and self.fs.cat_file(path) == data else TaskResults.ANOTHERS
        except FileNotFoundError:
            return TaskResults.ABSENT

    def _mark_of(self, path: str) -> str | None:
        """The mark of the creator; None without one. Raises FileNotFoundError."""
        s3 = self.marks == "Metadata"
        metadata = self.fs.metadata(path) if s3 else self.fs.info(path).get("metadata")
        mark: str | None = (metadata or {}).get(_MARK)
        return mark


class Azure(ObjectStore):
    """Azure, through adlfs, which sets metadata of its own: no room for a mark. Without repeats by the driver a refusal
    is certain."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs, retry_total=0)

    def takes(self, path: str) -> bool:
        """The service makes a slash of a backslash, and adlfs takes the '?' at the end of a folder for a query's."""
        return "\\" not in path and not any(name.endswith("?") for name in path.split("/"))


class S3(ObjectStore):
    """S3 through s3fs, which asks for a size before it reads, and for a folder where a file is missing."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs, marks="Metadata")
        asks = "max_concurrency" in inspect.signature(type(fs)._cat_file).parameters
        self._plainly = {"max_concurrency": 1} if asks else {}

    def create(self, path: str, data: bytes) -> None:
        super().create(path, data)
        place = (
            str(self.fs.client_kwargs.get("endpoint_url") or self.fs.endpoint_url or ""),
            self.fs.split_path(path)[0],
        )
        if place not in _REFUSE_WHAT_EXISTS and self._refuses(path, data):
            _REFUSE_WHAT_EXISTS.add(place)

    def _refuses(self, path: str, data: bytes) -> bool:
        """Whether the store refuses to create a file that was created just now, which some that speak the protocol do
        not: there two writers would both succeed. False: there was no answer.

        Raises UnsupportedTable; the file is removed then
        """
        try:
            self._put_new(path, data, "")
        except FileExistsError:
            return True
        except Exception as error:  # the file is there all the same; the next create asks again
            _log.info("%s: whether creates are exclusive is not known yet: %s", path, type(error).__name__)
            return False
        self.fs.rm_file(path)
        raise UnsupportedTable(
            f"{path}: this store ignores If-None-Match: it creates a file over one that exists, so that two writers "
            "would both take one commit. Tables there can be read. Use a store (or a version of it) that keeps to it"
        )

    def read(self, path: str) -> bytes:
        data: bytes = self.fs.cat_file(path, **self._plainly)
        return data

    def find(self, path: str, beginning: str = "") -> dict[str, dict[str, Any]]:
        parent, _, name = path.rstrip("/").rpartition("/")
        if not beginning and parent:  # without a prefix the driver looks whether an empty folder is a file
            path, beginning = parent, f"{name}/"
        return super().find(path, beginning)

    def size(self, path: str) -> int | None:
        bucket, key, _ = self.fs.split_path(path)
        try:
            return int(self.fs.call_s3("head_object", Bucket=bucket, Key=key)["ContentLength"])
        except FileNotFoundError:
            return None


class _Upload(io.RawIOBase):
    """A stream into an object store."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        self._store, self._path, self._mark = store, path, uuid4().hex
        self._begun = bytearray()
        self._parts: Any = None
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any, /) -> int:
        piece = memoryview(data).cast("B")
        self._size += len(piece)
        if self._parts is None and len(self._begun) + len(piece) <= _PART:
            self._begun += piece
            return len(piece)
        if self._parts is None:
            self._parts = self._store.begin_parts(self._path, self._mark)
            self._parts.write(bytes(self._begun))
            self._begun.clear()
        self._parts.write(piece)
        return len(piece)

    def finish(self) -> None:
        if self._parts is None:
            data = bytes(self._begun)
            retrying(lambda: self._store.overwrite(self._path, data))
            return
        try:
            self._parts.close()
        except Exception:  # the answer to the completion may have got lost, and its repetition refused
            if not self._store.is_ours(self._path, self._mark):
                raise

    def abandon(self) -> None:
        if self._parts is not None:
            with suppress(Exception):  # what is left are parts of an upload, which the store's own rules remove
                _abandon(self._parts)


class Memory(Driver):
    """fsspec's memory files: they show while they are written, and creating looks first. One lock makes it atomic."""

    remote = False

    def create(self, path: str, data: bytes) -> None:
        with _IN_MEMORY:
            self.fs.pipe_file(path, data, mode="create")

    def overwrite(self, path: str, data: bytes) -> None:
        with _IN_MEMORY:
            self.fs.pipe_file(path, data)

    @contextmanager
    def output(self, path: str) -> Iterator[OutputFile]:
        buffer = io.BytesIO()
        yield buffer
        self.overwrite(path, buffer.getvalue())

    def open_input(self, path: str, size: int | None) -> Any:
        return io.BytesIO(self.fs.cat_file(path))  # all openers of the driver's file would share one position


class Renaming(Driver):
    """File systems with folders, where a file shows while it is written but a move is atomic."""

    def create(self, path: str, data: bytes) -> None:
        if self.fs.exists(path):  # saves the write; the move decides
            raise FileExistsError(path)
        temporary = self._put_temporary(path, data)
        try:
            self.move_new(temporary, path)
        except Exception:
            # The answer to our move may have got lost and its repetition refused: nobody else moves our file away.
            if self.fs.exists(temporary) or not self.fs.exists(path):
                raise
        finally:
            with suppress(FileNotFoundError):
                self.fs.rm_file(temporary)

    def overwrite(self, path: str, data: bytes) -> None:
        self.replace(self._put_temporary(path, data), path)

    @contextmanager
    def output(self, path: str) -> Iterator[OutputFile]:
        self.make_parents(path)
        temporary = temporary_beside(path)
        file = self.fs.open(temporary, "wb")
        try:
            yield file
            file.close()
            self.replace(temporary, path)
        except BaseException:
            file.close()
            with suppress(FileNotFoundError):
                self.fs.rm_file(temporary)
            raise

    def _put_temporary(self, path: str, data: bytes) -> str:
        self.make_parents(path)
        temporary = temporary_beside(path)
        with self.fs.open(temporary, "wb") as file:
            file.write(data)
        return temporary

    def make_parents(self, path: str) -> None:
        self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)

    def move_new(self, temporary: str, path: str) -> None:
        """Move unless the name is taken: FileExistsError."""
        raise NotImplementedError

    def replace(self, temporary: str, path: str) -> None:
        raise NotImplementedError

    def remove_folders(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.fs.rm(path, recursive=True)


class LocalFiles(Renaming):
    """fsspec's local files; `hoodie.storage.local` is what tables on disk use."""

    remote = False

    def move_new(self, temporary: str, path: str) -> None:
        os.link(temporary, path)

    def replace(self, temporary: str, path: str) -> None:
        os.replace(temporary, path)


def driver_for(fs: Any) -> Driver:
    """The way to publish through a file system, by the package that its class, or a base of it, comes from."""
    for base in type(fs).__mro__:
        match base.__module__.split("."):
            case ["s3fs", *_]:
                return S3(fs)
            case ["gcsfs", *_]:
                return ObjectStore(fs, marks="metadata")
            case ["adlfs", *_]:
                return Azure(fs)
            case ["fsspec", "implementations", "memory"]:
                return Memory(fs)
            case ["fsspec", "implementations", "local"]:
                return LocalFiles(fs)
    return Driver(fs)


def _abandon(file: Any) -> None:
    """Drop an upload. Closing would publish it, and so would the file's destructor."""
    discard = getattr(file, "discard", None)
    if discard is not None:
        discard()
    file.closed = True
