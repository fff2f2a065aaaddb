"""A condition in SQL as a filter of Arrow rows: comparisons of columns with constants, joined by and, or, not.

sqlglot parses; what is here gives its tree a meaning. Text that stands beside a time, date, number or truth value is
read as one, as Spark does. Nulls are as in SQL: a comparison with null is neither true nor false.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import expressions as sql

from hoodie.errors import InvalidInput
from hoodie.expressions.chains import balanced, operands
from hoodie.expressions.text import plain_problem, standard_text
from hoodie.reading.filters.exact_numbers import Number, fitted, is_exact, members
from hoodie.reading.filters.predicate import ANY, Test, Tests, both, passing_either

_OPS: Mapping[type, tuple[str, Callable[[Any, Any], Any]]] = {
    sql.EQ: ("=", operator.eq),
    sql.NEQ: ("!=", operator.ne),
    sql.LT: ("<", operator.lt),
    sql.LTE: ("<=", operator.le),
    sql.GT: (">", operator.gt),
    sql.GTE: (">=", operator.ge),
}
#: A node of the parser's tree, whose classes it has named differently from one version to the next.
Node: TypeAlias = Any

#: What is read of the tree's nodes. A word that says more, as `symmetric` and `escape` do, is in another argument.
_READ: Mapping[type, frozenset[str]] = {
    sql.Is: frozenset({"this", "expression"}),
    sql.In: frozenset({"this", "expressions"}),
    sql.Between: frozenset({"this", "low", "high"}),
    sql.Like: frozenset({"this", "expression"}),
}


class _Time(str):
    """The text of a date or time that a cast says it is: it stands beside such columns only."""


_NOTHING = re.compile("(?!)")
_WHOLE = re.compile(r"[+-]?\d+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(_DAY.pattern + r"([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?\s*(Z|[+-]\d\d:?\d\d)?)?")
#: What a cast makes of a literal, by the name of its type, and the literals that it is read of; Spark takes more.
_CASTS: Mapping[str, tuple[Callable[[str], Any], re.Pattern[str]]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), (int, _WHOLE)),
    "DOUBLE": (float, re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,2})?", re.I)),
    "DATE": (_Time, _DAY),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"), (_Time, _MOMENT)),
}
_TEXT_CASTS: Mapping[str, tuple[Callable[[str], Any], re.Pattern[str]]] = {
    **_CASTS,
    "BOOLEAN": (lambda text: text.lower() == "true", re.compile("true|false", re.I)),
    "TEXT": (str, re.compile(".*", re.S)),
}
#: The least value of a type; the greatest is one less than its opposite.
_LEAST = {"TINYINT": -(2**7), "SMALLINT": -(2**15), "INT": -(2**31), "BIGINT": -(2**63)}

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Condition(NamedTuple):
    """A condition over a table's columns: see `selection.RowFilter`."""

    expression: pc.Expression
    columns: tuple[str, ...]
    tests: Tests = ANY


class _Column(NamedTuple):
    name: str  # top-level
    field: pc.Expression
    kind: pa.DataType
    nested: bool


def parse_condition(text: str, schema: pa.Schema) -> Condition:
    """What a condition means for a table's columns.

    Raises InvalidInput on what is no condition, an unknown column, and what is more than comparisons (=, <>, <, <=, >,
           >=, between, in, like, is null) of columns and constants
    """
    try:
        tree = sqlglot.parse_one(standard_text(text, schema.names), dialect="spark")
    except sqlglot.errors.SqlglotError as problem:
        raise InvalidInput(f"the condition {text!r} cannot be parsed: {plain_problem(problem)}") from problem
    except RecursionError as problem:
        raise InvalidInput(
            f"the condition {text[:60]!r}… cannot be parsed: its brackets are nested too deep"
        ) from problem
    condition = _Reader(text, schema).condition(tree)
    return Condition(condition.expression, tuple(dict.fromkeys(condition.columns)), condition.tests)


def _both(left: Condition, right: Condition) -> Condition:
    return Condition(left.expression & right.expression, left.columns + right.columns, both(left.tests, right.tests))


def _either(left: Condition, right: Condition) -> Condition:
    tests = passing_either(left.tests, right.tests)
    return Condition(left.expression | right.expression, left.columns + right.columns, tests)


class _Reader:
    def __init__(self, text: str, schema: pa.Schema) -> None:
        self.text, self.schema = text, schema

    def condition(self, node: Node) -> Condition:
        if node.args.get("negate"):  # `not like`, in trees of newer releases
            positive = node.copy()
            positive.set("negate", None)
            return self._negated(positive)
        self._refuse_unread(node)
        match node:
            case sql.Paren():
                return self.condition(node.this)
            case sql.And() | sql.Or():
                join = _both if isinstance(node, sql.And) else _either
                return balanced([self.condition(part) for part in operands(node)], join)
            case sql.Not():
                return self._negated(node.this)
            case sql.Boolean():
                return Condition(pc.scalar(bool(node.this)), ())
            case sql.Column():
                column = self._column(node)
                return Condition(column.field, (column.name,))
            case sql.Is():
                return self._is(node)
            case sql.In():
                return self._in(node)
            case sql.Between():
                low = self._compared(">=", operator.ge, node.this, node.args["low"])
                high = self._compared("<=", operator.le, node.this, node.args["high"])
                return Condition(low.expression & high.expression, low.columns, both(low.tests, high.tests))
            case sql.Like():
                return self._like(node)
        if type(node) in _OPS:
            return self._compared(*_OPS[type(node)], node.left, node.right)
        raise self._refused(node)

    def _negated(self, node: Node) -> Condition:
        if isinstance(node, sql.Paren):
            return self._negated(node.this)
        if isinstance(node, sql.Is):
            self._refuse_unread(node)
            return self._is(node, negated=True)
        condition = self.condition(node)
        return Condition(~condition.expression, condition.columns)

    def _compared(self, op: str, function: Callable[[Any, Any], Any], left: Node, right: Node) -> Condition:
        if not _is_column(left) and _is_column(right):
            mirrored = _MIRRORED.get(op, op)
            return self._compared(mirrored, _function(mirrored), right, left)
        if not _is_column(left):
            raise self._refused(left)
        column = self._column(left)
        if _is_column(right):
            other = self._column(right)
            if column.kind != other.kind:  # Arrow's common type is not Spark's
                raise self._refused(right)
            return Condition(function(column.field, other.field), (column.name, other.name))
        constant = self._constant(right)
        if _is_number(constant) and is_exact(column.kind):
            op, value = fitted(op, constant, column.kind)
            function = _function(op)
        else:
            value = self._value(constant, column)
        tests = ANY if column.nested or value.as_py() is None else ((Test(column.name, op, value.as_py()),),)
        return Condition(function(column.field, pc.scalar(value)), (column.name,), tests)

    def _is(self, node: sql.Is, negated: bool = False) -> Condition:
        column = self._column(node.this)
        what = node.expression
        while isinstance(what, sql.Not):
            what, negated = what.this, not negated
        if isinstance(what, sql.Null):
            valid = column.field.is_valid()
            tests = ANY if column.nested or negated else ((Test(column.name, "null"),),)
            return Condition(valid if negated else ~valid, (column.name,), tests)
        if isinstance(what, sql.Boolean):
            holds = pc.coalesce(column.field == pc.scalar(bool(what.this)), pc.scalar(False))
            return Condition(~holds if negated else holds, (column.name,))
        raise self._refused(node)

    def _in(self, node: sql.In) -> Condition:
        column = self._column(node.this)
        if not node.expressions:
            raise self._refused(node)
        constants = [self._constant(one) for one in node.expressions]
        held, field, kind = self._values(constants, column), column.field, column.kind
        if pa.types.is_floating(kind):  # as `=`: of doubles, 0.0 and -0.0 are equal, and NaN equals nothing
            field, kind = field.cast(pa.float64()), pa.float64()
            held = [value for value in held if value == value] + ([0.0, -0.0] if 0.0 in held else [])
        is_member = field.isin(pa.array(held, kind))
        unknown = pc.scalar(pa.scalar(None, pa.bool_()))
        condition = pc.if_else(column.field.is_valid(), is_member, unknown)
        if None in constants:  # never false
            condition = pc.if_else(condition, condition, unknown)
        tests = ANY if column.nested else ((Test(column.name, "in", held),),)
        return Condition(condition, (column.name,), tests)

    def _values(self, constants: Sequence[Any], column: _Column) -> list[Any]:
        """The constants that values of the column can be equal to, without nulls."""
        if not is_exact(column.kind):
            return [self._value(one, column).as_py() for one in constants if one is not None]
        held = members([one for one in constants if _is_number(one)], column.kind)
        return held + [self._value(one, column).as_py() for one in constants if one is not None and not _is_number(one)]

    def _like(self, node: sql.Like) -> Condition:
        column, pattern = self._column(node.this), node.expression
        if not (isinstance(pattern, sql.Literal) and pattern.is_string and pa.types.is_string(column.kind)):
            raise self._refused(node)
        return Condition(pc.match_like(column.field, pattern.this), (column.name,))

    def _column(self, node: Node) -> _Column:
        if not _is_column(node):
            raise self._refused(node)
        names = [part.name for part in node.parts]
        schema_field = self._field(self.schema, names[0])
        kind = schema_field.type
        path = [schema_field.name]
        for name in names[1:]:
            child = self._field(kind, name) if pa.types.is_struct(kind) else None
            if child is None:
                raise InvalidInput(f"the condition {self.text!r}: there is no column {'.'.join(names)}")
            kind = child.type
            path.append(child.name)
        return _Column(path[0], pc.field(*path) if len(path) > 1 else pc.field(path[0]), kind, len(path) > 1)

    def _field(self, fields: Any, name: str) -> pa.Field:
        """The field of a name, in whichever case, as in Spark."""
        every = list(fields)
        exact = [field for field in every if field.name == name]
        found = exact or [field for field in every if field.name.lower() == name.lower()]
        if len(found) != 1:
            names = ", ".join(field.name for field in every)
            raise InvalidInput(f"the condition {self.text!r}: there is no column {name!r}; there are {names}")
        return found[0]

    def _value(self, given: Any, column: _Column) -> pa.Scalar:
        """A constant in the type of the column that it stands beside, or one that Arrow compares with it. No number
        beside a column of exact numbers."""
        kind = column.kind
        if given is None:
            return pa.scalar(None, kind)
        if isinstance(given, _Time) and not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
            raise InvalidInput(f"the condition {self.text!r} compares {column.name} ({kind}) with the time {given!r}")
        try:
            if isinstance(given, str) and not pa.types.is_string(kind):
                if pa.types.is_timestamp(kind) and kind.tz is not None and not _has_zone(given):
                    return pa.scalar(given).cast(pa.timestamp(kind.unit)).cast(pa.timestamp(kind.unit, "UTC"))
                return pa.scalar(given).cast(kind)
            kinds = (pa.types.is_boolean(kind), pa.types.is_string(kind), pa.types.is_floating(kind))
            is_float = _is_number(given) or isinstance(given, float)
            if kinds != (type(given) is bool, type(given) is str, is_float):
                raise InvalidInput(f"the condition {self.text!r} compares {column.name} ({kind}) with {given!r}")
            return pa.scalar(float(Decimal(given)) if _is_number(given) else given)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            raise InvalidInput(
                f"the condition {self.text!r}: {given!r} is no value of {column.name} ({kind}): {problem}"
            ) from problem

    def _constant(self, node: Node) -> Any:
        match node:
            case sql.Paren():
                return self._constant(node.this)
            case sql.Null():
                return None
            case sql.Boolean():
                return bool(node.this)
            case sql.Literal():
                if node.is_string:
                    return node.this
                if node.this.isdigit():
                    return int(node.this)
                return float(node.this) if "e" in node.this.lower() else Decimal(node.this)  # 1e3 is a double
            case sql.Neg():
                value = self._constant(node.this)
                if _is_number(value) or isinstance(value, float):
                    return value.copy_negate() if isinstance(value, Decimal) else -value  # `-` rounds to 28 digits
            case sql.Cast():  # date '2024-01-31' and 5L are such, too
                return self._cast(node)
        raise self._refused(node)

    def _cast(self, node: sql.Cast) -> Any:
        """A literal as what its type makes of it, where that is plain to see."""
        literal, name = node.this, node.to.this.name
        if not isinstance(literal, sql.Literal) or node.args.get("format") or node.to.expressions:
            raise self._refused(node)
        text = literal.this if name == "TEXT" else str(literal.this).strip()
        read, form = (_TEXT_CASTS if literal.is_string else _CASTS).get(name, (str, _NOTHING))
        if not form.fullmatch(text):
            raise self._refused(node)
        value = read(text)
        least = _LEAST.get(name)
        if least is not None and not least <= value < -least:
            raise self._refused(node)
        return value

    def _refuse_unread(self, node: Node) -> None:
        """Refuse a node that says more than is read of it."""
        read = _READ.get(type(node))
        if read is not None and any(value for name, value in node.args.items() if name not in read):
            raise self._refused(node)

    def _refused(self, node: Node) -> InvalidInput:
        return InvalidInput(
            f"the condition {self.text!r}: {node.sql(dialect='spark')!r} is not supported: compare columns with "
            "constants (=, <>, <, <=, >, >=, between, in, like, is null), joined by and, or, not"
        )


def _is_number(constant: object) -> TypeGuard[Number]:
    return isinstance(constant, (int, Decimal)) and not isinstance(constant, bool)


def _is_column(node: Node) -> bool:
    return isinstance(node, sql.Column)


def _function(op: str) -> Callable[[Any, Any], Any]:
    return next(function for name, function in _OPS.values() if name == op)


def _has_zone(text: str) -> bool:
    tail = text[10:]
    return text.endswith(("Z", "z")) or "+" in tail or "-" in tail
