"""A folder of a storage as a storage of its own: the table that lies within another."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Set

from hoodie.storage.protocol import Entry, Storage, check_file, check_path, join
from hoodie.storage.wrapped import WrappedStorage


class SubfolderStorage(WrappedStorage):
    """The files below a folder; paths are relative to it. Each call goes to the storage around it."""

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
        self, folder: str, sized: Callable[[Set[str]], Set[str]]
    ) -> tuple[builtins.list[Entry], builtins.list[str]]:
        return self.inner.list_some(self._folder(folder), sized)

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        above = len(self.folder) + 1
        return {path[above:]: files for path, files in super().list_tree(folder, skip).items()}
