"""A folder of a storage as a storage of its own: the table that lies within another."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import contextmanager

from hoodie.storage.protocol import Entry, InputFile, OutputFile, Storage, check_file, check_path, join
from hoodie.storage.wrapped import WrappedStorage


class SubfolderStorage(WrappedStorage):
    """The files below a folder; paths are relative to it. Each call goes to the storage around it."""

    def __init__(self, inner: Storage, folder: str) -> None:
        super().__init__(inner)
        self.folder = folder

    @property
    def root(self) -> str:
        return f"{self.inner.root.rstrip('/')}/{self.folder}"

    def _at(self, path: str) -> str:
        return join(self.folder, check_file(path))

    def _folder(self, path: str) -> str:
        return join(self.folder, check_path(path)) if path else self.folder

    def list(self, folder: str = "") -> list[Entry]:
        return self.inner.list(self._folder(folder))

    def list_some(
        self, folder: str, sized: Callable[[Set[str]], Set[str]]
    ) -> tuple[builtins.list[Entry], builtins.list[str]]:
        return self.inner.list_some(self._folder(folder), sized)

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        above = len(self.folder) + 1
        return {path[above:]: files for path, files in self.inner.list_tree(self._folder(folder), skip).items()}

    def read(self, path: str) -> bytes:
        return self.inner.read(self._at(path))

    def read_range(self, path: str, start: int, end: int) -> bytes:
        return self.inner.read_range(self._at(path), start, end)

    def open_input(self, path: str) -> InputFile:
        return self.inner.open_input(self._at(path))

    def open_listed(self, path: str, size: int | None) -> InputFile:
        return self.inner.open_listed(self._at(path), size)

    def size(self, path: str) -> int:
        return self.inner.size(self._at(path))

    def exists(self, path: str) -> bool:
        return self.inner.exists(self._at(path))

    def create_new(self, path: str, data: bytes) -> None:
        self.inner.create_new(self._at(path), data)

    def create_ahead(self, path: str, data: bytes) -> None:
        self.inner.create_ahead(self._at(path), data)

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(self._at(path), data)

    @contextmanager
    def open_output(self, path: str) -> Iterator[OutputFile]:
        with self.inner.open_output(self._at(path)) as file:
            yield file

    def delete(self, path: str) -> bool:
        return self.inner.delete(self._at(path))

    def discard(self, path: str) -> None:
        self.inner.discard(self._at(path))

    def delete_tree(self, folder: str) -> None:
        self.inner.delete_tree(self._at(folder))

    def delete_listed(self, folder: str, paths: Collection[str]) -> None:
        self.inner.delete_listed(self._at(folder), [self._at(path) for path in paths])
