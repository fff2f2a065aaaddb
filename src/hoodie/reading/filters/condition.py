"""A condition in SQL: the rows for which it is true, and the tests of single columns that these pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hoodie.errors import InvalidInput
from hoodie.expressions import kinds
from hoodie.expressions.casts import cast
from hoodie.expressions.chains import balanced, operands
from hoodie.expressions.kinds import BOOL, DATE, TEXT, evaluated_kind, is_decimal, is_float, is_integer
from hoodie.expressions.parser import exp
from hoodie.expressions.reader import LOGIC, Reader, read_condition, tree_of
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import NOTHING, Block, Term, spread
from hoodie.reading.filters.predicate import ANY, Test, Tests, passing_both, passing_either

#: What expressions may call the table, as in `delete(where=...)`.
_NAME = "target"
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
#: Types whose values Python orders as SQL does, beside numbers and times.
_ORDERED = (TEXT, BOOL, DATE, pa.binary())
#: Comparisons that NaN, the greatest number, which is in no statistics, does not pass.
_OF_NUMBERS = ("<", "<=", "=", "in")


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
        """bool[n], null where it is unknown. Raises InvalidInput where it cannot be evaluated: a number too large, a
        division by zero"""
        return spread(self.term.run(Block.of({_NAME: rows})), rows.num_rows)

    def __str__(self) -> str:
        return self.text


def read_sql(text: str, schema: pa.Schema) -> SqlCondition:
    """What a condition means for a table's columns. Raises InvalidInput, MissingPackage as `read_condition`"""
    scope = Scope({_NAME: schema})
    try:
        term = read_condition(text, scope)
    except InvalidInput as problem:
        message = str(problem)
        prefix = "" if message.startswith(repr(text)) else f"{text!r}: "
        raise InvalidInput(f"the condition {prefix}{message}") from problem
    try:
        tests = tests_of_sql(text, scope, _NAME)
    except InvalidInput:
        tests = ANY
    return SqlCondition(text, term, tests)


def tests_of_sql(text: str, scope: Scope, name: str) -> Tests:
    """The tests of a table's columns that each row passes for which a condition is true, as far as they are plain to
    see. Raises InvalidInput as `read_condition`

    name  of the table in the scope
    """
    return _Tests(Reader(text, scope), name).of(tree_of(text, scope))


class _Tests:
    def __init__(self, reader: Reader, name: str) -> None:
        self.reader, self.name = reader, name

    def of(self, node: Any) -> Tests:
        while isinstance(node, exp.Paren):
            node = node.this
        if node.args.get("negate"):
            return ANY
        match node:
            case exp.And():
                return balanced([self.of(part) for part in operands(node)], passing_both)
            case exp.Or():
                return balanced([self.of(part) for part in operands(node)], passing_either)
            case exp.Between():
                low, high = node.args["low"], node.args["high"]
                return passing_both(
                    self._comparison_tests(">=", node.this, low), self._comparison_tests("<=", node.this, high)
                )
            case exp.In() if node.expressions:
                return self._list_tests(node)
            case exp.Is() if isinstance(node.expression, exp.Null):
                column = self._column(node.this)
                return ANY if column is None else ((Test(column[0], "null"),),)
        if (op := LOGIC.get(type(node), "")) in _MIRRORED:
            if isinstance(node.left, exp.Column):
                return self._comparison_tests(op, node.left, node.right)
            return self._comparison_tests(_MIRRORED[op], node.right, node.left)
        return ANY

    def _comparison_tests(self, op: str, operand: Any, constant: Any) -> Tests:
        if (column := self._column(operand)) is None:
            return ANY
        values = self._constants(op, column[1], [constant])
        return ((Test(column[0], op.replace("<>", "!="), values[0]),),) if values else ANY

    def _list_tests(self, node: Any) -> Tests:
        if (column := self._column(node.this)) is None:
            return ANY
        options = [one for one in node.expressions if not isinstance(one, exp.Null)]
        values = self._constants("in", column[1], options)
        return ANY if values is None else ((Test(column[0], "in", values),),)

    def _column(self, node: Any) -> tuple[str, Term] | None:
        """The name and the term of a top-level column of the table; None: a node is none."""
        if not isinstance(node, exp.Column):
            return None
        term = self.reader.term(node)
        ((table, name),) = term.columns or (("", ""),)
        schema = self.reader.scope.tables.get(table)
        own = table == self.name and schema is not None and term.kind == evaluated_kind(schema.field(name).type)
        return (name, term) if own else None

    def _constants(self, op: str, column: Term, nodes: Sequence[Any]) -> list[Any] | None:
        """The values that a column is compared with; None: some are no constants, or null, or say nothing of the
        column's values as they are, as Spark compares them in a type of fewer digits."""
        terms, kind = [self.reader.term(node) for node in nodes], column.kind
        for term in terms:
            common = None if term.columns or term.fails else kinds.common_kind(kind, term.kind)
            if common is None:
                return None
            kind = common
        if not _keeps_order(column.kind, kind) or (is_float(kind) and op not in _OF_NUMBERS):
            return None
        typed = [cast(term, kind) for term in terms]
        scalars = [None if term.fails else term.run(NOTHING) for term in typed]
        values = [scalar.as_py() if isinstance(scalar, pa.Scalar) else None for scalar in scalars]
        return values if all(value is not None and value == value for value in values) else None


def _keeps_order(have: pa.DataType, kind: pa.DataType) -> bool:
    """Whether values of a column, in the type in which they are compared, are as they are."""
    if is_integer(have):
        return is_integer(kind) or is_decimal(kind)
    if is_decimal(have):
        return is_decimal(kind) and kind.scale >= have.scale
    return is_float(kind) if is_float(have) else kind == have and (have in _ORDERED or kinds.is_time(have))
