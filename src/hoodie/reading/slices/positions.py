"""Which rows of its base file the logs of a slice replace, where the headers of their blocks say so."""

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa

from hoodie.formats.log.blocks import HeaderKey
from hoodie.formats.log.content import RowPositions, decode_positions
from hoodie.merge.log_merge import Versions
from hoodie.merge.rows import as_array, distinct
from hoodie.model.files import BaseFile, FileSlice, LogFile, names_instant
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.slices.log_scanner import PlacedBlock


def known_positions(blocks: Iterable[PlacedBlock], slice_: FileSlice) -> RowPositions | None:
    """The positions of all rows whose keys are in the blocks; None when some blocks do not tell theirs.

    blocks   those of the slice's logs that count
    returns  int64[n], rising, each once
    """
    parts: list[RowPositions] = []
    for block in blocks:
        positions = block_positions(block, slice_)
        if positions is None:
            return None
        parts.append(positions)
    return distinct(np.concatenate(parts)) if parts else np.empty(0, np.int64)


class PlacedKeys:
    """The keys of blocks with the positions of their rows in the base file, which so need not have its keys read.

    all  whether the position of each key is known
    """

    def __init__(self, slice_: FileSlice) -> None:
        self.all = slice_.base is not None
        self._slice = slice_
        self._keys: list[pa.Array] = []
        self._positions: list[RowPositions] = []

    def add(self, block: PlacedBlock, versions: Versions) -> None:
        """The keys of a further block, which are in the order of its positions."""
        keys, positions = as_array(versions.rows.column(RECORD_KEY)), None
        if self.all:
            positions = block_positions(block, self._slice)
        self.all = positions is not None and len(positions) == len(keys)
        if self.all and positions is not None:
            self._keys.append(keys)
            self._positions.append(positions)

    @cached_property
    def positions(self) -> RowPositions:
        """int64[n], rising, each once."""
        return self._first[0]

    @cached_property
    def keys(self) -> pa.Array:
        """string[n], of the rows at `positions`."""
        return pa.concat_arrays(self._keys).take(pa.array(self._first[1])) if self._keys else pa.array([], pa.string())

    @cached_property
    def _first(self) -> tuple[RowPositions, RowPositions]:
        every = np.concatenate(self._positions) if self._positions else np.empty(0, np.int64)
        return np.unique(every, return_index=True)

    def within(self, start: int, end: int) -> slice:
        """Which of `positions` are in [start, end)."""
        low, high = np.searchsorted(self.positions, (start, end))
        return slice(int(low), int(high))

    def keyed(self, rows: pa.Table, start: int, here: slice, names: Sequence[str]) -> pa.Table:
        """Some rows of the base file with their keys, in the columns `names`.

        rows   of the file, from position `start` on
        here   which of `positions` they are, as of `within`
        """
        taken = rows.take(pa.array(self.positions[here] - start))
        columns = {**dict(zip(taken.column_names, taken.columns, strict=True)), RECORD_KEY: self.keys[here]}
        return pa.table([columns[name] for name in names], list(names))


def block_positions(block: PlacedBlock, slice_: FileSlice) -> RowPositions | None:
    """The positions in the base file of the rows whose keys a block has, rising, as its rows are; None: not told."""
    text = block.header.get(HeaderKey.RECORD_POSITIONS)
    if text is None or slice_.base is None:
        return None
    log = next(log for log in slice_.logs if log.path == block.path)
    return decode_positions(text) if _is_about_base(block, log, slice_.base) else None


def _is_about_base(block: PlacedBlock, log: LogFile, base: BaseFile) -> bool:
    """Whether a block's positions are of that base file.

    From table version 8 on a header says which file they are of. Before, the base instant in the log's name does, of
    blocks by this library: Hudi 0.15 writes positions in the file before a pending compaction into logs that are to
    follow the file of the compaction, which leaves nothing to tell them apart by.
    """
    stated = block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)
    if stated is not None:
        return stated == base.instant
    return log.base_instant == base.instant and names_instant(log, block.header.instant)
