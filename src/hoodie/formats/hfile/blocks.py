"""Blocks of an HFile: header, payload as stored, checksums.

    magic 8, size after the header 4, payload size uncompressed 4, offset of the block before 8, checksum type 1,
    bytes per checksum 4, size of header and stored payload 4

Source: docs/format/metadata-table.md 2.1 and 3.1; pinned by tests/vectors/tiny_hfiles.json.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.formats.hfile.checksums import crc32c_chunks, crc32c_chunks_of

HEADER_SIZE = 33
CHUNK = 16384  # bytes per checksum

_HEADER = struct.Struct(">8siiqBii")
_LARGEST = 2**31 - 1
_GZIP_HEAD = bytes.fromhex("1f8b0800000000000000")
_GZIP_TAIL = struct.Struct("<II")

DATA, META, ROOT_INDEX, FILE_INFO = b"DATABLK*", b"METABLKc", b"IDXROOT2", b"FILEINF2"
LEAF_INDEX, INNER_INDEX = b"IDXLEAF2", b"IDXINTE2"


class BlockCodec(IntEnum):
    """How payloads are compressed. The value is the one in the trailer."""

    LZO = 0
    GZ = 1
    NONE = 2
    SNAPPY = 3
    LZ4 = 4
    BZIP2 = 5
    ZSTD = 6


class Checksum(IntEnum):
    """How blocks are checked. The value is the one in the header."""

    NONE = 0
    CRC32 = 1
    CRC32C = 2


_CHECKSUMS = {int(kind): kind for kind in Checksum}  # the enum itself is slower, and a look-up reads many headers


@dataclass(frozen=True, slots=True)
class Head:
    """A block's header. `size` is of the whole block, checksums included."""

    magic: bytes
    size: int
    uncompressed: int
    checksum: Checksum
    chunk: int
    stored: int  # header and payload, without checksums


def decode_head(data: bytes | memoryview, offset: int, path: str) -> Head:
    """The header that the bytes begin with. offset: of the block in its file, for errors. Raises CorruptFile"""
    if len(data) < HEADER_SIZE:
        raise CorruptFile(path, f"{len(data)} bytes where a block's header of {HEADER_SIZE} should be", offset)
    magic, after, uncompressed, _, kind, chunk, stored = _HEADER.unpack_from(data)
    size = HEADER_SIZE + after
    if (checksum := _CHECKSUMS.get(kind)) is None:
        raise CorruptFile(path, f"a block with checksums of type {kind}", offset)
    if not HEADER_SIZE <= stored <= size or uncompressed < 0 or chunk < 1:
        raise CorruptFile(path, f"a block of {size} bytes that says it stores {stored}", offset)
    if size != stored + 4 * -(-stored // chunk):
        raise CorruptFile(path, f"a block of {size} bytes with room for other checksums than of {stored} bytes", offset)
    return Head(magic, size, uncompressed, checksum, chunk, stored)


def decode_block(
    data: bytes | memoryview, magic: bytes | None, codec: BlockCodec, offset: int, path: str, *, by_gzip: bool = False
) -> tuple[Head, memoryview]:
    """Header and payload of the block that the bytes begin with, checked and uncompressed.

    magic   what it must be; None: any
    offset  of the block in its file, for errors
    by_gzip gzip's own checksum of the payload is enough: ours takes longer than all else that a small block needs
    Raises  CorruptFile; UnsupportedTable on a codec that is not read
    """
    head = decode_head(data, offset, path)
    if magic is not None and head.magic != magic:
        raise CorruptFile(path, f"a block {bytes(head.magic)!r} where {magic!r} should be", offset)
    if head.size > len(data):
        raise CorruptFile(path, f"a block of {head.size} bytes, of which {len(data)} are there", offset)
    view = memoryview(data)
    if codec is not BlockCodec.GZ or not by_gzip:
        _check(view, head, offset, path)
    payload = _uncompressed(view[HEADER_SIZE : head.stored], head.uncompressed, codec, offset, path)
    return head, payload


def encode_hfile_block(magic: bytes, payload: bytes, codec: BlockCodec, previous: int) -> bytes:
    """A block as HBase writes it, with CRC-32C.

    previous  offset of the block before it of its kind; -1: there is none
    """
    (block,) = encode_blocks(magic, [payload], codec, previous, 0)
    return block


def encode_blocks(
    magic: bytes, payloads: Sequence[bytes], codec: BlockCodec, previous: int, offset: int
) -> list[bytes]:
    """Blocks of one kind that lie side by side, from an offset of the file on. Their checksums are made at once.

    previous  as of `encode_hfile_block`, of the first
    """
    if codec not in (BlockCodec.GZ, BlockCodec.NONE):
        raise UnsupportedTable(f"HFiles with codec {codec.name} are not written: GZ and NONE are")
    bodies: list[bytes] = []
    for payload in payloads:
        stored = gzip_member(payload) if codec is BlockCodec.GZ else payload
        size = HEADER_SIZE + len(stored)
        sums = 4 * -(-size // CHUNK)
        if size + sums > _LARGEST:
            raise UnsupportedTable(f"an HFile block of {size} bytes: at most {_LARGEST} can be written")
        header = _HEADER.pack(magic, len(stored) + sums, len(payload), previous, Checksum.CRC32C, CHUNK, size)
        bodies.append(header + stored)
        previous, offset = offset, offset + size + sums
    return [
        body + struct.pack(f">{len(sums)}I", *sums)
        for body, sums in zip(bodies, crc32c_chunks_of(bodies, CHUNK), strict=True)
    ]


def gzip_member(payload: bytes) -> bytes:
    """The payload as one gzip member, without time and name, as Java writes it."""
    packed = zlib.compressobj(wbits=-15)
    data = packed.compress(payload) + packed.flush()
    return _GZIP_HEAD + data + _GZIP_TAIL.pack(zlib.crc32(payload), len(payload) & 0xFFFFFFFF)


def _check(view: memoryview, head: Head, offset: int, path: str) -> None:
    stored = bytes(view[head.stored : head.size])
    if head.checksum is Checksum.NONE:
        if stored.strip(b"\0"):
            raise CorruptFile(path, "a block without checksums that has some", offset)
        return
    body = view[: head.stored]
    if head.checksum is Checksum.CRC32C:
        sums = crc32c_chunks(body, head.chunk)
    else:
        sums = [zlib.crc32(body[at : at + head.chunk]) for at in range(0, len(body), head.chunk)]
    for number, crc in enumerate(sums):
        if int.from_bytes(stored[4 * number : 4 * number + 4], "big") != crc:
            raise CorruptFile(path, "the checksum of a block does not match its bytes", offset + number * head.chunk)


def _uncompressed(stored: memoryview, size: int, codec: BlockCodec, offset: int, path: str) -> memoryview:
    if codec is BlockCodec.NONE:
        data = stored
    elif codec is BlockCodec.GZ:
        unpacked = zlib.decompressobj(wbits=31)
        try:
            data = memoryview(unpacked.decompress(stored, size + 1))
        except zlib.error as error:
            raise CorruptFile(path, f"a block that is no gzip: {error}", offset) from error
        if len(data) == size and not unpacked.eof:  # its own checksum stands at its end
            try:
                unpacked.decompress(unpacked.unconsumed_tail, 1)
            except zlib.error as error:
                raise CorruptFile(path, f"a block that is no gzip: {error}", offset) from error
        if not unpacked.eof or unpacked.unused_data:
            raise CorruptFile(path, "a block whose gzip data is cut off, or longer than it says", offset)
    else:
        raise UnsupportedTable(f"{path}: an HFile with codec {codec.name}; GZ and NONE can be read")
    if len(data) != size:
        raise CorruptFile(path, f"a block of {len(data)} bytes uncompressed, which says {size}", offset)
    return data
