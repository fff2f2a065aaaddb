"""What hdfs-native's client does, on files in this process: folders that stay, files that show while they are written,
reads that panic beyond the end, a rename that is one step. For tests without a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


class PanicException(BaseException):  # as pyo3's, which is no Exception
    pass


@dataclass
class Status:
    path: str
    length: int = 0
    isdir: bool = False
    modification_time: int = field(default_factory=lambda: time.time_ns() // 1_000_000)


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        return self.data

    def read_range(self, start: int, count: int) -> bytes:
        if start + count > len(self.data):
            raise PanicException("Cannot read past end of the file")
        return self.data[start : start + count]


class Writer:
    def __init__(self, client: HdfsClient, path: str) -> None:
        self.client, self.path = client, path

    def write(self, data: bytes) -> int:
        with self.client.lock:
            if self.path not in self.client.files:
                raise RuntimeError('RPCError("org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException", "gone")')
            self.client.files[self.path] += bytes(data)
        return len(data)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class HdfsClient:
    """loses  renames that take place, and whose repetition is answered
    breaks  calls that find the connection broken
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.changed: dict[str, int] = {}
        self.folders: set[str] = {""}
        self.lock = threading.Lock()
        self.loses = self.breaks = 0

    def _connected(self) -> None:
        if self.breaks:
            self.breaks -= 1
            raise OSError("RPC listener disconnected")

    def get_file_info(self, path: str) -> Status:
        self._connected()
        with self.lock:
            if path in self.files:
                return Status(path, len(self.files[path]), modification_time=self.changed[path])
            if path.rstrip("/") in self.folders:
                return Status(path, isdir=True)
        raise FileNotFoundError(path)

    def list_status(self, path: str) -> Iterator[Status]:
        path = path.rstrip("/")
        found = self.get_file_info(path)
        if not found.isdir:
            return iter([found])
        with self.lock:
            names = [name for name in (*self.files, *self.folders) if name.rpartition("/")[0] == path and name]
        return iter([self.get_file_info(name) for name in names])

    def read(self, path: str) -> Reader:
        self._connected()
        if self.get_file_info(path).isdir:
            raise FileNotFoundError(f"Path is not a file: {path}\n\tat org.apache.hadoop.hdfs.INodeFile")
        with self.lock:
            return Reader(self.files[path])

    def create(self, path: str) -> Writer:
        self._connected()
        with self.lock:
            if path in self.files or path in self.folders:
                raise FileExistsError(path)
            parent = path
            while parent := parent.rpartition("/")[0]:
                self.folders.add(parent)
            self.files[path], self.changed[path] = b"", time.time_ns() // 1_000_000
        return Writer(self, path)

    def rename(self, source: str, target: str, overwrite: bool = False) -> None:
        self._connected()
        with self.lock:
            if target in self.folders or (target in self.files and not overwrite):
                raise FileExistsError(target)
            self.files[target], self.changed[target] = self.files.pop(source), self.changed.pop(source)
            if self.loses:
                self.loses -= 1
                raise FileNotFoundError(source)  # to the repetition

    def delete(self, path: str, recursive: bool = False) -> bool:
        self._connected()
        with self.lock:
            names = [name for name in (*self.files, *self.folders) if name == path or name.startswith(f"{path}/")]
            if len(names) > 1 and not recursive:
                raise RuntimeError('RPCError("org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", "not empty")')
            for name in names:
                self.files.pop(name, None)
                self.folders.discard(name)
        return bool(names)
