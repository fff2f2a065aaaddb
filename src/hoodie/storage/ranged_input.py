"""A file in an object store, read by ranges: few for a footer and some columns, large ones for a whole file."""

import io
import threading
from collections.abc import Callable
from typing import Any

#: Reads the bytes [start, end) of the file. Fewer when the file ends before; raises FileNotFoundError.
_Fetch = Callable[[int, int], bytes]

#: A file up to this size comes with one request, and is kept while it is open.
_WHOLE = 1 << 20
#: The first read near the end takes this much: the footer of nearly all files, with a bloom filter of default size.
_TAIL = 512 << 10
#: What a request takes at least; it doubles with each read that goes on where the one before ended, up to _MOST.
_LEAST = 128 << 10
_MOST = 16 << 20


class RangedInput(io.RawIOBase):
    """A seekable file without a request before the first read. Several threads may read, each after a seek of its own.

    fetch   of the file
    size    bytes; None: `ask` is called when it is needed
    ask     the file's size; raises FileNotFoundError
    A file that is shorter than `size` raises an OSError without a number, as damage does.
    """

    def __init__(self, path: str, fetch: _Fetch, ask: Callable[[], int], size: int | None = None) -> None:
        super().__init__()
        self._path, self._fetch, self._ask, self._size = path, fetch, ask, size
        self._at = 0
        self._cache: tuple[int, bytes] = (0, b"")  # where they begin, and the bytes read last
        self._tail: tuple[int, bytes] = (0, b"")
        self._ended = -1  # where the last read ended
        self._window = _LEAST
        self._lock = threading.RLock()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0, /) -> int:
        with self._lock:
            self._open()
            start = {0: 0, 1: self._at}[whence] if whence != 2 else self.size()
            if start + offset < 0:
                raise ValueError(f"{self._path}: no position {start + offset}")
            self._at = start + offset
            return self._at

    def size(self) -> int:
        """Bytes in the file."""
        if self._size is None:
            self._size = self._ask()
        return self._size

    def read(self, size: int | None = -1, /) -> bytes:
        with self._lock:
            self._open()
            whole, remaining = self.size(), max(0, self.size() - self._at)
            count = remaining if size is None or size < 0 else min(size, remaining)
            if not count:
                return b""
            start, end = self._at, self._at + count
            data = self._from_memory(start, end)
            if data is None:
                data = self._read(start, end, whole)
            self._at = self._ended = end
            return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._cache = self._tail = (0, b"")
        super().close()

    def _open(self) -> None:
        if self.closed:
            raise ValueError(f"{self._path}: read of a closed file")

    def _from_memory(self, start: int, end: int) -> bytes | None:
        for begin, data in (self._cache, self._tail):
            if begin <= start and end <= begin + len(data):
                return data[start - begin : end - begin]
        return None

    def _read(self, start: int, end: int, size: int) -> bytes:
        if size <= _WHOLE:
            self._tail = (0, self._read_exactly(0, size))
            return self._tail[1][start:end]
        if not self._tail[1] and start >= size - _TAIL:
            begin = min(start, size - _TAIL)
            self._tail = (begin, self._read_exactly(begin, size))
            return self._tail[1][start - begin : end - begin]
        self._window = min(2 * self._window, _MOST) if start == self._ended else _LEAST
        begin, cached = self._cache
        prefix = cached[start - begin :] if begin <= start < begin + len(cached) else b""
        after = start + len(prefix)
        upto = max(end, min(after + self._window, size))
        if end - start >= _MOST:  # as large as a request gets: nothing is kept of it
            return prefix + self._read_exactly(after, end)
        data = prefix + self._read_exactly(after, upto)
        self._cache = (start, data)
        return data[: end - start]

    def _read_exactly(self, start: int, end: int) -> bytes:
        data = self._fetch(start, end)
        if len(data) != end - start:
            raise OSError(f"{self._path} ends at byte {start + len(data)}, and {self.size()} bytes were listed")
        return data
