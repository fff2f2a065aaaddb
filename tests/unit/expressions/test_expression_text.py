"""What expressions are about, told from their text alone."""

import pytest

from hoodie.expressions.text import (
    about_source_only,
    columns_named,
    conjuncts,
    equal_columns,
    same_expression,
    three_valued,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a = 1 AND b = 2", ["a = 1", "b = 2"]),
        ("a between 1 and 2 and b", ["a between 1 and 2", "b"]),
        ("((a = 1) and (b or c))", ["(a = 1)", "(b or c)"]),
        ("a = 'x AND y' AND b", ["a = 'x AND y'", "b"]),
        ("CASE WHEN a AND b THEN 1 END = 1 AND c", ["CASE WHEN a AND b THEN 1 END = 1", "c"]),
        ("a or b and c", ["a or b and c"]),
        ("end > 1 AND b", ["end > 1", "b"]),
        (
            "CASE WHEN end > t.end AND a THEN end ELSE end END = t.case AND c",
            ["CASE WHEN end > t.end AND a THEN end ELSE end END = t.case", "c"],
        ),
        *(
            (f"CASE WHEN a {behind} end AND d THEN b END AND c", [f"CASE WHEN a {behind} end AND d THEN b END", "c"])
            for behind in ("RLIKE", "ILIKE", "= 7 DIV", "IS DISTINCT FROM", "= 1 |", "= 1 &", "= 1 ^", "= ~")
        ),
        ("f(a and b)", ["f(a and b)"]),
        ("a = 'open", ["a = 'open"]),
    ],
)
def test_conjuncts_are_slices_of_the_text(text, parts):
    assert conjuncts(text) == parts


def test_columns_are_named_by_their_parts():
    assert sorted(columns_named("t.A + s.`b c` > f(u)") or []) == [("s", "b c"), ("t", "a"), ("u",)]
    assert columns_named("1 > 2") == []
    assert columns_named("a in (select b from c)") is None
    assert columns_named("count(*)") is None
    assert columns_named("a +") is None


def test_a_condition_on_equal_columns_is_recognised():
    assert equal_columns("t.id = s.ID and (S.City = t.town)", "s", "t") == {"id": "id", "town": "city"}
    for more in (
        "t.id = s.id and t.x > 1",
        "t.id = s.id or true",
        "t.id = t.x",
        "id = s.id",
        "t.a = s.a and t.a = s.b",
    ):
        assert equal_columns(more, "s", "t") is None, more


def test_what_may_mean_the_table_is_not_about_the_source_only():
    columns = {"id", "price"}
    assert about_source_only("s.op = 'D' and upper(op) = 'D'", "s", "t", columns)
    for text in ("t.id = 1", "price > 1", "s.id > t.id", "s.id in (select id from x)"):
        assert not about_source_only(text, "s", "t", columns), text


def test_plain_columns_are_the_same_however_they_are_written():
    assert same_expression("s.`Price`", "S.price")
    assert not same_expression("'A'", "'a'")
    assert not same_expression(1, "1")


@pytest.mark.parametrize(
    "text",
    [
        "s.id = t.id AND (s.u IN (SELECT b FROM q) OR t.v > 1)",
        "s.u NOT IN (1, 2)",
        "(s.u, s.v) NOT IN (SELECT b, c FROM q)",
        "NOT EXISTS (SELECT 1 FROM q WHERE b NOT IN (SELECT c FROM r))",
        "no sql (",
    ],
)
def test_a_condition_that_joins_take_right_stays_as_it_is(text: str):
    assert three_valued(text) == text


def test_a_negated_subquery_is_unknown_beside_a_null():
    query = "(SELECT b FROM q WHERE c = 'it')"
    has_null = f"EXISTS(SELECT 1 FROM {query} AS `rows`(`value`) WHERE `value` IS NULL)"
    unknown = f"{has_null} OR (s.u IS NULL AND EXISTS{query})"
    spelled = f"CASE WHEN s.u IN {query} THEN TRUE WHEN {unknown} THEN NULL ELSE FALSE END"
    assert three_valued(f"s.id = t.id AND s.u NOT IN {query}") == f"s.id = t.id AND NOT ({spelled})"
