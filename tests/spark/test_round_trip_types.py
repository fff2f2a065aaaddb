"""Every column type that Spark has comes back as it was written: by Spark, by Arrow and by hudi-rs."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from hoodie import HoodieTable, create_table, open_table
from hoodie.schema.conform import conform
from hoodie.spark.types import to_spark
from support.nightly import by_day
from support.oracles import META, assert_same_rows, read_hudi_rs

UTC = dt.UTC
#: Where the work is done: by threads of the driver, or on executors.
ROUTES = {"driver": {}, "executors": {"hoodie.spark.driver.max.batch.bytes": "0"}}

POINT = pa.struct(
    [pa.field("x", pa.int32(), nullable=False), ("tags", pa.list_(pa.string())), ("at", pa.timestamp("us"))]
)
OUTER = pa.struct([("point", POINT), ("by_name", pa.map_(pa.string(), pa.decimal128(12, 2))), ("raw", pa.binary())])

#: Per column its type and four values: two extremes or traps, a null, something plain.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bool": (pa.bool_(), [True, False, None, True]),
    "tiny": (pa.int8(), [-128, 127, None, 1]),
    "short": (pa.int16(), [-(2**15), 2**15 - 1, None, 1]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, None, 1]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, None, 1]),
    "float": (pa.float32(), [float("nan"), float("-inf"), None, 1.5]),
    "double": (pa.float64(), [float("nan"), float("inf"), None, 0.1]),
    "dec9": (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("9999999.99"), None, Decimal("0.01")]),
    "dec18": (pa.decimal128(18, 4), [Decimal("-99999999999999.9999"), Decimal("1.2300"), None, Decimal("0.0000")]),
    "dec38": (pa.decimal128(38, 10), [Decimal("9" * 28 + "." + "9" * 10), Decimal("-1.5000000000"), None, Decimal(0)]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1969, 12, 31)]),
    "stamp": (
        pa.timestamp("us", "UTC"),
        [
            dt.datetime(1, 1, 1, tzinfo=UTC),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
            None,
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        ],
    ),
    "wall": (
        pa.timestamp("us"),
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None, dt.datetime(2024, 3, 31, 2, 30)],
    ),
    "text": (pa.string(), ["", "Grüße ☃ 𝄞 \x00\t\n", None, "plain"]),
    "raw": (pa.binary(), [b"", b"\x00\xff", None, b"plain"]),
    "list": (pa.list_(pa.int64()), [[1, None], [], None, [2**40]]),
    "dates": (pa.list_(pa.list_(pa.date32())), [[[dt.date(1, 1, 1), None], None], [[]], None, []]),
    "map": (pa.map_(pa.string(), pa.float64()), [[("a", None), ("ü", float("nan"))], [], None, [("b", 1.5)]]),
    "maps": (
        pa.map_(pa.string(), pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
        [[("a", [("b", dt.datetime(1900, 1, 1, tzinfo=UTC))]), ("c", None)], [("d", [])], None, []],
    ),
    "point": (
        POINT,
        [{"x": 1, "tags": ["a", None], "at": dt.datetime(1900, 1, 1)}, {"x": 2, "tags": None, "at": None}, None,
         {"x": 3, "tags": [], "at": None}],
    ),
    "outer": (
        OUTER,
        [{"point": None, "by_name": [("a", Decimal("1.50")), ("b", None)], "raw": b"\x01"},
         {"point": {"x": 1, "tags": [], "at": None}, "by_name": None, "raw": None}, None,
         {"point": None, "by_name": [], "raw": b""}],
    ),
    "points": (
        pa.list_(POINT),
        [[{"x": 1, "tags": ["t"], "at": None}, None], [], None, [{"x": 2, "tags": None, "at": None}]],
    ),
    "named_points": (
        pa.map_(pa.string(), POINT),
        [[("a", {"x": 1, "tags": None, "at": None}), ("b", None)], [], None, [("c", {"x": 2, "tags": [], "at": None})]],
    ),
}  # fmt: skip


@pytest.fixture
def away(spark: SparkSession) -> Iterator[None]:
    """The session is in New York, the tables are not."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def rows(ids: list[str], turn: int = 0) -> pa.Table:
    """A row for each id, with the values of COLUMNS one after the other, from the one at `turn` on."""
    columns = {
        name: pa.array([values[(at + turn) % 4] for at in range(len(ids))], kind)
        for name, (kind, values) in COLUMNS.items()
    }
    parts = pa.array([f"p{int(each[1:]) % 2}" for each in ids])
    return pa.table({"id": ids, "part": parts, "ts": pa.array([turn] * len(ids), pa.int64()), **columns})


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The rows with the types that Spark has for them: by itself it takes timestamps without zone for instants."""
    return spark.createDataFrame(table, to_spark(table.schema))


def assert_holds(table: HoodieTable, expected: pa.Table) -> None:
    """All three readers see the rows; timestamps without zone come from hudi-rs as microseconds."""
    seen = table.snapshot().toArrow()
    assert_same_rows(seen, expected, ignore=META, sort_by=["id"])
    assert_same_rows(open_table(table.path).snapshot().to_arrow(), expected, ignore=META, sort_by=["id"])
    theirs = read_hudi_rs(table.path)
    assert_same_rows(theirs.select(META), seen.select(META))
    assert theirs.schema.field("wall").type == pa.int64()
    theirs = conform(theirs, expected.schema, drop_extra=True)
    assert_same_rows(theirs, expected, sort_by=["id"])


@pytest.mark.parametrize("route", by_day(ROUTES, lambda route: route == "executors"))
def test_every_type_comes_back_as_it_was_written(route: str, spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(
        str(tmp_path / "t"), spark=spark, name="types", record_key="id", partition_by="part", ordering="ts",
        options=ROUTES[route],
    )  # fmt: skip
    first = rows([f"k{number}" for number in range(8)])
    loaded = table.bulk_insert(frame(spark, first))
    assert loaded.inserted == 8
    assert_holds(table, first)

    second = rows([f"k{number}" for number in range(4, 12)], turn=1)
    result = table.upsert(frame(spark, second))
    assert (result.route, result.inserted, result.updated) == (route, 4, 4)
    assert_holds(table, pa.concat_tables([first.slice(0, 4), second]))


def test_columns_have_the_types_of_the_batch_but_for_small_integers(spark: SparkSession, tmp_path: Path) -> None:
    table = create_table(str(tmp_path / "t"), spark=spark, name="types", record_key="id")
    batch = frame(spark, rows(["k0", "k1", "k2"]))
    table.bulk_insert(batch)
    read = {name: kind for name, kind in table.snapshot().dtypes if name not in META}
    assert read == {**dict(batch.dtypes), "tiny": "int", "short": "int"}


@pytest.mark.usefixtures("away")
@pytest.mark.parametrize("route", by_day(ROUTES, lambda route: route == "executors"))
def test_the_time_zone_of_the_session_changes_no_value(route: str, spark: SparkSession, tmp_path: Path) -> None:
    wanted = rows([f"k{number}" for number in range(4)]).select(["id", "part", "ts", "stamp", "wall", "maps", "point"])
    table = create_table(
        str(tmp_path / "t"), spark=spark, name="types", record_key="id", ordering="ts", options=ROUTES[route]
    )
    table.bulk_insert(frame(spark, wanted))
    table.upsert(frame(spark, wanted.take([1, 2])))
    assert_holds(table, wanted)


@pytest.mark.usefixtures("away")
def test_a_batch_that_turns_out_too_large_for_the_driver_keeps_its_types(spark: SparkSession, tmp_path: Path) -> None:
    wall = "timestamp_ntz'2024-03-31 02:30:00'"
    # Spark takes the text to be 20 bytes, so that the batch is brought over, and handed back once it is seen.
    batch = spark.range(4).selectExpr(
        "concat('k', id) id", "1L ts", f"{wall} wall", f"named_struct('at', {wall}) nested", "repeat('x', 100000) text"
    )
    table = create_table(
        str(tmp_path / "t"), spark=spark, name="types", record_key="id", ordering="ts",
        options={"hoodie.spark.driver.max.batch.bytes": "300000"},
    )  # fmt: skip
    collected = table.upsert(batch)
    assert (collected.route, "collect" in collected.seconds) == ("executors", True)
    assert dict(table.snapshot().drop(*META).dtypes) == dict(batch.dtypes)
    moment = dt.datetime(2024, 3, 31, 2, 30)
    row = {"ts": 1, "wall": moment, "nested": {"at": moment}, "text": "x" * 100_000}
    assert_holds(table, pa.Table.from_pylist([{"id": f"k{number}", **row} for number in range(4)]))
