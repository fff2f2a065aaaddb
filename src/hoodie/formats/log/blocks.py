"""Log files as a sequence of blocks: where each block lies, what its header says, its exact bytes.

A file is a plain run of blocks. Integers are big-endian and signed; the fields and their bytes:

    magic 6, block size 8, format version 4, type 4, header map, content length 8, content, footer map, trailer 8

"block size" counts what follows it; the trailer counts from the magic up to itself, so a file can be walked backwards.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from hoodie.errors import CorruptLogBlock, InvalidInput, UnsupportedTable

MAGIC = b"#HUDI#"
FORMAT_VERSION = 1

_PREFIX = len(MAGIC) + 8  # magic and block size: what the block size does not count
_TRAILER = 8
_FEWEST = 4 + 4 + 4 + 8 + 4 + _TRAILER  # block size of a block with empty maps and no content
_LARGEST = 2**31 - 1  # other readers cast block and content sizes to int32
_WINDOW = 32 * 1024  # bytes of one ranged read: a trailer and the next block's head, schema included
_SEARCH = 1024 * 1024  # bytes of one ranged read when searching for the next magic

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_TWO_INTS = struct.Struct(">ii")

#: Reads `length` bytes at `offset`; fewer only at the end of the file.
_RangedRead = Callable[[int, int], bytes]


class BlockKind(IntEnum):
    """What a block's content is. The value is its ordinal on disk."""

    COMMAND = 0
    DELETE = 1
    CORRUPT = 2  # never written: what a reader makes of bytes that are no block
    AVRO_DATA = 3
    HFILE_DATA = 4
    PARQUET_DATA = 5
    CDC_DATA = 6

    @property
    def is_data(self) -> bool:
        """Whether the content is rows of the table."""
        return self in (BlockKind.AVRO_DATA, BlockKind.HFILE_DATA, BlockKind.PARQUET_DATA)


class HeaderKey(IntEnum):
    """What a header entry says. The value is its ordinal on disk; table version 6 writes 0 to 6 only."""

    INSTANT_TIME = 0
    TARGET_INSTANT_TIME = 1
    SCHEMA = 2
    COMMAND_BLOCK_TYPE = 3
    COMPACTED_BLOCK_TIMES = 4
    RECORD_POSITIONS = 5
    BLOCK_IDENTIFIER = 6
    IS_PARTIAL = 7
    BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS = 8


@dataclass(frozen=True, slots=True)
class BlockMap:
    """A block's header or footer: (key ordinal, text) in the order on disk, which differs from writer to writer.

    Ordinals this library does not know are kept, so that the bytes can be written again.
    """

    entries: tuple[tuple[int, str], ...] = ()

    def get(self, key: HeaderKey) -> str | None:
        """The text of `key`, None if it is absent; of a repeated key the last, as in a hash map."""
        return dict(self.entries).get(key)

    @property
    def instant(self) -> str:
        """INSTANT_TIME: the delta commit that wrote the block, a rollback's own instant in a COMMAND; "" if absent."""
        return self.get(HeaderKey.INSTANT_TIME) or ""

    @property
    def target(self) -> str | None:
        """TARGET_INSTANT_TIME: the instant that a rollback block undoes."""
        return self.get(HeaderKey.TARGET_INSTANT_TIME)

    @property
    def schema(self) -> str | None:
        """SCHEMA: Avro JSON of the rows, meta fields included."""
        return self.get(HeaderKey.SCHEMA)

    @property
    def compacted(self) -> tuple[str, ...]:
        """COMPACTED_BLOCK_TIMES: the instants that a log compaction merged into this block; () for any other block."""
        times = self.get(HeaderKey.COMPACTED_BLOCK_TIMES)
        return tuple(time.strip() for time in times.split(",")) if times else ()


@dataclass(frozen=True, slots=True)
class BlockHead:
    """A block without its content: enough to decide whether to read it, and where it lies. Offsets are file bytes."""

    kind: BlockKind
    header: BlockMap
    offset: int  # of the magic
    content_offset: int
    content_length: int
    end: int  # one past the block
    version: int = FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class LogBlock:
    """A block and its content."""

    kind: BlockKind
    header: BlockMap = BlockMap()
    content: bytes | memoryview = b""
    footer: BlockMap = BlockMap()
    offset: int = 0  # of the magic in its file; encoding ignores it
    version: int = FORMAT_VERSION


def read_blocks(data: bytes | memoryview, path: str) -> Iterator[LogBlock]:
    """The blocks of a whole log file, in file order; contents are views of `data`.

    data    the file's bytes
    path    names the file in errors
    A block cut short by a writer that died becomes one CORRUPT block, as other readers see it.
    Raises  CorruptLogBlock where no magic stands or a block of consistent size is malformed;
            UnsupportedTable on a log format version other than 1
    Source  Hudi's HoodieLogFileReader; pinned by tests/vectors/log_blocks.json, log_scan.json
    """
    source = _Memory(memoryview(data), path)
    for head, footer in _walk(source):
        content = source.at(head.content_offset, head.content_length)
        yield LogBlock(head.kind, head.header, content, footer, head.offset, head.version)


def read_block_headers(read: _RangedRead, size: int, path: str) -> Iterator[BlockHead]:
    """The blocks of a log file without their contents: near one ranged read of 32 KiB a block.

    read    ranged read of the file
    size    of the file, in bytes
    Raises  as read_blocks, with the same blocks
    """
    return (head for head, _ in _walk(_Ranges(read, size, path)))


def encode_block(block: LogBlock) -> bytes:
    """The block's bytes on disk, header entries in their order.

    A CORRUPT block gives back the bytes it was read from.
    Raises InvalidInput if the block is 2 GiB or more.
    """
    if block.kind is BlockKind.CORRUPT:
        return MAGIC + bytes(block.content)
    head = _TWO_INTS.pack(block.version, block.kind) + _encode_map(block.header) + _LONG.pack(len(block.content))
    footer = _encode_map(block.footer)
    size = len(head) + len(block.content) + len(footer) + _TRAILER
    if size > _LARGEST:
        raise InvalidInput(f"a log block of {size} bytes: other readers take at most {_LARGEST}; write smaller blocks")
    return b"".join((MAGIC, _LONG.pack(size), head, block.content, footer, _LONG.pack(size + len(MAGIC))))


def _encode_map(entries: BlockMap) -> bytes:
    parts = [_INT.pack(len(entries.entries))]
    for key, text in entries.entries:
        value = text.encode()
        parts += (_TWO_INTS.pack(key, len(value)), value)
    return b"".join(parts)


class _Source:
    """Bytes of one file. Every access is within [0, size); the callers check before they read."""

    def __init__(self, size: int, path: str) -> None:
        self.size, self.path = size, path

    def at(self, offset: int, length: int) -> bytes | memoryview:
        raise NotImplementedError

    def long(self, offset: int) -> int:
        value: int = _LONG.unpack(self.at(offset, 8))[0]
        return value

    def find_magic(self, start: int) -> int:
        """Offset of the first magic at or after `start`; the file's size if none is found."""
        while start + len(MAGIC) <= self.size:
            piece = bytes(self.at(start, min(_SEARCH, self.size - start)))
            if (position := piece.find(MAGIC)) >= 0:
                return start + position
            start += len(piece) - len(MAGIC) + 1
        return self.size


class _Memory(_Source):
    def __init__(self, data: memoryview, path: str) -> None:
        super().__init__(len(data), path)
        self.data = data

    def at(self, offset: int, length: int) -> memoryview:
        return self.data[offset : offset + length]


class _Ranges(_Source):
    """Ranged reads. The last two windows are kept: a block's head, and its trailer with the next head."""

    def __init__(self, read: _RangedRead, size: int, path: str) -> None:
        super().__init__(size, path)
        self.read = read
        self.windows: list[tuple[int, bytes]] = []

    def at(self, offset: int, length: int) -> bytes:
        for start, piece in self.windows:
            if start <= offset and offset + length <= start + len(piece):
                return piece[offset - start : offset - start + length]
        size = min(max(length, _WINDOW), self.size - offset)
        piece = self.read(offset, size)
        if len(piece) != size:
            raise CorruptLogBlock(self.path, f"{len(piece)} bytes read where {size} were expected", offset)
        self.windows = [*self.windows[-1:], (offset, piece)]
        return piece[:length]


def _walk(source: _Source) -> Iterator[tuple[BlockHead, BlockMap]]:
    offset = 0
    while source.size - offset >= len(MAGIC):  # fewer bytes count as the end of the file
        if source.at(offset, len(MAGIC)) != MAGIC:
            raise CorruptLogBlock(source.path, "no block starts here: the magic #HUDI# is missing", offset)
        end = _end_of_block(source, offset)
        if end is None:
            content = offset + len(MAGIC)
            end = source.find_magic(content)
            yield BlockHead(BlockKind.CORRUPT, BlockMap(), offset, content, end - content, end), BlockMap()
        else:
            yield _parse(source, offset, end)
        offset = end


def _end_of_block(source: _Source, offset: int) -> int | None:
    """Where the block at `offset` ends; None if it is corrupt."""
    if source.size - offset < _PREFIX:
        return None
    size = source.long(offset + len(MAGIC))
    end = offset + _PREFIX + size
    if size < _TRAILER or end > source.size:
        return None
    # From 4 bytes before the trailer, so that an empty footer comes with this read.
    source.at(max(end - _TRAILER - 4, offset), min(_TRAILER + 4, end - offset))
    if source.long(end - _TRAILER) - len(MAGIC) != size:
        return None
    if source.size - end >= len(MAGIC) and source.at(end, len(MAGIC)) != MAGIC:
        return None
    return end


def _parse(source: _Source, offset: int, end: int) -> tuple[BlockHead, BlockMap]:
    """The block whose size and trailer agree that it spans [offset, end)."""
    path, limit, at = source.path, end - _TRAILER, offset + _PREFIX
    if end - at < _FEWEST:
        raise CorruptLogBlock(path, f"a block of size {end - at} cannot hold its own fields", offset)
    version, ordinal = _TWO_INTS.unpack(source.at(at, 8))
    if version != FORMAT_VERSION:
        raise UnsupportedTable(
            f"{path} at byte {offset}: log format version {version}; this library reads version {FORMAT_VERSION}. "
            "Another Hudi release wrote this file: compact the table with it, or read it there."
        )
    if ordinal == BlockKind.CORRUPT or not 0 <= ordinal < len(BlockKind):
        raise CorruptLogBlock(path, f"block type {ordinal} is unknown", offset)
    header, at = _parse_map(source, at + 8, limit)
    if limit - at < 8:
        raise CorruptLogBlock(path, "the header leaves no room for the content length", at)
    length, content = source.long(at), at + 8
    if not 0 <= length <= limit - content:
        raise CorruptLogBlock(path, f"a content of {length} bytes does not fit its block", at)
    footer, at = _parse_map(source, content + length, limit)
    if at != limit:
        raise CorruptLogBlock(path, f"{limit - at} bytes stand between footer and trailer", at)
    return BlockHead(BlockKind(ordinal), header, offset, content, length, end, version), footer


def _parse_map(source: _Source, at: int, limit: int) -> tuple[BlockMap, int]:
    """The map at `at` and where it ends; nothing past `limit` is read."""
    start = at

    def take(length: int) -> bytes | memoryview:
        nonlocal at
        if not 0 <= length <= limit - at:
            raise CorruptLogBlock(source.path, f"a header or footer field of {length} bytes does not fit its block", at)
        at += length
        return source.at(at - length, length)

    (count,) = _INT.unpack(take(4))
    if not 0 <= count <= (limit - at) // 8:
        raise CorruptLogBlock(source.path, f"a header or footer of {count} entries does not fit its block", start)
    entries = []
    for _ in range(count):
        key, length = _TWO_INTS.unpack(take(8))
        text = bytes(take(length))
        try:
            entries.append((key, text.decode()))
        except UnicodeDecodeError as error:
            raise CorruptLogBlock(source.path, f"header entry {key} is not UTF-8", at - length) from error
    return BlockMap(tuple(entries)), at
