"""The parser's tree of an expression: sqlglot parses, and what Spark's grammar does not have is refused."""

import functools
import re
from collections import Counter
from itertools import pairwise
from typing import Any

from hoodie.expressions.functions import FUNCTIONS
from hoodie.expressions.parser import DIALECT, ParseError, Spark, Token, TokenType, exp

_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET}
_ENDS = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.COMMA}
_TYPES = Spark.Parser.TYPE_TOKENS - {TokenType.INTERVAL}
_DATES = {TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ, TokenType.TIMESTAMPLTZ, TokenType.TIMESTAMPNTZ}
_OPERATORS = (
    *(TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
    *(TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE),
    *(TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE),
)
#: Pairs of tokens of which the second never follows the first, where sqlglot goes on.
_APART = {
    *((separator, end) for separator in (TokenType.COMMA, TokenType.ALIAS) for end in _ENDS),
    *((bracket, TokenType.COMMA) for bracket in _OPENS),
    *((kind, TokenType.NUMBER) for kind in _TYPES),
    *((kind, TokenType.STRING) for kind in _TYPES - _DATES),
    (TokenType.NOT, TokenType.IS),
    (TokenType.FROM, TokenType.FOR),
    *((operator, word) for operator in _OPERATORS for word in (TokenType.NOT, TokenType.EXCLAMATION)),
}
#: The text of an INTERVAL: numbers, whose units stand behind it, or each with its unit. sqlglot takes a part of others.
_SPAN = re.compile(r"[-+ \d:.]+|(?:\s*[-+]?\d+(?:\.\d+)?\s+[a-z]+)+\s*", re.IGNORECASE)
#: What a token counts as. FROM and FOR part the arguments of some functions, as commas do.
_COUNTS_AS = {
    TokenType.FROM: [TokenType.COMMA, TokenType.FROM],
    TokenType.FOR: [TokenType.COMMA],
    TokenType.EXCLAMATION: [TokenType.NOT],
    TokenType.UNKNOWN: [TokenType.NULL],
    TokenType.NULLSAFE_EQ: [TokenType.IS, TokenType.NOT, TokenType.DISTINCT, TokenType.COMMA],
}
#: The words that a node is written with.
_WORDS = {
    exp.And: [TokenType.AND], exp.Or: [TokenType.OR], exp.Not: [TokenType.NOT], exp.Null: [TokenType.NULL],
    exp.Is: [TokenType.IS], exp.In: [TokenType.IN], exp.Between: [TokenType.BETWEEN, TokenType.AND],
    exp.Like: [TokenType.LIKE], exp.ILike: [TokenType.ILIKE], exp.RegexpLike: [TokenType.RLIKE],
    exp.Escape: [TokenType.ESCAPE], exp.Case: [TokenType.CASE, TokenType.END], exp.Select: [TokenType.SELECT],
    exp.Extract: _COUNTS_AS[TokenType.FROM], exp.From: _COUNTS_AS[TokenType.FROM],
    exp.NullSafeEQ: _COUNTS_AS[TokenType.NULLSAFE_EQ],
    exp.NullSafeNEQ: [TokenType.IS, TokenType.DISTINCT, TokenType.COMMA], exp.Where: [TokenType.WHERE],
    exp.Distinct: [TokenType.DISTINCT], exp.All: [TokenType.ALL], exp.Mul: [TokenType.STAR], exp.Star: [TokenType.STAR],
}  # fmt: skip
_COUNTED = {kind for kinds in _WORDS.values() for kind in kinds} | {
    *(TokenType.WHEN, TokenType.THEN, TokenType.ELSE),
    *(TokenType.PLACEHOLDER, TokenType.COLON, TokenType.PARAMETER, TokenType.FARROW),  # of no node that is read
}


def _plus(parser: Any) -> Any:
    """The operand of a unary plus, which is for the function `positive`."""
    operand = parser._parse_unary()
    return operand and exp.Anonymous(this="positive", expressions=[operand])


def _trim(parser: Any) -> Any:
    """TRIM, which may begin with its FROM."""
    if parser._match(TokenType.FROM):
        return exp.Trim(this=parser._parse_bitwise(), position="BOTH")
    return parser._parse_trim()


def _double_colon(parser: Any, value: Any, kind: Any) -> Any:
    """A cast; of `2L`, which has tokens of `2::bigint`, a TryCast."""
    suffix = parser._prev.text.upper() in Spark.Tokenizer.NUMERIC_LITERALS
    return parser.build_cast(strict=not suffix, this=value, to=kind)


class _Dialect(DIALECT):
    """Spark's, with functions left as they are written: what they mean is for `functions`."""

    class Tokenizer(DIALECT.Tokenizer):
        SINGLE_TOKENS = {**DIALECT.Tokenizer.SINGLE_TOKENS, "!": TokenType.EXCLAMATION}  # noqa: RUF012
        KEYWORDS = {**DIALECT.Tokenizer.KEYWORDS, "!>": TokenType.LTE, "!<": TokenType.GTE}  # noqa: RUF012

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS = {
            name: parse
            for name, parse in Spark.Parser.FUNCTION_PARSERS.items()
            if name in ("TRY_CAST", "EXTRACT", "SUBSTRING", "SUBSTR")
        } | {"TRIM": _trim, "CAST": lambda parser: parser._parse_cast(True)}
        COLUMN_OPERATORS = {**Spark.Parser.COLUMN_OPERATORS, TokenType.DCOLON: _double_colon}  # noqa: RUF012
        UNARY_PARSERS = {  # noqa: RUF012
            **Spark.Parser.UNARY_PARSERS,
            TokenType.PLUS: _plus,
            TokenType.EXCLAMATION: Spark.Parser.UNARY_PARSERS[TokenType.NOT],
        }
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
            name: parse for name, parse in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items() if name in ("CASE", "IF")
        }

        def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
            """An INTERVAL, or the sum of its parts: in `1 day -2 hours` they are two, in `1 day - 2` one."""
            start, total = self._index, None
            if not self._match(TokenType.INTERVAL):
                return None
            while True:
                place = self._index
                sign = self._prev.token_type if self._match_set((TokenType.DASH, TokenType.PLUS)) else None
                is_value = self._match_set((TokenType.STRING, TokenType.NUMBER), advance=False)
                value = self._parse_primary() if is_value else None
                is_unit = self._curr and self._curr.text.upper() in self.dialect.VALID_INTERVAL_UNITS
                if value is None or (not is_unit and (total or sign)):
                    self._retreat(place if total else start)
                    return total
                part = self._parse_interval_span(value, parse_function_unit)
                if sign is TokenType.DASH:
                    part.set("this", exp.Neg(this=part.this))
                total = exp.Add(this=total, expression=part) if total else part


@functools.lru_cache(maxsize=256)
def syntax_tree(text: str) -> Any:
    """The tree of an expression, which is not to be changed. Raises SqlglotError on what is none"""
    tokens = _without_all(_Dialect().tokenize(text))
    kinds = [token.token_type for token in tokens]
    if TokenType.SEMICOLON in kinds:
        raise ParseError("an expression has no semicolon")
    if kinds.count(TokenType.L_PAREN) != kinds.count(TokenType.R_PAREN):
        raise ParseError("a bracket is left open, or closed twice")
    if kinds[-1:] == [TokenType.ALIAS]:
        raise ParseError("there is nothing behind AS")
    for place, (one, other) in enumerate(pairwise(tokens)):
        suffix = one.token_type in _TYPES and one.text.upper() in Spark.Tokenizer.NUMERIC_LITERALS  # as in 10L
        is_call = kinds[place + 1 : place + 3] == [TokenType.NOT, TokenType.L_PAREN]  # Spark has a function `not`
        span = one.token_type is TokenType.INTERVAL and other.token_type is TokenType.STRING
        if (
            ((one.token_type, other.token_type) in _APART and not is_call)
            or (suffix and other.token_type is TokenType.L_PAREN)
            or (span and not _SPAN.fullmatch(other.text))
        ):
            raise ParseError(f"{one.text!r} stands before {other.text!r}")
    trees = _Dialect().parser().parse(tokens, text)
    if not trees or trees[0] is None:
        raise ParseError("there is no expression")
    _refuse_lost_words(tokens, trees[0])
    return trees[0]


def _without_all(tokens: list[Token]) -> list[Token]:
    """The tokens without the ALL that may stand before the arguments of any function."""
    kinds = [token.token_type for token in tokens]
    return [
        token
        for place, token in enumerate(tokens)
        if token.token_type is not TokenType.ALL
        or place < 2
        or kinds[place - 1] is not TokenType.L_PAREN
        or tokens[place - 2].text.lower() not in FUNCTIONS
        or kinds[place + 1 : place + 2] in ([TokenType.COMMA], [TokenType.R_PAREN], [TokenType.DOT])
    ]


def _refuse_lost_words(tokens: list[Token], tree: Any) -> None:
    """Each word of a text is of a node of its tree, and has each word that its nodes are written with: sqlglot reads on
    where one lacks, as in `a between 1 2`, and passes over others."""
    written = Counter(word for token in tokens for word in _counts_as(token) if word in _COUNTED)
    read = Counter(word for node in tree.walk() for word in _words(node) if word in _COUNTED)
    excess = written - read
    del excess[TokenType.FROM]  # of a substring: a comma says the same
    for kind in (read - written) or excess:
        name = "a comma or FROM" if kind is TokenType.COMMA else kind.name
        raise ParseError(f"{name} is missing" if read[kind] > written[kind] else f"{name} has no place")


def _counts_as(token: Token) -> list[TokenType]:
    if token.token_type is TokenType.DECIMAL and token.text.upper() == "BD":  # 1.5BD is cast to decimal(2, 1)
        return [TokenType.COMMA]
    return _COUNTS_AS.get(token.token_type, [token.token_type])


def _words(node: Any) -> list[TokenType]:
    """The words and commas that a node is written with."""
    parts = node.args
    words = list(_WORDS.get(type(node), []))
    match node:
        case exp.If() if isinstance(node.parent, exp.Case):
            words += [TokenType.WHEN, TokenType.THEN]
        case exp.If() | exp.Substring():
            words += [TokenType.COMMA] * (sum(value is not None for value in parts.values()) - 1)
        case exp.Trim() if parts.get("position"):
            words += _COUNTS_AS[TokenType.FROM]
        case exp.Trim() if parts.get("expression"):
            words.append(TokenType.COMMA)
        case exp.Case() if parts.get("default") is not None:
            words.append(TokenType.ELSE)
        case exp.Identifier() if not node.quoted:
            words += _named(node.name)
        case exp.Anonymous():
            words += _named(str(node.this))
    if not isinstance(node, exp.Concat):
        words += [TokenType.COMMA] * (len(node.expressions) - 1)
    return [*words, TokenType.NOT] if parts.get("negate") else words


def _named(name: str) -> list[TokenType]:
    """What a name counts as that is a keyword elsewhere."""
    kind = _Dialect.Tokenizer.KEYWORDS.get(name.upper())
    return [] if kind is None else _COUNTS_AS.get(kind, [kind])
