"""Random SQL expressions, and rows whose values are where types end: nulls, NaN, two zeros, the last digit."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

NAN, INFINITY = float("nan"), float("inf")
_DAYS = [
    dt.date(1969, 12, 31),
    dt.date(2000, 2, 29),
    dt.date(2024, 1, 31),
    dt.date(2024, 12, 30),
    dt.date(1582, 10, 20),
]
_TIMES = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
    dt.datetime(2000, 2, 29, 12, 0, 0, 0, dt.UTC),
    dt.datetime(2024, 1, 31, 1, 2, 3, 120_000, dt.UTC),
    dt.datetime(2024, 12, 30, 0, 0, 0, 1, dt.UTC),
]
_TEXTS = [
    "",
    "a",
    "Ab c",
    " 12 ",
    "x%y",
    "x_y",
    "ÅÄö",
    "-7",
    "1.5",
    "2024-01-31",
    "true",
    "a\\b",
    "aXbX",
    "\U0001f600z",
]

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [0, 1, -1, 7, -7, 100, 2**31 - 1, -(2**31)]),
    "j": (pa.int32(), [0, 1, 2, -3, 10, 31]),
    "l": (pa.int64(), [0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "f": (pa.float32(), [0.0, -0.0, 1.5, -2.5, NAN, INFINITY, 16777216.0]),
    "x": (pa.float64(), [0.0, -0.0, 1.5, 2.5, -2.5, 0.1, 1e20, 1e-5, 123456789.125, NAN, INFINITY, -INFINITY]),
    "p": (
        pa.decimal128(10, 2),
        [Decimal(v) for v in ("0.00", "1.25", "-1.25", "1.35", "99999999.99", "-0.01", "7.00")],
    ),
    "q": (pa.decimal128(38, 10), [Decimal(v) for v in ("0", "1.0000000001", "-3.5", "1234567890123456789.0123456789")]),
    "s": (pa.string(), _TEXTS),
    "u": (pa.string(), ["", "a", "b", "X", "%", "Ab", None]),
    "b": (pa.bool_(), [True, False]),
    "d": (pa.date32(), _DAYS),
    "e": (pa.date32(), _DAYS),
    "t": (pa.timestamp("us", "UTC"), _TIMES),
}


def rows(random: Random, count: int) -> pa.Table:
    """Rows of these values, one in six null."""
    return pa.table(
        {
            name: pa.array([None if random.random() < 1 / 6 else random.choice(pool) for _ in range(count)], kind)
            for name, (kind, pool) in COLUMNS.items()
        }
    )


class Expressions:
    """Makes random expressions of a type: int, bigint, double, decimal, text, bool, date, time."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.makers: dict[str, list[Callable[[int], str]]] = {
            "number": [*[self._of("{number} {op} {number}")] * 4, *map(self._of, NUMBERS)],
            "text": [self._of(form) for form in TEXTS],
            "bool": [*[self._of("{bool} and {bool}"), self._of("{bool} or {bool}")] * 2, *map(self._of, CONDITIONS)],
            "date": [self._of(form) for form in DATES],
            "time": [self._of(form) for form in TIMES],
        }

    def any(self, depth: int = 3) -> str:
        return self.make(
            self.random.choice(["number", "number", "bool", "bool", "bool", "text", "date", "time"]), depth
        )

    def make(self, kind: str, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.15:
            return self.random.choice(LEAVES[kind])
        return self.random.choice(self.makers[kind])(depth - 1)

    def _of(self, form: str) -> Callable[[int], str]:
        parts = form.split("{")

        def make(depth: int) -> str:
            text = parts[0]
            for part in parts[1:]:
                name, _, rest = part.partition("}")
                if name == "op":
                    text += self.random.choice(["+", "-", "*", "+", "-", "*"])
                elif name == "cmp":
                    text += self.random.choice(["=", "<>", "<", "<=", ">", ">=", "<=>", "!="])
                elif name in LISTS:
                    text += self.random.choice(LISTS[name])
                else:
                    text += f"({self.make(name, depth)})"
                text += rest
            return text

        return make


LEAVES = {
    "number": [
        "i",
        "j",
        "j",
        "l",
        "f",
        "x",
        "x",
        "p",
        "p",
        "q",
        "0",
        "1",
        "-1",
        "2",
        "0.5",
        "1.25",
        "-3.75",
        "1e2",
        "10L",
        "2.5D",
        "null",
    ],
    "text": ["s", "s", "u", "'a'", "'Ab c'", "''", "'%'", "cast(null as string)"],
    "bool": ["b", "b", "true", "false", "cast(null as boolean)", "i > 0", "s = u", "x < 2", "p <= 1.25"],
    "date": ["d", "e", "date '2024-01-31'", "cast('2000-02-29' as date)"],
    "time": ["t", "t", "timestamp '2024-01-31 01:02:03.12'", "cast(d as timestamp)"],
}
LISTS = {
    "numbers": ["0, 1, 7", "1, null", "1.25, 7", "x, 1.5", "0.0D, 2", "9223372036854775807, -1"],
    "words": ["'a', 'Ab c'", "'a', null", "u, 'b'"],
    "pattern": ["'a%'", "'%b%'", "'_b%'", "'x\\\\%y'", "'%'", "''", "'%B%'", "u"],
    "unit": ["'month'", "'year'", "'hour'", "'day'", "'week'", "'quarter'", "'minute'"],
    "part": ["year", "month", "day", "quarter", "dayofweek", "dayofyear", "weekofyear", "weekday"],
    "small": ["0", "1", "2", "-1", "-2", "5", "j"],
    "kind": ["int", "bigint", "double", "decimal(12,3)", "decimal(38,2)", "string", "smallint"],
}
NUMBERS = [
    "{number} / nullif({number}, 0)",
    "{number} % nullif({number}, 0)",
    "-{number}",
    "abs({number})",
    "coalesce({number}, {number})",
    "case when {bool} then {number} when {bool} then {number} else {number} end",
    "case when {bool} then {number} end",
    "if({bool}, {number}, {number})",
    "nullif({number}, {number})",
    "greatest({number}, {number})",
    "least({number}, {number}, {number})",
    "round({number})",
    "round({number}, 1)",
    "floor({number})",
    "ceil({number})",
    "try_cast({number} as {kind}) + 0",
    "try_cast({text} as int)",
    "try_cast({text} as double)",
    "try_cast({text} as decimal(10,1))",
    "length({text})",
    "datediff({date}, {date})",
    "{part}({date})",
    "hour({time})",
    "nvl({number}, 0)",
    "i div nullif(j, 0)",
    "sign({number})",
    "instr(s, u)",
]
TEXTS = [
    "{text} || {text}",
    "concat({text}, {text}, {text})",
    "concat_ws('-', {text}, {text})",
    "upper({text})",
    "lower({text})",
    "trim({text})",
    "ltrim({text})",
    "rtrim({text})",
    "substring({text}, {small}, {small})",
    "substring({text}, {small})",
    "left({text}, 2)",
    "right({text}, 2)",
    "replace({text}, 'b', 'XX')",
    "replace({text}, u, '')",
    "reverse({text})",
    "lpad({text}, 4, '*-')",
    "rpad({text}, 4, 'x')",
    "coalesce({text}, {text})",
    "case when {bool} then {text} else {text} end",
    "cast(x as string)",
    "cast(f as string)",
    "cast({date} as string)",
    "cast({time} as string)",
    "cast(p as string)",
    "cast(q as string)",
    "cast(l as string)",
    "cast(b as string)",
    "greatest({text}, {text})",
    "nullif({text}, {text})",
    "repeat(u, j)",
]
CONDITIONS = [
    "{number} {cmp} {number}",
    "{number} {cmp} {number}",
    "{text} {cmp} {text}",
    "{date} {cmp} {date}",
    "{time} {cmp} {time}",
    "{date} {cmp} {time}",
    "d {cmp} '2024-01-31'",
    "t {cmp} '2000-02-29 12:00:00'",
    "i {cmp} '7'",
    "{bool} {cmp} {bool}",
    "not {bool}",
    "{number} is null",
    "{text} is not null",
    "{bool} is true",
    "{bool} is not false",
    "{number} in ({numbers})",
    "{number} not in ({numbers})",
    "{text} in ({words})",
    "{number} between {number} and {number}",
    "{date} not between {date} and {date}",
    "{text} like {pattern}",
    "{text} ilike {pattern}",
    "{text} not like {pattern}",
    "{text} rlike '^[a-z]'",
    "isnan(x)",
    "coalesce({bool}, {bool})",
    "if({bool}, {bool}, {bool})",
    "startswith({text}, 'a')",
    "endswith({text}, u)",
    "contains({text}, 'b')",
    "try_cast({text} as boolean)",
    "{bool} <=> {bool}",
    "{number} is not distinct from {number}",
]
DATES = [
    "{date} + 7",
    "{date} - j",
    "date_add({date}, 31)",
    "date_sub({date}, j)",
    "add_months({date}, 1)",
    "add_months({date}, j)",
    "{date} + interval 1 month",
    "{date} - interval 2 days",
    "{date} + interval 1 year",
    "last_day({date})",
    "trunc({date}, {unit})",
    "cast({time} as date)",
    "try_cast({text} as date)",
    "coalesce({date}, {date})",
    "case when {bool} then {date} else {date} end",
    "greatest({date}, {date})",
    "to_date({time})",
]
TIMES = [
    "{time} + interval 1 hour",
    "{time} - interval 90 minutes",
    "{time} + interval 1 month",
    "{time} - interval 3 days",
    "date_trunc({unit}, {time})",
    "cast({date} as timestamp)",
    "try_cast({text} as timestamp)",
    "coalesce({time}, {date})",
    "least({time}, {time})",
]
