"""The storage of one write, which remembers the small base files that it has read: those in which it found keys are
read once more when they are rewritten."""

from __future__ import annotations

import io
import threading

from hoodie.storage.protocol import InputFile, Storage
from hoodie.storage.wrapped import WrappedStorage

_LARGEST = 1 << 20
_MOST = 32 << 20  # bytes together


class RememberingStorage(WrappedStorage):
    """Base files have names of their own and do not change: what was read of one holds as long as the write takes.

    Worth it where reading again means waiting for a network.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self._known: dict[str, bytes] = {}
        self._left = _MOST
        self._turn = threading.Lock()

    def __reduce__(self) -> tuple[type[RememberingStorage], tuple[Storage]]:
        return RememberingStorage, (self.inner,)

    def open_listed(self, path: str, size: int | None) -> InputFile:
        data = self._known.get(path)
        if data is None and size and size <= min(_LARGEST, self._left) and path.endswith(".parquet"):
            data = self.inner.read(path)
            if len(data) == size:
                self._remember(path, data)
        if data is None or len(data) != size:
            return super().open_listed(path, size)
        return io.BytesIO(data)

    def _remember(self, path: str, data: bytes) -> None:
        with self._turn:
            if path not in self._known:
                self._known[path] = data
                self._left -= len(data)
