"""The blocks of a file slice's logs folded into one set of incoming rows, each key once.

Records of data blocks fold by the rule's `precombine`. An entry of a delete block makes a tombstone of its key, unless
a record is there whose ordering value is of the same Java class and greater. A record after a tombstone stands again,
and by itself: what was before the delete, the stored row too, has no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, SchemaMismatch
from hoodie.formats.log.delete_block import DELETES, ORDERING_COLUMN, ORDERING_VALUE, usual_class, without_ordering
from hoodie.merge.base import Incoming, tombstones
from hoodie.merge.fold import fold
from hoodie.merge.rows import Mask, as_array, check_same_columns, key_groups, nullable
from hoodie.merge.rules import MergeRule
from hoodie.model.meta import RECORD_KEY


@dataclass(frozen=True, slots=True, eq=False)
class Versions:
    """Versions of rows in the order of their arrival.

    rows     the table's columns, made nullable
    deleted, after_delete  bool[n], as in `Incoming`; None: none
    """

    rows: pa.Table
    deleted: Mask | None = None
    after_delete: Mask | None = None

    def filter(self, mask: Mask) -> Versions:
        """The versions where `mask` is set, bool[n]."""
        masks = (None if one is None else one[mask] for one in (self.deleted, self.after_delete))
        return Versions(self.rows.filter(pa.array(mask)), *masks)

    def incoming(self, rule: MergeRule) -> Incoming:
        """Folded versions as what is to be merged into a base file."""
        rows = self.rows.combine_chunks()  # each batch of stored rows takes some: quick from one piece only
        keys = as_array(rows.column(RECORD_KEY))
        return Incoming(rows, keys, deleted=self.deleted, after_delete=self.after_delete, versions=rule.keeps_versions)


class LogMerge:
    """Folds blocks, fed one at a time in the order of the scan.

    Blocks wait until as many rows wait as are already folded, and at least `fold_rows`: each row is then folded a few
    times at most, however many blocks there are.
    """

    def __init__(self, schema: pa.Schema, rule: MergeRule, fold_rows: int = 1 << 18) -> None:
        """schema: the table's, meta columns included; every block must be given with these columns."""
        self._schema, self._rule, self._fold_rows = nullable(schema), rule, fold_rows
        self._waiting: list[Versions] = []  # the first is what is folded already
        self._folded = self._fresh = 0
        self.nbytes = 0  # of the rows held

    def records(self, rows: pa.Table, once: bool = False) -> Versions:
        """The records of a data block, to be added.

        once    those of one key are one version: the block repeats it for each row of the base file that has the key
        Raises SchemaMismatch when its columns are not those of the table
        """
        check_same_columns(rows.schema, self._schema, "log block")
        # Other rules make of a row and the same row that row.
        groups = key_groups(rows, (RECORD_KEY,)) if once and self._rule.merger is not None else None
        if groups is not None:
            rows = rows.take(pa.array(np.unique(groups, return_index=True)[1]))
        return Versions(pa.Table.from_arrays(rows.columns, schema=self._schema))

    def tombstones(self, deletes: pa.Table, path: str = "") -> Versions:
        """The entries of a delete block, as `formats.delete_block.decode_deletes` gives them, to be added: rows that
        hold the key, and the ordering value where it compares with the column's.

        path    the log file, for errors
        Raises  CorruptFile when an ordering value is of the column's class but no value of its type
        """
        check_same_columns(deletes.schema, DELETES, "delete block")
        names = self._rule.ordering
        ordering_values = {}
        if all(name in self._schema.names for name in names):  # the values of nested fields have no place in a row
            for name, values in zip(names, _ordering_values(deletes, len(names)), strict=True):
                ordering_values[name] = _comparable(values, self._schema.field(name).type, path)
        rows = tombstones(deletes.column("record_key"), self._schema, deletes.column("partition"), ordering_values)
        return Versions(rows, np.ones(deletes.num_rows, np.bool_))

    def add(self, versions: Versions) -> None:
        """Versions that came after all that were added before."""
        count = versions.rows.num_rows
        if not count:
            return
        self._waiting.append(versions)
        self._fresh += count
        self.nbytes += versions.rows.nbytes
        if self._fresh >= max(self._fold_rows, self._folded):
            self.fold()

    def fold(self) -> None:
        """Fold what waits: afterwards no key is held twice, unless its versions are kept for the stored row."""
        if self._fresh:
            folded = self._fold()
            self._waiting, self.nbytes = [folded], folded.rows.nbytes
            self._folded, self._fresh = folded.rows.num_rows, 0

    def take(self) -> Versions:
        """What is held, folded. Nothing is held afterwards.

        To go on elsewhere, every later version must be added after these, one by one: two folds of different stretches
        cannot be folded into what one fold of all would be, as a record that came after a delete would lose to one
        that came before it.
        """
        folded = self._fold()
        self._waiting, self._folded, self._fresh, self.nbytes = [], 0, 0, 0
        return folded

    def finish(self) -> Incoming:
        """What the logs say: rows to write and tombstones. Nothing is held afterwards."""
        return self.take().incoming(self._rule)

    def _fold(self) -> Versions:
        if not self._waiting:
            return Versions(self._schema.empty_table())
        rows = pa.concat_tables([versions.rows for versions in self._waiting])
        deleted = _joined_mask([(versions.rows, versions.deleted) for versions in self._waiting])
        after_delete = _joined_mask([(versions.rows, versions.after_delete) for versions in self._waiting])
        groups = key_groups(rows, (RECORD_KEY,))
        if groups is None:
            return Versions(rows, deleted, after_delete)
        if not self._rule.keeps_versions:
            folded = fold(rows, groups, deleted, self._rule, after_delete)
            return Versions(folded.rows, folded.deleted, folded.after_delete)
        closed = np.zeros(int(groups.max()) + 1, np.bool_)  # a delete among its versions, so that they are folded
        for mask in (deleted, after_delete, self._rule.is_delete(rows)):
            if mask is not None:
                closed[groups[mask]] = True
        some = closed[groups]
        unfolded = Versions(rows).filter(~some)
        if not some.any():
            return unfolded
        part = Versions(rows, deleted, after_delete).filter(some)
        numbers = (np.cumsum(closed) - 1)[groups[some]]
        folded = fold(part.rows, numbers, part.deleted, self._rule, part.after_delete)
        parts = [Versions(folded.rows, folded.deleted, folded.after_delete), unfolded]
        return Versions(
            pa.concat_tables([versions.rows for versions in parts]),
            _joined_mask([(versions.rows, versions.deleted) for versions in parts]),
            _joined_mask([(versions.rows, versions.after_delete) for versions in parts]),
        )


def _joined_mask(parts: list[tuple[pa.Table, Mask | None]]) -> Mask | None:
    """The masks of several tables end to end; None when no table has one."""
    if all(mask is None for _, mask in parts):
        return None
    return np.concatenate([np.zeros(rows.num_rows, np.bool_) if mask is None else mask for rows, mask in parts])


def _ordering_values(deletes: pa.Table, count: int) -> list[pa.Table]:
    """The ordering values of deletes by ordering field, as tables of `ORDERING_VALUE`; null where there is none.

    count  of the ordering fields. Deletes with another number of values have none
    """
    if count == 1:
        none = as_array(without_ordering(deletes))
        single = deletes.select(ORDERING_VALUE.names)
        return [single.set_column(0, "ordering_class", pc.if_else(none, None, single.column(0)))]
    arrays = as_array(deletes["ordering_array"])
    full = pc.equal(pc.list_value_length(arrays), count).fill_null(False)
    elements = pc.list_flatten(arrays.filter(full))
    at = pc.if_else(full, pc.cumulative_sum(full.cast(pa.int64())), None)  # from 1
    return [
        pa.Table.from_struct_array(elements.take(pc.add(pc.multiply(pc.subtract(at, 1), count), number)))
        for number in range(count)
    ]


def _comparable(deletes: pa.Table, kind: pa.DataType, path: str) -> pa.Array:
    """The ordering values as the column's type, null where they are not of the Java class of the column's values."""
    if pa.types.is_dictionary(kind):
        return _comparable(deletes, kind.value_type, path).dictionary_encode().cast(kind)
    try:
        value_class = usual_class(kind)
    except SchemaMismatch:  # a column that orders nothing
        return pa.nulls(deletes.num_rows, kind)
    same = pc.equal(deletes["ordering_class"], pa.scalar(int(value_class), pa.int8()))
    values = as_array(pc.if_else(same, deletes[ORDERING_COLUMN[value_class]], None))
    try:
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            values = values.cast(pa.int32())
        return values.cast(kind)
    except pa.ArrowInvalid as problem:
        raise CorruptFile(
            path, f"a delete's ordering value of class {value_class.name} is no {kind}: {problem}"
        ) from None
