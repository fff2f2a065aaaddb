"""What the library takes of sqlglot. No other module imports it: where its releases differ, this one knows."""

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

__all__ = [
    "DIALECT",
    "OPTIONS",
    "ParseError",
    "Spark",
    "SqlglotError",
    "Token",
    "TokenType",
    "exp",
    "parse",
    "tokens_of",
]


class _Spark(Spark):
    """Spark's SQL, where two quotes within a text are one, as in 'it''s'."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012


DIALECT = _Spark
#: The node of OPTIONS (…), which 30.30 and later have.
OPTIONS: Any = getattr(exp, "OptionsProperty", exp.Properties)


def tokens_of(text: str) -> list[Token]:
    """Raises SqlglotError on text that has no tokens, such as an open quote."""
    return sqlglot.tokenize(text, read=DIALECT)


def parse(text: str) -> exp.Expr:
    """The tree of a statement or an expression. Raises SqlglotError"""
    return sqlglot.parse_one(text, read=DIALECT)
