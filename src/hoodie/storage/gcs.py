"""Google Cloud Storage, through gcsfs."""

import errno
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from hoodie.storage.driver_errors import is_unreachable
from hoodie.storage.object_stores import ObjectStore
from hoodie.storage.retry import as_os_error, retry


class BucketMissing(FileNotFoundError):
    """The store has no such bucket."""

    error_code = "NoSuchBucket"  # as `driver_errors.no_bucket` asks for


class GCS(ObjectStore):
    """gcsfs has one error for a missing object and a missing bucket, and lists a folder where a size is asked for."""

    def __init__(self, fs: Any) -> None:
        super().__init__(fs, marks="metadata")
        once = getattr(getattr(type(fs), "_request", None), "__wrapped__", None)
        if once is not None and "_request" not in vars(fs):  # the driver keeps one object for the same options
            fs._request = once_until_answered(partial(once, fs), fs._request)

    def create(self, path: str, data: bytes) -> None:
        try:
            super().create(path, data)
        except FileNotFoundError as error:
            self._look_for_bucket(path, error)
            raise

    def overwrite(self, path: str, data: bytes) -> None:
        self.fs.pipe_file(path, data, **_upload_arguments(data))

    def read(self, path: str) -> bytes:
        try:
            return super().read(path)
        except FileNotFoundError as error:
            self._look_for_bucket(path, error)
            raise

    def size(self, path: str) -> int | None:
        try:
            return int(self._object(path)["size"])
        except FileNotFoundError:
            return None

    def head(self, path: str) -> tuple[Mapping[str, str] | None, int | None]:
        attributes = self._object(path)
        return attributes.get("metadata"), int(attributes["size"])

    def _upload(self, path: str, mark: str) -> Any:
        """Each part says where it belongs, and may come twice: gcsfs repeats it after errors, but not a time-out."""
        parts = super()._upload(path, mark)
        send = parts._upload_chunk
        parts._upload_chunk = lambda final=False: retry(lambda: send(final=final))
        return parts

    def _object(self, path: str) -> dict[str, Any]:
        """What the store says of an object. Raises FileNotFoundError."""
        bucket, key, _ = self.fs.split_path(path)
        attributes: dict[str, Any] = self.fs.call("GET", "b/{}/o/{}", bucket, key, json_out=True)
        return attributes

    def _put_new(self, path: str, data: bytes, mark: str) -> None:
        with as_os_error():
            self.fs.pipe_file(path, data, mode="create", **self._marked(mark), **_upload_arguments(data))

    def _look_for_bucket(self, path: str, missing: FileNotFoundError) -> None:
        """Raises BucketMissing when it is the bucket that is missing."""
        bucket = self.fs.split_path(path)[0]
        try:
            self.fs.call("GET", "b/{}/o", bucket, maxResults=1)  # a right that every table needs
        except FileNotFoundError:
            raise BucketMissing(errno.ENOENT, "The specified bucket does not exist", f"gs://{bucket}") from missing


def once_until_answered(once: Callable[..., Awaitable[Any]], often: Callable[..., Awaitable[Any]]) -> Any:
    """Has gcsfs repeat no request to a server that cannot be reached, until it has answered once: its waits double, and
    each of our own attempts would have them all.

    once   makes a request
    often  makes it, and again after errors
    """
    answered = False

    async def request(*arguments: Any, **named: Any) -> Any:
        nonlocal answered
        if not answered:
            try:
                answer = await once(*arguments, **named)
            except Exception as error:
                if is_unreachable(error):
                    raise
                answered = True
            else:
                answered = True
                return answer
        return await often(*arguments, **named)

    return request


def _upload_arguments(data: bytes) -> dict[str, Any]:
    """Arguments for a put of bytes that end with a carriage return. gcsfs puts a line feed and a boundary behind them,
    and a reader of MIME takes both characters for the end of a line: such bytes go up as an upload in one part."""
    return {"chunksize": len(data)} if data.endswith(b"\r") else {}
