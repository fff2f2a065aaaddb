"""What a SQL expression is once it is read: a type, and a function of the rows of a block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput

#: A column of one of the tables that an expression is about: (table, column), as they are written there.
Name: TypeAlias = tuple[str, str]
#: An array with a value for each row, or one scalar that stands for all of them.
Value: TypeAlias = pa.Array | pa.Scalar
Mask: TypeAlias = npt.NDArray[np.bool_]


class Block:
    """Some rows, whose columns are fetched when an expression asks for them."""

    def __init__(self, length: int, fetch: Callable[[Name], pa.Array]) -> None:
        self.length = length
        self._fetch = fetch
        self._columns: dict[Name, pa.Array] = {}

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table]) -> Block:
        """The rows of tables that lie side by side: all have as many."""
        length = next(iter(tables.values())).num_rows
        return cls(length, lambda name: one_array(tables[name[0]].column(name[1])))

    def column(self, name: Name) -> pa.Array:
        if name not in self._columns:
            self._columns[name] = self._fetch(name)
        return self._columns[name]

    def take(self, rows: pa.Array) -> Block:
        """The rows at these places."""
        return Block(len(rows), lambda name: self.column(name).take(rows))


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """An expression with a type.

    kind     Arrow type of its values; null of a bare NULL
    run      its values for the rows of a block. Raises InvalidInput where Spark fails: a number too large, text that
             is no number
    columns  that it asks for
    fails    `run` may raise: it is asked only for the rows that need it, as CASE and AND have it
    literal  the value that a literal has in Python; None of other expressions
    """

    kind: pa.DataType
    run: Callable[[Block], Value]
    columns: frozenset[Name] = frozenset()
    fails: bool = False
    literal: Any = field(default=None)


#: One row without columns: what constants are evaluated on.
NOTHING = Block(1, lambda name: pa.nulls(1))


def literal(value: Any, kind: pa.DataType) -> Term:
    """A literal."""
    scalar = _scalar(value, kind)
    return Term(kind, lambda block: scalar, literal=value)


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """As `pyarrow.scalar`, which imports pandas where it is installed: that takes longer than to read a small table."""
    if isinstance(value, Decimal):
        return _scalar(f"{value:f}", pa.string()).cast(kind)
    if isinstance(value, (int, float)) and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
        buffers = [None, pa.py_buffer(np.array([value], f"{letter}{kind.bit_width // 8}"))]
    elif isinstance(value, str) and kind == pa.string():
        data = value.encode()
        buffers = [None, pa.py_buffer(np.array([0, len(data)], np.int32)), pa.py_buffer(data)]
    else:
        return pa.scalar(value, kind)
    return pa.Array.from_buffers(kind, 1, buffers)[0]


def computed(kind: pa.DataType, kernel: Callable[..., Value], *of: Term, fails: bool = False) -> Term:
    """What a function makes of the values of other terms. Made once where they are constants."""
    columns = frozenset[Name]().union(*(term.columns for term in of))
    may_fail = fails or any(term.fails for term in of)

    def run(block: Block) -> Value:
        return kernel(*(term.run(block) for term in of))

    if not columns and not any(term.fails for term in of) and _all_scalars(of):
        try:
            value = run(NOTHING)
        except InvalidInput:  # it is one where a row needs it
            return Term(kind, run, columns, True)
        scalar = value if isinstance(value, pa.Scalar) else value[0]
        return Term(kind, lambda block: scalar)
    return Term(kind, run, columns, may_fail)


def zero(kind: pa.DataType) -> pa.Scalar:
    """The number 0 in a type."""
    return pa.scalar(Decimal(0) if pa.types.is_decimal(kind) else 0, kind)


def _all_scalars(of: Sequence[Term]) -> bool:
    return all(isinstance(term.run(NOTHING), pa.Scalar) for term in of)


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array."""
    if isinstance(values, pa.ChunkedArray):
        return (
            values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks or [pa.nulls(0, values.type)])
        )
    return values


def spread(value: Value, length: int) -> pa.Array:
    """An array of so many values."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, length) if value.is_valid else pa.nulls(length, value.type)
    return one_array(value)


def elementwise(kernel: Callable[..., pa.Array]) -> Callable[..., Value]:
    """A function of arrays as one of values: a scalar becomes an array, and all scalars make a scalar."""

    def run(*values: Value) -> Value:
        lengths = [len(value) for value in values if not isinstance(value, pa.Scalar)]
        results = kernel(*(spread(value, lengths[0] if lengths else 1) for value in values))
        return results if lengths else results[0]

    return run


def null_where(mask: pa.Array, values: pa.Array) -> pa.Array:
    """The values, null where the mask is true."""
    return pc.if_else(mask, pa.scalar(None, values.type), values)


def is_true(value: Value, length: int) -> Mask:
    """bool[length]: where a condition is true; null is not."""
    mask: Mask = np.asarray(spread(value, length).fill_null(False))
    return mask


def by_distinct(values: pa.Array, kind: pa.DataType, function: Callable[[Any], Any]) -> pa.Array:
    """What a function of Python's makes of each value that occurs, called once for each; null for null."""
    encoded = values.dictionary_encode()
    try:
        distinct = encoded.dictionary.to_pylist()
    except OverflowError as problem:
        raise InvalidInput("a date or time is beyond the years 1 to 9999") from problem
    results = pa.array([function(value) for value in distinct], kind)
    return one_array(results.take(encoded.indices))


def first_of(choices: Sequence[tuple[Term | None, Term]], otherwise: Term) -> Callable[[Block], Value]:
    """CASE: for each row the value of the first condition that is true. Values are evaluated for the rows that take
    them, and conditions for the rows that none before took, where they may fail.

    choices  condition, or None where the value counts if it is not null; all values have the type of `otherwise`
    """

    def run(block: Block) -> Value:
        rest = np.arange(block.length)
        places: list[npt.NDArray[np.int64]] = []
        parts: list[pa.Array] = []
        for condition, term in [*choices, (None, otherwise)]:
            if not len(rest):
                break
            part = block if len(rest) == block.length else block.take(pa.array(rest))
            if condition is None:
                values = spread(term.run(part), part.length)
                taken = np.asarray(values.is_valid()) if term is not otherwise else np.ones(part.length, np.bool_)
                values = values if taken.all() else values.filter(pa.array(taken))
            else:
                taken = is_true(condition.run(part), part.length)
                if not taken.any():
                    continue
                chosen = part if taken.all() else part.take(pa.array(np.flatnonzero(taken)))
                values = spread(term.run(chosen), chosen.length)
            places.append(rest[taken])
            parts.append(values)
            rest = rest[~taken]
        if not parts:
            return pa.nulls(0, otherwise.kind)
        order = np.empty(block.length, np.int64)
        order[np.concatenate(places)] = np.arange(block.length)
        return pa.concat_arrays(parts).take(pa.array(order))

    return run
