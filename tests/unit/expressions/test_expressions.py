"""SQL expressions on Arrow rows: types, laziness, what is refused. Values: tests/spark/test_expressions_on_spark.py."""

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput
from hoodie.expressions.joins import pairs
from hoodie.expressions.reader import read_condition, read_conjuncts, read_expression
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, spread

STRUCT = pa.struct([("k", pa.int32()), ("t", pa.string())])
TABLE = pa.table(
    {
        "a": pa.array([1, 0, None], pa.int64()),
        "p": pa.array([Decimal("1.25"), None, Decimal("-0.05")], pa.decimal128(6, 2)),
        "x": [float("nan"), -0.0, 2.0],
        "s": ["b", None, "7"],
        "d": [dt.date(2024, 1, 31), None, dt.date(2024, 2, 29)],
        "n": pa.array([{"k": 1, "t": "u"}, None, {"k": None, "t": "v"}], STRUCT),
    }
)
NOW = dt.datetime(2024, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
SCOPE = Scope({"target": TABLE.schema}, now=NOW)


def values(text: str) -> list[Any]:
    found: list[Any] = spread(read_expression(text, SCOPE).run(Block.of({"target": TABLE})), TABLE.num_rows).to_pylist()
    return found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", pa.int32()),
        ("3000000000", pa.int64()),
        ("1.50", pa.decimal128(3, 2)),
        ("1e0", pa.float64()),
        ("x'0aff'", pa.binary()),
        ("a + 1", pa.int64()),
        ("a / 2", pa.float64()),
        ("p + 1", pa.decimal128(7, 2)),
        ("p * p", pa.decimal128(13, 4)),
        ("2L * p", pa.decimal128(8, 2)),
        ("cast(2 as bigint) * p", pa.decimal128(27, 2)),
        ("cast(2 as int) * p", pa.decimal128(17, 2)),
        ("+2 * p", pa.decimal128(17, 2)),
        ("+2L * p", pa.decimal128(27, 2)),
        ("2S * p", pa.decimal128(8, 2)),
        ("2Y * p", pa.decimal128(10, 2)),
        ("p / 3", pa.decimal128(10, 6)),
        ("p + a", pa.decimal128(23, 2)),
        ("coalesce(a, p)", pa.decimal128(22, 2)),
        ("d - 1", pa.date32()),
        ("d + interval 1 hour", pa.timestamp("us", "UTC")),
        ("a = p", pa.bool_()),
        ("n.k + 1", pa.int32()),
    ],
)
def test_types_are_known_before_a_row_is_read(text: str, kind: pa.DataType):
    assert read_expression(text, SCOPE).kind == kind


def test_bytes_are_written_in_hexadecimal_digits():
    assert values("x'aff'") == [b"\x0a\xff"] * 3
    assert values("X'' < X'00' and X'0aFF' = X'AFF'") == [True] * 3


def test_what_fails_is_asked_for_the_rows_alone_that_need_it():
    assert values("case when a = 0 then -1 else 10 div a end") == [10, -1, None]
    assert values("a <> 0 and 10 div a > 1") == [True, False, None]
    assert values("a = 0 or 10 div a > 1") == [True, True, None]
    assert values("coalesce(a, cast(s as int))") == [1, 0, 7]
    assert values("if(s = '7', cast(s as int), 0)") == [0, 0, 7]
    with pytest.raises(InvalidInput, match="division by zero"):
        values("10 div a")


def test_the_day_is_that_of_the_call_in_utc():
    assert values("d > current_date - 7") == [True, None, True]
    assert values("current_timestamp()")[0] == NOW


def test_a_column_may_be_called_as_a_function_is():
    scope = Scope({"t": pa.schema([("current_date", pa.int32()), ("Left", pa.string()), ("a b", pa.int32())])})
    assert read_expression("current_date", scope).kind == pa.int32()
    assert read_expression("t.LEFT", scope).columns == {("t", "Left")}
    assert read_expression("`a b` + 1", scope).columns == {("t", "a b")}


def test_a_quote_is_written_twice_within_a_text():
    assert values("'it''s'")[0] == "it's"
    assert values("concat('''', 'a' 'b')")[0] == "'ab"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a +", "cannot be parsed"),
        ("a = 1 && p = 2", "joined by AND"),
        ("(a = 1) & (p = 2)", "expected whole numbers. Conditions are joined by AND"),
        ("a; drop table x", "cannot be parsed|not supported"),
        ("b + 1", "no column 'b'"),
        ("n.z", "has no field 'z'"),
        ("upper(a, s)", r"upper takes no arguments of types \(bigint, string\)"),
        ("a + d", "do not go together"),
        ("d - d", "datediff"),
        ("n < n", "cannot be compared: compare what is in them"),
        ("count(a) > 1", "count stands alone in a subquery"),
        ("a over (order by a)", "cannot be parsed|not supported"),
        ("a in (select a from t)", "there is no frame 't'; there are none"),
        ("cast(a as interval)", "not supported"),
        (r"s like 'a\\b'", "escape"),
        ("s rlike '('", "regular expression"),
        ("split_part(s, 'a', 0)", "there is no part 0"),
        ("regexp_replace(s, '(', '')", "cannot be read"),
        (r"regexp_replace(s, '\\bx', '')", r"has a part that needs Spark, such as \\b"),
        ("regexp_replace(s, '{', '')", "a { that stands for itself"),
        ("regexp_replace(s, '(?m)a$', '')", "flags other than i and s"),
        ("regexp_replace(s, 'a', '$1')", "names a group that 'a' does not have"),
        ("regexp_extract(s, 'a')", "has 0 groups, and none is 1"),
        ("date_format(d, 'yyyy-QQ')", "needs Spark from 'QQ' on"),
        ("to_date(s, 'yyyyM')", "two digits of each where nothing parts them"),
        ("to_date(s, 'dd.MM')", "expected a year"),
        ("s like any ()", "like any"),
        ("s like any ('a%') escape '!'", "like any"),
        ("d - d > 3", "datediff"),
        ("d - d > interval 1 month", "expected such as t - u > interval 7 days"),
        ("dateadd(days, 1, d)", "expected such as dateadd"),
        ("datediff(day, a, d)", "expected such as dateadd"),
        ("a << 1", "not supported without Spark"),
        ("+ (a = 1)", r"positive takes no arguments of types \(boolean\)"),
        ("+ d", r"positive takes no arguments of types \(date\)"),
        ("+ s", "cannot be cast to double"),
    ],
)
def test_what_has_no_meaning_here_is_refused_by_its_words(text: str, words: str):
    with pytest.raises(InvalidInput, match=words):
        values(text)


def test_the_columns_that_an_error_lists_are_those_of_the_table_that_is_named():
    scope = Scope(
        {"target": pa.schema([("id", pa.int32()), ("fare", pa.int32())]), "source": pa.schema([("id", pa.string())])}
    )
    with pytest.raises(InvalidInput, match=r"no column 'source.tip'. There are id$"):
        read_expression("source.tip", scope)
    with pytest.raises(InvalidInput, match=r"no column 'zzz'. There are id, fare$"):
        read_expression("zzz", scope)


def test_rows_are_paired_by_equal_values_as_sql_has_them():
    left = pa.table({"x": [0.0, float("nan"), None, 1.0], "i": [1, 2, 3, 4]})
    right = pa.table({"y": [-0.0, float("nan"), None, 1.0], "j": [1, 2, 3, 0]})
    scope = Scope({"l": left.schema, "r": right.schema})
    blocks = Block.of({"l": left}), Block.of({"r": right})
    for text, expected in (
        ("l.x = r.y", [(0, 0), (1, 1), (3, 3)]),
        ("x = y and i >= j and j > 0", [(0, 0), (1, 1)]),
        ("i < j", [(0, 1), (0, 2), (1, 2)]),
        ("l.i = 1", [(0, 0), (0, 1), (0, 2), (0, 3)]),
        ("false", []),
    ):
        found = pairs(*blocks, read_conjuncts(text, scope), frozenset({"l"}))
        assert sorted(zip(found.left.tolist(), found.right.tolist(), strict=True)) == expected, text


def test_pairs_without_an_equality_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("hoodie.expressions.joins._MOST", 8)
    left, right = pa.table({"i": np.arange(10)}), pa.table({"j": np.arange(10)})
    scope = Scope({"l": left.schema, "r": right.schema})
    found = pairs(Block.of({"l": left}), Block.of({"r": right}), read_conjuncts("i + 1 < j", scope), frozenset({"l"}))
    assert len(found.left) == sum(range(9))


def test_a_condition_is_true_or_false():
    for text in (
        "a + 1",
        "null",
        "(null)",
        "case when null then true end",
        "case when true then true when null then false end",
    ):
        with pytest.raises(InvalidInput, match="expected a condition"):
            read_condition(text, SCOPE)
    for text in ("not null", "null and true", "null or a = 1", "null is true", "if(null, true, false)", "null = 1"):
        assert read_condition(text, SCOPE).kind == pa.bool_()


def test_rows_that_are_none_have_no_values():
    none = Block.of({"target": TABLE.slice(0, 0)})
    for text in ("case when a > 1 then p else 0 end", "s || 'x'", "round(x)", "cast(s as int)", "a in (1, 2)", "d + 1"):
        term = read_expression(text, SCOPE)
        assert spread(term.run(none), 0).type == term.kind


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("upper('straße ﬁn')", "STRASSE FIN"),
        ("lower('ΟΔΟΣ İ')", "οδος i̇"),
        ("'STRAßE' ilike 'straß%' and 'Ж' ilike 'ж'", True),
        ("length(x'c3a9') + length('é')", 3),
        (r"'a\n' rlike 'a$' and 'a\r' rlike '^a$'", True),
        (r"'a\r' rlike 'a.'", False),
        (r"'a\nb' rlike 'a.b' or not 'a\nb' rlike '(?s)a.b' or not 'a\nb' rlike '(?m)a$'", False),
        (r"'a.b$' rlike '[.]b[$]' and 'a$b' rlike 'a\\$' and 'a.$' rlike '\\Q.$\\E'", True),
        ("try_cast('1e500' as decimal(10, 2))", None),
        ("try_cast(1e300 as decimal(10, 2))", None),
        ("cast('0e500' as decimal(3, 2))", Decimal("0.00")),
        ("round(1e300, 2) = 1e300 and round(1.5D, 400) = 1.5D and round(5D, -400) = 0", True),
        ("cast(round(-0.4D) as string)", "0.0"),
        ("greatest(false, true, null) and not least(true, false)", True),
        ("if(null, 1, 2)", 2),
        ("extract(second from timestamp '1969-12-31 23:59:58.25')", Decimal("58.250000")),
        ("extract(dow from date '2024-02-03') + extract(mins from timestamp '2024-02-03 01:07:00')", 14),
        (
            "date_trunc('millisecond', timestamp '1969-12-31 23:59:59.123456')",
            dt.datetime(1969, 12, 31, 23, 59, 59, 123_000, dt.UTC),
        ),
        ("cast(date '2024-01-01' + interval 24 hours as string)", "2024-01-02 00:00:00"),
        ("cast(date '2024-01-01' + interval 1 week as string)", "2024-01-08"),
        ("try_cast('2024-03-31 02:30:00 Europe/Paris' as timestamp)", dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)),
        ("cast('2024-01-01 00:00:00 UTC' as timestamp)", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("try_cast('2024-01-01 00:00 UTC' as timestamp)", None),
        ("cast('2024-01-01T03:00:00GMT-03:30' as timestamp)", dt.datetime(2024, 1, 1, 6, 30, tzinfo=dt.UTC)),
        ("cast('2024-07-01 00:00:00 PST' as timestamp)", dt.datetime(2024, 7, 1, 7, tzinfo=dt.UTC)),
        ("cast('2024-01-01 00:00:00+1:5' as timestamp)", dt.datetime(2023, 12, 31, 22, 55, tzinfo=dt.UTC)),
        ("cast(timestamp '1969-12-31 23:59:58.5' as bigint)", -2),
        ("cast(timestamp '1969-12-31 23:59:58.5' as double)", -1.5),
        ("cast(timestamp '2024-01-02 03:04:05.678901' as decimal(12, 1))", Decimal("1704164645.7")),
        ("try_cast(timestamp '2124-01-02 03:04:05.678901' as int)", None),
        ("cast(1704164645 as timestamp)", dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
        ("cast(-0.0000019 as timestamp)", dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)),
        ("try_cast(1e300d as timestamp)", None),
        ("try_cast('2024-01-01 00:00:00+19:00' as timestamp)", None),
        ("try_cast('2024-01-01T' as timestamp)", None),
        ("try_cast('-0x1.8P1d' as double)", -3.0),
        ("try_cast('0x.8p+1' as float)", 1.0),
        ("try_cast('-0x1p99999' as double)", float("-inf")),
        ("try_cast('0x1f' as double)", None),
        ("try_cast('0x.p1' as double)", None),
        ("try_cast('0000-00-00' as date)", None),
        ("try_cast('-0001-02-29' as date)", None),
        ("try_cast('2024-01-01 00:00:00 Nowhere' as timestamp)", None),
        (r"r'a\n'", r"a\n"),
        ("trim(from '  x ') || trim(' y')", "xy"),
        ("(6 & 3) + (6 | 3) * 100 + (6 ^ 3) * 10000 + ~6L", 50695),
        ("pmod(-7, 3) * 10 + pmod(-7, -3)", 19),
        ("ln(0) is null and log(2, 8D) = 3 and log(1, 2) > 1e300 and log10(-1) is null", True),
        ("cast(date '9999-12-31' + 1 as string)", "+10000-01-01"),
        ("cast(date '0001-01-01' - 367 as string)", "-0001-12-31"),
        ("round(1.25, cast(1 as int)) + round(1.25, 2 - 1)", Decimal("2.6")),
        ("1 in (1, 'a') and 1 in ('1', 'a')", True),
        ("+ a + +1 + day(date '2024-01-02' + interval +1 day)", 5),
        ("trim('b' from 'bab') || trim(leading 'ab' from 'baxb') || ltrim('x', 'xy') || rtrim('y', 'xyy')", "axbyx"),
        ("trim('' from 'a') || coalesce(trim(null from 'a'), 'b') || trim(s from 'abc')", "ababc"),
        (
            "date_part('YEARS', d) + datepart('doy', d) + date_part('s', timestamp '2024-01-01 00:00:00.5')",
            Decimal("2055.5"),
        ),
        (
            "cast(date '2024-01-31' + interval '1-1' year to month - interval '-1 02' day to hour as string)",
            "2025-03-01 02:00:00",
        ),
        (
            "hour(d + interval 1 day 2 hours) + extract(second from d + interval '1:2.25' minute to second)",
            Decimal("4.250000"),
        ),
        ("cast(date '2024-01-31' + interval '1 year 1 month' as string)", "2025-02-28"),
        ("btrim('xaxyx', 'xy') || btrim(' b ')", "ab"),
        (
            "cast(timestamp '2024-01-03 00:00:00' - interval 1 day -2 hours + 0.5 seconds as string)",
            "2024-01-02 01:59:59.5",
        ),
        ("cast(date '2024-01-01' + interval 1 day + 3 - interval '2' day - 1 as string)", "2024-01-02"),
        ("extract(second from timestamp '2024-01-01 00:00:09' + interval '-1.25 seconds')", Decimal("7.750000")),
        ("coalesce(all a) + if(all true, 1, 2)", 2),
        ("date_part(null, s)", None),
        ("a !> 1 and a !< 1 and not a !<2 and (a = 1) = not (a = 2)", True),
    ],
)
def test_values_are_those_that_spark_gives(text: str, value: Any):
    """Each was computed by Spark, too."""
    assert values(text)[0] == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 | 6 & 4", "put brackets"),
        ("1 & 2 || 'x'", "not supported without Spark"),
        ("1 & 2D", "whole numbers"),
        ("~'1'", "whole number"),
        ("pmod(1.5, 1)", "takes no arguments of types"),
        ("round(99999999999999999999999999999999999999, -3)", "too large"),
        ("add_months(d, 2000000000)", "out of range"),
        ("timestamp '2024-01-01' + interval 300000 years", "out of range"),
        ("d + 9223372036854775807 * interval 2 months", "out of range"),
        ("substring(x'61', 1)", "takes no arguments of types"),
        ("s rlike '[a-z&&[^b]]'", "a class within a class"),
        ("s rlike '[[:alpha:]]'", "a class within a class"),
        ("s rlike '(?i)é'", "flags"),
        ("try_cast('0000-02-29' as date)", "years 1 to 9999"),
        ("try_cast('-2020-01-01' as timestamp)", "years 1 to 9999"),
        ("try_cast('10000-01-01' as date)", "years 1 to 9999"),
        ("try_cast('9999-12-31 23:00:00-02:00' as timestamp)", "years 1 to 9999"),
    ],
)
def test_a_value_that_would_be_another_than_sparks_is_refused(text: str, words: str):
    with pytest.raises(InvalidInput, match=words):
        values(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("round(cast(9223372036854775807 as decimal(38, 18)), 3)", "9223372036854775807.000"),
        (
            "cast('92233720368.54775807' as decimal(38, 23)) / cast(1 as decimal(5, 0))",
            "92233720368.547758070000000000000",
        ),
        (
            "cast('0.00000005070602400912917605986812821502' as decimal(38, 38)) / cast(4e-20 as decimal(28, 20))",
            "1267650600228.229401496703205376",
        ),
        (
            "cast(21474836480000.0000000001 as decimal(38, 10)) / cast(1000000000001 as decimal(38, 0))",
            "21.4748364800",
        ),
    ],
)
def test_decimals_keep_their_digits_where_arrow_divides_wrongly(text: str, value: str):
    assert values(text)[0] == Decimal(value)


def test_floor_and_ceil_of_negative_decimals_cut_digits_in_parts():
    number = "cast('-92233720368.000000000000000000000000001' as decimal(38, 27))"
    assert values(f"floor({number})")[0] == -92233720369
    assert values(f"ceil({number})")[0] == -92233720368
    assert values(f"round({number}, -9)")[0] == -92000000000


def test_a_clock_alone_is_a_time_of_today():
    assert values("cast('T12:30' as timestamp) = cast('12:30' as timestamp)") == [True] * 3
    assert values("cast('12:30' as timestamp)")[0].time() == dt.time(12, 30)
    assert values("try_cast('12:30' as timestamp_ntz)")[0] is None


@pytest.mark.parametrize("word", ["and", pytest.param("or", marks=pytest.mark.nightly)])
def test_conditions_may_have_thousands_of_parts(word: str) -> None:
    text = f" {word} ".join(["abs(a) < 2", *["(a = 7 and s = 'x')"] * 2000, "a / a = 1"])
    condition = read_condition(text, SCOPE)
    rows = Block.of({"target": TABLE.slice(0, 1)})
    assert spread(condition.run(rows), 1).to_pylist() == [word == "or"]
    assert len(read_conjuncts(text, SCOPE)) == (4002 if word == "and" else 1)


def test_parts_of_a_chain_are_asked_in_their_order() -> None:
    assert values("a <> 0 and a is not null and 1 / a > 0 and a = 1") == [True, False, False]
    assert values("a = 0 or a is null or 1 / a > 0 or 1 / a < 0") == [True, True, True]


def test_brackets_that_are_nested_too_deep_are_refused() -> None:
    with pytest.raises(InvalidInput, match="nested too deep"):
        read_condition("(" * 2000 + "a = 1" + ")" * 2000, SCOPE)
    with pytest.raises(InvalidInput, match="nested too deep"):
        read_condition("a = " + " + ".join(["1"] * 2000), SCOPE)


@pytest.mark.parametrize("text", ["a in ()", "a not in ()"])
def test_an_empty_list_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="the list is empty"):
        read_condition(text, SCOPE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a in (1, 2,)", r"',' stands before '\)'"),
        ("coalesce(, a) = 1", r"'\(' stands before ','"),
        ("substring(s, 1,, 2) = 'x'", "',' stands before ','"),
        ("(a as) = 1", r"'as' stands before '\)'"),
        ("a = 1 as", "nothing behind AS"),
        ("a between 1 3", "AND is missing"),
        ("a not null", "IS is missing"),
        ("not a not is null", "'not' stands before 'is'"),
        ("case when a = 1 2 end = 2", "THEN is missing"),
        ("case a when 1 2 when 3 then 4 end = 2", "THEN is missing"),
        ("a = int 1", "'int' stands before '1'"),
        ("a = int '1'", "'int' stands before '1'"),
        ("contains(s, all 'b')", "ALL has no place"),
        ("trim(leading s) = 'b'", "a comma or FROM is missing"),
        ("substring(s from 1 for) = 'b'", "a comma or FROM has no place"),
        ("cast(a as decimal(10 2)) = 1", "not supported"),
        ("a = 1 and exists (select * from f * g)", "STAR has no place"),
        ("a in (select k from f ?)", "PLACEHOLDER has no place"),
        ("cast(a as decimal(10 x)) = 1", "not supported"),
        ("cast(a as decimal(int, 2)) = 1", "not supported"),
        ("cast(s as string(3)) = 'b'", "not supported"),
        ("substring(s from for 2) = 'b'", "'from' stands before 'for'"),
        ("extract(year, d) = 2024", "FROM is missing"),
        ("trim(leading, s) = 'b'", "FROM is missing"),
        ("s ! ilike 'a'", "cannot be parsed"),
        ("a ! in (1)", "cannot be parsed"),
        ("s is !null", "not supported"),
        ("(a = 1) <> !(a = 2)", "'<>' stands before '!'"),
        ("(a = 1) = not true", "'=' stands before 'not'"),
        ("(a = 1) between not true and true", "'between' stands before 'not'"),
        ("a ! > 1", "cannot be parsed"),
        ("10L () = a", r"'L' stands before '\('"),
        ("d + interval 1 quarter = d", "expected a whole number of years"),
        ("d + interval 1 year 2 days = d", "has no days or hours"),
        ("d + interval '1-12' year to month = d", "expected such as '1-2' year to month"),
        ("d + interval '1 2' fortnight to day = d", "expected such as '1-2' year to month"),
        ("d + interval '1 2' hour to day = d", "expected such as '1-2' year to month"),
        ("d + interval '1 day 2' = d", "'interval' stands before '1 day 2'"),
        ("d + interval '1 day 2 hours' day = d", "cannot be parsed"),
        ("d + interval 1 monthss = d", "expected a whole number of years"),
        ("d + interval 1.5 days = d", "expected a whole number of years"),
        ("d + interval 1 day - - 2 hours = d", "cannot be parsed"),
        ("cast(all s as int) = 1", "cannot be parsed"),
        ("else a", "there is no expression"),
        ("+", "there is no expression"),
        ("a = 1;", "no semicolon"),
        ("a = 1; b = 2", "no semicolon"),
        ("substring(s, 1, 'a'", "a bracket is left open"),
        ("a = '\ud800'", "cannot be parsed"),
        ("", "cannot be parsed"),
        ("-- nothing", "cannot be parsed"),
    ],
)
def test_what_spark_does_not_parse_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_condition(text, SCOPE)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("case when not a is null and a not in (2) then 1.5BD else 2BD end", Decimal("1.5")),
        ("(a is not null) is not distinct from (a is not unknown)", True),
        ("substring('abc' from 2 for 1) || trim(leading from '  x ') || trim(both from ' y')", "bx y"),
        ("coalesce(if(a > 1, 1, 2), extract(year from d))", 2),
        ("'a' 'b' not like 'a!%' escape '!' and a between 0 and 1 and not a not between 0 and 1", True),
    ],
)
def test_words_are_counted_as_spark_writes_them(text: str, value: Any):
    assert values(text)[0] == value


def test_columns_may_have_names_of_keywords_without_quotes():
    scope = Scope({"t": pa.schema([("end", pa.int32()), ("from", pa.string()), ("like", pa.int32())])})
    for text in ("1 = t.end", "coalesce(t.from, 'x') = 'y'", "t.like + t.END > 1"):
        assert read_condition(text, scope).kind == pa.bool_()


@pytest.mark.parametrize("text", ["s + s", "s / '2'", "'3' * null", "'2024-01-31' + interval 1 month", "s - '1'"])
def test_text_is_a_number_beside_a_number_alone(text: str):
    with pytest.raises(InvalidInput, match=r"do not go together|not supported"):
        read_expression(text, SCOPE)


@pytest.mark.parametrize("text", ["greatest('1', a)", "least(s, d)", "greatest(a, null, s)"])
def test_the_greatest_of_text_and_other_types_is_refused(text: str):
    with pytest.raises(InvalidInput, match=r"(greatest|least) takes no arguments of types"):
        read_expression(text, SCOPE)


def test_long_lists_of_numbers_are_not_nested():
    """Thousands of comparisons within each other ended with an error of Python's."""
    listed = ", ".join(f"{number}.25" for number in range(5000))
    assert values(f"x in ({listed}, 2.0)") == [False, False, True]
    assert values(f"x in ({', '.join(['x'] * 3000)})") == [True, True, True]


@pytest.mark.parametrize("text", ["1 in ('a', 1)", "a in (1 / 0, 1)"])
def test_a_list_is_asked_in_its_order(text: str):
    with pytest.raises(InvalidInput, match=r"cannot be cast|division by zero"):
        values(text)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_in_lists_are_those_that_are_equal(kind: pa.DataType):
    other_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    table = pa.table({"x": pa.array([float("nan"), other_nan, -0.0, 0.0, None, 1.5], kind, from_pandas=False)})
    scope = Scope({"target": table.schema}, frames={"f": pa.table({"y": [-0.0, float("nan")]})})

    def rows(text: str) -> list[Any]:
        found: list[Any] = spread(read_condition(text, scope).run(Block.of({"target": table})), 6).to_pylist()
        return found

    assert rows("x in (0, 1.5)") == [False, False, True, True, None, True]
    assert rows("x in (double('NaN'), -0.0D)") == [True, True, True, True, None, False]
    assert rows("x not in (1.5, null)") == [None] * 5 + [False]
    assert rows("x in (select y from f)") == [True, True, True, True, None, False]


NESTED = pa.table(
    {
        "l": pa.array([[0], [1, 2, None], [], None, [7]], pa.list_(pa.int64())).slice(1),
        "m": pa.array([None, [("a", 1), ("b", None)], [], None, [("c", 2)]], pa.map_(pa.string(), pa.int32())).slice(1),
        "p": pa.array([[], [{"k": 1, "t": "x"}, None], [], None, [{"k": None, "t": "y"}]], pa.list_(STRUCT)).slice(1),
        "t": pa.array([[dt.datetime(2024, 1, 1)], None, [], []], pa.list_(pa.timestamp("ms"))),
        "u": ["a", "b", None, "c"],
        "x": [0.0, 2.0, None, float("nan")],
    }
)


def within(text: str, table: pa.Table = NESTED) -> list[Any]:
    term = read_expression(text, Scope({"target": table.schema}))
    found: list[Any] = spread(term.run(Block.of({"target": table})), table.num_rows).to_pylist()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size(l)", [3, 0, None, 1]),
        ("size(m) + cardinality(l)", [5, 0, None, 2]),
        ("if(size(l) > 0, l[0], -1)", [1, -1, -1, 7]),
        ("if(size(l) > 0, element_at(l, -1), -1)", [None, -1, -1, 7]),
        ("m['a']", [1, None, None, None]),
        ("element_at(m, u)", [1, None, None, 2]),
        ("if(size(p) > 0, p[0].K, 0)", [1, 0, 0, None]),
        ("if(size(t) > 0, t[0] = '2024-01-01', false)", [True, False, False, False]),
        ("pow(x, 2)", [0.0, 4.0, None, pytest.approx(float("nan"), nan_ok=True)]),
        ("pow(1, x) = 1", [True, True, None, False]),
    ],
)
def test_values_are_taken_out_of_lists_maps_and_structs(text: str, expected: list[Any]):
    assert within(text) == expected


@pytest.mark.parametrize("kind", [pa.list_view, pa.large_list, pa.large_list_view])
def test_elements_are_taken_out_of_lists_of_any_layout(kind: Any):
    table = pa.table({"l": pa.array([[9], [1, 2], None, [3]], kind(pa.int64())).slice(1)})
    assert within("l[0]", table) == [1, None, 3]


@pytest.mark.parametrize("text", ["l[0]", "l[-1]", "element_at(l, 0)", "element_at(l, 4)"])
def test_a_place_beyond_a_list_is_told(text: str):
    with pytest.raises(InvalidInput, match=r"there is no element -?[0-9] in a list of [0-9]"):
        within(text)


@pytest.mark.parametrize("text", ["l['a']", "element_at(l, 1L)", "u[0]", "p[0]['q']", "size(u)", "element_at(m, 1)"])
def test_what_has_nothing_within_is_refused(text: str):
    with pytest.raises(InvalidInput, match=r"has no such thing|takes no arguments of types"):
        within(text)


@pytest.mark.parametrize("text", ["a = (select max(k) - 1 from f)", "max(a) > 1"])
def test_what_is_computed_with_an_aggregate_goes_around_its_subquery(text: str):
    scope = Scope({"target": TABLE.schema}, frames={"f": pa.table({"k": [1, 2]})})
    with pytest.raises(InvalidInput, match=r"max stands alone in a subquery, as \(select max\(c\) from frame\)"):
        read_condition(text, scope)
    around = read_condition("a = (select max(k) from f) - 1", scope)
    assert spread(around.run(Block.of({"target": TABLE})), 3).to_pylist() == [True, False, None]
