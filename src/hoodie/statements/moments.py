"""The time of `TIMESTAMP AS OF …` behind a table's name: a literal, or an expression that Spark evaluates."""

import datetime as dt

from pyspark.sql import SparkSession

from hoodie.spark.own_sql import spark_sql
from hoodie.statements.cutting import Text

_WORDS = ("TIMESTAMP", "SYSTEM_TIME", "VERSION", "SYSTEM_VERSION")


def moment_behind(session: SparkSession, whole: Text, end: int) -> tuple[str | dt.datetime | None, int]:
    """The time that is named behind a place in a statement, and the place behind it; None: none is.

    Raises  StatementError on an expression that is no time
    """
    expression = moment_expression(whole, end)
    if expression is None:
        return None, end
    behind = expression.tokens[-1].end + 1
    if len(expression.tokens) == 1 and expression.tokens[0].text[:1].isdigit():
        return expression.tokens[0].text, behind
    rows = spark_sql(session, f"SELECT TRY_CAST({expression} AS TIMESTAMP) AS moment").collect()
    moment: dt.datetime | None = rows[0]["moment"]
    if moment is None:
        raise expression.unreadable(
            "expected an instant, a time as text, such as '2024-01-31 12:00:00', or an expression of a time"
        )
    return moment, behind


def moment_expression(whole: Text, end: int) -> Text | None:
    """What stands behind `TIMESTAMP AS OF`, which begins at a place in a statement; None: it does not."""
    rest = whole.part(end, whole.end)
    at = 1 if rest.word(0) == "FOR" else 0
    if rest.words(at + 3)[at + 1 :] != ("AS", "OF") or rest.word(at) not in _WORDS:
        return None
    if at + 3 >= len(rest.tokens):
        raise rest.unreadable("expected a time", at)
    behind = _behind_sum(rest, at + 3)
    return rest.part(rest.tokens[at + 3].start, rest.tokens[behind - 1].end + 1)


def _behind_sum(text: Text, at: int) -> int:
    """The place behind a sum of literals, calls and brackets that begins at a place."""
    behind = _behind_operand(text, at)
    while text.word(behind) in ("+", "-") and behind + 1 < len(text.tokens):
        behind = _behind_operand(text, behind + 1)
    return behind


def _behind_operand(text: Text, at: int) -> int:
    word = text.word(at)
    if word == "(":
        return text.inside(at)[1] + 1
    if word == "INTERVAL":
        return _behind_interval(text, at + 1)
    if word in ("TIMESTAMP", "DATE") and at + 1 < len(text.tokens) and text.is_quoted(at + 1):
        return at + 2
    if text.word(at + 1) == "(" and word:
        return text.inside(at + 1)[1] + 1
    return at + 1


def _behind_interval(text: Text, at: int) -> int:
    """The place behind `'1 day'`, `-1 DAY` or `1 DAY 2 HOURS`."""
    number = at + (text.word(at) == "-")
    has_unit = text.word(number + 1).isalpha() and not _says_unit(text, number)
    behind = number + 1 + has_unit
    has_more = has_unit and text.word(behind + (text.word(behind) == "-"))[:1].isdigit()
    return _behind_interval(text, behind) if has_more else behind


def _says_unit(text: Text, at: int) -> bool:
    """Whether a text such as '1 day' says its unit itself."""
    return at < len(text.tokens) and any(letter.isalpha() for letter in text.tokens[at].text)
