"""How each fsspec driver publishes a file: what is atomic and exclusive differs, and a wrong guess loses commits.

fsspec's own `pipe_file(mode="create")` looks first and writes then, and some drivers ignore the mode: only drivers
whose behaviour is known create exclusively here.
"""

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hoodie.errors import UnsupportedTable
from hoodie.storage.protocol import OutputFile, temporary_beside
from hoodie.storage.retry import RetryingInput, retry

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
            drop_upload(file)
            raise

    def open_input(self, path: str, size: int | None) -> Any:
        """A file for random reads. size: of the file, where it is known"""
        # Parquet and log readers jump; the default block of some drivers is many times a footer.
        return RetryingInput(retry(lambda: self.fs.open(path, "rb", block_size=4 << 20)))

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
        files: dict[str, dict[str, Any]] = self.fs.find(path, detail=True)
        return files

    def remove_folders(self, path: str) -> None:
        """Remove what is left of a folder whose files are removed; object stores have nothing left."""


class MemoryDriver(Driver):
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


def drop_upload(file: Any) -> None:
    """Drop an upload. Closing would publish it, and so would the file's destructor."""
    discard = getattr(file, "discard", None)
    if discard is not None:
        discard()
    file.closed = True
