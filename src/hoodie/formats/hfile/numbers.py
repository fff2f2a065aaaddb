"""Integers of variable length as HFiles have them: Hadoop's vlong in index blocks, protobuf's varint in the trailer.

Source: docs/format/metadata-table.md 2.2 and 2.4; pinned by tests/vectors/hfile_cells.json.
"""

from collections.abc import Iterator

from hoodie.errors import CorruptFile


def encode_vlong(value: int) -> bytes:
    """A number of 0 or more: one byte up to 127, else how many bytes follow, and these."""
    if value <= 127:
        return bytes([value])
    data = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([(-112 - len(data)) & 0xFF]) + data


def decode_vlong(data: bytes | memoryview, at: int, path: str) -> tuple[int, int]:
    """The number at a position, and the position after it. Raises CorruptFile on a negative one, too"""
    if at >= len(data):
        raise CorruptFile(path, "an index entry ends amid its key length")
    first = data[at]
    if first <= 127:
        return first, at + 1
    length = (-112 - (first - 256)) if first < 0x90 else 0
    if not 1 <= length <= 8 or at + 1 + length > len(data):
        raise CorruptFile(path, f"an index entry with a key length that begins with byte {first}")
    return int.from_bytes(data[at + 1 : at + 1 + length], "big"), at + 1 + length


def encode_varint(value: int) -> bytes:
    """Protobuf's: 7 bits a byte, least first. A negative number takes ten bytes."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes | memoryview, at: int, path: str) -> tuple[int, int]:
    """The signed number at a position, and the position after it. Raises CorruptFile"""
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise CorruptFile(path, "a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFFFFFFFFFF
            return value - (1 << 64) if value >> 63 else value, at
        shift += 7
    raise CorruptFile(path, "a number of more than ten bytes")


def encode_field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message: a varint, or bytes."""
    if isinstance(value, int):
        return encode_varint(number << 3) + encode_varint(value)
    return encode_varint(number << 3 | 2) + encode_varint(len(value)) + value


def decode_fields(message: bytes | memoryview, path: str) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message in their order: number, and a number or bytes. Raises CorruptFile"""
    at = 0
    while at < len(message):
        tag, at = decode_varint(message, at, path)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = decode_varint(message, at, path)
            yield number, value
        elif kind == 2:
            length, at = decode_varint(message, at, path)
            if not 0 <= length <= len(message) - at:
                raise CorruptFile(path, f"a field of {length} bytes in a message that has {len(message) - at} left")
            yield number, bytes(message[at : at + length])
            at += length
        else:
            raise CorruptFile(path, f"a protobuf field of wire type {kind}")


def decode_message(data: bytes | memoryview, path: str) -> bytes | memoryview:
    """The message that begins with its length. Raises CorruptFile"""
    length, at = decode_varint(data, 0, path)
    if not 0 <= length <= len(data) - at:
        raise CorruptFile(path, f"a message of {length} bytes, where {len(data) - at} are left")
    return data[at : at + length]
