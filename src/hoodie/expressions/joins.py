"""Pairs of rows that a condition finds: by equal values where it says so, else by looking at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.expressions import kinds
from hoodie.expressions.terms import Block, Name, Term, is_true, spread

_Places = npt.NDArray[np.int64]

#: Pairs that are looked at together.
_MOST = 1 << 18


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One of the conditions that AND joins.

    equal  the two sides that it says are equal, in one type; None: it says something else
    """

    term: Term
    equal: tuple[Term, Term] | None = None


@dataclass(frozen=True, slots=True)
class Pairs:
    """Places of rows, one of each side."""

    left: _Places
    right: _Places


def tables_of(term: Term) -> frozenset[str]:
    return frozenset(table for table, _ in term.columns)


def pairs(left: Block, right: Block, conjuncts: Sequence[Conjunct], left_tables: frozenset[str]) -> Pairs:
    """All pairs for which the conjuncts are true.

    left_tables  names of the columns of `left`; all others are `right`'s
    """
    keys, others = [], []
    for conjunct in conjuncts:
        sides = _sides(conjunct, left_tables)
        if sides is None:
            others.append(conjunct.term)
        else:
            keys.append(sides)
    matches = list(_filtered(left, right, _candidates(left, right, keys), others, left_tables))
    if not matches:
        empty = np.zeros(0, np.int64)
        return Pairs(empty, empty)
    return Pairs(np.concatenate([one.left for one in matches]), np.concatenate([one.right for one in matches]))


def paired_rows(left: Block, right: Block, matches: Pairs, left_tables: frozenset[str]) -> Block:
    """The rows of pairs as one block."""
    sides = left.take(pa.array(matches.left)), right.take(pa.array(matches.right))

    def column(name: Name) -> pa.Array:
        return sides[name[0] not in left_tables].column(name)

    return Block(len(matches.left), column)


def _sides(conjunct: Conjunct, left_tables: frozenset[str]) -> tuple[Term, Term] | None:
    if conjunct.equal is None:
        return None
    one, other = conjunct.equal
    first, second = tables_of(one), tables_of(other)
    if not first or not second:
        return None
    if first <= left_tables and not second & left_tables:
        return one, other
    if second <= left_tables and not first & left_tables:
        return other, one
    return None


def _candidates(left: Block, right: Block, keys: Sequence[tuple[Term, Term]]) -> Iterator[Pairs]:
    if not left.length or not right.length:
        return
    if not keys:
        step = max(1, _MOST // right.length)
        for start in range(0, left.length, step):
            rows = np.arange(start, min(start + step, left.length))
            yield Pairs(np.repeat(rows, right.length), np.tile(np.arange(right.length), len(rows)))
        return
    names = [f"k{place}" for place in range(len(keys))]
    tables = [
        pa.table(
            [pa.array(np.arange(block.length)), *(_key(key[side].run(block), block) for key in keys)], [at, *names]
        )
        for side, (block, at) in enumerate(((left, "l"), (right, "r")))
    ]
    joined = tables[0].join(tables[1], names, join_type="inner", use_threads=False)
    rows, others = (joined.column(at).to_numpy() for at in ("l", "r"))
    order = np.lexsort((others, rows))
    for start in range(0, len(order), _MOST):
        part = order[start : start + _MOST]
        yield Pairs(rows[part], others[part])


def _key(value: pa.Array | pa.Scalar, block: Block) -> pa.Array:
    """Values that Arrow finds equal where SQL does: one zero, and one NaN."""
    values = spread(value, block.length)
    if not kinds.is_float(values.type):
        return values
    numbers = values.cast(kinds.DOUBLE)
    zero = pc.if_else(pc.equal(numbers, 0.0), 0.0, numbers)
    nan = pc.fill_null(pc.is_nan(zero), False)
    # Bits, as of NaN Arrow compares these.
    return pc.if_else(nan, pa.scalar(float("nan")), zero).view(pa.int64())


def _filtered(
    left: Block, right: Block, candidates: Iterator[Pairs], others: Sequence[Term], left_tables: frozenset[str]
) -> Iterator[Pairs]:
    for matches in candidates:
        for term in others:
            block = paired_rows(left, right, matches, left_tables)
            keep = is_true(term.run(block), block.length)
            matches = Pairs(matches.left[keep], matches.right[keep])
        yield matches
