"""The trailer of an HFile: its last 4096 bytes, which say where the rest lies.

Source: docs/format/metadata-table.md 2.2 and 3.1; pinned by tests/vectors/tiny_hfiles.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.hfile.blocks import BlockCodec
from hoodie.formats.hfile.numbers import decode_fields, decode_message, encode_field, encode_varint

TRAILER_SIZE = 4096
COMPARATOR = "org.apache.hudi.io.storage.HoodieHBaseKVComparator"

_MAGIC = b'TRABLK"$'
_MAJOR, _HBASE_MINOR = b"\0\0\3", b"\3"
_INFO_MAGIC = b"PBUF"
_MOST_LEVELS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trailer:
    """What the trailer says. Offsets are bytes of the file.

    index_size    bytes of the index' payloads uncompressed
    total_size    bytes uncompressed of all blocks but the root index, with their headers and the trailer
    cells         how many there are
    first, last   offsets of the first and the last data block; -1 without cells
    """

    file_info: int
    load_on_open: int
    index_size: int
    total_size: int
    index_entries: int
    meta_entries: int
    cells: int
    levels: int = 1
    first: int = -1
    last: int = -1
    comparator: str = COMPARATOR
    codec: BlockCodec = BlockCodec.GZ


#: Number in the message, and the field.
_FIELDS = {
    1: "file_info",
    2: "load_on_open",
    3: "index_size",
    4: "total_size",
    5: "index_entries",
    6: "meta_entries",
    7: "cells",
    8: "levels",
    9: "first",
    10: "last",
    11: "comparator",
    12: "codec",
}
_OPTIONAL = {"index_size": 0, "total_size": 0, "levels": 1, "first": -1, "last": -1, "comparator": ""}


@lru_cache(maxsize=1024)
def decode_trailer(data: bytes, size: int, path: str) -> Trailer:
    """The trailer of a file of `size` bytes, of its last 4096.

    Raises CorruptFile; UnsupportedTable on another version
    """
    where = max(0, size - TRAILER_SIZE)
    if len(data) != TRAILER_SIZE or data[:8] != _MAGIC:
        raise CorruptFile(path, "no HFile: its trailer is missing. The file is cut off, or something else", where)
    if data[-3:] != _MAJOR:
        raise UnsupportedTable(f"{path}: an HFile of version {int.from_bytes(data[-3:], 'big')}; version 3 is read")
    values: dict[str, object] = dict(_OPTIONAL)
    for number, value in decode_fields(decode_message(data[8:-4], path), path):
        name = _FIELDS.get(number)
        if name is None:
            continue
        if isinstance(value, int) != (name != "comparator"):
            raise CorruptFile(path, f"a trailer whose {name} is of another type", where)
        values[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    if missing := [name for name in _FIELDS.values() if name not in values]:
        raise CorruptFile(path, f"a trailer without {', '.join(missing)}", where)
    if values["codec"] not in tuple(BlockCodec):
        raise CorruptFile(path, f"a trailer with codec {values['codec']}", where)
    trailer = Trailer(**{**values, "codec": BlockCodec(values["codec"])})  # type: ignore[arg-type]
    offsets = (trailer.load_on_open, trailer.file_info)
    if not all(0 <= offset <= where for offset in offsets) or trailer.load_on_open > trailer.file_info:
        raise CorruptFile(path, f"a trailer that points to bytes {offsets} of {size}", where)
    if min(trailer.index_entries, trailer.meta_entries, trailer.cells) < 0 or not 1 <= trailer.levels <= _MOST_LEVELS:
        raise CorruptFile(path, "a trailer with counts that cannot be", where)
    return trailer


def encode_trailer(trailer: Trailer) -> bytes:
    """The trailer as HBase writes it."""
    message = b""
    for number, name in _FIELDS.items():
        value = getattr(trailer, name)
        message += encode_field(number, value.encode() if isinstance(value, str) else int(value))
    head = _MAGIC + encode_varint(len(message)) + message
    return head.ljust(TRAILER_SIZE - 4, b"\0") + _HBASE_MINOR + _MAJOR


def decode_file_info(payload: bytes | memoryview, path: str) -> dict[str, bytes]:
    """The entries of the file info block. Raises CorruptFile"""
    if bytes(payload[:4]) != _INFO_MAGIC:
        raise CorruptFile(path, "a file info block that does not begin with PBUF")
    entries: dict[str, bytes] = {}
    for number, entry in decode_fields(decode_message(payload[4:], path), path):
        if number != 1 or isinstance(entry, int):
            raise CorruptFile(path, f"a file info block with a field {number}")
        pair = dict(decode_fields(entry, path))
        key, value = pair.get(1), pair.get(2, b"")
        if not isinstance(key, bytes) or not isinstance(value, bytes):
            raise CorruptFile(path, "a file info block with an entry that is no pair")
        entries[key.decode("utf-8", "replace")] = value
    return entries


def encode_file_info(entries: Mapping[str, bytes]) -> bytes:
    """The payload of the file info block, entries sorted by the bytes of their keys."""
    pairs = sorted((key.encode(), value) for key, value in entries.items())
    message = b"".join(encode_field(1, encode_field(1, key) + encode_field(2, value)) for key, value in pairs)
    return _INFO_MAGIC + encode_varint(len(message)) + message
