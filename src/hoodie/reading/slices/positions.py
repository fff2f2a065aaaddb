"""Which rows of its base file the logs of a slice replace, where the headers of their blocks say so."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hoodie.formats.log.blocks import HeaderKey
from hoodie.formats.log.positions import RowPositions, decode_positions
from hoodie.merge.rows import distinct
from hoodie.model.files import BaseFile, FileSlice, LogFile, names_instant
from hoodie.reading.slices.log_scanner import PlacedBlock


def known_positions(blocks: Iterable[PlacedBlock], slice_: FileSlice) -> RowPositions | None:
    """The positions of all rows whose keys are in the blocks; None when some blocks do not tell theirs.

    blocks   those of the slice's logs that count
    returns  int64[n], rising, each once
    """
    logs = {log.path: log for log in slice_.logs}
    found: list[RowPositions] = []
    for block in blocks:
        text = block.header.get(HeaderKey.RECORD_POSITIONS)
        if text is None or slice_.base is None or not _about(block, logs[block.path], slice_.base):
            return None
        positions = decode_positions(text)
        if positions is None:
            return None
        found.append(positions)
    return distinct(np.concatenate(found)) if found else np.empty(0, np.int64)


def _about(block: PlacedBlock, log: LogFile, base: BaseFile) -> bool:
    """Whether a block's positions are of that base file.

    From table version 8 on a header says which file they are of. Before, the base instant in the log's name does, of
    blocks by this library: Hudi 0.15 writes positions in the file before a pending compaction into logs that are to
    follow the file of the compaction, which leaves nothing to tell them apart by.
    """
    stated = block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
    if stated is not None:
        return stated == base.instant
    return log.base_instant == base.instant and names_instant(log, block.header.instant)
