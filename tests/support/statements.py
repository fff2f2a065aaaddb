"""Random updates, deletes and merges of several clauses, over the columns of random expressions."""

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa

from support.expressions import Expressions, rows

#: The columns of a table beside its key `id` and its partition `city`, with a kind of expression and a type.
COLUMNS = {
    "i": ("number", "int"), "l": ("number", "bigint"), "x": ("number", "double"), "p": ("number", "decimal(10,2)"),
    "s": ("text", "string"), "b": ("bool", "boolean"), "d": ("date", "date"), "t": ("time", "timestamp"),
}  # fmt: skip
#: Columns that expressions name and tables do not have, and those in their place.
_OTHERS = {"j": "i", "f": "x", "q": "p", "u": "s", "e": "d"}
_NAME = re.compile(r"'(?:[^'\\]|\\.)*'|\b[ijlfxpqsubdet]\b")
_SUBQUERIES = [
    "{}id in (select id from f)",
    "{}i not in (select i from f)",
    "exists (select 1 from f where f.id = {}id and f.x > {}x)",
    "not exists (select 1 from f where f.s = {}s)",
    "{}x > (select avg(x) from f)",
    "{}l >= (select max(l) from f where b) or {}p < (select sum(p) from f)",
    "(select count(*) from f where i > 0) > 3 and not ({}d in (select d from f where f.s = {}s))",
]
_KEYS = "target.id = source.id and target.city = source.city"
_PAIRS = [
    None, _KEYS, "target.id = source.id", f"{_KEYS} and source.x > target.x", "target.i = source.i",
    "target.id = source.id + 1 and target.b", "target.s <=> source.s and target.id = source.id",
]  # fmt: skip


def keyed_rows(random: Random, keys: Sequence[int]) -> pa.Table:
    """Rows with these keys, in three cities."""
    table = rows(random, len(keys)).select(list(COLUMNS))
    columns = {name: table.column(name) for name in COLUMNS}
    # Sums of the greatest numbers end most statements, and so does a `like` whose pattern is this text.
    for name, pool in {"i": [1, None, -7, 0, 100], "l": [7, 2**33, None]}.items():
        columns[name] = pa.array([random.choice(pool) for _ in keys], columns[name].type)
    columns["s"] = pa.array([None if text == "a\\b" else text for text in columns["s"].to_pylist()])
    cities = pa.array([f"c{key % 3}" for key in keys])
    return pa.table({"id": pa.array(keys, pa.int64()), "city": cities, **columns})


class Statements:
    """Makes random statements, each a name and its arguments. A subquery selects from `f`."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.expressions = Expressions(random)

    def any(self) -> tuple[Any, ...]:
        choice = self.random.random()
        if choice < 0.2:
            return ("update", self._values(), self._condition())
        if choice < 0.35:
            return ("delete", self._condition())
        return ("merge", self.random.choice(_PAIRS), self._clauses())

    def _clauses(self) -> list[tuple[Any, ...]]:
        clauses: list[tuple[Any, ...]] = []
        for certain in (False, self.random.random() < 0.3):
            condition = None if certain else self._condition("source", "target")
            values = (self._values("source", "target"),)
            name, values = self.random.choice([("update", values), ("update_all", ()), ("delete", ())])
            clauses.append((f"when_matched_{name}", *values, condition))
        if self.random.random() < 0.6:
            condition = self._condition("source") if self.random.random() < 0.6 else None
            row = {"id": "source.id", "city": "source.city", **self._values("source")}
            name, values = self.random.choice([("insert", (row,)), ("insert_all", ())])
            clauses.append((f"when_not_matched_{name}", *values, condition))
        if self.random.random() < 0.4:
            name, values = self.random.choice([("update", (self._values("target"),)), ("delete", ())])
            clauses.append((f"when_not_matched_by_source_{name}", *values, self._condition("target")))
        return clauses

    def _condition(self, *sides: str) -> str:
        if self.random.random() < 0.15:
            side = self.random.choice(sides) if sides else "target"
            return self.random.choice(_SUBQUERIES).replace("{}", f"{side}.")
        return self._of_sides(self.expressions.make("bool", 2), sides)

    def _values(self, *sides: str) -> dict[str, str]:
        return {name: self._value(name, sides) for name in self.random.sample(list(COLUMNS), self.random.randint(1, 3))}

    def _value(self, name: str, sides: Sequence[str]) -> str:
        kind, type_ = COLUMNS[name]
        text = self._of_sides(self.expressions.make(kind, 2), sides)
        return f"try_cast({text} as {type_})" if kind == "number" else text

    def _of_sides(self, text: str, sides: Sequence[str]) -> str:
        def column(match: re.Match[str]) -> str:
            name = _OTHERS.get(match[0], match[0])
            return f"{self.random.choice(sides)}.{name}" if sides and name in COLUMNS else name

        return _NAME.sub(column, text)
