"""What a merge is asked to do, as values: expressions are SQL text, or Columns of Spark's where Spark evaluates.
Also the columns that clauses assign, by their names.
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hoodie.errors import InvalidInput, SchemaMismatch
from hoodie.expressions.text import columns_named, of_side, tick


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

    def about(self, when: When) -> tuple[MergeClause, ...]:
        return tuple(clause for clause in self.clauses if clause.when is when)


def with_names_of_one_side(request: MergeRequest, table_columns: Collection[str]) -> MergeRequest:
    """The merge, its clauses about one side with that side's name before its columns: those of the source where a row
    is inserted, those of the table where there is no source row."""
    own = {
        When.NOT_MATCHED: (request.columns, request.source_name, request.target_name),
        When.BY_SOURCE: (table_columns, request.target_name, request.source_name),
    }

    def named(clause: MergeClause) -> MergeClause:
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

    return replace(request, clauses=tuple(map(named, request.clauses)))


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
    if not isinstance(name, str):
        raise InvalidInput(f"a column is named by text, not by {name!r}")
    parts = [part.strip("`") for part in name.strip().split(".")]
    if len(parts) > 1 and parts[0].lower() == target.lower():
        parts = parts[1:]
    known = {column.lower(): column for column in columns}
    if len(parts) > 1 and parts[0].lower() in known:
        raise InvalidInput(f"{name!r}: a field of a struct cannot be set; set the column {parts[0]!r} as a whole")
    found = known.get(".".join(parts).lower())
    if found is None:
        near = difflib.get_close_matches(parts[-1].lower(), known, n=1, cutoff=0.5)
        raise InvalidInput(
            f"the table has no column {name!r}. "
            + (f"Did you mean {known[near[0]]!r}?" if near else f"It has {', '.join(columns) or 'none yet'}.")
        )
    return found


def assignments(
    clause: MergeClause, columns: Sequence[str], target: str, source: str, source_columns: Collection[str]
) -> dict[str, Any]:
    """Column of the table -> its value, of the columns that a clause assigns: all of them for `*`.

    Raises InvalidInput naming columns that are not there, are assigned twice, or that the source of a `*` lacks
    """
    if clause.values is None:
        known = {name.lower(): name for name in source_columns}
        missing = [name for name in columns if name.lower() not in known]
        if missing:
            word = "UPDATE SET *" if clause.act is Act.UPDATE else "INSERT *"
            raise SchemaMismatch(
                f"{word} takes each column of the table from the source, which lacks {', '.join(missing)}: "
                "add them, or name the columns and their values"
            )
        return {name: f"{tick(source)}.{tick(known[name.lower()])}" for name in columns}
    found: dict[str, Any] = {}
    for name, value in clause.values.items():
        column = column_of(name, columns, target)
        if column in found:
            raise InvalidInput(f"column {column!r} is assigned twice in one clause")
        found[column] = value
    return found
