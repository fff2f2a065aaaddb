"""The header entry RECORD_POSITIONS of a log block: the rows of the base file that the block's records stand for.

Base64 of a 64-bit roaring bitmap in portable form: int64 count of buckets, then for each int32 the high half of its
values and a 32-bit bitmap; little-endian.
"""

from __future__ import annotations

import base64
import binascii
import struct

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

_HEAD = struct.Struct("<qi")
_MOST = 2**32  # a base file with more rows would take a second bucket

RowPositions = npt.NDArray[np.int64]


def encode_positions(positions: RowPositions) -> str | None:
    """The text of the header entry; None for positions that it cannot tell apart, or that one bucket cannot hold.

    positions  int64[n], rising
    """
    if not len(positions) or positions[0] < 0 or positions[-1] >= _MOST or (np.diff(positions) <= 0).any():
        return None
    bitmap = BitMap(positions.astype(np.uint32))
    bitmap.run_optimize()
    return base64.b64encode(_HEAD.pack(1, 0) + bitmap.serialize()).decode()


def decode_positions(text: str) -> RowPositions | None:
    """int64[n], rising; None when the text is not a bitmap of one bucket: rows are then found by their keys.

    Source  docs/format/table-versions-8-9.md 6.2; pinned by tests/vectors/v8-v9/record_positions.json
    """
    try:
        data = base64.b64decode(text, validate=True)
        buckets, high = _HEAD.unpack_from(data)
        if buckets != 1 or high != 0 or len(data) == _HEAD.size:
            return None
        values = BitMap.deserialize(data[_HEAD.size :])
    except (binascii.Error, struct.error, ValueError):
        return None
    return np.frombuffer(values.to_array(), np.uint32).astype(np.int64)
