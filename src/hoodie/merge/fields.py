"""Rows made of two versions: the leading row's values, where they are missing the other's."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.merge.ordering import order_ranks
from hoodie.merge.presence import PRESENT, held_by_any, held_by_either, held_columns
from hoodie.merge.rows import Mask, Positions, as_mask, pick_column
from hoodie.merge.rules import Choice, Choices, Combined, Fill, MergeRule
from hoodie.model.meta import META_COLUMNS


def merge_fields(rule: MergeRule, older: pa.Table, newer: pa.Table, newer_leads: Mask, choice: Choices) -> Combined:
    """The outcome in which the pairs marked MERGED take each value from the leading row or, if missing, the other.

    Meta columns are the newer row's whichever leads, as the row was written by its commit, unless the rule has them go
    with the leading row. A pair led by a newer row that misses nothing becomes TAKE, one to which the newer row adds
    nothing at all KEEP.

    newer_leads  bool[n]: whether the newer row's values go first
    choice       int8[n] of Choice
    """
    pairs = np.flatnonzero(choice == Choice.MERGED)
    if not len(pairs):
        return Combined(choice)
    if len(pairs) < len(choice):
        taken = pa.array(pairs)
        older, newer, newer_leads = older.take(taken), newer.take(taken), newer_leads[pairs]
    older_lacks, newer_lacks = _Lacking(older, rule), _Lacking(newer, rule)
    names = _columns(older)
    wants_older = np.zeros((len(names), len(pairs)), np.bool_)
    for i, name in enumerate(names):
        wants_older[i] = newer_lacks(i)
        if (rule.leader_meta or name not in META_COLUMNS) and not newer_leads.all():
            wants_older[i] = np.where(newer_leads, wants_older[i], ~older_lacks(i) | wants_older[i])
    mixed = wants_older.any(axis=0)
    choice = choice.copy()
    choice[pairs[~mixed]] = Choice.TAKE
    if rule.leader_meta:
        unchanged = wants_older.all(axis=0)
        choice[pairs[unchanged]] = Choice.KEEP
        mixed &= ~unchanged
    if not mixed.any():
        return Combined(choice)
    rows = np.flatnonzero(mixed)
    columns = [_choose(older.column(i), newer.column(i), wants_older[i][rows], rows) for i in range(len(names))]
    if rule.partial:
        columns.append(held_by_either(older, newer).take(pa.array(rows)))
    return Combined(choice, pa.Table.from_arrays(columns, schema=newer.schema))


def fold_fields(rows: pa.Table, groups: Positions, rule: MergeRule) -> pa.Table:
    """What `merge_fields` makes of all versions of each group, one after the other, when none is a delete.

    A version leads if no earlier one has a greater ordering value. A later leading version that has a value puts it
    over what was there, any other version only fills what was missing: hence each value is that of the last leading
    version that has one, else of the first version that has one. In meta columns every version leads, unless the rule
    has them go with the leading one.

    rows    versions by group, in the order of their arrival within it
    groups  int64[n] 0, 0, ..., 1, ...: dense and rising
    """
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    if len(starts) == rows.num_rows:
        return rows
    ranks = np.unique(order_ranks([rows], rule.ordering), return_inverse=True)[1].reshape(-1)
    ordered = groups * (int(ranks.max()) + 1) + ranks
    leads = ordered >= np.maximum.accumulate(ordered)
    positions, lacks = np.arange(rows.num_rows), _Lacking(rows, rule)
    columns = []
    for i, name in enumerate(_columns(rows)):
        has = ~lacks(i)
        puts = has if name in META_COLUMNS and not rule.leader_meta else has & leads
        last = np.maximum.reduceat(np.where(puts, positions, -1), starts)
        first = np.minimum.reduceat(np.where(has, positions, rows.num_rows), starts)
        source = np.where(last >= 0, last, np.where(first < rows.num_rows, first, starts))
        columns.append(pick_column([rows.column(i)], pa.array(source)))
    if rule.partial:
        columns.append(held_by_any(rows, starts))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _choose(older: pa.ChunkedArray, newer: pa.ChunkedArray, wants_older: Mask, rows: np.ndarray) -> pa.Array:
    return pick_column([older, newer], pa.array(np.where(wants_older, rows, rows + len(older))))


def _columns(rows: pa.Table) -> list[str]:
    return [name for name in rows.column_names if name != PRESENT]


class _Lacking:
    """Where the values of rows give way to another row's."""

    def __init__(self, rows: pa.Table, rule: MergeRule) -> None:
        self._rows, self._fill, self._defaults = rows, rule.fill, dict(rule.defaults)
        self._unavailable = rule.unavailable
        self._held = held_columns(rows) if rule.partial else None

    def __call__(self, column: int) -> Mask:
        """bool[n], of a column by its number."""
        if self._fill is None:
            filled = np.zeros(self._rows.num_rows, np.bool_)
        else:
            default = self._defaults.get(self._rows.column_names[column])
            filled = _missing(self._rows.column(column), self._fill, default, self._unavailable)
        return filled if self._held is None else filled | ~self._held[column]


def _missing(column: pa.ChunkedArray, fill: Fill, default: object, unavailable: str) -> Mask:
    """bool[n]: where a value gives way to the other row's."""
    if fill is Fill.UNAVAILABLE:
        return _equals(column, unavailable) if _is_text(column.type) else np.zeros(len(column), np.bool_)
    if fill is Fill.NULLS or default is None:
        return as_mask(column.is_null()) if column.null_count else np.zeros(len(column), np.bool_)
    return _equals(column, default)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(is_kind(kind) for is_kind in kinds)


def _equals(column: pa.ChunkedArray, value: object) -> Mask:
    """bool[n]: where the column holds a value given as JSON has it; null does not."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _equals(column.cast(kind.value_type), value)
    if pa.types.is_nested(kind):
        empty = value in ("[]", "{}") and (pa.types.is_list(kind) or pa.types.is_map(kind))
        return as_mask(pc.equal(pc.list_value_length(column), 0)) if empty else np.zeros(len(column), np.bool_)
    scalar = _as_scalar(value, kind)
    return np.zeros(len(column), np.bool_) if scalar is None else as_mask(pc.equal(column, scalar))


def _as_scalar(value: object, kind: pa.DataType) -> pa.Scalar | None:
    """A default as JSON has it, as a value of the type; None when it is of another type and equals no value."""
    try:
        if isinstance(value, str) and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            return pa.scalar(value.encode("latin-1"), kind)
        if isinstance(value, str) and pa.types.is_decimal(kind):
            unscaled = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            return pa.scalar(Decimal(unscaled).scaleb(-kind.scale), kind)
        if isinstance(value, int) and pa.types.is_temporal(kind):
            return pa.scalar(value, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
        return pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        return None
