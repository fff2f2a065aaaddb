"""A condition in SQL that says more than comparisons with constants: the expressions of deletes, updates and merges."""

from dataclasses import dataclass

import pyarrow as pa

from hoodie.errors import InvalidInput
from hoodie.expressions.facts import facts_of
from hoodie.expressions.reader import read_condition
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, Term, is_true
from hoodie.reading.filters.predicate import Test, Tests

#: What expressions may call the table, as in `delete(where=...)`.
_NAME = "target"


@dataclass(frozen=True, slots=True, eq=False)
class SqlCondition:
    """Which rows to keep: those for which the condition is true.

    term   over the columns of the rows
    tests  that each row passes for which it holds
    """

    text: str
    term: Term
    tests: Tests

    @property
    def columns(self) -> tuple[str, ...]:
        """Top-level columns that it asks for, sorted."""
        return tuple(sorted({column for _, column in self.term.columns}))

    def mask(self, rows: pa.Table) -> pa.Array:
        """bool[n]. Raises InvalidInput where it cannot be evaluated: a number too large, a division by zero"""
        block = Block.of({_NAME: rows})
        return pa.array(is_true(self.term.run(block), rows.num_rows))

    def __str__(self) -> str:
        return self.text


def read_sql(text: str, schema: pa.Schema) -> SqlCondition:
    """What a condition means for a table's columns. Raises InvalidInput, MissingPackage as `read_condition`"""
    scope = Scope({_NAME: schema})
    try:
        term = read_condition(text, scope)
    except InvalidInput as problem:
        said = str(problem)
        whose = "" if said.startswith(repr(text)) else f"{text!r}: "
        raise InvalidInput(f"the condition {whose}{said}") from problem
    try:
        facts = facts_of(text, scope)
    except InvalidInput:
        facts = []
    return SqlCondition(text, term, (tuple(Test(column, op, value) for (_, column), op, value in facts),))
