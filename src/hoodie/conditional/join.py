"""The rows that the clauses of a merge are about, by a join of its source with the table, which is read in parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.conditional.clauses import Act, MergeRequest, When, assignments, refuse_other_side
from hoodie.conditional.rows import (
    TableCall,
    assigned_terms,
    column_values,
    condition_term,
    scanned_tables,
    target_scan,
)
from hoodie.conditional.shape import TableShape
from hoodie.conditional.target import MergeTarget
from hoodie.errors import InvalidInput
from hoodie.expressions.compare import comparator
from hoodie.expressions.joins import Conjunct, paired_rows, pairs
from hoodie.expressions.reader import read_conjuncts
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, Name, Term, is_true, spread
from hoodie.expressions.text import tick
from hoodie.merge.rows import RowAction
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.scan import ScanPlan
from hoodie.table.state import TableState

#: Rows of the table that are joined at once.
_PART_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class JoinedPart:
    """Rows that one clause is about.

    columns   the values that it gives them, by column of the table
    old_key, old_path  of the row of the table; null of a new one
    """

    columns: Mapping[str, pa.Array]
    action: pa.Array
    old_key: pa.Array
    old_path: pa.Array


@dataclass(frozen=True, slots=True)
class JoinedRows:
    """What a join makes of a merge.

    schema  the columns of the rows
    state   the table that was read
    parts   the rows, read once
    """

    schema: pa.Schema
    state: TableState
    parts: Iterator[JoinedPart]


@dataclass(frozen=True, slots=True)
class _Clause:
    condition: Term
    act: Act
    values: Mapping[str, Term]


@dataclass(frozen=True, slots=True)
class _Join:
    request: MergeRequest
    shape: TableShape
    schema: pa.Schema
    table_schema: pa.Schema
    conjuncts: Sequence[Conjunct]
    clauses: Mapping[When, Sequence[_Clause]]
    source: Block

    def parts(self, scan: ScanPlan) -> Iterator[JoinedPart]:
        matched = np.zeros(self.source.length, np.bool_)
        for table in _in_parts(scanned_tables(scan)):
            target = Block.of({self.request.target_name: table})
            sides = frozenset({self.request.source_name})
            matches = pairs(self.source, target, self.conjuncts, sides)
            matched[matches.left] = True
            keys = _keys(table, matches.right)
            yield from self._joined_parts(When.MATCHED, paired_rows(self.source, target, matches, sides), keys)
            if self.clauses[When.BY_SOURCE]:
                alone = np.ones(table.num_rows, np.bool_)
                alone[matches.right] = False
                places = np.flatnonzero(alone)
                yield from self._joined_parts(When.BY_SOURCE, self._unpartnered(target, places), _keys(table, places))
        places = np.flatnonzero(~matched)
        none = pa.nulls(len(places), pa.string())
        yield from self._joined_parts(When.NOT_MATCHED, self._unpartnered(self.source, places), (none, none))

    def _unpartnered(self, block: Block, places: npt.NDArray[np.int64]) -> Block:
        """Rows without a partner, whose columns are null."""
        rows, of_source = block.take(pa.array(places)), block is self.source

        def column(name: Name) -> pa.Array:
            if (name[0] == self.request.source_name) is of_source:
                return rows.column(name)
            other = self.table_schema if of_source else self.request.source.schema
            return pa.nulls(len(places), other.field(name[1]).type)

        return Block(len(places), column)

    def _joined_parts(self, when: When, rows: Block, keys: tuple[pa.Array, pa.Array]) -> Iterator[JoinedPart]:
        """The rows by the first clause that is about them."""
        rest = np.arange(rows.length)
        for clause in self.clauses[when]:
            if not len(rest):
                return
            remaining_rows = rows.take(pa.array(rest))
            takes = is_true(clause.condition.run(remaining_rows), remaining_rows.length)
            places = pa.array(rest[takes])
            rest = rest[~takes]
            if len(places):
                yield self._part(clause, rows.take(places), keys[0].take(places), keys[1].take(places))

    def _part(self, clause: _Clause, rows: Block, key: pa.Array, path: pa.Array) -> JoinedPart:
        columns = {field.name: self._value(clause, rows, field) for field in self.schema}
        action = RowAction.DELETE if clause.act is Act.DELETE else RowAction.WRITE
        return JoinedPart(columns, pa.array(np.full(rows.length, int(action), np.int8)), key, path)

    def _value(self, clause: _Clause, rows: Block, field: pa.Field) -> pa.Array:
        def stored_values() -> pa.Array:
            return rows.column((self.request.target_name, field.name)).cast(field.type)

        term = clause.values.get(field.name)
        if term is None:
            return pa.nulls(rows.length, field.type) if clause.act is Act.INSERT else stored_values()
        values = column_values(term, rows, field)
        if clause.act is Act.INSERT or self.shape.one_text or field.name not in self.shape.identity:
            return values
        # As the row has them where they are equal: of 0.0 and -0.0 the key has another text.
        same = is_true(comparator("=", field.type)(values, stored_values()), rows.length)
        return pc.if_else(pa.array(same), stored_values(), values)


def joined_rows(call: TableCall, target: MergeTarget, request: MergeRequest) -> JoinedRows:
    """Plan the join. Raises InvalidInput, SchemaMismatch: the texts of the merge cannot be meant"""
    shape, declared = target.shape, target.declared
    types = request.types_of(shape.types)
    # A table without columns gets those of the source.
    table_schema = declared or pa.schema([request.source.schema.field(name) for name in types])
    scope = Scope({request.source_name: request.source.schema, request.target_name: table_schema}, call.frames)
    sides = {When.NOT_MATCHED: request.source_name, When.BY_SOURCE: request.target_name}
    clauses: dict[When, list[_Clause]] = {when: [] for when in When}
    for clause in request.clauses:
        side = sides.get(clause.when)  # names without a table are those of the one side that has a row
        own = scope if side is None else scope.within(side, scope.tables[side])
        values: Mapping[str, Any] = {}
        if clause.act is not Act.DELETE:
            values = assignments(clause, request, types)
        if side is not None:
            other = request.target_name if side == request.source_name else request.source_name
            for text in (clause.condition, *(clause.values or {}).values()):
                refuse_other_side(clause.when, text, scope.tables[side].names, other)
        terms = assigned_terms(values, declared, own)
        condition = condition_term(clause.condition, own)
        clauses[clause.when].append(_Clause(condition, clause.act, terms))
    text = _condition(request, shape)
    assigned = {name for group in clauses.values() for clause in group for name in clause.values}
    schema = pa.schema([field.with_nullable(True) if field.name in assigned else field for field in table_schema])
    source = Block.of({request.source_name: request.source})
    join = _Join(request, shape, schema, table_schema, read_conjuncts(text, scope), clauses, source)
    pruning = None if clauses[When.BY_SOURCE] else text
    scan = target_scan(target, pruning, scope, request.target_name, None if declared is None else declared.names)
    return JoinedRows(schema, scan.state, join.parts(scan))


def _condition(request: MergeRequest, shape: TableShape) -> str:
    if request.condition is not None:
        if not isinstance(request.condition, str):
            raise InvalidInput("the condition of a merge on a table without Spark is SQL text")
        return request.condition
    paths = [".".join(map(tick, name.split("."))) for name in shape.identity]
    return " AND ".join(f"{tick(request.source_name)}.{path} = {tick(request.target_name)}.{path}" for path in paths)


def _keys(table: pa.Table, places: npt.NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    key, path = (spread(table.column(name).combine_chunks(), table.num_rows) for name in (RECORD_KEY, PARTITION_PATH))
    return key.take(pa.array(places)), path.take(pa.array(places))


def _in_parts(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The tables, small ones together."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(part.num_rows for part in held) >= _PART_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
