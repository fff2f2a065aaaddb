"""Names in the INSERT clause of a MERGE: without a table they are the source's, for no row of the table is in scope."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot.tokenizer_core import TokenType

from hoodie.expressions.text import tick
from hoodie.statements.cutting import Text

#: After these a word is no column.
_NAMES_SOMETHING = frozenset({".", "AS", ":"})


def of_source(expression: str, columns: Collection[str], source: str) -> str:
    """An expression whose plain names of source columns say that they are the source's.

    columns  of the source
    source   what the statement calls it
    returns  the text as it is where it has a subquery or a function of `->`, whose names may be their own
    """
    text, names = Text.of(expression), {column.lower() for column in columns}
    words = [text.word(at) for at in range(len(text.tokens))]
    if {"SELECT", "->"} & set(words):
        return expression
    prefixed, end = "", 0
    for at, token in enumerate(text.tokens):
        plain = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and token.text.lower() in names
        before, after = words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
        if plain and before not in _NAMES_SOMETHING and after not in (".", "("):
            prefixed += f"{expression[end : token.start]}{tick(source)}."
            end = token.start
    return prefixed + expression[end:]
