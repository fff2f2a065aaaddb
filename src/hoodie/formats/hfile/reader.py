"""Reads HFiles by ranges: all cells, those of some rows, or those whose rows begin alike. Both dialects are read.

Source: docs/format/metadata-table.md 2; pinned by tests/vectors/tiny_hfiles.json and tables of real Hudi.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from hoodie.errors import CorruptFile
from hoodie.formats.hfile.blocks import (
    DATA,
    FILE_INFO,
    HEADER_SIZE,
    INNER_INDEX,
    LEAF_INDEX,
    META,
    ROOT_INDEX,
    decode_block,
    decode_head,
)
from hoodie.formats.hfile.cells import (
    Cells,
    IndexEntry,
    decode_cells,
    decode_inner_index,
    decode_root_index,
    find_cells,
    index_end,
)
from hoodie.formats.hfile.trailer import TRAILER_SIZE, Trailer, decode_file_info, decode_trailer

#: Reads `length` bytes at `offset`; fewer only at the end of the file.
RangedRead = Callable[[int, int], bytes | memoryview]

_TAIL = 64 * 1024  # the first read: trailer, file info and index of nearly all files
#: Up to so many rows are searched for in a block; for more of them all its cells are looked at.
_FEW = 8
_TOGETHER = 4 * 1024 * 1024  # blocks that lie side by side are read at once, up to so many bytes


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
    index: tuple[IndexEntry, ...]
    metas: dict[str, IndexEntry]
    read: RangedRead

    def cells(self) -> Iterator[Cells]:
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

    def rows(self, rows: Collection[bytes]) -> Iterator[Cells]:
        """The cells of some rows; only the blocks are read that may hold them. Raises CorruptFile"""
        firsts = [entry.row for entry in self.index]
        wanted: dict[int, list[bytes]] = {}
        for row in sorted(frozenset(rows)):
            at = bisect_right(firsts, row) - 1
            while at >= 0:
                wanted.setdefault(at, []).append(row)
                if firsts[at] != row:
                    break
                at -= 1  # a row with several cells may begin in the block before
        for number, payload in self._payloads(sorted(wanted), by_gzip=True):
            entry, names = self.index[number], wanted[number]
            if len(names) <= _FEW:
                cells = find_cells(payload, names, entry.offset, self.path)
            else:
                cells, chosen = self._cells(entry, payload), frozenset(names)
                cells = cells.take(np.array([at for at, row in enumerate(cells.rows) if row in chosen], np.int64))
            if len(cells):
                yield cells

    def prefixed(self, prefix: bytes) -> Iterator[Cells]:
        """The cells whose rows begin with some bytes; blocks that cannot hold them are not read. Raises
        CorruptFile"""
        firsts = [entry.row for entry in self.index]
        begin = bisect_right(firsts, prefix) - 1
        while begin > 0 and firsts[begin] == prefix:
            begin -= 1
        begin = max(begin, 0)
        blocks = [
            at
            for at in range(begin, len(firsts))
            if at == begin or firsts[at] <= prefix or firsts[at].startswith(prefix)
        ]
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

    def _blocks(self, numbers: Collection[int]) -> Iterator[Cells]:
        """The cells of some data blocks, in order."""
        for number, payload in self._payloads(numbers):
            yield self._cells(self.index[number], payload)

    def _cells(self, entry: IndexEntry, payload: memoryview) -> Cells:
        cells = decode_cells(payload, entry.offset, self.path)
        if len(cells) and cells.rows[0] < entry.row:
            raise CorruptFile(self.path, f"a block that begins before its index entry {entry.row!r}", entry.offset)
        return cells

    def _payloads(self, numbers: Collection[int], *, by_gzip: bool = False) -> Iterator[tuple[int, memoryview]]:
        """The content of some data blocks, in order."""
        run: list[int] = []
        size = 0
        for number in numbers:
            entry = self.index[number]
            before = self.index[run[-1]] if run else None
            beside = before is not None and before.offset + before.size == entry.offset
            if run and (not beside or size + entry.size > _TOGETHER):
                yield from self._run(run, by_gzip)
                run, size = [], 0
            run.append(number)
            size += entry.size
        if run:
            yield from self._run(run, by_gzip)

    def _run(self, numbers: list[int], by_gzip: bool) -> Iterator[tuple[int, memoryview]]:
        """The content of data blocks that lie side by side."""
        last = self.index[numbers[-1]]
        start = self.index[numbers[0]].offset
        data = memoryview(self.read(start, last.offset + last.size - start))
        for number in numbers:
            entry = self.index[number]
            piece = data[entry.offset - start : entry.offset - start + entry.size]
            head, payload = decode_block(piece, DATA, self.trailer.codec, entry.offset, self.path, by_gzip=by_gzip)
            if head.size != entry.size:
                raise CorruptFile(
                    self.path, f"a block of {head.size} bytes, where the index says {entry.size}", entry.offset
                )
            yield number, payload


def open_hfile(read: RangedRead, size: int, path: str) -> HFile:
    """Open an HFile: one read of its last 64 KiB, in nearly all files.

    read    ranged read of the file
    size    of the file, in bytes
    Raises  CorruptFile; UnsupportedTable on a version, or a codec, that is not read
    """
    if size < TRAILER_SIZE:
        raise CorruptFile(path, f"{size} bytes are no HFile: its trailer alone has {TRAILER_SIZE}")
    tail = min(size, _TAIL)
    exact = _exactly(read, size, path)
    data = exact(size - tail, tail)
    trailer = decode_trailer(data[tail - TRAILER_SIZE :], size, path)
    if trailer.load_on_open < size - tail:
        data = exact(trailer.load_on_open, size - trailer.load_on_open)
        tail = len(data)
    view, start = memoryview(data), size - tail

    def within(offset: int, length: int) -> bytes | memoryview:
        if offset >= start and offset + length <= size:
            return view[offset - start : offset - start + length]
        return exact(offset, length)

    at, codec = trailer.load_on_open, trailer.codec
    end = size - TRAILER_SIZE
    head, root = decode_block(within(at, end - at), ROOT_INDEX, codec, at, path)
    entries = decode_root_index(root, trailer.index_entries, path)
    used = index_end(root, trailer.index_entries, path)
    if trailer.levels == 1 and used != len(root):
        raise CorruptFile(path, f"an index of {len(root)} bytes, of which its entries take {used}", at)
    at += head.size
    head, metas = decode_block(within(at, end - at), ROOT_INDEX, codec, at, path)
    meta_entries = decode_root_index(metas, trailer.meta_entries, path, names=True)
    if index_end(metas, trailer.meta_entries, path) != len(metas):
        raise CorruptFile(path, f"an index of meta blocks of {len(metas)} bytes with more than its entries", at)
    _, payload = decode_block(
        within(trailer.file_info, end - trailer.file_info), FILE_INFO, codec, trailer.file_info, path
    )
    info = decode_file_info(payload, path)
    if int.from_bytes(info.get("MAX_MEMSTORE_TS_KEY", b""), "big") > 0:
        raise CorruptFile(path, "an HFile with cells of transactions")
    if trailer.levels > 1:
        entries = list(_descended(exact, entries, trailer, path))
    for entry in (*entries, *meta_entries):
        if entry.size < HEADER_SIZE or not 0 <= entry.offset <= trailer.load_on_open - entry.size:
            raise CorruptFile(path, f"an index entry of {entry.size} bytes at {entry.offset}, outside of the blocks")
    if (not entries) != (trailer.cells == 0):
        raise CorruptFile(path, f"{trailer.cells} cells in {len(entries)} blocks")
    named = {entry.row.decode("utf-8", "replace"): entry for entry in meta_entries}
    return HFile(path, size, trailer, info, tuple(entries), named, within)


def _descended(read: RangedRead, entries: list[IndexEntry], trailer: Trailer, path: str) -> Iterator[IndexEntry]:
    """The data blocks that an index of several levels leads to."""
    pending = [(entry, 1) for entry in reversed(entries)]
    while pending:
        entry, depth = pending.pop()
        if not 0 <= entry.offset <= trailer.load_on_open - entry.size or entry.size < HEADER_SIZE:
            raise CorruptFile(path, f"an index entry of {entry.size} bytes at {entry.offset}, outside of the blocks")
        if depth == trailer.levels:
            yield entry
            continue
        data = read(entry.offset, entry.size)
        head = decode_head(data, entry.offset, path)
        if head.magic not in (LEAF_INDEX, INNER_INDEX):
            raise CorruptFile(path, f"a block {bytes(head.magic)!r} where one of the index should be", entry.offset)
        _, payload = decode_block(data, head.magic, trailer.codec, entry.offset, path)
        pending += [(below, depth + 1) for below in reversed(decode_inner_index(payload, path))]


def _exactly(read: RangedRead, size: int, path: str) -> RangedRead:
    def exact(offset: int, length: int) -> bytes | memoryview:
        data = read(offset, length)
        if len(data) != length:
            raise CorruptFile(path, f"{len(data)} bytes read where {length} of {size} were expected", offset)
        return data

    return exact
