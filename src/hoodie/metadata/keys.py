"""Partitions of the metadata table, the keys of their records, and which file group holds a key.

Source: docs/format/metadata-table.md 1.2, 4.3 and 4.4; pinned by tests/vectors/index_keys.json and
file_group_of_key.json.
"""

import base64
import hashlib
import struct
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.formats.java.strings import string_hashes

FOLDER = ".hoodie/metadata"
#: The key of the one record that names all partitions.
ALL_PARTITIONS = "__all_partitions__"
#: How the metadata table calls the empty partition path.
ROOT = "."

_SEED = 0xFFFFFFFFDABADABA
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK = 0xFFFFFFFFFFFFFFFF


class MetadataPartition(StrEnum):
    """A partition of the metadata table that is read. The value is its folder."""

    FILES = "files"
    COLUMN_STATS = "column_stats"
    PARTITION_STATS = "partition_stats"
    BLOOM_FILTERS = "bloom_filters"
    RECORD_INDEX = "record_index"


def partition_id(partition: str) -> str:
    """How keys and file lists call a partition path."""
    return partition or ROOT


def path_of_name(name: str) -> str:
    """The partition path that a key or a file list calls so."""
    return "" if name == ROOT else name


def hashed(text: str) -> str:
    """The 12 characters that stand for a column or a partition path in keys."""
    return base64.b64encode(struct.pack(">Q", xxh64(text.encode(), _SEED))).decode()


def hashed_file(name: str) -> str:
    """The 24 characters that stand for a file name in keys."""
    return base64.b64encode(hashlib.md5(name.encode(), usedforsecurity=False).digest()).decode()


def column_stats_key(column: str, partition: str, file: str) -> str:
    return hashed(column) + hashed(partition_id(partition)) + hashed_file(file)


def partition_stats_key(column: str, partition: str) -> str:
    return hashed(column) + hashed(partition_id(partition))


def bloom_filter_key(partition: str, file: str) -> str:
    return hashed(partition_id(partition)) + hashed_file(file)


def file_groups_of(keys: pa.Array, groups: int) -> npt.NDArray[np.int64]:
    """int64[n]: the number of the file group that holds each key. keys: string[n], no nulls"""
    if groups == 1:
        return np.zeros(len(keys), np.int64)
    lowest = np.int64(-(2**31))
    hashes = string_hashes(keys).astype(np.int64)
    # Java's abs leaves the least number negative, and its remainder has the sign of what is divided.
    sized = np.where(hashes == lowest, lowest, np.abs(hashes))
    places: npt.NDArray[np.int64] = np.abs(np.fmod(sized, groups))
    return places


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 of some bytes (github.com/Cyan4973/xxHash, doc/xxhash_spec.md)."""
    size, at = len(data), 0
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at + 32 <= size:
            lanes = [_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        crc = sum(_rotated(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            crc = ((crc ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        crc = (seed + _P5) & _MASK
    crc = (crc + size) & _MASK
    while at + 8 <= size:
        crc ^= _round(0, struct.unpack_from("<Q", data, at)[0])
        crc = (_rotated(crc, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        crc ^= (struct.unpack_from("<I", data, at)[0] * _P1) & _MASK
        crc = (_rotated(crc, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        crc ^= (byte * _P5) & _MASK
        crc = (_rotated(crc, 11) * _P1) & _MASK
    crc = ((crc ^ (crc >> 33)) * _P2) & _MASK
    crc = ((crc ^ (crc >> 29)) * _P3) & _MASK
    return crc ^ (crc >> 32)


def _round(lane: int, word: int) -> int:
    return (_rotated((lane + word * _P2) & _MASK, 31) * _P1) & _MASK


def _rotated(word: int, turn: int) -> int:
    return ((word << turn) | (word >> (64 - turn))) & _MASK
