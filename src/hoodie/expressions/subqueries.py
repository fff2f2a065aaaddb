"""Subqueries on a frame: IN, EXISTS and a single value, also where they ask about the row outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from hoodie.errors import InvalidInput
from hoodie.expressions import compare, kinds
from hoodie.expressions.aggregates import AGGREGATES, Aggregate
from hoodie.expressions.casts import cast
from hoodie.expressions.joins import Conjunct, Pairs, paired_rows, pairs, tables_of
from hoodie.expressions.kinds import BOOL, INT
from hoodie.expressions.parser import exp
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, Mask, Name, Term, Value, elementwise, is_true, literal, spread


class NodeReader(Protocol):
    """What reads the nodes of a text: `reader.Reader`."""

    @property
    def text(self) -> str: ...
    @property
    def scope(self) -> Scope: ...
    def term(self, node: Any) -> Term: ...
    def conjuncts(self, node: Any) -> list[Conjunct]: ...
    def refused(self, node: Any, why: str = "") -> InvalidInput: ...
    def within(self, scope: Scope) -> NodeReader: ...


_READ = {"expressions", "from_", "from", "where", "kind", "hint", "operation_modifiers"}


@dataclass(frozen=True, slots=True)
class _Query:
    """A subquery on one frame.

    rows     of the frame, those that what is asked of the frame alone keeps
    about    what is asked of pairs of these and the rows outside
    columns  that these ask of the rows outside
    select   what it selects of a row
    """

    name: str
    rows: Block
    about: tuple[Conjunct, ...]
    columns: frozenset[Name]
    select: Term
    aggregate: Aggregate | None = None
    fails: bool = False

    def pairs(self, block: Block) -> Pairs:
        outside = frozenset(table for table, _ in self.columns)
        return pairs(block, self.rows, self.about, outside)


def _query(reader: NodeReader, node: Any) -> _Query:
    while isinstance(node, (exp.Subquery, exp.Paren)):
        node = node.this
    source = node.args.get("from_") or node.args.get("from")
    if not isinstance(node, exp.Select) or source is None or not isinstance(source.this, exp.Table):
        raise reader.refused(node, "a subquery selects from one frame, with WHERE at most")
    if more := [word for word, value in node.args.items() if value and word not in _READ]:
        raise reader.refused(node, f"a subquery without Spark has no {more[0].upper()}")
    frame_name, alias = source.this.name, source.this.alias_or_name
    frames = {name.lower(): frame for name, frame in reader.scope.frames.items()}
    frame = frames.get(frame_name.lower())
    if frame is None:
        frame_names = ", ".join(reader.scope.frames) or "none: frames={'name': rows} gives one"
        raise InvalidInput(f"{reader.text!r}: there is no frame {frame_name!r}; there are {frame_names}")
    if any(alias.lower() == name.lower() for name in reader.scope.tables):
        raise InvalidInput(f"{reader.text!r}: the frame {alias!r} has the name of the table: give it another by AS")
    if len(node.expressions) != 1:
        raise reader.refused(node, "a subquery selects one column")
    inner = reader.within(reader.scope.within(alias, frame.schema))
    where = node.args.get("where")
    conjuncts = [] if where is None else inner.conjuncts(where.this)
    block = Block.of({alias: frame})
    about: list[Conjunct] = []
    for conjunct in conjuncts:
        if tables_of(conjunct.term) <= {alias}:
            keep = is_true(conjunct.term.run(block), block.length)
            block = block.take(pa.array(np.flatnonzero(keep)))
        else:
            about.append(conjunct)
    columns = frozenset(name for one in about for name in one.term.columns if name[0] != alias)
    selected, aggregate = _selected(inner, node.expressions[0])
    if not tables_of(selected) <= {alias}:
        raise reader.refused(node, "what a subquery selects is of its own frame")
    return _Query(alias, block, tuple(about), columns, selected, aggregate, any(c.term.fails for c in about))


def _selected(reader: NodeReader, node: Any) -> tuple[Term, Aggregate | None]:
    if isinstance(node, exp.Alias):
        node = node.this
    if isinstance(node, exp.Star):
        return literal(1, INT), None
    if isinstance(node, exp.Anonymous) and (make := AGGREGATES.get(str(node.this).lower())) is not None:
        if len(node.expressions) != 1:
            raise reader.refused(node)
        argument = node.expressions[0]
        term = literal(1, INT) if isinstance(argument, exp.Star) else reader.term(argument)
        aggregate = make(term.kind)
        if aggregate is None:
            raise reader.refused(node, "there is none of this type")
        return cast(term, aggregate.takes), aggregate
    return reader.term(node), None


def exists(reader: NodeReader, node: Any) -> Term:
    """EXISTS."""
    query = _query(reader, node)
    if query.aggregate is not None:
        return literal(True, BOOL)
    if not query.about:
        return literal(query.rows.length > 0, BOOL)

    def run(block: Block) -> Value:
        held: Mask = np.zeros(block.length, np.bool_)
        held[query.pairs(block).left] = True
        return pa.array(held)

    return Term(BOOL, run, query.columns, query.fails)


def among_rows(reader: NodeReader, node: Any, subquery: Any) -> Term:
    """IN a subquery: unknown where it is not among its values and one of these, or itself, is null."""
    query, value = _query(reader, subquery), reader.term(node)
    if query.aggregate is not None:
        return compare.in_list(value, [single_value(reader, subquery)])
    one, other, kind = compare.comparable_terms(value, query.select)
    if not query.about:
        options = spread(other.run(query.rows), query.rows.length)
        if kind != kinds.NULL:
            distinct = options.unique()
            run = elementwise(lambda values: compare.member(values, distinct))
            return Term(BOOL, lambda block: run(one.run(block)), one.columns, one.fails)
    equal = compare.comparison("=", one, other)
    outside = query.columns | one.columns

    def correlated(block: Block) -> Value:
        tables = frozenset(table for table, _ in outside)
        matches = pairs(block, query.rows, query.about, tables)
        answers = spread(equal.run(paired_rows(block, query.rows, matches, tables)), len(matches.left))
        true, unknown = np.zeros(block.length, np.bool_), np.zeros(block.length, np.bool_)
        true[matches.left[is_true(answers, len(matches.left))]] = True
        unknown[matches.left[np.asarray(answers.is_null())]] = True
        return pa.array(true, BOOL, mask=unknown & ~true)

    return Term(BOOL, correlated, outside, one.fails or query.fails or query.select.fails)


def single_value(reader: NodeReader, node: Any) -> Term:
    """A subquery that stands for a value: of one row, or an aggregate."""
    query = _query(reader, node)
    if query.aggregate is None:
        if query.about:
            raise reader.refused(node, "such a value is an aggregate, as max(…), where it asks about the row outside")
        if query.rows.length > 1:
            problem = f"gives {query.rows.length} rows: take an aggregate, as (SELECT max(…) FROM …)"
            raise InvalidInput(f"{reader.text!r}: a subquery that stands for a value {problem}")
        values = spread(query.select.run(query.rows), query.rows.length)
        scalar = values[0] if len(values) else pa.scalar(None, query.select.kind)
        return Term(query.select.kind, lambda block: scalar)
    aggregate = query.aggregate
    values = spread(query.select.run(query.rows), query.rows.length)
    if not query.about:
        groups = np.zeros(query.rows.length, np.int64)
        scalar = aggregate.of_groups(values, groups, 1)[0]
        return Term(aggregate.kind, lambda block: scalar)

    def run(block: Block) -> Value:
        matches = query.pairs(block)
        return aggregate.of_groups(values.take(pa.array(matches.right)), matches.left, block.length)

    return Term(aggregate.kind, run, query.columns, True)
