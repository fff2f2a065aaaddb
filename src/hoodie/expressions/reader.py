"""SQL text as a term: sqlglot parses, and what is here gives its tree Spark's meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput
from hoodie.expressions import compare, nested, numbers, texts, times
from hoodie.expressions.aggregates import AGGREGATES
from hoodie.expressions.casts import cast
from hoodie.expressions.chains import balanced, operands
from hoodie.expressions.functions import call, choice
from hoodie.expressions.grammar import syntax_tree
from hoodie.expressions.joins import Conjunct
from hoodie.expressions.kinds import BOOL, DATE, NULL, TEXT, TIMESTAMP, TIMESTAMP_NTZ, is_number, is_text_kind
from hoodie.expressions.parser import SqlglotError, exp
from hoodie.expressions.scope import Scope
from hoodie.expressions.subqueries import among_rows, exists, single_value
from hoodie.expressions.terms import Term, computed, literal
from hoodie.expressions.text import plain_problem, standard_text
from hoodie.schema.types import spark_name

LOGIC = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.NullSafeEQ: "<=>"}
_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div"}
#: Those that bind tighter come later.
_BITS = {exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.BitwiseAnd: "&"}
_TYPES = {
    **{"BOOLEAN": BOOL, "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()},
    **{"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "TEXT": TEXT, "VARCHAR": TEXT, "DATE": DATE},
    **{"TIMESTAMP": TIMESTAMP, "TIMESTAMPTZ": TIMESTAMP, "TIMESTAMPLTZ": TIMESTAMP, "TIMESTAMPNTZ": TIMESTAMP_NTZ},
    **{"BINARY": pa.binary()},
}
#: Functions whose first argument is a unit where there are three.
_OF_UNIT = ("dateadd", "date_add", "timestampadd", "datediff", "date_diff", "timestampdiff")
#: Words of a node that say nothing more of what it means.
_SAID = {
    exp.Like: {"this", "expression", "negate"}, exp.ILike: {"this", "expression", "negate"},
    exp.In: {"this", "expressions", "query", "negate"}, exp.Between: {"this", "low", "high", "negate"},
    exp.RegexpLike: {"this", "expression", "negate"}, exp.Is: {"this", "expression", "negate"},
    exp.Anonymous: {"this", "expressions"}, exp.Case: {"this", "ifs", "default"},
}  # fmt: skip


def tree_of(text: str, scope: Scope) -> Any:
    """The parser's tree of an expression; it is not to be changed. Raises InvalidInput on what is none"""
    try:
        text.encode()
        return syntax_tree(standard_text(text, scope.column_names()))
    except (SqlglotError, UnicodeEncodeError) as problem:
        hint = ". Conditions are joined by AND and OR" if "&&" in text else ""
        raise InvalidInput(f"{text!r} cannot be parsed: {plain_problem(problem)}{hint}") from problem
    except RecursionError as problem:
        raise _too_deep(text) from problem


def read_expression(text: str, scope: Scope) -> Term:
    """An expression over the columns of a scope.

    Raises InvalidInput on what is none, an unknown column or function, and types that do not go together;
           MissingPackage for what DuckDB is needed for
    """
    try:
        return Reader(text, scope).term(tree_of(text, scope))
    except RecursionError as problem:
        raise _too_deep(text) from problem


def _too_deep(text: str) -> InvalidInput:
    return InvalidInput(
        f"{text[:60]!r}… cannot be read: it is nested too deep. Write fewer operators or brackets in one"
    )


def read_condition(text: str, scope: Scope) -> Term:
    """An expression that is true or false. Raises as `read_expression`"""
    return compare.condition(read_expression(text, scope), repr(text))


def read_conjuncts(text: str, scope: Scope) -> list[Conjunct]:
    """The parts of a condition that AND joins. Raises as `read_expression`"""
    return Reader(text, scope).conjuncts(tree_of(text, scope))


class Reader:
    """Reads the nodes of one text."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text, self.scope = text, scope

    def within(self, scope: Scope) -> Reader:
        """The reader of a subquery of the text."""
        return Reader(self.text, scope)

    def condition(self, node: Any) -> Term:
        """An operand of AND, OR or NOT, which may be null."""
        term = self.term(node)
        return cast(term, BOOL) if term.kind == NULL else compare.condition(term, repr(node.sql(dialect="spark")))

    def conjuncts(self, node: Any) -> list[Conjunct]:
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.And):
            return [conjunct for part in operands(node) for conjunct in self.conjuncts(part)]
        if isinstance(node, exp.EQ):
            terms = self._beside_spans(node.left, node.right)
            if not arrow.is_nested(terms[0].kind):
                one, other, _ = compare.comparable_terms(*terms)
                return [Conjunct(compare.comparison("=", one, other), (one, other))]
        return [Conjunct(self.condition(node))]

    def term(self, node: Any) -> Term:
        names = _SAID.get(type(node), node.args)
        if more := [word for word, value in node.args.items() if value and word not in names]:
            raise self.refused(node, f"{more[0]} is not supported here")
        if node.args.get("negate"):
            positive = node.copy()
            positive.set("negate", None)
            if isinstance(node, (exp.Like, exp.ILike)) and isinstance(node.expression, (exp.Any, exp.All)):
                other = exp.All if isinstance(node.expression, exp.Any) else exp.Any  # NOT is of each pattern
                positive.set("expression", other(this=node.expression.this))
            return compare.negated(self.condition(positive))
        if type(node) in LOGIC:
            return compare.comparison(LOGIC[type(node)], *self._beside_spans(node.left, node.right))
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if type(node) in _BITS:
            return self._bits(node)
        if isinstance(node, exp.NullSafeNEQ):
            return compare.negated(compare.comparison("<=>", self.term(node.left), self.term(node.right)))
        match node:
            case exp.Paren():
                return self.term(node.this)
            case exp.And() | exp.Or():
                join = compare.every if isinstance(node, exp.And) else compare.any_true
                return balanced([self.condition(part) for part in operands(node)], join)
            case exp.Not():
                return compare.negated(self.condition(node.this))
            case exp.Column():
                return self.scope.column([part.name for part in node.parts], self.text)
            case exp.Neg():
                return self._negative(node.this)
            case exp.BitwiseNot():
                if (inverted := numbers.inverted_bits(self.term(node.this))) is None:
                    raise self.refused(node, "expected a whole number")
                return inverted
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Between():
                value, low, high = self._beside_spans(node.this, node.args["low"], node.args["high"])
                return compare.every(compare.comparison(">=", value, low), compare.comparison("<=", value, high))
            case exp.Case():
                return self._case(node)
            case exp.If():
                otherwise = node.args.get("false")
                return self._call("if", [node.this, node.args["true"], *([] if otherwise is None else [otherwise])])
            case exp.Bracket() | exp.Dot():
                return self._inner_value(node)
            case exp.Exists():
                return exists(self, node.this)
            case exp.Subquery() | exp.Select():
                return single_value(self, node)
        return self._of_text(node)

    def _of_text(self, node: Any) -> Term:
        """Literals, casts, patterns and functions."""
        match node:
            case exp.Null():
                return Term(NULL, lambda block: pa.scalar(None))
            case exp.Boolean():
                return literal(bool(node.this), BOOL)
            case exp.Literal():
                return literal(node.this, TEXT) if node.is_string else number(node.this)
            case exp.RawString():
                return literal(node.this, TEXT)
            case exp.HexString():
                digits = str(node.this)
                return literal(bytes.fromhex("0" * (len(digits) % 2) + digits), pa.binary())
            case exp.Concat() if all(isinstance(part, exp.Literal) and part.is_string for part in node.expressions):
                return literal("".join(part.this for part in node.expressions), TEXT)
            case exp.Cast():
                return self._cast(node)
            case exp.DPipe() if type(node.left) not in _BITS:
                return self._call("concat", [node.left, node.right])
            case exp.Like() | exp.ILike():
                return self._like(node, "\\")
            case exp.Escape() if isinstance(node.this, (exp.Like, exp.ILike)) and len(node.expression.name) == 1:
                if node.this.args.get("negate"):
                    plain = node.copy()
                    plain.this.set("negate", None)
                    return compare.negated(self._like(plain.this, node.expression.name))
                return self._like(node.this, node.expression.name)
            case exp.RegexpLike():
                return self._call("rlike", [node.this, node.expression])
            case exp.Substring():
                parts = [node.args[name] for name in ("this", "start", "length") if node.args.get(name) is not None]
                return self._call("substring", parts)
            case exp.Trim():
                words = {"LEADING": "ltrim", "TRAILING": "rtrim"}
                parts = [node.args[name] for name in ("expression", "this") if node.args.get(name) is not None]
                return self._call(words.get(str(node.args.get("position") or "").upper(), "trim"), parts)
            case exp.Extract():
                return self._extract(node)
            case exp.Anonymous():
                return self._function(node)
        raise self.refused(node)

    # --- operators ---

    def _negative(self, node: Any) -> Term:
        if isinstance(node, exp.Literal) and not node.is_string:
            return number(f"-{node.this}")
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and not node.this.is_string:  # -5L
            negative = node.copy()
            negative.set("this", exp.Literal.number(f"-{node.this.this}"))
            return self._cast(negative)
        term = self.term(node)
        if term.kind == NULL:
            return cast(term, pa.float64())
        if not (arrow.is_integer(term.kind) or arrow.is_decimal(term.kind) or arrow.is_floating(term.kind)):
            raise self.refused(node, "expected a number behind the minus")
        return numbers.negative(term)

    def _arithmetic(self, node: Any) -> Term:
        op = _ARITHMETIC[type(node)]
        sides = node.left, node.right
        if op in "+-" and any(map(_is_span, sides)):
            value, span = sides if _is_span(sides[1]) else (sides[1], sides[0])
            span, count = span.unnest(), []
            if isinstance(span, exp.Mul):
                span, other = (span.left, span.right) if _is_span(span.left) else (span.right, span.left)
                count = [self.term(other)]
            by = self._span(span)
            term = times.plus_interval(self.term(value), by if op == "+" else -by, *count)
            if term is not None and not (op == "-" and span is sides[0]):
                return term
            raise self.refused(node)
        left, right = self.term(node.left), self.term(node.right)
        term = None
        if op in "+-" and arrow.is_date(left.kind):
            term = times.plus_days(left, right, 1 if op == "+" else -1)
            if term is None and arrow.is_date(right.kind):
                raise self.refused(node, "take datediff(…, …) for the days between two dates")
        elif op == "+" and arrow.is_date(right.kind):
            term = times.plus_days(right, left)
        else:
            left, right = self._number_beside(left, right, op), self._number_beside(right, left, op)
            term = numbers.arithmetic(op, left, right)
        if term is None:
            raise self.refused(node, "the types of its sides do not go together")
        return term

    def _bits(self, node: Any) -> Term:
        ops = list(_BITS)
        if type(node.left) in ops and ops.index(type(node.left)) < ops.index(type(node)):
            raise self.refused(node, "put brackets around what comes first: & binds tighter than ^, and ^ than |")
        term = numbers.bitwise(_BITS[type(node)], self.term(node.left), self.term(node.right))
        if term is None:
            raise self.refused(node, "expected whole numbers. Conditions are joined by AND and OR")
        return term

    def _number_beside(self, term: Term, other: Term, op: str) -> Term:
        """Text beside a number is one."""
        if not is_text_kind(term.kind) or not is_number(other.kind):
            return term
        whole = arrow.is_integer(other.kind) and op != "/"
        return cast(term, pa.int64() if whole else pa.float64())

    def _beside_spans(self, *nodes: Any) -> list[Term]:
        """What is compared. Where one is an INTERVAL, all are intervals or differences of times, in microseconds."""
        if not any(map(_is_span, nodes)):
            return [self.term(node) for node in nodes]
        terms = []
        for node in nodes:
            plain, term = node.unnest(), None
            if _is_span(node) and not (by := self._span(node)).months:
                term = literal(by.micros, pa.int64())
            elif isinstance(plain, exp.Sub) and not _is_span(plain.right):
                term = times.units_between(self.term(plain.right), self.term(plain.left), "microsecond")
            if term is None:
                raise self.refused(node, "expected such as t - u > interval 7 days, of dates or times")
            terms.append(term)
        return terms

    def _span(self, node: Any) -> times.Interval:
        node = node.unnest()
        if isinstance(node, exp.Add):
            return self._span(node.left) + self._span(node.right)
        if isinstance(node, exp.Mul):
            raise self.refused(node, "expected an interval, not a multiple of one")
        value, unit = node.this, node.args.get("unit")
        words = str(value.this).split() if unit is None else []
        if not isinstance(value, (exp.Literal, exp.Neg)) or (unit is None and (len(words) % 2 or not words)):
            raise self.refused(node, "expected such as interval 7 days")
        if words:
            return sum((times.span(*pair) for pair in zip(words[::2], words[1::2], strict=True)), times.Interval())
        text = f"-{value.this.this}" if isinstance(value, exp.Neg) else str(value.this)
        if isinstance(unit, exp.IntervalSpan):
            return times.spans(text, unit.name.lower(), unit.expression.name.lower())
        return times.span(text, unit.name)

    def _extract(self, node: Any) -> Term:
        term = self.term(node.expression)
        part = times.extracted(node.this.name.lower(), cast(term, DATE) if term.kind == NULL else term)
        if part is None:
            raise self.refused(node, "expected such as extract(year from a date or time)")
        return part

    def _is(self, node: Any) -> Term:
        term, what, negative = self.term(node.this), node.expression, False
        while isinstance(what, exp.Not):
            what, negative = what.this, not negative
        if isinstance(what, exp.Null):
            test = computed(BOOL, lambda value: pc.is_null(value), term)
        elif isinstance(what, exp.Boolean):
            test = compare.comparison("<=>", self.condition(node.this), literal(bool(what.this), BOOL))
        else:
            raise self.refused(node)
        return compare.negated(test) if negative else test

    def _in(self, node: Any) -> Term:
        if query := node.args.get("query"):
            return among_rows(self, node.this, query)
        if not node.expressions:
            raise self.refused(
                node, "the list is empty, which SQL does not allow: leave the condition out, or say false"
            )
        return compare.in_list(self.term(node.this), [self.term(one) for one in node.expressions])

    def _inner_value(self, node: Any) -> Term:
        """`list[0]`, `map['key']`, and `list[0].field`."""
        value = self.term(node.this)
        if isinstance(node, exp.Dot):
            term = nested.field(value, node.expression.name) if isinstance(node.expression, exp.Identifier) else None
        else:
            term = nested.value_within(value, self.term(node.expressions[0])) if len(node.expressions) == 1 else None
        if term is None:
            raise self.refused(
                node,
                f"{spark_name(value.kind)} has no such thing: expected the place in a list, the "
                "key of a map or the name of a field",
            )
        return term

    def _like(self, node: Any, escape: str) -> Term:
        if isinstance(node.expression, (exp.Any, exp.All)):
            join = compare.any_true if isinstance(node.expression, exp.Any) else compare.every
            patterns = node.expression.this.unnest()
            choices = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns]
            if not choices or isinstance(node.parent, exp.Escape):
                raise self.refused(node, "expected such as like any ('a%', 'b%')")
            return balanced([self._like(type(node)(this=node.this, expression=one), escape) for one in choices], join)
        text, pattern = (self.term(side) for side in (node.this, node.expression))
        if not (is_text_kind(text.kind) or text.kind == NULL) or not (
            is_text_kind(pattern.kind) or pattern.kind == NULL
        ):
            raise self.refused(node, "expected text on both sides")
        any_case = isinstance(node, exp.ILike)
        return texts.like(cast(text, TEXT), cast(pattern, TEXT), escape=escape, any_case=any_case)

    def _case(self, node: Any) -> Term:
        operand = None if node.this is None else self.term(node.this)
        choices: list[tuple[Term | None, Term]] = []
        for branch in node.args["ifs"]:
            if operand is None:
                when = compare.condition(self.term(branch.this), repr(branch.this.sql(dialect="spark")))
            else:
                when = compare.comparison("=", operand, self.term(branch.this))
            choices.append((when, self.term(branch.args["true"])))
        default = node.args.get("default")
        otherwise = Term(NULL, lambda block: pa.scalar(None)) if default is None else self.term(default)
        return choice(choices, otherwise, repr(self.text))

    def _cast(self, node: Any) -> Term:
        term = self.term(node.this)
        kind = self._kind(node.to)
        if node.args.get("format"):
            raise self.refused(node)
        typed = cast(term, kind, safe=bool(node.args.get("safe")) and type(node) is exp.TryCast)
        is_literal = type(node) is exp.TryCast and not node.args.get("safe")  # 2L
        if not arrow.is_integer(kind):
            return typed
        return replace(typed, literal=term.literal if is_literal and kind != pa.int8() else None)

    def _kind(self, node: Any) -> pa.DataType:
        name = node.this.name
        if name == "DECIMAL":
            written = ["" if param.expression else param.name for param in node.expressions] or ["10"]
            sizes = [int(size) if size.isdecimal() else -1 for size in written] + [0]
            if len(sizes) > 3 or not 1 <= sizes[0] <= 38 or not 0 <= sizes[1] <= sizes[0]:
                raise self.refused(node)
            return pa.decimal128(*sizes[:2])
        if name not in _TYPES or node.expressions:
            raise self.refused(node)
        return _TYPES[name]

    def _function(self, node: Any) -> Term:
        name = str(node.this).lower()
        if name in ("current_date", "curdate") and not node.expressions:
            return self.scope.moment("current_date")
        if name in ("current_timestamp", "now") and not node.expressions:
            return self.scope.moment("current_timestamp")
        if name in _OF_UNIT and len(node.expressions) == 3 and isinstance(node.expressions[0], exp.Column):
            return self._of_unit(node, name)
        if name == "position" and isinstance(node.expressions[0], exp.In) and node.expressions[0].args.get("field"):
            return self._call("locate", [node.expressions[0].this, node.expressions[0].args["field"]])
        if name == "struct" and node.expressions:
            names = [
                one.name if isinstance(one, exp.Column) else f"col{at}" for at, one in enumerate(node.expressions, 1)
            ]
            return nested.make_struct(names, [self.term(one) for one in node.expressions])
        if name in AGGREGATES:
            raise self.refused(
                node,
                f"{name} stands alone in a subquery, as (select {name}(c) from frame): put what is "
                "computed with it around the subquery",
            )
        return self._call(name, node.expressions)

    def _of_unit(self, node: Any, name: str) -> Term:
        unit, *others = node.expressions
        one, other = map(self.term, others)
        is_difference = "diff" in name
        term = times.units_between(one, other, unit.name) if is_difference else times.plus_units(other, unit.name, one)
        if term is None:
            raise self.refused(node, "expected such as dateadd(day, 7, t) and datediff(hour, t, u), of dates or times")
        return term

    def _call(self, name: str, nodes: Sequence[Any]) -> Term:
        try:
            return call(name, [self.term(node) for node in nodes])
        except InvalidInput as problem:
            if str(problem).startswith(repr(self.text)):
                raise
            raise InvalidInput(f"{self.text!r}: {problem}") from problem

    def refused(self, node: Any, why: str = "") -> InvalidInput:
        hint = why or "it is not supported without Spark: open the table with a session for all of Spark's SQL"
        return InvalidInput(f"{self.text!r}: {node.sql(dialect='spark')!r}: {hint}")


def _is_span(node: Any) -> bool:
    """Whether a node is an INTERVAL, a sum of them, as `interval 1 day 2 hours` is parsed, or a multiple."""
    node = node.unnest()
    if isinstance(node, exp.Add):
        return _is_span(node.left) and _is_span(node.right)
    return isinstance(node, exp.Interval) or (
        isinstance(node, exp.Mul) and (_is_span(node.left) or _is_span(node.right))
    )


def number(text: str) -> Term:
    """A number as it is written: int, else bigint, else a decimal; with an exponent a double."""
    if "e" in text.lower():
        return literal(float(text), pa.float64())
    value = Decimal(text)
    if "." not in text:
        for kind in (pa.int32(), pa.int64()):
            if -(2 ** (kind.bit_width - 1)) <= value < 2 ** (kind.bit_width - 1):
                return literal(int(value), kind)
    scale = max(0, -int(value.as_tuple().exponent))
    digits = max(len(value.as_tuple().digits), scale, 1)
    if digits > 38:
        raise InvalidInput(f"the number {text} has more than 38 digits")
    return literal(value, pa.decimal128(digits, scale))
