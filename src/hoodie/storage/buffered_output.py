"""A new file that is kept in memory until it is known to be long: a short one is put at once."""

import io
from collections.abc import Callable
from typing import Any

from hoodie.storage.retry import as_os_error


class BufferedOutput(io.RawIOBase):
    """A file to write from start to end.

    most     bytes that are kept
    begin    opens the file that what comes after goes into, and all that was kept
    content  the bytes of a file that is not longer than `most`
    stream   the file that `begin` opened; None while the bytes are kept. This does not close it
    """

    def __init__(self, most: int, begin: Callable[[], Any]) -> None:
        self._most, self._begin, self._size = most, begin, 0
        self.content = bytearray()
        self.stream: Any = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any, /) -> int:
        piece = memoryview(data).cast("B")
        self._size += len(piece)
        if self.stream is None and self._size <= self._most:
            self.content += piece
            return len(piece)
        with as_os_error():
            if self.stream is None:
                self.stream = self._begin()
                self.stream.write(bytes(self.content))
                self.content.clear()
            self.stream.write(piece)
        return len(piece)
