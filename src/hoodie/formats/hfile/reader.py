"""Reads HFiles by ranges: all cells, those of some rows, or those whose rows begin alike. Both dialects are read.

Source: docs/format/metadata-table.md 2; pinned by tests/vectors/tiny_hfiles.json and tables of real Hudi.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hoodie.errors import CorruptFile
from hoodie.formats.hfile.blocks import DATA, INNER_INDEX, LEAF_INDEX, META, decode_block, decode_head
from hoodie.formats.hfile.cells import HFileCells, decode_cells, find_cells
from hoodie.formats.hfile.index import (
    BlockIndex,
    IndexEntry,
    decode_inner_index,
    joined_indexes,
    load_on_open,
    require_inside,
)
from hoodie.formats.hfile.trailer import TRAILER_SIZE, Trailer, decode_trailer

#: Reads `length` bytes at `offset`; fewer only at the end of the file.
_RangedRead = Callable[[int, int], bytes | memoryview]
#: Reads several ranges, offset and length each, which ascend and do not overlap: the bytes of each.
ManyRead = Callable[[Sequence[tuple[int, int]]], Sequence[bytes | memoryview]]

_TAIL = 64 * 1024  # the first read: trailer, file info and index of nearly all files
#: Up to so many rows are searched for in a block; for more of them all its cells are looked at.
_FEW = 8
_TOGETHER = 4 * 1024 * 1024  # blocks that lie side by side are one range, up to so many bytes
_AT_ONCE = 16 * 1024 * 1024  # bytes of ranges that are read before the first is decoded


@dataclass(frozen=True, slots=True, eq=False)
class HFile:
    """An HFile that is open for reading: what it says of itself is read, its cells are not.

    info   file info entries by name, such as "schema"
    index  the data blocks, in the order of their rows
    metas  the meta blocks by name
    """

    path: str
    size: int
    trailer: Trailer
    info: dict[str, bytes]
    index: BlockIndex
    metas: dict[str, IndexEntry]
    read: _RangedRead
    read_many: ManyRead

    def cells(self) -> Iterator[HFileCells]:
        """All cells, block by block. Raises CorruptFile"""
        count, last = 0, b""
        for cells in self._blocks(range(len(self.index))):
            if len(cells) and cells.rows[0] < last:
                raise CorruptFile(self.path, f"row {cells.rows[0]!r} comes after {last!r}")
            last = cells.rows[-1] if len(cells) else last
            count += len(cells)
            yield cells
        if count != self.trailer.cells:
            raise CorruptFile(self.path, f"{count} cells, where the trailer says {self.trailer.cells}")

    def rows(self, rows: Collection[bytes]) -> Iterator[HFileCells]:
        """The cells of some rows; only the blocks are read that may hold them. Raises CorruptFile"""
        keys_of_block: dict[int, list[bytes]] = {}
        ordered = sorted(frozenset(rows))
        for row, last in zip(ordered, self.index.last_of(ordered), strict=True):
            at = last
            while at >= 0:
                keys_of_block.setdefault(at, []).append(row)
                if self.index.row(at) != row:
                    break
                at -= 1  # a row with several cells may begin in the block before
        few: list[tuple[bytes, bytes]] = []
        for number, payload in self._payloads(sorted(keys_of_block)):
            names = keys_of_block[number]
            if len(names) <= _FEW:
                few += find_cells(payload, names, int(self.index.offsets[number]), self.path)
                continue
            if few:
                yield HFileCells.of(few)
                few = []
            cells, chosen = self._cells(self.index[number], payload), frozenset(names)
            places = np.array([at for at, row in enumerate(cells.rows) if row in chosen], np.int64)
            if len(places):
                yield cells.take(places)
        if few:
            yield HFileCells.of(few)

    def prefixed(self, prefix: bytes) -> Iterator[HFileCells]:
        """The cells whose rows begin with some bytes; blocks that cannot hold them are not read. Raises
        CorruptFile"""
        begin = self.index.last(prefix)
        while begin > 0 and self.index.row(begin) == prefix:
            begin -= 1
        begin, blocks = max(begin, 0), []
        for at in range(begin, len(self.index)):
            row = self.index.row(at)
            if at > begin and row > prefix and not row.startswith(prefix):
                break
            blocks.append(at)
        for cells in self._blocks(blocks):
            places = np.array([place for place, row in enumerate(cells.rows) if row.startswith(prefix)], np.int64)
            if len(places):
                yield cells.take(places)

    def meta(self, name: str) -> bytes | None:
        """The content of a meta block; None: there is none of that name. Raises CorruptFile"""
        entry = self.metas.get(name)
        if entry is None:
            return None
        data = self.read(entry.offset, entry.size)
        head, payload = decode_block(data, META, self.trailer.codec, entry.offset, self.path)
        if head.size != entry.size:
            raise CorruptFile(self.path, f"a meta block of {head.size} bytes, where its index says {entry.size}")
        return bytes(payload)

    def _blocks(self, numbers: Collection[int]) -> Iterator[HFileCells]:
        """The cells of some data blocks, in order."""
        for number, payload in self._payloads(numbers):
            yield self._cells(self.index[number], payload)

    def _cells(self, entry: IndexEntry, payload: memoryview) -> HFileCells:
        cells = decode_cells(payload, entry.offset, self.path)
        if len(cells) and cells.rows[0] < entry.row:
            raise CorruptFile(self.path, f"a block that begins before its index entry {entry.row!r}", entry.offset)
        return cells

    def _payloads(self, numbers: Collection[int]) -> Iterator[tuple[int, memoryview]]:
        """The content of some data blocks, in order. Those that lie side by side are read at once."""
        chosen = np.fromiter(numbers, np.int64, len(numbers))
        offsets, sizes = self.index.offsets[chosen], self.index.sizes[chosen]
        ends = offsets + sizes
        blocks = list(zip(chosen.tolist(), offsets.tolist(), sizes.tolist(), strict=True))
        begin, bytes_ = 0, 0
        runs: list[list[tuple[int, int, int]]] = []
        for end in [*(np.flatnonzero(ends[:-1] != offsets[1:]) + 1).tolist(), len(blocks)]:
            while begin < end:
                stop = end
                if end - begin > 1:
                    fitting = np.searchsorted(ends[begin:end], offsets[begin] + _TOGETHER, side="right")
                    stop = begin + max(1, int(fitting))
                length = int(ends[stop - 1] - offsets[begin])
                if bytes_ + length > _AT_ONCE:
                    yield from self._read(runs)
                    runs, bytes_ = [], 0
                runs.append(blocks[begin:stop])
                begin, bytes_ = stop, bytes_ + length
        yield from self._read(runs)

    def _read(self, runs: list[list[tuple[int, int, int]]]) -> Iterator[tuple[int, memoryview]]:
        """The content of data blocks, of which those of a run lie side by side: number, offset and size of each."""
        ranges = [(run[0][1], run[-1][1] + run[-1][2] - run[0][1]) for run in runs]
        for (start, _), run, read in zip(ranges, runs, self.read_many(ranges), strict=True):
            data = memoryview(read)
            for number, offset, size in run:
                piece = data[offset - start : offset - start + size]
                head, payload = decode_block(piece, DATA, self.trailer.codec, offset, self.path, by_gzip=True)
                if head.size != size:
                    raise CorruptFile(self.path, f"a block of {head.size} bytes, where the index says {size}", offset)
                yield number, payload


def open_hfile(read: _RangedRead, size: int, path: str, read_many: ManyRead | None = None) -> HFile:
    """Open an HFile: one read of its last 64 KiB, in nearly all files.

    read       ranged read of the file
    size       of the file, in bytes
    read_many  several ranges, where that is faster than one after the other
    Raises     CorruptFile; UnsupportedTable on a version, or a codec, that is not read
    """
    if size < TRAILER_SIZE:
        raise CorruptFile(path, f"{size} bytes are no HFile: its trailer alone has {TRAILER_SIZE}")
    start = size - min(size, _TAIL)
    exact, many = _exactly(read, size, path), _all_exactly(read, read_many, size, path)
    data = memoryview(exact(start, size - start))
    trailer = decode_trailer(bytes(data[-TRAILER_SIZE:]), size, path)
    if trailer.load_on_open < start:
        start = trailer.load_on_open
        data = memoryview(exact(start, size - start))
    view = data

    def within(offset: int, length: int) -> bytes | memoryview:
        if offset >= start and offset + length <= size:
            return view[offset - start : offset - start + length]
        return exact(offset, length)

    def several(ranges: Sequence[tuple[int, int]]) -> list[bytes | memoryview]:
        before = [at for at, (offset, length) in enumerate(ranges) if offset < start or offset + length > size]
        pieces = dict(zip(before, many([ranges[at] for at in before]), strict=True)) if before else {}
        return [pieces[at] if at in pieces else within(*range_) for at, range_ in enumerate(ranges)]

    own = load_on_open(bytes(data[trailer.load_on_open - start :]), trailer, path)
    index = own.index if trailer.levels == 1 else _descended(exact, own.index, trailer, path)
    return HFile(path, size, trailer, own.info, index, own.metas, within, several)


def _descended(read: _RangedRead, index: BlockIndex, trailer: Trailer, path: str) -> BlockIndex:
    """The data blocks that an index of several levels leads to."""
    parts = [index]
    for _ in range(trailer.levels - 1):
        parts = [_inner_index(read, entry, trailer, path) for part in parts for entry in part]
        for part in parts:
            require_inside(part, trailer, path)
    below = joined_indexes(parts, path)
    if (not len(below)) != (trailer.cells == 0):
        raise CorruptFile(path, f"{trailer.cells} cells in {len(below)} blocks")
    return below


def _inner_index(read: _RangedRead, entry: IndexEntry, trailer: Trailer, path: str) -> BlockIndex:
    data = read(entry.offset, entry.size)
    head = decode_head(data, entry.offset, path)
    if head.magic not in (LEAF_INDEX, INNER_INDEX):
        raise CorruptFile(path, f"a block {bytes(head.magic)!r} where one of the index should be", entry.offset)
    _, payload = decode_block(data, head.magic, trailer.codec, entry.offset, path)
    return decode_inner_index(payload, path)


def _exactly(read: _RangedRead, size: int, path: str) -> _RangedRead:
    def exact(offset: int, length: int) -> bytes | memoryview:
        return _of_length(read(offset, length), offset, length, size, path)

    return exact


def _all_exactly(read: _RangedRead, many: ManyRead | None, size: int, path: str) -> ManyRead:
    def exact(ranges: Sequence[tuple[int, int]]) -> list[bytes | memoryview]:
        pieces = [read(*range_) for range_ in ranges] if many is None else many(ranges)
        return [_of_length(piece, *range_, size, path) for piece, range_ in zip(pieces, ranges, strict=True)]

    return exact


def _of_length(data: bytes | memoryview, offset: int, length: int, size: int, path: str) -> bytes | memoryview:
    if len(data) != length:
        raise CorruptFile(path, f"{len(data)} bytes read where {length} of {size} were expected", offset)
    return data
