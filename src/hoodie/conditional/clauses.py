"""What a merge is asked to do, as values: expressions are SQL text, or Columns of Spark's where Spark evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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
