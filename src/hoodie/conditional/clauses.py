"""What a merge is asked to do, as values: expressions are SQL text, or Columns of Spark's where Spark evaluates.
Also the columns that clauses assign, by their names.
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import pyarrow as pa

from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.expressions.text import columns_named, of_side, tick
from hoodie.expressions.typed import StructValue
from hoodie.model.meta import META_COLUMNS


class When(StrEnum):
    """The rows that a clause is about."""

    MATCHED = "matched"  # pairs of a source row and a row of the table
    NOT_MATCHED = "not matched"  # source rows without a row of the table
    BY_SOURCE = "not matched by source"  # rows of the table without a source row


class Act(StrEnum):
    """What a clause does with them."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN of a merge. The first clause about a row whose condition holds counts.

    condition  SQL text or a Column; None: always
    values     column of the table -> SQL text, Column or a plain Python value; None: each column has the source's of
               that name
    """

    when: When
    act: Act
    condition: Any = None
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A whole merge.

    source       a DataFrame of Spark's, or an Arrow table
    condition    what makes a source row and a row of the table a pair; None: they have the same key
    target_name  what expressions call the table
    source_name  what they call the source
    """

    source: Any
    condition: Any
    clauses: tuple[MergeClause, ...]
    target_name: str = "target"
    source_name: str = "source"

    @property
    def columns(self) -> tuple[str, ...]:
        """The source's."""
        return tuple(self.source.schema.names)

    def types_of(self, table: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """The table's columns; of a table that has none yet those that the source gives it, of no type."""
        return table or {name: pa.null() for name in self.columns if name not in META_COLUMNS}

    def clauses_of(self, when: When) -> tuple[MergeClause, ...]:
        return tuple(clause for clause in self.clauses if clause.when is when)


def with_names_of_one_side(request: MergeRequest, table_columns: Collection[str]) -> MergeRequest:
    """The merge, its clauses about one side with that side's name before its columns: those of the source where a row
    is inserted, those of the table where there is no source row."""
    own = {
        When.NOT_MATCHED: (request.columns, request.source_name, request.target_name),
        When.BY_SOURCE: (table_columns, request.target_name, request.source_name),
    }

    def named_clause(clause: MergeClause) -> MergeClause:
        if clause.when not in own:
            return clause
        columns, side, other = own[clause.when]

        def value_of_side(value: Any) -> Any:
            refuse_other_side(clause.when, value, columns, other)
            return of_side(value, columns, side, other) if isinstance(value, str) else value

        values = clause.values
        if values is not None:
            values = {name: value_of_side(value) for name, value in values.items()}
        return replace(clause, condition=value_of_side(clause.condition), values=values)

    return replace(request, clauses=tuple(map(named_clause, request.clauses)))


def refuse_other_side(when: When, value: Any, columns: Collection[str], other: str) -> None:
    """Raises InvalidInput on the text of a clause about rows of one side that names a column of the other one, which
    has no row there

    columns  of the one side
    """
    named = columns_named(value) if isinstance(value, str) else None
    if other.lower() in {column.lower() for column in columns}:  # a field of a struct of that name
        return
    if any(len(parts) > 1 and parts[0] == other.lower() for parts in named or ()):
        raise InvalidInput(f"{value!r}: WHEN {when.value.upper()} has no row of {other}")


def check_names(columns: Collection[str], what: str) -> None:
    """Raises InvalidInput naming columns that a frame has twice, whose values nobody can tell apart."""
    lower = [column.lower() for column in columns]
    if twice := sorted({column for column in lower if lower.count(column) > 1}):
        raise InvalidInput(f"{what} has more than one column of the name {', '.join(map(repr, twice))}")


def column_of(name: str, columns: Sequence[str], target: str) -> str:
    """The table's column that a clause names: `price`, `target.price`, in any case.

    Raises InvalidInput on one that is not there, or a field within one
    """
    column, *fields = path_of(name, columns, target)
    if fields:
        raise InvalidInput(
            f"{name!r}: a new row takes no field of a struct by itself; give the column {column!r} as a whole"
        )
    return column


def path_of(name: str, columns: Sequence[str], target: str) -> tuple[str, ...]:
    """The table's column that a clause names, and the field within it: `price`, `target.address.city`.

    Raises InvalidInput on a column that is not there
    """
    if not isinstance(name, str):
        raise InvalidInput(f"a column is named by text, not by {name!r}")
    parts = [part.strip("`") for part in name.strip().split(".")]
    if len(parts) > 1 and parts[0].lower() == target.lower():
        parts = parts[1:]
    by_lower_case = {column.lower(): column for column in columns}
    if match := by_lower_case.get(".".join(parts).lower()):
        return (match,)
    if match := by_lower_case.get(parts[0].lower()):
        return match, *parts[1:]
    near = difflib.get_close_matches(parts[-1].lower(), by_lower_case, n=1, cutoff=0.5)
    raise InvalidInput(
        f"the table has no column {name!r}. "
        + (f"Did you mean {by_lower_case[near[0]]!r}?" if near else f"It has {', '.join(columns) or 'none yet'}.")
    )


def values_by_column(values: Mapping[str, Any], types: Mapping[str, pa.DataType], target: str) -> dict[str, Any]:
    """Column of the table -> its value, of the columns that an update sets, or sets a field of.

    Raises InvalidInput naming a column or field that is not there, or is set twice
    """
    paths: dict[str, list[tuple[tuple[str, ...], Any]]] = {}
    for name, value in values.items():
        column, *fields = path_of(name, list(types), target)
        paths.setdefault(column, []).append((tuple(fields), value))
    return {name: _value(assigned, types[name], (target, name)) for name, assigned in paths.items()}


def _value(assigned: Sequence[tuple[tuple[str, ...], Any]], kind: pa.DataType, path: tuple[str, ...]) -> Any:
    """The value of a column or field: the stored one, another, or a struct of which fields are set."""
    if not assigned:
        return ".".join(map(tick, path))
    if len(assigned) == 1 and not assigned[0][0]:
        return assigned[0][1]
    column = ".".join(path[1:])
    if not all(fields for fields, _ in assigned):
        raise InvalidInput(f"column {column!r} is set twice")
    names = [field.name for field in kind] if pa.types.is_struct(kind) else []
    by_name: dict[str, list[tuple[tuple[str, ...], Any]]] = {name.lower(): [] for name in names}
    for (first, *rest), value in assigned:
        if first.lower() not in by_name:
            raise InvalidInput(
                f"{column}.{first}: {column!r} has no such field; it has {', '.join(names)}"
                if names
                else f"{column}.{first}: {column!r} is no struct, and a part of it cannot be set; set it as a whole"
            )
        by_name[first.lower()].append((tuple(rest), value))
    return StructValue({f.name: _value(by_name[f.name.lower()], f.type, (*path, f.name)) for f in kind})


def assignments(clause: MergeClause, request: MergeRequest, types: Mapping[str, pa.DataType]) -> dict[str, Any]:
    """Column of the table -> its value, of the columns that a clause assigns: all of them for `*`.

    types   of the table's columns
    Raises  InvalidInput naming columns that are not there, are assigned twice, or that the source of a `*` lacks
    """
    if clause.values is None:
        by_lower_case = {name.lower(): name for name in request.columns}
        missing = [name for name in types if name.lower() not in by_lower_case]
        if missing:
            word = "UPDATE SET *" if clause.act is Act.UPDATE else "INSERT *"
            raise SchemaMismatch(
                f"{word} takes each column of the table from the source, which lacks {', '.join(missing)}: "
                "add them, or name the columns and their values"
            )
        return {name: f"{tick(request.source_name)}.{tick(by_lower_case[name.lower()])}" for name in types}
    if clause.act is Act.INSERT:
        for name in clause.values:
            column_of(name, list(types), request.target_name)
    return values_by_column(clause.values, types, request.target_name)
