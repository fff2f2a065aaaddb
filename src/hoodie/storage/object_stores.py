"""Object stores: one put is atomic and can be conditional, and an upload shows when it is complete."""

import errno
import inspect
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any
from uuid import uuid4

from hoodie.errors import UnsupportedTable
from hoodie.storage.buffered_output import BufferedOutput
from hoodie.storage.driver_errors import is_transient, is_unreachable, wrong_region
from hoodie.storage.drivers import Driver, drop_upload
from hoodie.storage.protocol import OutputFile, temporary_beside
from hoodie.storage.ranged_input import RangedInput
from hoodie.storage.retry import as_os_error, retry

#: A stream up to so many bytes is kept and put at once; a longer one goes up in parts of this size.
_PART = 8 << 20
#: A longer range is read by several requests of this size at once.
_RANGE = 4 << 20
_MARK = "hoodie-create"  # metadata key of the creator's mark; S3 lower-cases keys, HTTP forbids '_' in some proxies
_ATTEMPTS = 4
#: How often the completion of an upload is asked for; drivers wait a minute for each answer.
_COMPLETIONS = 10
#: How often it is looked whether an upload whose completion got no answer is there after all.
_LOOKS = 6
#: Answers that say the file was not created, so there is nothing to resolve.
_REFUSED = (PermissionError, FileNotFoundError, IsADirectoryError, NotADirectoryError, NotImplementedError, TypeError)
#: Endpoints and buckets of S3 that were seen to refuse it.
_REFUSE_WHAT_EXISTS: set[tuple[str, str]] = set()
_log = logging.getLogger("hoodie.storage")


class CreateOutcome(Enum):
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
                if (self.marks or in_doubt) and retry(lambda: self._look(path, data, mark)) is CreateOutcome.OURS:
                    return
                raise
            except _REFUSED as error:
                # An upload in parts is unknown once it is completed: the answer to that may have got lost.
                if isinstance(error, FileNotFoundError) and self._is_ours(path, mark, len(data)):
                    return
                raise
            except Exception as error:  # each driver has its own tree of network errors; all but the last are resolved
                if wrong_region(error) is not None:
                    raise
                in_doubt = True
                if self._is_stored(path, data, mark, error):
                    return
                if attempt == _ATTEMPTS:
                    raise
                time.sleep(0.2 * 2**attempt)
            else:
                return

    def find(self, path: str, beginning: str = "") -> dict[str, dict[str, Any]]:
        self.fs.invalidate_cache(path)
        files: dict[str, dict[str, Any]] = self.fs.find(path, detail=True, prefix=beginning)
        return files

    def open_input(self, path: str, size: int | None) -> Any:
        def ask() -> int:
            length = retry(lambda: self.size(path))
            if length is None:
                raise FileNotFoundError(path)
            return length

        def fetch(start: int, end: int) -> bytes:
            try:
                return self._parts(path, start, end)
            except FileNotFoundError as error:  # the store says "key", and not which
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
            except Exception:
                if start < ask():
                    raise
                return b""  # it has become shorter; stores refuse a range behind the end, each with its own error

        return RangedInput(path, fetch, ask, size)

    def _parts(self, path: str, start: int, end: int) -> bytes:
        """Bytes of a file; a long range by several requests at once."""
        if end - start <= _RANGE:
            return retry(lambda: self.read_range(path, start, end))
        starts = list(range(start, end, _RANGE))
        ends = [min(begin + _RANGE, end) for begin in starts]

        def at_once() -> list[bytes]:
            parts = self.fs.cat_ranges([path] * len(starts), starts, ends, on_error="raise")
            for part in parts:
                if isinstance(part, BaseException):  # older releases give it in place of the bytes all the same
                    raise part
            return list(parts)

        return b"".join(retry(at_once))

    @contextmanager
    def output(self, path: str) -> Iterator[OutputFile]:
        mark = uuid4().hex
        file = BufferedOutput(_PART, lambda: self._upload(path, mark))
        try:
            yield file
            if file.stream is None:
                retry(lambda: self.overwrite(path, bytes(file.content)))
            else:
                with as_os_error():
                    self._complete(file.stream, path, mark, file.tell())
        except BaseException:
            with suppress(Exception):  # what is left are parts of an upload, which the store's own rules remove
                drop_upload(file.stream)
            raise

    def _upload(self, path: str, mark: str) -> Any:
        """A file of the driver's that goes up in parts."""
        return self.fs.open(path, "wb", block_size=_PART, **self._marked(mark))

    def _complete(self, parts: Any, path: str, mark: str, size: int) -> None:
        """Have the store put the parts together. A driver asks several times; an answer that got lost or came too late
        is found out by looking."""
        try:
            parts.close()
        except Exception as error:
            if not self._appears(parts, path, mark, size, error):
                raise

    def _appears(self, parts: Any, path: str, mark: str, size: int, error: Exception) -> bool:
        """Whether the object is there after all, or soon: a store may go on with what it did not answer."""
        tries = _LOOKS if is_transient(error) else 1
        for attempt in range(1, tries + 1):
            try:
                if self._is_done(parts, path, mark, size):
                    return True
            except Exception as problem:  # the network is still down
                if not is_transient(problem):
                    raise
            if attempt < tries:
                _log.info("%s: the upload is not complete yet: %s", path, type(error).__name__)
                time.sleep(min(0.2 * 2**attempt, 10))
        return False

    def _is_done(self, parts: Any, path: str, mark: str, size: int) -> bool:
        """Whether the stored object is the one of this upload, and whole."""
        return self._is_ours(path, mark, size)

    def _is_ours(self, path: str, mark: str, size: int) -> bool:
        """Whether the stored object has the mark. Raises OSError when it has, and another size."""
        return bool(self.marks) and retry(lambda: self._look_for_mark(path, mark, size)) is CreateOutcome.OURS

    def _marked(self, mark: str) -> dict[str, Any]:
        return {self.marks: {_MARK: mark}} if self.marks else {}

    def _is_stored(self, path: str, data: bytes, mark: str, error: Exception) -> bool:
        try:
            outcome = self._look(path, data, mark)
        except Exception:  # the network is still down: `error` is raised after the last attempt
            return False
        if outcome is CreateOutcome.ANOTHERS:
            raise FileExistsError(path) from error
        return outcome is CreateOutcome.OURS

    def _put_new(self, path: str, data: bytes, mark: str) -> None:
        self.fs.pipe_file(path, data, mode="create", **self._marked(mark), **self.arguments)

    def _look(self, path: str, data: bytes, mark: str) -> CreateOutcome:
        if self.marks:
            return self._look_for_mark(path, mark, len(data))
        self.fs.invalidate_cache(path)
        try:
            return CreateOutcome.OURS if data and self.fs.cat_file(path) == data else CreateOutcome.ANOTHERS
        except FileNotFoundError:
            return CreateOutcome.ABSENT

    def _look_for_mark(self, path: str, mark: str, size: int) -> CreateOutcome:
        self.fs.invalidate_cache(path)
        try:
            metadata, stored = self.head(path)
        except FileNotFoundError:
            return CreateOutcome.ABSENT
        if (metadata or {}).get(_MARK) != mark:
            return CreateOutcome.ANOTHERS
        if stored not in (None, size):
            raise OSError(errno.EIO, f"the store holds {stored} bytes of {size} that were written", path)
        return CreateOutcome.OURS

    def head(self, path: str) -> tuple[Mapping[str, str] | None, int | None]:
        """What a put gave with the object, where the store has `marks`, and its size, where that costs no request more.

        Raises FileNotFoundError
        """
        return self.fs.metadata(path), None


class Azure(ObjectStore):
    """Azure, through adlfs, which sets metadata of its own: no room for a mark. Without repeats by the driver a refusal
    is certain."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs, retry_total=0)
        clients = getattr(fs, "service_client", None)
        for client in clients if isinstance(clients, list) else [clients]:
            policy = getattr(getattr(client, "_config", None), "retry_policy", None)
            if policy is not None and "send" not in vars(policy):
                give_up_the_unreachable(policy)

    def _upload(self, path: str, mark: str) -> Any:
        parts = super()._upload(path, mark)
        parts.replaces = retry(lambda: self._version(path))
        return parts

    def _is_done(self, parts: Any, path: str, mark: str, size: int) -> bool:
        version = retry(lambda: self._version(path))
        return version is not None and version != parts.replaces and version[1] == size

    def _version(self, path: str) -> tuple[str, int] | None:
        """What tells one content of an object from another, and its size; None when there is no object."""
        try:
            info = self.fs.info(path, refresh=True)
        except FileNotFoundError:
            return None
        return str(info.get("etag")), int(info["size"] or 0)

    def takes(self, path: str) -> bool:
        """The service makes a slash of a backslash, and adlfs takes the '?' at the end of a folder for a query's."""
        return "\\" not in path and not any(name.endswith("?") for name in path.split("/"))


def give_up_the_unreachable(policy: Any) -> None:
    """As `_told_at_once`, for the policy by which azure's client repeats calls."""
    send, increment, answered = policy.send, policy.increment, False

    async def looking(request: Any) -> Any:
        nonlocal answered
        response = await send(request)
        answered = True
        return response

    def again(settings: Any, request: Any, response: object = None, error: Exception | None = None) -> bool:
        nonlocal answered
        answered = answered or response is not None
        if error is not None and not answered and is_unreachable(error):
            return False
        return bool(increment(settings, request=request, response=response, error=error))

    policy.send, policy.increment = looking, again


def _told_at_once(connect: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Has botocore's client repeat no call to a server that cannot be reached, until it has answered once: its waits
    double, and each of our own attempts would have them all."""
    answered = False

    def look(response: object = None, caught_exception: Exception | None = None, **rest: Any) -> None:
        nonlocal answered
        answered = answered or response is not None
        if caught_exception is not None and not answered and is_unreachable(caught_exception):
            raise caught_exception

    async def set_session(*arguments: Any, **named: Any) -> Any:
        client = await connect(*arguments, **named)
        client.meta.events.register_first("needs-retry.s3", look, unique_id="hoodie")
        return client

    return set_session


class S3(ObjectStore):
    """S3 through s3fs, which asks for a size before it reads, and for a folder where a file is missing."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs, marks="Metadata")
        if "set_session" not in vars(fs):  # the driver keeps one object for all storages with the same options
            fs.set_session = _told_at_once(fs.set_session)
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

    def _upload(self, path: str, mark: str) -> Any:
        parts = super()._upload(path, mark)
        parts.autocommit = False  # closing it uploads the rest, and no more
        return parts

    def _complete(self, parts: Any, path: str, mark: str, size: int) -> None:
        """A store may take minutes over a long file, longer than a client waits for an answer. It does no harm to ask
        again: a completed upload is unknown, and the object has the mark."""
        parts.close()
        for attempt in range(1, _COMPLETIONS + 1):
            try:
                parts.commit()
                return
            except Exception as error:
                if self._has_mark(path, mark, size):
                    return
                if attempt == _COMPLETIONS or not is_transient(error):
                    raise
                _log.info("%s: the upload is not complete yet: %s", path, type(error).__name__)
            time.sleep(min(0.2 * 2**attempt, 10))

    def _has_mark(self, path: str, mark: str, size: int) -> bool:
        try:
            return self._is_ours(path, mark, size)
        except Exception as error:  # the network is still down; the completion is asked for again
            if not is_transient(error):
                raise
            return False

    def _refuses(self, path: str, data: bytes) -> bool:
        """Whether the store refuses to create a file that was created just now, which some that speak the protocol do
        not: there two writers would both succeed. False: there was no answer.

        Raises UnsupportedTable; the file is removed then
        """
        try:
            if not self._puts(path, data):
                return True
            probe = temporary_beside(path)  # nobody knows its name; somebody may have removed the other file meanwhile
            ignores = self._puts(probe, data) and self._puts(probe, data)
            self.fs.rm_file(probe)
        except Exception as error:  # the file is there all the same; the next create asks again
            _log.info("%s: whether creates are exclusive is not known yet: %s", path, type(error).__name__)
            return False
        self.fs.rm_file(path)
        if not ignores:
            return True
        raise UnsupportedTable(
            f"{path}: this store ignores If-None-Match: it creates a file over one that exists, so that two writers "
            "would both take one commit. Tables there can be read. Use a store (or a version of it) that keeps to it"
        )

    def _puts(self, path: str, data: bytes) -> bool:
        """Whether the store creates a file without a mark; else it refused to."""
        try:
            self._put_new(path, data, "")
        except FileExistsError:
            return False
        return True

    def read(self, path: str) -> bytes:
        data: bytes = self.fs.cat_file(path, **self._plainly)
        return data

    def find(self, path: str, beginning: str = "") -> dict[str, dict[str, Any]]:
        parent, _, name = path.rstrip("/").rpartition("/")
        if not beginning and parent:  # without a prefix the driver looks whether an empty folder is a file
            path, beginning = parent, f"{name}/"
        return super().find(path, beginning)

    def size(self, path: str) -> int | None:
        try:
            return self.head(path)[1]
        except FileNotFoundError:
            return None

    def head(self, path: str) -> tuple[Mapping[str, str] | None, int | None]:
        bucket, key, _ = self.fs.split_path(path)
        answer = self.fs.call_s3("head_object", Bucket=bucket, Key=key)
        return answer.get("Metadata"), int(answer["ContentLength"])
