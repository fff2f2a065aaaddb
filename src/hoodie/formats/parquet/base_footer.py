"""The footer of a base file: which keys the file may hold, how many rows, with which columns."""

import struct
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.java.strings import from_java_order, highest_groups, java_order
from hoodie.formats.parquet.bloom import BloomFilter, BloomKind, decode, encode
from hoodie.model.meta import COMMIT_TIME

#: How the footer of a file names our writer of Parquet; Hudi's is parquet-mr.
_OURS = "parquet-cpp-arrow"
BLOOM = "org.apache.hudi.bloomfilter"
BLOOM_TYPE = "hoodie_bloom_filter_type_code"
MIN_KEY = "hoodie_min_record_key"
MAX_KEY = "hoodie_max_record_key"
_OLD_BLOOM = "com.uber.hoodie.bloomfilter"
_HUDI_KEYS = (BLOOM, _OLD_BLOOM, BLOOM_TYPE, MIN_KEY, MAX_KEY)

_MAGIC = b"PAR1"
_TRAILER = struct.Struct("<I4s")
# One read takes the whole footer of nearly all files: a filter of default size is 431 KB in base64.
_TAIL = 512 * 1024


@dataclass(frozen=True, slots=True)
class BaseFooter:
    """What the footer of a base file says.

    min_key, max_key  bounds of the record keys, inclusive; None: unknown, any key may be in the file
    bloom_text        the filter as stored, base64; "" for none. `bloom` decodes it
    bloom_code        its type code; "" when the footer has none
    rows              rows in the file
    """

    min_key: str | None
    max_key: str | None
    bloom_text: str = field(repr=False)
    bloom_code: str
    rows: int

    def bloom(self, path: str) -> BloomFilter | None:
        """The filter, decoded anew at each call; None when the file has none. Raises CorruptFile naming `path`."""
        return decode(self.bloom_text, self.bloom_code, path) if self.bloom_text else None


def read_footer(file: BinaryIO | pa.NativeFile, path: str) -> BaseFooter:
    """Read the footer of a Parquet base file, normally with one read of its end.

    file    open for reading, seekable; errors of reading it pass through
    path    for errors
    Raises  CorruptFile when the file is no Parquet or its footer is damaged
    """
    return base_footer(read_file_metadata(file, path), path)


def base_footer(metadata: pq.FileMetaData, path: str) -> BaseFooter:
    """What a footer that is read already says. Raises as `read_footer`"""
    stored = metadata.metadata or {}
    hudi = {}
    for key in _HUDI_KEYS:
        if (value := stored.get(key.encode())) is not None:
            try:
                hudi[key] = value.decode("utf-8")
            except UnicodeDecodeError:
                raise CorruptFile(path, f"footer key {key} is not UTF-8") from None
    return BaseFooter(
        min_key=hudi.get(MIN_KEY),
        max_key=hudi.get(MAX_KEY),
        bloom_text=hudi.get(BLOOM) or hudi.get(_OLD_BLOOM, ""),
        bloom_code=hudi.get(BLOOM_TYPE, ""),
        rows=metadata.num_rows,
    )


def columns_of_file(metadata: pq.FileMetaData, path: str) -> pa.Schema:
    """All columns of a file, meta columns included.

    Raises  CorruptFile naming `path`; UnsupportedTable on a column type that Arrow does not have
    """
    try:
        return metadata.schema.to_arrow_schema().remove_metadata()
    except pa.ArrowNotImplementedError as problem:
        raise UnsupportedTable(f"{path}: a column type that Arrow does not read: {problem}") from problem
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise CorruptFile(path, f"broken Parquet schema: {problem}") from problem


def read_file_metadata(file: BinaryIO | pa.NativeFile, path: str) -> pq.FileMetaData:
    """The whole footer: statistics of column chunks and all entries. Arguments and errors as of `read_footer`"""
    return _parse(_read_tail(file, path), path)


def stored_key_range(metadata: pq.FileMetaData) -> tuple[str, str] | None:
    """The bounds of the record keys by a footer that is read already, inclusive; None where it does not say them."""
    stored = metadata.metadata or {}
    lowest, highest = stored.get(MIN_KEY.encode()), stored.get(MAX_KEY.encode())
    if lowest is None or highest is None:
        return None
    try:
        return lowest.decode(), highest.decode()
    except UnicodeDecodeError:
        return None


def is_of_a_write(metadata: pq.FileMetaData, instant: str) -> bool:
    """Whether a footer shows that a write of ours made the file, no compaction: rows have the instant's time, and our
    compactions leave them the time of their own commit. False where it does not show it."""
    if not (metadata.created_by or "").startswith(_OURS) or COMMIT_TIME not in metadata.schema.names:
        return False
    column = metadata.schema.names.index(COMMIT_TIME)
    groups = (metadata.row_group(number).column(column).statistics for number in range(metadata.num_row_groups))
    return any(group is not None and group.has_min_max and group.max == instant for group in groups)


def stored_filter_text(metadata: pq.FileMetaData) -> tuple[bytes, str] | None:
    """The bloom filter by a footer that is read already, as it is stored, and its type code; None where it has none."""
    stored = metadata.metadata or {}
    text = stored.get(BLOOM.encode()) or stored.get(_OLD_BLOOM.encode())
    return (text, stored.get(BLOOM_TYPE.encode(), BloomKind.SIMPLE.value.encode()).decode("latin-1")) if text else None


def stored_filter(metadata: pq.FileMetaData, path: str) -> BloomFilter | None:
    """The bloom filter by a footer that is read already; None where it has none that can be used."""
    stored = stored_filter_text(metadata)
    if stored is None:
        return None
    text, code = stored
    try:
        return decode(text.decode(), code, path)
    except (CorruptFile, UnicodeDecodeError):  # its user reads the keys then
        return None


def footer_metadata(min_key: str | None, max_key: str | None, bloom: BloomFilter | BaseFooter) -> dict[str, str]:
    """The key/value metadata that a writer adds to a base file.

    bloom             the filter, or another footer that has it
    min_key, max_key  bounds of the keys in Java's order (`java_min_max`); None for a file without rows
    """
    if isinstance(bloom, BaseFooter):
        text, code = bloom.bloom_text, bloom.bloom_code
    else:
        text, code = encode(bloom), bloom.kind.value
    values = {BLOOM: text}
    if code not in ("", BloomKind.SIMPLE):  # readers take a filter without a type code for a simple one
        values[BLOOM_TYPE] = code
    if min_key is not None and max_key is not None:
        values |= {MIN_KEY: min_key, MAX_KEY: max_key}
    return values


def java_min_max(keys: pa.Array | pa.ChunkedArray) -> tuple[str, str] | None:
    """The smallest and the largest key as Java compares strings (UTF-16 code units); None for no keys.

    keys    string[n]
    Raises  InvalidInput on a null
    """
    if not len(keys):
        return None
    if all(highest_groups(keys)):
        bounds = pc.min_max(java_order(keys))
        return from_java_order(bounds["min"].as_py()), from_java_order(bounds["max"].as_py())
    bounds = pc.min_max(keys)
    return bounds["min"].as_py(), bounds["max"].as_py()


def _read_tail(file: BinaryIO | pa.NativeFile, path: str) -> bytes:
    """At least the footer with its length and magic number, from the end of the file."""
    size = file.seek(0, 2)
    if size < len(_MAGIC) + _TRAILER.size:
        raise CorruptFile(path, f"no Parquet file: {size} bytes")
    tail = _read_end(file, size, min(size, _TAIL), path)
    length, magic = _TRAILER.unpack_from(tail, len(tail) - _TRAILER.size)
    if magic == b"PARE":
        raise UnsupportedTable(f"{path}: the Parquet footer is encrypted")
    if magic != _MAGIC:
        raise CorruptFile(path, f"no Parquet file: it ends in {magic!r}, not {_MAGIC!r}", size - len(_MAGIC))
    needed = length + _TRAILER.size
    if needed > size - len(_MAGIC):
        raise CorruptFile(path, f"Parquet footer of {length} bytes in a file of {size}", size - _TRAILER.size)
    return tail[-needed:] if needed <= len(tail) else _read_end(file, size, needed, path)


def _read_end(file: BinaryIO | pa.NativeFile, size: int, count: int, path: str) -> bytes:
    file.seek(size - count)
    parts, remaining = [], count
    while remaining:
        part = bytes(file.read(remaining))
        if not part:
            raise CorruptFile(path, f"the file ends {remaining} bytes early", size - remaining)
        parts.append(part)
        remaining -= len(part)
    return b"".join(parts)


def _parse(footer: bytes, path: str) -> pq.FileMetaData:
    try:
        # Parsing from memory keeps errors of the storage apart from damage: both are OSError in Arrow.
        return pq.read_metadata(pa.BufferReader(_MAGIC + footer))
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise CorruptFile(path, f"broken Parquet footer: {problem}") from problem
