"""The merge builder: `table.merge(source, condition).when_matched_update(...)...execute()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from hoodie.conditional.clauses import Act, MergeClause, MergeRequest, When
from hoodie.errors import InvalidInput
from hoodie.writing.result import WriteResult

if TYPE_CHECKING:
    from pyspark.sql import Column


Condition: TypeAlias = "str | Column | None"


class MergeBuilder:
    """A merge that is being put together; `HoodieTable.merge` makes it. Each `when_…` gives a builder with one clause
    more, and `execute` carries the merge out. A row goes by the first clause about it whose condition holds.

    Values are SQL text (`"source.price * 2"`; quote text once more: `"'open'"`), Columns, or plain values.
    """

    def __init__(self, request: MergeRequest, run: Callable[[MergeRequest], WriteResult]) -> None:
        self._request, self._run = request, run

    def __repr__(self) -> str:
        clauses = ", ".join(f"{clause.when}: {clause.act}" for clause in self._request.clauses)
        return f"MergeBuilder({clauses or 'no clause yet'})"

    def when_matched_update(self, values: Mapping[str, Any], *, condition: Condition = None) -> MergeBuilder:
        """Update the row that a source row matches: columns of the table and their new values; others stay."""
        return self._with("matched", "update", condition, values, named=True)

    def when_matched_update_all(self, *, condition: Condition = None) -> MergeBuilder:
        """Give the row that a source row matches the source's values, in all columns."""
        return self._with("matched", "update", condition)

    def when_matched_delete(self, *, condition: Condition = None) -> MergeBuilder:
        """Delete the row that a source row matches."""
        return self._with("matched", "delete", condition)

    def when_not_matched_insert(self, values: Mapping[str, Any], *, condition: Condition = None) -> MergeBuilder:
        """Insert a row for a source row that matches none; columns that are not named are null."""
        return self._with("not matched", "insert", condition, values, named=True)

    def when_not_matched_insert_all(self, *, condition: Condition = None) -> MergeBuilder:
        """Insert a source row that matches none as it is; its columns that the table does not have are left out."""
        return self._with("not matched", "insert", condition)

    def when_not_matched_by_source_update(
        self, values: Mapping[str, Any], *, condition: Condition = None
    ) -> MergeBuilder:
        """Update rows that no source row matches."""
        return self._with("not matched by source", "update", condition, values, named=True)

    def when_not_matched_by_source_delete(self, *, condition: Condition = None) -> MergeBuilder:
        """Delete rows that no source row matches."""
        return self._with("not matched by source", "delete", condition)

    def execute(self) -> WriteResult:
        """Carry the merge out, as one commit.

        returns  `inserted`, `updated`, `deleted`, and `copied`: rows that were written again as they were, as they
                 share a base file with others
        Raises   KeyMatchedTwice when two source rows are for one row; InvalidInput, SchemaMismatch. Nothing has
                 changed then; nor by WriteConflict: another writer was faster
        """
        return self._run(self._request)

    def _with(
        self, when: str, act: str, condition: Condition, values: Mapping[str, Any] | None = None, *, named: bool = False
    ) -> MergeBuilder:
        if named and not isinstance(values, Mapping):
            every = f"when_{when.replace(' ', '_')}_{act}_all"
            way = f"; {every}() takes all columns of the source" if hasattr(self, every) else ""
            raise InvalidInput(
                f"a clause takes columns with their values, such as {{'fare': 'source.fare'}}, and not {values!r}{way}"
            )
        clause = MergeClause(When(when), Act(act), condition, None if values is None else dict(values))
        return MergeBuilder(replace(self._request, clauses=(*self._request.clauses, clause)), self._run)
