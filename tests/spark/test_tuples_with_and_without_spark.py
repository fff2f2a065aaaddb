"""Random filters of tuples keep the rows that a model in Python keeps: with Spark and without, in reads and updates."""

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hoodie
from support.nightly import nightly, scaled

NAN, INFINITY = float("nan"), float("inf")
F32 = [0.0, -0.0, float(np.float32(0.1)), 1.5, NAN, INFINITY, 2.0**24, -1.0]
D64 = [0.0, -0.0, 0.1, 1.5, NAN, INFINITY, -INFINITY, 2.0**53, 5e-324, 1e300, float(np.float32(0.1))]
WHOLE = [0, 1, -1, 2, 2**31 - 1, -(2**31)]
LARGE = [0, 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
MONEY = [Decimal(n) for n in ("0.00", "0.10", "-1.50", "1.00", "999.99")]
TEXTS = ["", "a", "it's", "a\\b", "A", "a'", "\u00e5", "\U0001f600", "x\ny", '"q"', "`t`"]
DAYS = [dt.date(1, 1, 1), dt.date(1582, 10, 20), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
CLOCKS = [
    dt.datetime(1, 1, 2),
    dt.datetime(1582, 10, 20, 5),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2024, 3, 31, 2, 30),
    dt.datetime(9999, 12, 30, 1, 2, 3, 4),
]
MOMENTS = [clock.replace(tzinfo=dt.UTC) for clock in CLOCKS]
BYTES = [b"", b"\x00", b"a", b"\xff\x00"]
COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {  # type, values, further constants
    "f": (pa.float32(), F32, [0.1, 2**24 + 1, 0, np.float32(0.1), Decimal("0.1"), 1]),
    "d": (pa.float64(), D64, [0, 1, 2**53 + 1, Decimal("0.1"), np.float64(0.1), 2**70, np.int64(1)]),
    "i": (pa.int32(), WHOLE, [0.0, 0.5, 2**40, Decimal("1.5"), NAN, INFINITY, np.int32(1), -1.0]),
    "l": (pa.int64(), LARGE, [2.0**53, 0.5, 2.0**63, 2**70, NAN, -INFINITY, Decimal("1.0"), np.uint64(2**63), 1e300]),
    "p": (pa.decimal128(5, 2), MONEY, [0.1, 1, 0, Decimal("0.101"), 2**40, NAN, 999.99]),
    "s": (pa.string(), TEXTS, ["b"]),
    "b": (pa.bool_(), [True, False], []),
    "y": (pa.date32(), DAYS, []),
    "n": (pa.timestamp("us"), CLOCKS, [dt.datetime(2024, 3, 31, 1, 30)]),
    "t": (pa.timestamp("us", "UTC"), MOMENTS, [dt.datetime(2024, 3, 31, 4, tzinfo=dt.timezone(dt.timedelta(hours=2)))]),
    "x": (pa.binary(), BYTES, [b"b"]),
}
OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparable(value: Any, doubles: bool) -> Any:
    """What orders values as Spark does: floats are compared as doubles, NaN equals itself and is above all others."""
    if isinstance(value, (bool, str, bytes, dt.date)):
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if doubles:
        value = float(value)
        return (1, 0) if math.isnan(value) else (0, value)
    return (0, value)


def passes(value: Any, column: str, op: str, constant: Any) -> bool:
    constants = constant if op in ("in", "not in") else [constant]
    kinds = [*constants, 0.0] if column in "fd" else constants
    doubles = any(isinstance(one, (float, np.floating)) for one in kinds)
    if op in OPS:
        both = value is not None and constant is not None
        return both and OPS[op](comparable(value, doubles), comparable(constant, doubles))
    if value is None:
        return (None in constants) is (op == "in")
    among = any(one is not None and comparable(value, doubles) == comparable(one, doubles) for one in constants)
    return among is (op == "in")


def keeps(row: dict[str, Any], filters: list[list[tuple[str, str, Any]]]) -> bool:
    return any(all(passes(row[column], column, op, value) for column, op, value in clause) for clause in filters)


def rows(random: Random, count: int) -> pa.Table:
    pools = {name: (kind, values) for name, (kind, values, _) in COLUMNS.items()}
    columns = {
        name: pa.array([None if random.random() < 1 / 6 else random.choice(pool) for _ in range(count)], kind)
        for name, (kind, pool) in pools.items()
    }
    return pa.table({"id": pa.array(range(count), pa.int64()), "part": [f"p{n % 4}" for n in range(count)], **columns})


def a_test(random: Random) -> tuple[str, str, Any]:
    column = random.choice(list(COLUMNS))
    _, values, others = COLUMNS[column]
    constants = [*values, *others, *others]
    op = random.choice([*OPS, "in", "not in"])
    if op in OPS:
        return column, op, random.choice(constants)
    chosen = [random.choice(constants) for _ in range(random.randrange(4))]
    return column, op, [*chosen, None] if random.random() < 0.2 else chosen


def a_filter(random: Random) -> list[list[tuple[str, str, Any]]]:
    return [[a_test(random) for _ in range(random.choice([1, 1, 2]))] for _ in range(random.choice([1, 1, 1, 2]))]


@pytest.mark.parametrize(
    ("kind", "zone"),
    [
        ("COPY_ON_WRITE", "UTC"),
        nightly("COPY_ON_WRITE", "Europe/Berlin"),
        nightly("MERGE_ON_READ", "America/New_York"),
        nightly("MERGE_ON_READ", "UTC"),
    ],
)
@pytest.mark.parametrize("seed", range(scaled(1, 3)))
def test_a_filter_of_tuples_keeps_the_same_rows(
    spark: SparkSession, tmp_path: Path, kind: str, zone: str, seed: int
) -> None:
    random = Random(seed)
    batch = rows(random, 48)
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="part", table_type=kind)
    table.upsert(batch)
    if kind == "MERGE_ON_READ":
        table.upsert(batch.slice(10, 20))
    filters = [a_filter(random) for _ in range(scaled(25, 300))]
    stored = batch.to_pylist()
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        with_spark = hoodie.open_table(tmp_path / "t", spark=spark)
        expected = [[row["id"] for row in stored if keeps(row, one)] for one in filters]
        for one, ids in zip(filters, expected, strict=True):
            found = sorted(table.to_arrow(columns=["id"], filters=one)["id"].to_pylist())
            assert found == ids, one
        for start in range(0, len(filters), 50):
            chosen = filters[start : start + 50]
            frames = [
                with_spark.snapshot(columns=["id"], filters=one).select(F.lit(n), "id") for n, one in enumerate(chosen)
            ]
            every = frames[0]
            for frame in frames[1:]:
                every = every.unionAll(frame)
            of_spark: list[list[int]] = [[] for _ in chosen]
            for n, key in every.collect():
                of_spark[n].append(key)
            for one, ids, theirs in zip(chosen, expected[start:], of_spark, strict=False):
                assert sorted(theirs) == ids, one
        for one, ids in zip(filters[: scaled(20, 60)], expected, strict=False):
            assert table.update({"s": "s"}, one).updated == len(ids), one
        for one, ids in zip(filters[: scaled(3, 20)], expected, strict=False):
            assert with_spark.update({"s": "s"}, one).updated == len(ids), one
    finally:
        assert before is not None
        spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.parametrize(
    "filters",
    [
        [("y", "=", "2024-02-29")],
        [("y", "not in", ["2024-02-29"])],
        [("i", ">", "0")],
        [("at.y", "<=", dt.date(2024, 2, 29))],
        [("at.y", "in", ["2024-02-29", None])],
    ],
    ids=str,
)
def test_text_beside_another_type_and_fields_of_structs_keep_the_same_rows(
    spark: SparkSession, tmp_path: Path, filters: list[tuple[str, str, Any]]
) -> None:
    days = pa.array([DAYS[3], DAYS[2], None], pa.date32())
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(
        pa.table({"id": [1, 2, 3], "y": days, "i": [1, 0, None], "at": pa.StructArray.from_arrays([days], ["y"])})
    )
    with_spark = hoodie.open_table(tmp_path / "t", spark=spark)
    theirs = [row.id for row in with_spark.snapshot(columns=["id"], filters=filters).collect()]
    assert sorted(theirs) == sorted(table.to_arrow(filters=filters)["id"].to_pylist()) != []
    assert with_spark.update({"i": "i"}, filters).updated == len(theirs)
