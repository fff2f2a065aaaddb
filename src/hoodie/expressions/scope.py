"""The names that an expression may use: columns of tables, and frames that its subqueries ask."""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput
from hoodie.expressions.kinds import DATE, TIMESTAMP, evaluated_kind
from hoodie.expressions.terms import Block, Name, Term, literal
from hoodie.model.meta import META_COLUMNS


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean, in whichever case.

    tables  by what expressions call them: their columns
    frames  that subqueries may select from, by name
    outer   of a subquery: what the query around it may use
    now     the moment that `current_timestamp` is, and `current_date` in UTC
    """

    tables: Mapping[str, pa.Schema]
    frames: Mapping[str, pa.Table] = field(default_factory=dict)
    outer: Scope | None = None
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    def within(self, name: str, schema: pa.Schema) -> Scope:
        """The scope of a subquery on one frame."""
        return replace(self, tables={name: schema}, outer=self)

    def column_names(self) -> set[str]:
        """The columns that an expression, or a subquery within it, may ask for."""
        schemas = (*self.tables.values(), *(frame.schema for frame in self.frames.values()))
        around = set() if self.outer is None else self.outer.column_names()
        return {name for schema in schemas for name in schema.names} | around

    def column(self, parts: Sequence[str], text: str) -> Term:
        """The column of a name, which may be dotted. Raises InvalidInput where there is none, or more than one"""
        scope: Scope | None = self
        while scope is not None:
            if (term := scope._column_here(parts, text)) is not None:
                return term
            scope = scope.outer
        if len(parts) == 1 and parts[0].lower() in ("current_date", "current_timestamp"):
            return self.moment(parts[0].lower())
        raise self._unknown(parts, text)

    def moment(self, name: str) -> Term:
        return literal(self.now.date(), DATE) if name == "current_date" else literal(self.now, TIMESTAMP)

    def _column_here(self, parts: Sequence[str], text: str) -> Term | None:
        frames: list[tuple[Name, Sequence[str]]] = []
        for table, schema in self.tables.items():
            if len(parts) > 1 and parts[0].lower() == table.lower() and (inner := _match_name(schema.names, parts[1])):
                return _field((table, inner), schema.field(inner).type, parts[2:], text)
            if own := _match_name(schema.names, parts[0]):
                frames.append(((table, own), parts[1:]))
        if len(frames) > 1:
            tables = " and ".join(name[0] for name, _ in frames)
            raise InvalidInput(
                f"{text!r}: the column {parts[0]!r} is of {tables}: say which, as in {frames[0][0][0]}.{parts[0]}"
            )
        if not frames:
            return None
        name, rest = frames[0]
        return _field(name, self.tables[name[0]].field(name[1]).type, rest, text)

    def _unknown(self, parts: Sequence[str], text: str) -> InvalidInput:
        tables = [name for name in self.tables if len(parts) > 1 and name.lower() == parts[0].lower()] or self.tables
        every = list(dict.fromkeys(name for table in tables for name in self.tables[table].names))
        is_field = _match_name(every, parts[0]) is not None
        if len(parts) > 1 and not is_field and not any(parts[0].lower() == name.lower() for name in self.tables):
            names = " and ".join(map(repr, self.tables))
            return InvalidInput(
                f"{text!r}: there is no table or struct {parts[0]!r} here, where columns are of {names}"
            )
        near = difflib.get_close_matches(parts[-1].lower(), [name.lower() for name in every], n=1, cutoff=0.5)
        hint = next((f"Did you mean {name!r}?" for name in every if near and name.lower() == near[0]), None)
        own = ", ".join(name for name in every if name not in META_COLUMNS)
        own = f"There are {own}" if own else "The first write of rows brings columns: the table has none yet"
        return InvalidInput(f"{text!r}: there is no column {'.'.join(parts)!r}. {hint or own}")


def _match_name(names: Sequence[str], name: str) -> str | None:
    if name in names:
        return name
    return next((one for one in names if one.lower() == name.lower()), None)


def _field(name: Name, kind: pa.DataType, path: Sequence[str], text: str) -> Term:
    """A column, or a field within it."""
    places: list[int] = []
    for part in path:
        fields = [kind.field(at).name for at in range(kind.num_fields)] if arrow.is_struct(kind) else []
        inner = _match_name(fields, part)
        if inner is None:
            raise InvalidInput(f"{text!r}: {name[1]} ({kind}) has no field {part!r}")
        places.append(fields.index(inner))
        kind = kind.field(places[-1]).type
    value_kind = evaluated_kind(kind)

    def run(block: Block) -> pa.Array:
        values = pc.struct_field(block.column(name), places) if places else block.column(name)
        return values if value_kind == kind else values.cast(value_kind)

    return Term(value_kind, run, frozenset({name}))
