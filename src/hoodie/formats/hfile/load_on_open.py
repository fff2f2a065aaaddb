"""What an HFile says behind its data blocks: its index, its meta blocks, its file info.

A writer asks the same files for keys at each commit, and the index of a large file takes longer to decode than some
keys to find. So what was used last is remembered, by its bytes: they are read each time, and what is remembered is
never that of another file.

Source: docs/format/metadata-table.md 2.1, 2.2 and 2.4; pinned by tests/vectors/tiny_hfiles.json.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from hoodie.errors import CorruptFile
from hoodie.formats.hfile.blocks import FILE_INFO, HEADER_SIZE, ROOT_INDEX, decode_block
from hoodie.formats.hfile.index import BlockIndex, IndexEntry, decode_meta_index, decode_root_index
from hoodie.formats.hfile.trailer import TRAILER_SIZE, Trailer, decode_file_info

#: Bytes of what is remembered, as it is stored; decoded it takes about six times as many.
_MOST = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class LoadOnOpen:
    """What a file says of itself.

    info   file info entries by name, such as "schema"
    index  what the root index points to: data blocks, unless the index has several levels
    metas  the meta blocks by name
    """

    info: dict[str, bytes]
    index: BlockIndex
    metas: dict[str, IndexEntry]


def load_on_open(stored: bytes, trailer: Trailer, path: str) -> LoadOnOpen:
    """What a file says of itself.

    stored  the file from the trailer's `load_on_open` to its end
    Raises  CorruptFile; UnsupportedTable on a codec that is not read
    """
    return _memory.get(stored) or _memory.put(stored, _decoded(stored, trailer, path))


def require_inside(index: BlockIndex, trailer: Trailer, path: str) -> None:
    """Raises CorruptFile where an entry points to something that is no block of the file."""
    if entry := index.outside(trailer.load_on_open):
        raise _outside(entry, path)


def _decoded(stored: bytes, trailer: Trailer, path: str) -> LoadOnOpen:
    start, codec = trailer.load_on_open, trailer.codec
    view = memoryview(stored)[: len(stored) - TRAILER_SIZE]
    # Gzip's own checksums are enough here, as in data blocks of which few rows are needed.
    head, root = decode_block(view, ROOT_INDEX, codec, start, path, by_gzip=True)
    index = decode_root_index(root, trailer.index_entries, path, exact=trailer.levels == 1)
    _, names = decode_block(view[head.size :], ROOT_INDEX, codec, start + head.size, path, by_gzip=True)
    metas = decode_meta_index(names, trailer.meta_entries, path)
    _, payload = decode_block(view[trailer.file_info - start :], FILE_INFO, codec, trailer.file_info, path)
    info = decode_file_info(payload, path)
    if int.from_bytes(info.get("MAX_MEMSTORE_TS_KEY", b""), "big") > 0:
        raise CorruptFile(path, "an HFile with cells of transactions")
    require_inside(index, trailer, path)
    for entry in metas.values():
        if entry.size < HEADER_SIZE or not 0 <= entry.offset <= start - entry.size:
            raise _outside(entry, path)
    if (not len(index)) != (trailer.cells == 0):
        raise CorruptFile(path, f"{trailer.cells} cells in {len(index)} blocks")
    return LoadOnOpen(info, index, metas)


def _outside(entry: IndexEntry, path: str) -> CorruptFile:
    return CorruptFile(path, f"an index entry of {entry.size} bytes at {entry.offset}, outside of the blocks")


class _Memory:
    """The newest used, for all threads."""

    def __init__(self) -> None:
        self._decoded: OrderedDict[bytes, LoadOnOpen] = OrderedDict()
        self._bytes = 0
        self._turn = threading.Lock()

    def get(self, stored: bytes) -> LoadOnOpen | None:
        with self._turn:
            if (decoded := self._decoded.get(stored)) is not None:
                self._decoded.move_to_end(stored)
            return decoded

    def put(self, stored: bytes, decoded: LoadOnOpen) -> LoadOnOpen:
        with self._turn:
            if len(stored) <= _MOST and stored not in self._decoded:
                self._decoded[stored] = decoded
                self._bytes += len(stored)
            while self._bytes > _MOST:
                oldest, _ = self._decoded.popitem(last=False)
                self._bytes -= len(oldest)
        return decoded

    def __len__(self) -> int:
        return len(self._decoded)


_memory = _Memory()
