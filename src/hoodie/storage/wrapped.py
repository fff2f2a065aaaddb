"""Storages around another: with hooks for its calls, as one of its folders, with what was read of it remembered."""

from __future__ import annotations

import builtins
import io
import re
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, TypeVar

from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Entry, InputFile, OutputFile, Storage, check_file, check_path, join

T = TypeVar("T")


class WrappedStorage(Storage):
    """Hands every call on. A subclass overrides `mutate`, `observe` or both.

    `open_output` is two mutating calls: "open_output" when its block begins, "close_output" when it ends well.
    """

    def __init__(self, inner: Storage) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        """Around each call that may change a file; `name` is the method, `path` what it was given."""
        return call()

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        """Around each call that only looks."""
        return call()

    def _file(self, path: str) -> str:
        """The path that the storage within has for a file, or for a folder that is not the base path."""
        return path

    def _folder(self, path: str) -> str:
        """The path that the storage within has for a folder."""
        return path

    @property
    def root(self) -> str:
        return self.inner.root

    @property
    def remote(self) -> bool:
        return self.inner.remote

    def options_for(self, uri: str) -> Mapping[str, Any]:
        return self.inner.options_for(uri)

    def list(self, folder: str = "") -> list[Entry]:
        return self.observe("list", folder, lambda: self.inner.list(self._folder(folder)))

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        return self.observe("list_tree", folder, lambda: self.inner.list_tree(self._folder(folder), skip))

    def read(self, path: str) -> bytes:
        return self.observe("read", path, lambda: self.inner.read(self._file(path)))

    def read_range(self, path: str, start: int, end: int) -> bytes:
        return self.observe("read_range", path, lambda: self.inner.read_range(self._file(path), start, end))

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        return self.observe("open_input", path, lambda: self.inner.open_input(self._file(path), size))

    def size(self, path: str) -> int:
        return self.observe("size", path, lambda: self.inner.size(self._file(path)))

    def exists(self, path: str) -> bool:
        return self.observe("exists", path, lambda: self.inner.exists(self._file(path)))

    def create_new(self, path: str, data: bytes) -> None:
        self.mutate("create_new", path, lambda: self.inner.create_new(self._file(path), data))

    def create_ahead(self, path: str, data: bytes) -> None:
        if type(self).create_new is not WrappedStorage.create_new:
            self.create_new(path, data)
        else:
            self.mutate("create_new", path, lambda: self.inner.create_ahead(self._file(path), data))

    def write(self, path: str, data: bytes) -> None:
        self.mutate("write", path, lambda: self.inner.write(self._file(path), data))

    @contextmanager
    def open_output(self, path: str) -> Iterator[OutputFile]:
        block = self.inner.open_output(self._file(path))
        file = self.mutate("open_output", path, block.__enter__)
        try:
            yield file
        except BaseException:
            if not block.__exit__(*sys.exc_info()):
                raise
        else:
            self.mutate("close_output", path, lambda: block.__exit__(None, None, None))

    def delete(self, path: str) -> bool:
        return self.mutate("delete", path, lambda: self.inner.delete(self._file(path)))

    def discard(self, path: str) -> None:
        if type(self).delete is not WrappedStorage.delete:
            self.delete(path)
        else:
            self.mutate("delete", path, lambda: self.inner.discard(self._file(path)))

    def delete_tree(self, folder: str, paths: Collection[str] | None = None) -> None:
        files = None if paths is None else [self._file(path) for path in paths]
        self.mutate("delete_tree", folder, lambda: self.inner.delete_tree(self._file(folder), files))


def innermost(storage: Storage) -> Storage:
    """The storage within all others."""
    while isinstance(storage, WrappedStorage):
        storage = storage.inner
    return storage


def set_modified(storage: Storage, path: str, millis: int) -> bool:
    """Give a file the time of another one whose content it has; whether the storage can. millis: since 1970, UTC"""
    storage = innermost(storage)
    if not isinstance(storage, LocalStorage):
        return False
    storage.set_modified(path, millis)
    return True


class SubfolderStorage(WrappedStorage):
    """The files below a folder, such as those of a table within another. Each call goes to the storage around it."""

    def __init__(self, inner: Storage, folder: str) -> None:
        super().__init__(inner)
        self.folder = folder

    @property
    def root(self) -> str:
        return f"{self.inner.root.rstrip('/')}/{self.folder}"

    def _file(self, path: str) -> str:
        return join(self.folder, check_file(path))

    def _folder(self, path: str) -> str:
        return join(self.folder, check_path(path)) if path else self.folder

    def list_some(
        self, folder: str, names: Set[str], pattern: re.Pattern[str]
    ) -> tuple[builtins.list[Entry], builtins.list[str]]:
        return self.inner.list_some(self._folder(folder), names, pattern)

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        above = len(self.folder) + 1
        return {path[above:]: files for path, files in super().list_tree(folder, skip).items()}


_LARGEST = 1 << 20
_MOST = 32 << 20  # bytes together


class RememberingStorage(WrappedStorage):
    """The storage of one write, which remembers the small base files that it has read: those in which it found keys are
    read once more when they are rewritten. They do not change, so that this holds as long as the write takes.

    Worth it where reading again means waiting for a network.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._contents: dict[str, bytes] = {}
        self._space = _MOST
        self._turn = threading.Lock()

    def __reduce__(self) -> tuple[type[RememberingStorage], tuple[Storage]]:
        return RememberingStorage, (self.inner,)

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        data = self._contents.get(path)
        if data is None and size and size <= min(_LARGEST, self._space) and path.endswith(".parquet"):
            data = self.inner.read(path)
            if len(data) == size:
                self._remember(path, data)
        if data is None or len(data) != size:
            return super().open_input(path, size)
        return io.BytesIO(data)

    def _remember(self, path: str, data: bytes) -> None:
        with self._turn:
            if path not in self._contents:
                self._contents[path] = data
                self._space -= len(data)
