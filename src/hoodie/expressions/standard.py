"""What standard SQL and Spark's read differently in an expression: quotes, and columns that are named like keywords."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot.errors import SqlglotError

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.|'')*')"""
    r"""|(?P<quoted>"(?:[^"\\]|\\.|"")*")"""
    r"""|(?P<other>`[^`]*`|\d\w*)"""
    r"""|(?P<word>[^\W\d]\w*)""",
    re.S,
)
#: What follows a column: a comparison. Then the word before it can be no keyword.
_COMPARED = re.compile(r"\s*(?:[=<>]|!=|(?:not|is|in|like|between)\b)", re.I)
#: What the parser says for programmers and terminals: names of its classes, and the codes that underline a word.
_NOISE = re.compile(r" for <class '[^']*'>|\x1b\[[0-9;]*m")


def standard_text(text: str, columns: Collection[str]) -> str:
    """An expression as Spark's SQL has it.

    Two quotes within a text are one, as in 'it''s'. A name in double quotes, or a bare keyword such as when, is a
    column where a comparison follows and the table has it; elsewhere double quotes are a text, as in Spark.
    """
    lower = {name.lower() for name in columns}

    def token(match: re.Match[str]) -> str:
        if match["text"]:
            return "'" + match["text"][1:-1].replace("''", r"\'") + "'"
        quoted = (match["quoted"] or "")[1:-1]
        name = match["word"] or quoted.replace('""', '"')
        around = text[match.start() - 1 : match.start()] == "." or "`" in name
        if not around and name.lower() in lower and _COMPARED.match(text, match.end()):
            return f"`{name}`"
        return '"' + quoted.replace('""', r"\"") + '"' if quoted else match[0]

    return _TOKEN.sub(token, text)


def plain_problem(problem: SqlglotError) -> str:
    """What the parser says, as a user reads it."""
    return " ".join(_NOISE.sub("", str(problem)).split())
