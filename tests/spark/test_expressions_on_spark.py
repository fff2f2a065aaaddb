"""SQL expressions without Spark beside Spark's own: the same text on the same rows, hundreds of them in one job."""

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.errors import InvalidInput
from hoodie.expressions.reader import read_expression
from hoodie.expressions.scope import Scope
from hoodie.expressions.terms import Block, spread
from support.expressions import Expressions, rows
from support.nightly import scaled

_COUNT = scaled(120, 250)
ROWS = rows(Random(11), 60)
ROWS = ROWS.append_column("row", pa.array(range(60), pa.int32()))
FRAME = pa.table({"id": [1, 7, None, 100], "n": [0.5, None, 2.0, 1.5], "word": ["a", None, "b", "a"]})

#: Text whose meaning is easily got wrong.
CHOSEN = [
    "'it''s' || 'a' 'b'",
    "i between 7 and 0 or not s like 'a%'",
    "-7 % 3 + -7 div 2",
    "2 / 3 * 3.0",
    "+2 * q",
    "2Y * q + 2S * q",
    "2::bigint * q + 2::int * q + -2L * q",
    "btrim(s, 'ab') || btrim(' x ') || btrim('abc', s)",
    "date_part(null, d) is null or date_part(null, s) > 1",
    "d + interval '1-2' year to month = d - interval -'1-2' year to month",
    "d + interval '-1 2' day to hour > t + interval '1 02:03:04.5' day to second",
    "t - interval '25:03' hour to minute < t + interval '90:03.05' minute to second",
    "d + interval 1 year 2 months > d - interval 1 week 2 days",
    "t + interval '1 day -2 hours' < d + interval 1 day 2 hours + 3 minutes",
    "t - interval 1 day -2 hours + 1.5 seconds < t - interval '1.25 seconds' - interval 1 day",
    "coalesce(all d) + interval 1 month + 3 - interval 1 day - 1",
    "trim('a' from s) || trim(leading s from 'abc') || rtrim('b', s)",
    "date_part('year', d) + date_part('seconds', t)",
    "i !> 3 or i !< 9 or (i = 1) = not (i = 2)",
    r"regexp_replace(s, '([A-z])([^a-z]|$)', '<$2\\$1>')",
    "regexp_replace(u, '|a', '-') || regexp_replace(u, 'p*?', '.')",
    r"regexp_replace(s || '\n', '\\s*$', '!') || regexp_replace(s, '(?i)B(?=c)|X', '$0$0')",
    r"regexp_extract(s, '(\\d+)-(\\d+)', 2) || regexp_extract(s, '(x)?[%_]') || regexp_extract(s, '.y', 0)",
    "split(s, '[X_]')[0] || element_at(split(u, 'a*'), 1) || element_at(split(u, '(-)|(?=1)'), -1)",
    "split_part(s, '-', -1) || split_part(s, 'X', 9) || split_part(s, '', 1) || substring_index(s, 'X', -2)",
    "substring_index('aaaa', 'aa', -1) || substring_index(s, '-', 2) || substring_index(s, '-', 0)",
    "initcap(s || ' ßx İi ΑΣ') || translate(s, 'aXa', 'b') || md5(s) || sha1(s) || sha2(s, 0) || sha2(s, 384)",
    "locate('b', s, 2) + locate('', s, 9) + locate('b', s, 0) + position('b', s)",
    "nvl2(i, 1, p)",
    "s like any ('a%', u) or s not like all ('%b%', null) or not s ilike any ('A%', 'x%')",
    "s not like any ('a%', '%c') and s like all ('%a%', '%b%')",
    "date_format(t, 'yyyy-MM-dd HH:mm:ss.SSS') || date_format(d, \"E d.M.yyyy 'at' EEEE, MMM MMMM\")",
    "to_date('31/1/2024', 'd/M/yyyy') = to_timestamp('202401310000', 'yyyyMMddHHmm')",
    "unix_timestamp(t) + unix_seconds(t) * 2 + unix_millis(t) + unix_micros(t) + unix_timestamp(d)",
    "timestamp_seconds(j) < timestamp_millis(l % 1000) or timestamp_micros(l) = t",
    "dateadd(quarter, -1, t) < dateadd(day, 3, d) or timestampadd(minute, 90, t) = t",
    "datediff(month, d, t) + datediff(year, t, e) + datediff(hour, d, t) + date_diff(week, e, d)",
    "t - d > interval 5 days or d - e between interval -1 day and interval 48 hours",
    "interval 1 day -2 hours <= t - timestamp '2024-01-30' and (d - e) <> (interval 0 days)",
    "1.10 + p * 0.333 - q",
    "(i & 6) + (j | 3) % 5 + (i ^ -2) % 9 + ~j % 7",
    "i & l = 4 or l & null is null or i | 1 in (3, 7) or not i & 1 = 1",
    "2 + i % 5 & 7 ^ j | 1",
    "pmod(i, 3) + pmod(l, -7) + pmod(-7Y, 3S)",
    "pmod(x, 0.75D)",
    "round(exp(j) + ln(x) - log(i), 6)",
    "round(log10(i + 0.5) * log2(x) + log(3, x) + log(x, 2), 6)",
    "ln(0) is null and log(1, 2) > 1e300 and log(-2, 4) is null",
    "cast(2.5 as int) + cast(-2.5 as int) + cast(2.5D as int)",
    "cast(1.005 as decimal(10,2)) + round(2.675D, 2)",
    "round(-2.5) + round(25, -1)",
    "p / nullif(q, 0)",
    "q * 1.5",
    "case j when 1 then 'one' when null then 'none' else s end",
    "case when j = 0 then 0 else i / j end",
    "j <> 0 and 10 / j > 1",
    "cast('1e3' as double) = 1000",
    "try_cast('0x1.8p1' as double) + try_cast('-0X1P-2f' as float)",
    "try_cast('0x1f' as double) is null and try_cast('0x1p99999' as double) > x",
    "cast(' 7 ' as int) + cast('-0' as bigint)",
    "cast(date '2024-03-01' - 1 as string)",
    "timestamp '2024-03-31 12:00:00' - interval 1 month",
    "d in ('2024-01-31', date '2000-02-29')",
    "(s in ('a', null)) is null",
    "null = null or null is null",
    "x in (0.0D, double('NaN'))",
    "substring('abcdef', -3, 2) || substring('abc', 0, 2) || substring('abc', -5, 3)",
    "s like 'x\\\\%y' or s like 'x!_y' escape '!'",
    "10L * p + 10 * p",
    "cast(t as date) = d or date_trunc('week', t) = t",
    "greatest(x, 1) = least(x, i)",
    "0.1D + 0.2D = 0.3D or 0.1 + 0.2 = 0.3",
    "f = x or f < p",
    "l = x",
    "upper('straße' || s) || lower('ΟΔΟΣ')",
    "length(x'c3a9') + length('é')",
    r"'a\n' rlike 'a$' and 'a\r' rlike '^a$' or 'a\r' rlike 'a.'",
    "extract(second from t)",
    "date_trunc('millisecond', t)",
    "cast(d + interval 24 hours as string)",
    "try_cast('2024-03-31 02:30:00 Europe/Paris' as timestamp)",
    "cast('2024-01-01T03:00:00GMT-03:30' as timestamp)",
    "cast('2024-07-01 00:00:00 PST' as timestamp)",
    "cast(timestamp '1969-12-31 23:59:58.5' as bigint)",
    "cast(timestamp '2024-01-02 03:04:05.678901' as decimal(20, 6))",
    "try_cast(timestamp '2124-01-02 03:04:05.678901' as int)",
    "cast(1704164645 as timestamp)",
    "cast(-0.0000019 as timestamp)",
    "cast(-1.5d as timestamp)",
    "try_cast(1e300d as timestamp)",
    "cast('2024-01-01 00:00:00+1:5' as timestamp)",
    "try_cast(x as decimal(38, 10))",
    "cast(round(x) as string) || cast(round(-0.4D) as string)",
    "greatest(b, false)",
    "round(cast(l as decimal(38, 18)), 3)",
    "cast(2 as int) * q + + i",
    "cast(add_months(d, 100000) as string)",
    "' 1' in (1, 'a')",
    "hex(i) || hex(s) || hex(x'0aff') || bin(l) || bin(-1Y)",
    "crc32(s) + crc32(x'ff')",
    "typeof(null) || typeof(p) || typeof(t) || typeof(x'00') || typeof(i + l)",
    "nanvl(x, 1) + nanvl(f, f) + nanvl(x, p) + nanvl(i, x)",
    "nanvl(null, x)",
    "try_divide(i, j)",
    "typeof(try_divide(p, null)) || typeof(try_divide(null, i)) || typeof(p / null) || typeof(null / p)",
    "try_divide(p, q) + try_mod(p, 0.3)",
    "coalesce(try_divide(x, f), try_mod(l, j), try_divide(1, 0), 5)",
    "next_day(d, 'Mon') > next_day(t, 'TU') or next_day(d, 'sunday') = e",
    "make_date(year(d), month(d), 1) = trunc(d, 'mm')",
    "months_between(d, e) + months_between(t, d) + months_between(d, t, false)",
    "months_between('2024-02-29', timestamp '2024-01-31 05:00:00')",
    "from_unixtime(j) || from_unixtime(i) || from_unixtime(l % 100000000, 'yyyy')",
    "unix_timestamp('2024-01-01 00:00:00') + to_unix_timestamp('2024-01-31', 'yyyy-MM-dd') + unix_timestamp(t, 'yyyy')",
    "t + interval 1 day * j < t - j * interval 1 month",
    "t - j * interval '1 02:03:04.5' day to second",
    "d + interval 1 day * j = cast(d + j as timestamp)",
    "d - 2 * interval 1 year + interval 1 month * j",
    "dateadd(day, j, t) < timestampadd(quarter, j, d)",
    "position('b' in s) + position(u in s)",
    "sign(x) || sign(f)",
    "greatest(greatest(null, null), i) = least(null, null) or least(null, null) is null",
    "typeof(null - null) || typeof(null div null) || typeof(null % null) || typeof(try_mod(null, null))",
    "typeof(floor(10L) * q) || typeof(int(10) * q) || typeof(ceil(10) + p)",
    "floor(double('NaN')) + ceil(-9223372036854775808D)",
    "cast(9223372036854775807D as bigint) + try_cast(-9223372036854775809D as bigint)",
    "try_cast(9223372036854775807D * j as bigint)",
    "cast(5.070602400912917605986812821502E-8 as decimal(38, 38)) / cast(4e-20 as decimal(28, 20))",
]
SUBQUERIES = [
    "i in (select id from frame)",
    "i not in (select id from frame where id is not null)",
    "i not in (select id from frame)",
    "exists (select 1 from frame f where f.id = target.i and f.n > x)",
    "not exists (select * from frame where frame.id > target.i)",
    "x > (select max(n) from frame)",
    "(select count(*) from frame where word = 'a') = 2",
    "x in (select n from frame where frame.word <> target.u)",
]
FAILING = [
    "i + 2147483647",
    "l * 2",
    "i / (i - i)",
    "5 % 0",
    "cast(s as int)",
    "s = 7",
    "1 in ('a', 1)",
    "+ s",
    "abs(-9223372036854775807 - 1 + l * 0)",
    "cast(x as int)",
    "cast('2024-02-30' as date)",
    "99999999999999999999999999999999999999 * 99.99",
    "case when null then 1 end",
    "(i = 1) <> !(i = 2)",
    "cast(q as decimal(5, 2))",
    "-(i - 1)",
    "round(cast(99999999999999999999999999999999999999 as decimal(38, 0)) + i * 0, -3)",
    "add_months(d, 2000000000)",
    "to_date('2024-1-31', 'yyyy-MM-dd')",
    "dateadd(day, 3000000000, t)",
    "make_date(2023, 2, 29)",
    "next_day(d, ' mon')",
    "floor(9223372036854775807D)",
    "map('a', 1, 'a', i)",
    "map(u, 1)",
    "unix_timestamp('2024-01-01')",
]


def _own(text: str) -> pa.Array:
    term = read_expression(text, Scope({"target": ROWS.schema}, {"frame": FRAME}))
    return spread(term.run(Block.of({"target": ROWS})), ROWS.num_rows)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    spark.createDataFrame(FRAME).createOrReplaceTempView("frame")
    return spark.createDataFrame(ROWS).coalesce(1).alias("target")


def _same(own: pa.Array, theirs: pa.Array) -> bool:
    if pa.types.is_timestamp(own.type):  # Python's end in the year 9999
        own, theirs = own.cast(pa.int64()), theirs.cast(pa.int64())
    return all(a == b or (a != a and b != b) for a, b in zip(own.to_pylist(), theirs.to_pylist(), strict=True))


def test_random_expressions_have_the_values_that_spark_gives_them(frame: DataFrame):
    expressions, own = Expressions(Random(23)), {text: _own(text) for text in CHOSEN}
    while len(own) < _COUNT:
        text = expressions.any()
        try:
            own[text] = _own(text)
        except InvalidInput:  # a result that is too large: Spark fails, too, and with it the whole job
            continue
    theirs = frame.select(*(F.expr(text).alias(f"c{at}") for at, text in enumerate(own))).toArrow()
    assert [text for at, (text, values) in enumerate(own.items()) if not _same(values, theirs.column(at))] == []


def test_subqueries_keep_the_rows_that_spark_keeps(frame: DataFrame, spark: SparkSession):
    """As conditions: as a value Spark's own IN is false where it should be unknown."""
    frame.createOrReplaceTempView("target")
    queries = [f"SELECT {at} AS query, row FROM target WHERE {text}" for at, text in enumerate(SUBQUERIES)]
    theirs = {(row.query, row.row) for row in spark.sql(" UNION ALL ".join(queries)).collect()}
    own = {(at, row) for at, text in enumerate(SUBQUERIES) for row, kept in enumerate(_own(text).to_pylist()) if kept}
    assert own == theirs
    assert len({at for at, _ in own}) == len(SUBQUERIES) - 1  # of `not in` with a null there is none


def test_what_fails_in_spark_fails(frame: DataFrame):
    for text in FAILING:
        with pytest.raises(InvalidInput):
            _own(text)
        with pytest.raises(
            Exception, match=r"OVERFLOW|DIVIDE|REMAINDER|CAST|OUT_OF|PARSE|DATE|DATATYPE|DAY_OF_WEEK|MAP_KEY"
        ):
            frame.select(F.expr(text)).collect()


_PAIR = pa.struct([("k", pa.int32()), ("T", pa.string())])
NESTED = pa.table(
    {
        "l": pa.array([[1, 2, None], [], None, [7], [4, 5]], pa.list_(pa.int64())),
        "m": pa.array([[("a", 1), ("b", None)], [], None, [("", 2)], [("b", 4)]], pa.map_(pa.string(), pa.int32())),
        "s": pa.array([{"k": 1, "T": "a"}, None, {"k": None, "T": "b"}, {"k": 0, "T": None}, {"k": 2, "T": ""}], _PAIR),
        "p": pa.array([[{"k": 1, "T": "x"}, None], [], None, [{"k": None, "T": "y"}], [None]], pa.list_(_PAIR)),
        "n": pa.array([[[1], None, [2, 3]], [[]], None, [None], []], pa.list_(pa.list_(pa.int32()))),
        "o": pa.array([[("a", [1, 2])], [("a", None)], None, [], []], pa.map_(pa.string(), pa.list_(pa.int32()))),
        "i": pa.array([0, 1, 2, None, 1], pa.int32()),
        "u": ["a", "b", None, "", "b"],
        "x": [0.0, -0.0, 2.0, float("nan"), float("inf")],
        "y": [-1.0, 0.5, None, 0.0, -float("inf")],
    }
)
WITHIN = [
    "if(size(l) > 0, l[0], -1)",
    "array_contains(l, 2L)",
    "array_contains(l, i)",
    "array_contains(l, 4.0)",
    "case when i < size(l) then l[i] end",
    "case when size(l) >= 2 then element_at(l, -2) + element_at(l, 2) end",
    "size(l) + size(m)",
    "cardinality(m) = array_size(n)",
    "size(null)",
    "m['a']",
    "m[u]",
    "m[null]",
    "m[i] is null",
    "element_at(m, u) + element_at(m, 'b')",
    "s['T'] || s.k",
    "if(size(p) > 0, p[0].t, 'none')",
    "if(size(n) > 0, size(n[0]), -1)",
    "case when i = 0 then n[2][1] end",
    "o['a'] is null",
    "if(size(o['a']) > 1, o['a'][1], 0)",
    "element_at(o, 'a') is null or size(o['b']) = 0",
    "array(i, 2, null)",
    "size(array()) + size(l)",
    "element_at(array(x, y, 1), 2)",
    "array(l, array(i, 5L))",
    "map('a', i, 'b', 2)",
    "size(map(1, array(u)))",
    "named_struct('k', i, 'T', u)",
    "struct(i, u || '!', s.k)",
    "l = l or l <> array(7L)",
    "l = array(1L, 2L, null)",
    "l <=> array(7L) or array(x) <=> array(0.0D) or array(y, x) <=> array(x, y)",
    "array(x) = array(double('NaN'))",
    "s = named_struct('k', 1, 'T', 'a') or s <> named_struct('k', i, 'T', u)",
    "p <> array(named_struct('k', 1, 'T', 'x'), null)",
    "case n when array(array(1), null, array(2, 3)) then 1 else 0 end",
    "nullif(l, array(7L))",
    "pow(x, y)",
    "power(y, x)",
    "pow(-1, x) + pow(1, x)",
    "pow(2, 0.5) * pow(i, 3) - pow('3', 2)",
    "pow(10, 400)",
    "pow(null, 1)",
]
MISSING = ["l[0]", "l[-1] = 1", "element_at(l, 0)", "element_at(l, 3)", "element_at(l, -3)", "n[0][0]", "l[i]"]
MISTYPED = [
    "l['a']",
    "l[0.5]",
    "element_at(m, 1)",
    "s['q']",
    "s[0]",
    "element_at(l, 1L)",
    "element_at(s, 'k')",
    "size(u)",
    "u[0]",
    "array_contains(l, '1')",
    "array_contains(m, 'a')",
    "crc32(i)",
    "nanvl(u = 'a', 1)",
    "named_struct(u, i)",
]


def _own_within(text: str) -> pa.Array:
    term = read_expression(text, Scope({"target": NESTED.schema}))
    return spread(term.run(Block.of({"target": NESTED})), NESTED.num_rows)


def test_values_within_lists_maps_and_structs_are_those_of_spark(spark: SparkSession):
    nested = spark.createDataFrame(NESTED).coalesce(1)
    own = {text: _own_within(text) for text in WITHIN}
    theirs = nested.select(*(F.expr(text).alias(f"c{at}") for at, text in enumerate(own))).toArrow()
    columns = {
        text: (values.to_pylist(), theirs.column(at).to_pylist()) for at, (text, values) in enumerate(own.items())
    }
    assert {text: pair for text, pair in columns.items() if repr(pair[0]) != repr(pair[1])} == {}
    for text in MISSING:
        with pytest.raises(InvalidInput, match="there is no element"):
            _own_within(text)
        with pytest.raises(Exception, match=r"INVALID_ARRAY_INDEX|INVALID_INDEX_OF_ZERO"):
            nested.select(F.expr(text)).collect()
    for text in MISTYPED:
        with pytest.raises(InvalidInput, match=r"has no such thing|takes no arguments of types"):
            _own_within(text)
        with pytest.raises(Exception, match=r"DATATYPE_MISMATCH|INVALID_EXTRACT|FIELD_NOT_FOUND"):
            nested.select(F.expr(text)).collect()
