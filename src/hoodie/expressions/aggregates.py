"""Aggregates of subqueries, by groups of rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.expressions import kinds
from hoodie.expressions.casts import to_decimal
from hoodie.expressions.kinds import BIGINT, DOUBLE, is_decimal, is_float, is_integer
from hoodie.expressions.numbers import too_large
from hoodie.expressions.terms import one_array


@dataclass(frozen=True, slots=True)
class Aggregate:
    """What is made of the values of a group.

    kind   of the result
    takes  the type of the values
    make   of values and their groups, 0 up to a number of these: one value for each group, null where it has none
    """

    kind: pa.DataType
    takes: pa.DataType
    make: Callable[[pa.Array, npt.NDArray[np.int64], int], pa.Array]

    def of_groups(self, values: pa.Array, groups: npt.NDArray[np.int64], count: int) -> pa.Array:
        return self.make(values, groups, count)


def _grouped(values: pa.Array, groups: npt.NDArray[np.int64], count: int, function: str) -> pa.Array:
    rows = pa.table({"group": pa.array(groups), "value": values})
    groups_of_rows = rows.group_by("group", use_threads=False).aggregate([("value", function)])
    at = np.full(count, -1, np.int64)
    at[groups_of_rows.column("group").to_numpy()] = np.arange(groups_of_rows.num_rows)
    return one_array(groups_of_rows.column(f"value_{function}").take(pa.array(at, mask=at < 0)))


def _count(kind: pa.DataType) -> Aggregate:
    def make(values: pa.Array, groups: npt.NDArray[np.int64], count: int) -> pa.Array:
        valid = groups[np.asarray(values.is_valid())]
        return pa.array(np.bincount(valid, minlength=count).astype(np.int64))

    return Aggregate(BIGINT, kind, make)


def _extreme(greatest: bool) -> Callable[[pa.DataType], Aggregate | None]:
    def of_kind(kind: pa.DataType) -> Aggregate | None:
        if arrow.is_nested(kind):
            return None
        function = "max" if greatest else "min"

        def make(values: pa.Array, groups: npt.NDArray[np.int64], count: int) -> pa.Array:
            if not is_float(kind):
                return _grouped(values, groups, count, function)
            nan = pc.fill_null(pc.is_nan(values), False)  # greater than any number
            plain = _grouped(pc.if_else(nan, pa.scalar(None, kind), values), groups, count, function)
            has_nan = np.zeros(count, np.bool_)
            has_nan[groups[np.asarray(nan)]] = True
            takes = has_nan if greatest else has_nan & np.asarray(plain.is_null())
            return pc.if_else(pa.array(takes), pa.scalar(float("nan")).cast(kind), plain)

        return Aggregate(kind, kind, make)

    return of_kind


def _sum(kind: pa.DataType) -> Aggregate | None:
    if is_decimal(kind):
        target = pa.decimal128(min(38, kind.precision + 10), kind.scale)
    elif is_integer(kind):
        target = BIGINT
    elif is_float(kind) or kind in (kinds.TEXT, kinds.NULL):
        target = DOUBLE
    else:
        return None
    takes = kind if is_decimal(kind) else target

    def make(values: pa.Array, groups: npt.NDArray[np.int64], count: int) -> pa.Array:
        if target == DOUBLE:
            return _grouped(values, groups, count, "sum")
        scale = kind.scale if is_decimal(kind) else 0
        wide = values.cast(pa.decimal256(76, scale)) if is_decimal(kind) else _wide(values)
        sums = _grouped(wide, groups, count, "sum")
        fitting = to_decimal(sums, target) if is_decimal(target) else _as_bigint(sums)
        if fitting.null_count > sums.null_count:
            raise too_large(target, "sum")
        return fitting

    return Aggregate(target, takes, make)


def _wide(values: pa.Array) -> pa.Array:
    return values.cast(pa.decimal128(19, 0)).cast(pa.decimal256(76, 0))


def _as_bigint(values: pa.Array) -> pa.Array:
    fitting = to_decimal(values, pa.decimal128(19, 0))
    return fitting.cast(BIGINT, safe=True)


def _average(kind: pa.DataType) -> Aggregate | None:
    total = _sum(kind)
    if total is None or is_decimal(kind):
        return None  # Spark rounds those of decimals by rules of their own
    counted = _count(kind)

    def make(values: pa.Array, groups: npt.NDArray[np.int64], count: int) -> pa.Array:
        sums = _grouped(values, groups, count, "sum")
        counts: Any = counted.of_groups(values, groups, count)
        return pc.divide(sums, pc.if_else(pc.equal(counts, 0), pa.scalar(None, BIGINT), counts).cast(DOUBLE))

    return Aggregate(DOUBLE, DOUBLE, make)


AGGREGATES: Mapping[str, Callable[[pa.DataType], Aggregate | None]] = {
    "count": _count,
    "max": _extreme(True),
    "min": _extreme(False),
    "sum": _sum,
    **dict.fromkeys(("avg", "mean"), _average),
}
