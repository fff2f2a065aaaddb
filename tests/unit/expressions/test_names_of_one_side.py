"""Names in clauses of a MERGE about one side are that side's."""

import pytest

from hoodie.expressions.text import of_side

COLUMNS = ["id", "my col", "date", "day", "end"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("id", "`s`.id"),
        ("ID + `my col`", "`s`.ID + `s`.`my col`"),
        ("'é' || id", "'é' || `s`.id"),
        ("s.id", "s.id"),
        ("t.id", "t.id"),
        ("id(1)", "id(1)"),
        ("id.part", "`s`.id.part"),
        ("'id'", "'id'"),
        ("other", "other"),
        ("coalesce(id, 0) > 1", "coalesce(`s`.id, 0) > 1"),
        ("named_struct('a', id)", "named_struct('a', `s`.id)"),
        ("case when id > 1 then date end", "case when `s`.id > 1 then `s`.date end"),
        ("cast(date as date) > date '2020-01-01'", "cast(`s`.date as date) > date '2020-01-01'"),
        ("date + interval 1 day", "`s`.date + interval 1 day"),
        ("extract(day from date)", "extract(day from `s`.date)"),
        ("datediff(day, date, date)", "datediff(day, `s`.date, `s`.date)"),
        ("transform(xs, id -> id + day)", "transform(xs, id -> id + `s`.day)"),
        ("transform(xs, id -> id.day)", "transform(xs, id -> id.day)"),
        ("(SELECT max(id) FROM x)", "(SELECT max(id) FROM x)"),
        ("id +", "id +"),
    ],
)
def test_plain_names_of_source_columns_are_the_sources(expression: str, expected: str) -> None:
    assert of_side(expression, COLUMNS, "s", "t") == expected
