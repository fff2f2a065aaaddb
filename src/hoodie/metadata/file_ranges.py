"""How a file of the metadata table is read: whole, or only the parts that are needed, several of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from hoodie.storage.protocol import AT_ONCE, Storage, in_threads

#: A file up to this many bytes comes whole, with one request.
WHOLE = 1024 * 1024
#: The same of a file of which everything is needed.
WHOLE_OF_ALL = 16 * 1024 * 1024
#: Bytes that a request reads for nothing rather than that there is one more.
_GAP = 64 * 1024
_LONGEST = 4 * 1024 * 1024  # bytes of a request that ranges are joined to


@dataclass(frozen=True, slots=True)
class FileRanges:
    """A file, or a part of one, that is read by ranges: offset and length each.

    start    where the part begins in the file
    data     the file's bytes, where it has come whole
    at_once  requests at the same time, at most
    """

    storage: Storage
    path: str
    start: int = 0
    data: bytes | None = None
    at_once: int = AT_ONCE

    def __call__(self, offset: int, length: int) -> bytes:
        """Fewer bytes only at the end of the file."""
        begin = self.start + offset
        if self.data is not None:
            return self.data[begin : begin + length]
        return self.storage.read_range(self.path, begin, begin + length)

    def part(self, offset: int) -> FileRanges:
        """What begins there."""
        return replace(self, start=self.start + offset)

    def many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes | memoryview]:
        """The bytes of several ranges, which ascend and do not overlap."""
        if self.data is not None or len(ranges) < 2:
            return [self(offset, length) for offset, length in ranges]
        if not self.storage.remote:
            with self.storage.open_input(self.path) as file:  # once, not for each
                pieces: list[bytes | memoryview] = []
                for offset, length in ranges:
                    file.seek(self.start + offset)
                    pieces.append(file.read(length))
                return pieces
        requests = joined_ranges(ranges)
        return [piece for pieces in in_threads(self._read_together, requests, self.at_once) for piece in pieces]

    def _read_together(self, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """The bytes of ranges that one request reads."""
        first, _ = ranges[0]
        last, length = ranges[-1]
        data = memoryview(self(first, last + length - first))
        return [data[offset - first : offset - first + size] for offset, size in ranges]


def joined_ranges(ranges: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Ranges, by the request that reads them. ranges: ascending, without overlap"""
    number, begin, ends = 0, ranges[0][0], ranges[0][0]
    numbers = []
    for offset, length in ranges:
        if not 0 <= offset - ends <= _GAP or offset + length - begin > _LONGEST:
            number, begin = number + 1, offset
        ends = offset + length
        numbers.append(number)
    pairs = zip(numbers, ranges, strict=True)
    return [[range_ for _, range_ in group] for _, group in groupby(pairs, key=lambda pair: pair[0])]


def open_ranges(storage: Storage, path: str, size: int, *, whole: int = WHOLE, at_once: int = AT_ONCE) -> FileRanges:
    """How a file is read: from memory if it has up to `whole` bytes, else range by range."""
    return FileRanges(storage, path, data=storage.read(path) if size <= whole else None, at_once=at_once)
