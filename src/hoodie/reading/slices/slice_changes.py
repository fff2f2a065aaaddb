"""What the logs of a slice change about its base file: which of its rows go, by their positions, and which rows come.

A reader of Parquet that knows the positions of rows then reads the base file by itself, and leaves those out.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from hoodie.merge.base import inserts, replaced_rows
from hoodie.merge.rows import Mask, Positions
from hoodie.model.files import FileSlice
from hoodie.model.meta import COMMIT_TIME, RECORD_KEY
from hoodie.reading.slices.log_rows import LogFold, LogRows
from hoodie.reading.slices.positions import PlacedKeys, known_positions
from hoodie.reading.slices.projection import MergeColumns, merge_columns
from hoodie.reading.slices.reader import (
    OnDamage,
    SliceBlocks,
    SliceReader,
    base_batches,
    fold_blocks,
    goes_by_position,
    require_keys,
    slice_blocks,
)


@dataclass(eq=False)
class SliceChanges:
    """The merge of one slice but for the stored rows that stay as they are.

    reader    of the table
    columns   of the table, in the order wanted
    replaced  int64[...], rising, once `rows` has ended: positions of rows of the base file that are no longer part
              of the slice
    """

    reader: SliceReader
    slice: FileSlice
    columns: Sequence[str]
    on_damage: OnDamage | None = None
    replaced: Positions = field(default_factory=lambda: np.empty(0, np.int64), init=False)

    def positions(self) -> Positions:
        """`replaced`, by itself: the rows of the logs are not even decoded where their headers tell it."""
        merge = self._merge()
        rows_of_base = _header_positions(merge)
        if rows_of_base is not None:
            return rows_of_base
        for _ in self._rows(merge):
            pass
        return self.replaced

    def rows(self) -> Iterator[pa.Table]:
        """The rows that take the place of stored ones, and new ones, in the columns wanted and the table's types.

        Skipped bytes are warned about (`errors.DamagedLog`).
        Raises  as `SliceMerge.batches`
        """
        names = list(self.columns)
        target = pa.schema([self.reader.schema.field(name) for name in names])
        for rows in self._rows(self._merge()):
            if rows.num_rows:
                yield pa.Table.from_arrays(rows.select(names).columns, schema=target)

    def _merge(self) -> SliceBlocks:
        merge = slice_blocks(self.reader, self.slice)
        for damage in merge.report.damaged:
            if self.on_damage is None:
                warnings.warn(damage, stacklevel=2)
            else:
                self.on_damage(damage)
        return merge

    def _rows(self, merge: SliceBlocks) -> Iterator[pa.Table]:
        reader = merge.reader
        if not merge.blocks:
            return
        # The reader's condition is about commit times.
        columns = self.columns if reader.stored is None else [*self.columns, COMMIT_TIME]
        needed = merge_columns(reader.schema, reader.rule, columns, reader.keygen)
        rows_of_base = _header_positions(merge)
        placed = (
            PlacedKeys(merge.slice)
            if rows_of_base is None and goes_by_position(reader) and reader.rule.takes_whole_rows
            else None
        )
        with LogFold(needed.schema, reader.rule, reader.options) as fold:
            fold_blocks(reader.storage, merge.blocks, needed, fold, None if placed is None else placed.add)
            log = fold.finish()
            matched = np.zeros(len(log), np.bool_)
            if rows_of_base is not None and len(rows_of_base) <= len(log):
                self.replaced = rows_of_base
            else:  # else of a key that is stored twice each row is replaced by one
                stored = _stored_at(merge, placed) if placed is not None and placed.all else _stored_rows(merge, needed)
                yield from self._replacements(merge, log, stored, matched)
            for place, incoming in log.parts():
                yield inserts(incoming, matched[place], reader.rule).rows

    def _replacements(
        self, merge: SliceBlocks, log: LogRows, stored: Iterator[tuple[pa.Table, Positions]], matched: Mask
    ) -> Iterator[pa.Table]:
        """What takes the place of the base file's rows with the keys of the logs.

        stored  rows of the base file, with their positions
        """
        replaced: list[Positions] = []
        for rows, numbers in stored:
            at = log.find(rows.column(RECORD_KEY))
            if len(at):
                merged = replaced_rows(rows, log.take(at), merge.reader.rule)
                matched[at[merged.matched]] = True
                replaced.append(numbers[merged.stored])
                yield merged.rows
        self.replaced = np.concatenate(replaced) if replaced else self.replaced


def _stored_at(merge: SliceBlocks, placed: PlacedKeys) -> Iterator[tuple[pa.Table, Positions]]:
    """The rows of the base file at the positions that blocks tell: their keys are those of the blocks, and of the file
    no more is read than what the rule looks at."""
    reader, base = merge.reader, merge.slice.base
    assert base is not None  # else no block tells positions
    positions = placed.positions
    schema = _deciding(reader).stored
    read = pa.schema([field for field in schema if field.name != RECORD_KEY] or schema)
    start = 0
    for raw in base_batches(reader.storage, base, read):
        here = placed.within(start, start + raw.num_rows)
        if here.stop > here.start:
            yield placed.keyed(raw, start, here, schema.names), positions[here]
        start += raw.num_rows


def _stored_rows(merge: SliceBlocks, needed: MergeColumns) -> Iterator[tuple[pa.Table, Positions]]:
    """The rows of the base file that take part. Rows that stay are read as far as the rule looks at them."""
    reader, base = merge.reader, merge.slice.base
    assert base is not None  # without one its positions are known: there are none
    columns = needed if not reader.rule.takes_whole_rows else _deciding(reader)
    start = 0
    for raw in base_batches(reader.storage, base, columns.stored):
        part, numbers = raw, np.arange(start, start + raw.num_rows)
        if reader.stored is not None:
            numbered = raw.append_column(_NUMBER, pa.array(numbers)).filter(reader.stored)
            part, numbers = numbered.drop_columns([_NUMBER]), numbered.column(_NUMBER).to_numpy()
        stored = columns.keyed(part)
        require_keys(stored.column(RECORD_KEY), base.path)
        yield stored, numbers
        start += raw.num_rows


def _header_positions(merge: SliceBlocks) -> Positions | None:
    """The positions by the headers alone; None when the rows of the base file have to be looked at."""
    if merge.slice.base is None or not merge.blocks:
        return np.empty(0, np.int64)
    if merge.reader.stored is not None or not merge.reader.rule.replaces_all:
        return None
    return known_positions(merge.blocks, merge.slice)


def _deciding(reader: SliceReader) -> MergeColumns:
    """The columns by which the rule and the reader's condition decide."""
    names = [] if reader.stored is None else [COMMIT_TIME]
    return merge_columns(reader.schema, reader.rule, names, reader.keygen)


_NUMBER = "hoodie.number"  # no column of a table has a dot in its name
