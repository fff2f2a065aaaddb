"""What filters keep: conditions as SQL has them, tuples as pyarrow has them, and none that a column's type breaks."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import InvalidInput
from hoodie.reading.filters.predicate import Bounds, may_pass
from hoodie.reading.filters.selection import kept_rows, read_filter

FINEST = "-12345678901234567890.123456789012345678"
EPOCH = dt.datetime(1970, 1, 1)
ROWS = pa.table(
    {
        "id": [0, 1, 2, 3, 4],
        "i": pa.array([-(2**31), 1, 2, 2**31 - 1, None], pa.int32()),
        "l": pa.array([-(2**63), 1, 2**53 + 1, 2**63 - 1, None], pa.int64()),
        "price": pa.array([Decimal(n) for n in ("-1.50", "0.10", "1.00", "999.99")] + [None], pa.decimal128(5, 2)),
        "fine": pa.array([Decimal(n) for n in (FINEST, "0", "1", "9e18")] + [None], pa.decimal128(38, 18)),
        "f": pa.array([-1.0, 0.1, -0.0, 2.0**24, None], pa.float32()),
        "d": pa.array([0.0, 0.1, -0.0, 2.0**53, None], pa.float64()),
        "s": ["a", "ab", "it's", "%", None],
        "day": pa.array([dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date.max, None]),
        "at": pa.array([EPOCH, EPOCH, None, None, None], pa.timestamp("us", "UTC")),
    }
)  # fmt: skip


def kept(filters: Any) -> list[int]:
    found = read_filter(filters, ROWS.schema)
    return list(kept_rows(ROWS, found.expression).column("id").to_pylist())


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("s like 'a%'", [0, 1]),
        ("s not like 'a%'", [2, 3]),
        ("not (s not like 'a%')", [0, 1]),
        ("s not like '%'", []),
        ("s not in ('a', '%')", [1, 2]),
        ("id not between 1 and 3", [0, 4]),
    ],
)
def test_a_negated_word_keeps_the_other_rows(condition: str, expected: list[int]) -> None:
    assert kept(condition) == expected


@pytest.mark.parametrize("condition", ["id between symmetric 3 and 1", "s similar to 'a'"])
def test_what_a_condition_says_beyond_what_is_understood_is_refused(condition: str) -> None:
    with pytest.raises(InvalidInput, match="is not supported"):
        kept(condition)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i > cast(' 1' as int)", [2, 3]),
        ("l = cast('9223372036854775807' as bigint)", [3]),
        ("l = 9007199254740993L", [2]),
        ("d = cast('0.1' as double)", [1]),
        ("s = cast('ab' as string)", [1]),
        ("day = date '1970-01-01'", [1]),
        ("day in (cast('1970-01-01' as date), date('2024-02-29'))", [1, 2]),
        ("at = timestamp '1970-01-01 00:00:00'", [0, 1]),
        ("at >= cast('1970-01-01T00:00:00Z' as timestamp)", [0, 1]),
        ("at > cast('1970-01-01' as date)", []),
    ],
)
def test_a_cast_of_a_literal_is_carried_out(condition: str, expected: list[int]) -> None:
    assert kept(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "i = cast('1.9' as int)",
        "i = cast('300' as tinyint)",
        "s = cast('1' as int)",
        "s = date '1970-01-01'",
        "i = date '1970-01-01'",
        "i = cast(l as int)",
    ],
)
def test_a_cast_that_has_no_value_is_refused(condition: str) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be (cast|compared)"):
        kept(condition)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i = cast(1.9 as int)", [1]),
        ("cast(i as string) = '1'", [1]),
        ("f = cast('0.1' as float)", [1]),
        ("at = cast('1970-01-01 12:00:00' as date)", [0, 1]),
        ("day = timestamp '1970-01-01 12:00:00'", []),
        ("s like 'a!%' escape '!'", []),
        ("upper(s) in ('AB', 'A') and i + 1 > 0", [1]),
        ("coalesce(i, 7) = 7 or length(s) = 4", [2, 4]),
        ("day > current_date - 7", [3]),
        ("case when id = 3 then null else id > 1 end", [2, 4]),
        ("s ilike 'A%' and target.id = 0", [0]),
    ],
)
def test_a_filter_says_what_the_condition_of_a_delete_says(condition: str, expected: list[int]) -> None:
    assert kept(condition) == expected


def test_nan_is_the_greatest_number_as_in_the_condition_of_a_delete() -> None:
    rows = pa.table({"x": pa.array([1.0, float("nan"), None], pa.float64()), "id": [0, 1, 2]})
    for condition, expected in (
        ("x > 1", [1]),
        ("x = cast('NaN' as double)", [1]),
        ("x < cast('NaN' as double)", [0]),
        ("x <> 1", [1]),
        ("x <= 1 or x is null", [0, 2]),
        ("upper('a') = 'A' and x >= 1", [0, 1]),
    ):
        found = read_filter(condition, rows.schema)
        assert kept_rows(rows, found.expression)["id"].to_pylist() == expected, condition
        assert may_pass(found.tests, {"x": Bounds(1.0, 1.0, 1, exact=False)}.get), condition
        assert kept_rows(rows.to_batches()[0], found.expression)["id"].to_pylist() == expected, condition


def test_nan_within_a_struct_is_the_greatest_number_as_well() -> None:
    values = [{"x": 1.0}, {"x": float("nan")}, {"x": None}, None]
    rows = pa.table({"s": pa.array(values, pa.struct({"x": pa.float64()})), "id": [0, 1, 2, 3]})
    for condition, expected in (("s.x > 1", [1]), ("s.x = cast('NaN' as double)", [1]), ("not (s.x > 1)", [0])):
        row_filter = read_filter(condition, rows.schema)
        assert kept_rows(rows, row_filter.expression)["id"].to_pylist() == expected, condition


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("x", "in", [0.0])], [0, 1]),
        ([("x", "in", [-0.0, None])], [0, 1, 4]),
        ([("x", "in", [0, float("nan")])], [0, 1, 3]),
        ([("x", "in", [float("nan")])], [3]),
        ([("x", "in", [2**70, 1.5])], [2]),
        ([("x", "=", float("nan"))], [3]),
        ([("x", ">", 1.5)], [3]),
        ([("x", "<", float("nan"))], [0, 1, 2]),
        ([("x", "!=", 1.5)], [0, 1, 3]),
        ([("x", "in", [-(2**31)])], []),
        ([("x", "in", [2**60 + 1, 1.5])], [2]),
        ([("x", "not in", [0.0, float("nan")])], [2, 4]),
        ([("x", "not in", [float("nan")])], [0, 1, 2, 4]),
        ([("x", "not in", [1.5, None])], [0, 1, 3]),
    ],
)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_tuples_compare_floats_as_sql_does(filters, expected, kind) -> None:
    rows = pa.table({"x": pa.array([0.0, -0.0, 1.5, float("nan"), None], kind), "id": [0, 1, 2, 3, 4]})
    row_filter = read_filter(filters, rows.schema)
    assert kept_rows(rows, row_filter.expression)["id"].to_pylist() == expected


def test_comparisons_of_an_expression_leave_files_out() -> None:
    found = read_filter("id = 7 and upper(s) = 'A'", ROWS.schema)
    assert set(found.columns) == {"id", "s"}
    assert not may_pass(found.tests, {"id": Bounds(1, 6, 0)}.get)
    assert may_pass(found.tests, {"id": Bounds(1, 7, 0)}.get)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i > 1.5", [2, 3]),
        ("i >= -2147483648.5", [0, 1, 2, 3]),
        ("i <= 1.9", [0, 1]),
        ("i = 1.5", []),
        ("i <> 1.5", [0, 1, 2, 3]),
        ("i = 1.0", [1]),
        ("i in (1.5, 2)", [2]),
        ("i not in (1.5, 2)", [0, 1, 3]),
        ("i in (2147483648, 1)", [1]),
        ("i < 2147483648", [0, 1, 2, 3]),
        ("l < 99999999999999999999", [0, 1, 2, 3]),
        ("l > 99999999999999999999", []),
        ("l >= -1e400", [0, 1, 2, 3]),
        ("l between -1e999999999 and 1e-999999999", [0]),
        ("not (l = 9223372036854775808)", [0, 1, 2, 3]),
        ("l = 9007199254740993", [2]),
        ("l = 9007199254740992.5", []),
        ("price > 0", [1, 2, 3]),
        ("price >= 1", [2, 3]),
        ("price in (1, 0.1, 0.001)", [1, 2]),
        ("price < 0.101", [0, 1]),
        ("price < 12345678901234567890123", [0, 1, 2, 3]),
        ("fine >= 1", [2, 3]),
        (f"fine = {FINEST}", [0]),
        ("fine > 0.0000000000000000001", [2, 3]),
        ("d in (0, 0.1)", [0, 1, 2]),
        ("d in (-0.0)", [0, 2]),
        ("d not in (0)", [1, 3]),
        ("d in ('NaN', 0.1)", [1]),
        ("f = 0", [2]),
        ("f in (0)", [2]),
        ("f in (0.1)", []),
        ("f < 16777217", [0, 1, 2, 3]),
        ("d < 9007199254740993", [0, 1, 2]),
    ],
)
def test_numbers_are_compared_exactly(condition: str, expected: list[int]) -> None:
    assert kept(condition) == expected
    assert kept(f"({condition}) or id = 4") == [*expected, 4]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("i", ">", 1.5)], [2, 3]),
        ([("i", "<", float("inf"))], [0, 1, 2, 3]),
        ([("i", "in", [1.5, 2])], [2]),
        ([("i", "in", [2**40, None])], [4]),
        ([("i", "not in", {1, 2})], [0, 3, 4]),
        ([("l", "<", 2**70)], [0, 1, 2, 3]),
        ([("price", ">=", 1)], [2, 3]),
        ([("price", "<", Decimal("0.101"))], [0, 1]),
        ([("price", "=", 0.1)], [1]),
        ([("price", "in", [0.1])], [1]),
        ([("price", "in", [0.101, 1.0])], [2]),
        ([("price", "not in", [0.101, 1.0, 0.1])], [0, 3, 4]),
        ([("price", "in", [0.1, 1, Decimal("999.99"), None])], [1, 2, 3, 4]),
        ([[("fine", "=", 1)], [("fine", "<", 0)]], [0, 2]),
        ([("s", "in", [])], []),
        ([("s", "not in", [])], [0, 1, 2, 3, 4]),
        ([("s", "in", [None])], [4]),
        ([("s", "in", iter(["a"]))], [0]),
        ([("f", "<", 2**24 + 1)], [0, 1, 2, 3]),
        ([("d", "<", 2**53 + 1)], [0, 1, 2]),
    ],
)
def test_numbers_of_tuples_are_compared_exactly(filters: Any, expected: list[int]) -> None:
    assert kept(filters) == expected


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ("day = 1", "date and int cannot be compared"),
        ("at > 5", "timestamp and int cannot be compared"),
        ("i", "expected a condition"),
        ("day < at and at = i", "cannot be compared"),
        ([("day", "=", 1)], "do not fit the columns"),
        ([("s", ">", 1)], "do not fit the columns"),
        (pc.field("i"), "evaluate to bool"),
        (pc.field("nope") > 1, "nope"),
    ],
)
def test_filters_that_do_not_fit_a_columns_type_are_refused_before_rows_are_read(filters: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        kept(filters)


@pytest.mark.parametrize("filters", [[("i", "=")], [("i", "~", 1)], [], [["i", "=", 1]]])
def test_tuples_that_are_malformed_are_refused(filters: Any) -> None:
    with pytest.raises(InvalidInput, match=r"filters=\["):
        kept(filters)


def test_values_that_can_be_looked_at_once_leave_no_row_group_out() -> None:
    found = read_filter([("i", "in", iter([1]))], ROWS.schema)
    assert may_pass(found.tests, {"i": Bounds(0, 9, nulls=0)}.get)
    assert may_pass(found.tests, {"i": Bounds(1, 1, nulls=0)}.get)


def test_a_null_among_the_values_of_a_tuple_leaves_no_row_group_out_that_has_nulls() -> None:
    found = read_filter([("i", "in", [1, None])], ROWS.schema)
    assert may_pass(found.tests, {"i": Bounds(5, 9, nulls=1)}.get)
    assert not may_pass(found.tests, {"i": Bounds(5, 9, nulls=0)}.get)


@pytest.mark.parametrize(
    ("filters", "count"),
    [([("f", "in", [0.1])], 0), ([("f", "=", 0.1)], 0), ([("f", "not in", [0.1])], 1), ([("f", ">=", 0.1)], 1)],
    ids=str,
)
def test_a_float_is_compared_as_a_double(filters: Any, count: int, tmp_path: Path) -> None:
    """The 0.1 of floats is more than that of doubles, as in Spark."""
    table = hoodie.create_table(tmp_path, record_key="id")
    table.insert(pa.table({"id": ["a"], "f": pa.array([0.1], pa.float32())}))
    assert table.count(filters=filters) == count
    assert table.update({"f": "f"}, filters).updated == count


@pytest.mark.parametrize(
    ("op", "value", "count"), [("=", 2.0**53, 2), ("=", 2**53, 1), (">", 2.0**53, 0), ("in", [2.0**53], 2)]
)
def test_a_whole_number_beside_a_large_double_is_compared_as_one(
    op: str, value: Any, count: int, tmp_path: Path
) -> None:
    table = hoodie.create_table(tmp_path, record_key="id")
    table.insert(pa.table({"id": [2**53, 2**53 + 1]}))
    assert table.count(filters=[("id", op, value)]) == count


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ([("price", "=", 0.1)], 1),
        ([("price", ">=", 0.1)], 1),
        ([("price", "in", [0.1])], 1),
        ([("price", "!=", 0.1)], 0),
        ("price = 0.1D", 1),
        ("price >= cast('0.1' as double)", 1),
        ("price in (0.1D, 7)", 1),
        ("large = 9007199254740992D", 1),
        ("large < 9007199254740993", 0),
        ("large <= 9007199254740992e0", 1),
        ("price = 1e-1", 1),
        ("price > 0.9999999999999999e-1", 1),
    ],
    ids=str,
)
def test_statistics_of_decimals_leave_no_row_group_out_beside_a_float(filters: Any, count: int, tmp_path: Path) -> None:
    """Both sides are compared as doubles then, as Arrow does it, and Spark: 0.10 is the double 0.1."""
    table = hoodie.create_table(tmp_path, record_key="id")
    price = pa.array([Decimal("0.10")], pa.decimal128(5, 2))
    table.insert(pa.table({"id": ["a"], "price": price, "large": [2**53 + 1]}))
    assert table.count(filters=filters) == count


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("day < date '1970-01-01'", [1]),
        ([("day", ">", dt.date(2024, 1, 1))], [3]),
        ("at >= timestamp '1970-01-01 00:00:00'", [2, 3]),
        ("at is null", []),
    ],
    ids=str,
)
def test_bounds_beyond_pythons_calendar_leave_no_row_group_out(
    filters: Any, expected: list[int], tmp_path: Path
) -> None:
    table = hoodie.create_table(tmp_path, record_key="id")
    day = pa.array([-800_000, 0, 4_000_000], pa.int32()).cast(pa.date32())
    at = pa.array([-(10**17), 0, 10**18], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table.insert(pa.table({"id": [1, 2, 3], "day": day, "at": at}))
    assert sorted(table.to_arrow(columns=["id"], filters=filters)["id"].to_pylist()) == expected


def test_a_delete_by_what_is_not_like_a_pattern_leaves_the_rows_that_are(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id")
    table.insert(
        pa.table({"id": [1, 2, 3], "s": ["tmp_a", "b", "c"], "price": pa.array([1, 2, 3], pa.decimal128(5, 2))})
    )
    assert table.delete(where="s not like 'tmp%' and price > 2").deleted == 1
    assert sorted(table.snapshot().to_arrow().column("id").to_pylist()) == [1, 2]


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("when > 1", [2]),
        ("WHEN > 1 and name = 'it''s'", [2]),
        ("'a' < 'b' and when = 1", [1]),
        ("\"name\" = 'it''s'", [2]),
        ('"two words" = 7', [1]),
        ('name = "oslo"', [1]),
        ("name = 'when = 2'", []),
        ("name in ('it''s', 'rome')", [2]),
    ],
)
def test_quotes_and_columns_named_like_keywords_are_as_in_standard_sql(condition, values):
    rows = pa.table({"when": [1, 2], "name": ["oslo", "it's"], "two words": [7, 8]})
    found = read_filter(condition, rows.schema)
    assert kept_rows(rows, found.expression)["when"].to_pylist() == values


@pytest.mark.parametrize("condition", ["when ==", "name = 'oslo", "(", "name = 'oslo' oslo rome"])
def test_a_condition_that_cannot_be_parsed_has_no_escape_codes_in_its_message(condition):
    schema = pa.schema({"when": pa.int64(), "name": pa.string()})
    with pytest.raises(InvalidInput) as raised:
        read_filter(condition, schema)
    assert str(raised.value).isprintable()
    assert "<class" not in str(raised.value)


@pytest.mark.parametrize(
    "condition",
    [
        *("when = 1", "\"name\" = 'oslo'", 'name = "oslo"', "target.when = 1", "upper(\"name\") = 'OSLO'"),
        *(
            "name = d",
            "when = name",
            "at = tz",
            "tz > at",
            "d = tz",
            "m = when",
            "d > name",
            "when",
            "name = 'a' and n",
        ),
        *("when is distinct from 1", "when is not distinct from 1", "n is distinct from when"),
    ],
)
def test_a_condition_is_the_same_to_a_read_and_to_a_delete(condition: str, tmp_path: Path) -> None:
    noon = dt.datetime(2024, 1, 31, 12)
    rows = {
        "id": [1, 2], "when": [1, 2], "name": ["oslo", "2024-01-31"], "d": [noon.date(), None], "n": [None, 2],
        "m": pa.array([1, None], pa.decimal128(9, 2)), "at": pa.array([noon, noon], pa.timestamp("us")),
        "tz": pa.array([noon, None], pa.timestamp("us", "UTC")),
    }  # fmt: skip
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert(pa.table(rows))

    def outcome(call: Callable[[], int]) -> int | str:
        try:
            return call()
        except InvalidInput as problem:
            return str(problem).removeprefix("the condition ").replace(f"{condition!r}: ", "")

    found = outcome(lambda: table.count(filters=condition))
    assert outcome(lambda: table.delete(where=condition).deleted) == found


def test_comparisons_with_constants_are_tests_of_a_condition() -> None:
    def found(text: str) -> Any:
        condition = read_filter(text, ROWS.schema)
        return [[(test.column, test.op, test.value) for test in clause] for clause in condition.tests]

    text = "target.I >= 3 - 1 and day between date '2024-02-02' - 1 and '2024-03-01' and s in ('x', null, 'y')"
    days = [("day", ">=", dt.date(2024, 2, 1)), ("day", "<=", dt.date(2024, 3, 1))]
    assert found(text) == [[("i", ">=", 2), *days, ("s", "in", ["x", "y"])]]
    assert found("(i < 1.5 or day is null) and 5 > id") == [
        [("i", "<", Decimal("1.5")), ("id", "<", 5)],
        [("day", "null", None), ("id", "<", 5)],
    ]
    assert found("price <> 1 and d < 2 and d > 2 and d in (0, 1)") == [
        [("price", "!=", Decimal(1)), ("d", "<", 2.0), ("d", "in", [0.0, 1.0])]
    ]
    assert found("at >= '1970-01-01 01:00:00+01:00'") == [[("at", ">=", EPOCH.replace(tzinfo=dt.UTC))]]
    # Compared in floats, of fewer digits; NaN is the greatest number; of no column alone; or they may fail.
    for text in ("l = 1e0", "l in (1.5, '2')", "d in (cast('NaN' as double))", "i + 1 > 3", "i > l", "not (i = 1)"):
        assert found(text) == [[]], text


@pytest.mark.parametrize("word", ["and", "or"])
def test_a_filter_may_have_thousands_of_comparisons(word: str) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    found = read_filter(f" {word} ".join(["id >= 2", *["id <> 7"] * 2000, "id <= 3"]), rows.schema)
    assert found is not None
    assert kept_rows(rows, found.expression)["id"].to_pylist() == ([2, 3] if word == "and" else [1, 2, 3])


@pytest.mark.parametrize(
    ("text", "words"), [("id in ()", "the list is empty"), ("(" * 999 + "id = 1" + ")" * 999, "too deep")]
)
def test_an_empty_list_and_deep_brackets_are_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_filter(text, pa.schema([("id", pa.int64())]))
