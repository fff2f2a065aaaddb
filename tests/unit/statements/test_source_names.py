"""Names in clauses of a MERGE about one side are that side's."""

from __future__ import annotations

import pytest

from hoodie.statements.dml import of_side


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("id", "`s`.id"),
        ("ID + `my col`", "`s`.ID + `s`.`my col`"),
        ("s.id", "s.id"),
        ("id(1)", "id(1)"),
        ("id.part", "id.part"),
        ("'id'", "'id'"),
        ("other", "other"),
        ("coalesce(id, 0) > 1", "coalesce(`s`.id, 0) > 1"),
        ("named_struct('a', id)", "named_struct('a', `s`.id)"),
        ("transform(xs, id -> id + 1)", "transform(xs, id -> id + 1)"),
        ("(SELECT max(id) FROM x)", "(SELECT max(id) FROM x)"),
    ],
)
def test_plain_names_of_source_columns_are_the_sources(expression: str, expected: str) -> None:
    assert of_side(expression, ["id", "my col"], "s") == expected
