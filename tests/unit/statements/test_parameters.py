"""Parameters of a statement as literals in its text, and the names in a statement that may be tables."""

import datetime
import decimal

import pytest

from hoodie.errors import StatementError
from hoodie.statements.cutting import single_statement
from hoodie.statements.names import table_names
from hoodie.statements.parameters import sql_literal, with_literals


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-7, "-7"),
        (2**31, "2147483648L"),
        (1.5, "1.5D"),
        (float("nan"), "double('nan')"),
        (float("-inf"), "double('-inf')"),
        (decimal.Decimal("1E-3"), "0.001BD"),
        ("it's \\", "'it\\'s \\\\'"),
        (datetime.date(2024, 1, 31), "DATE '2024-01-31'"),
        (datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC), "TIMESTAMP '2024-01-31 12:00:00+00:00'"),
        (b"\x00\xff", "X'00ff'"),
        ([1, "a"], "array(1, 'a')"),
        ({"a": 1}, "map('a', 1)"),
    ],
)
def test_a_value_is_a_literal_of_its_type(value: object, literal: str) -> None:
    assert sql_literal(value) == literal


def test_a_parameter_is_replaced_outside_of_texts_alone() -> None:
    statement = single_statement("UPDATE t SET a = :a, b = ':a', c = d:a, e = :other WHERE `:a` = :a -- :a")
    assert str(with_literals(statement, {"a": 1})) == (
        "UPDATE t SET a = 1, b = ':a', c = d:a, e = :other WHERE `:a` = 1 -- :a"
    )
    assert str(with_literals(single_statement("DELETE FROM t WHERE a = ? AND b = '?' AND c = ?"), [1, "x"])) == (
        "DELETE FROM t WHERE a = 1 AND b = '?' AND c = 'x'"
    )
    with pytest.raises(StatementError, match="there are 1 values"):
        with_literals(single_statement("DELETE FROM t WHERE a = ? AND b = ?"), [1])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "SELECT a, b FROM x a, y.z, (SELECT c, d FROM `q.r`, s) JOIN w ON 1 = 1, v WHERE e IN (1, 2)",
            ["x", "y.z", "q.r", "s", "w", "v"],
        ),
        ("WITH q AS (SELECT * FROM x) SELECT * FROM q ORDER BY a, b", ["x", "q"]),
        ("INSERT INTO TABLE a.b PARTITION (x = 1) TABLE c", ["a.b", "c"]),
        ("MERGE INTO hudi.`/a b/c` t USING s ON 1 = 1 WHEN MATCHED THEN DELETE", ["hudi./a b/c", "s"]),
        ("DELETE FROM x WHERE a IN (SELECT b FROM y)", ["x", "y"]),
        ("CREATE TABLE IF NOT EXISTS x AS SELECT * FROM y", ["x", "y"]),
        ("TRUNCATE TABLE x", ["x"]),
        ("FROM x SELECT a, b", ["x"]),
        ("DESCRIBE TABLE EXTENDED x", ["x"]),
        ("SELECT * FROM {df}, '/a' WHERE a = {b}", ["/a"]),
    ],
)
def test_every_name_where_a_table_may_stand_is_told(text: str, names: list[str]) -> None:
    assert list(dict.fromkeys(".".join(parts) for parts in table_names(single_statement(text)))) == names
