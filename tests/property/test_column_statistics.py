"""A file that column statistics rule out never holds a row that the filter keeps: random columns, filters and files,
their statistics in the forms that Hudi writes."""

import datetime as dt
import itertools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.reading.column_statistics import _united, bounds_of, usable_tests
from hoodie.reading.filters.predicate import may_pass
from hoodie.reading.filters.selection import kept_rows, read_filter
from support.nightly import scaled

UTC = dt.UTC
TEXTS = st.text(alphabet="ab\u00e9\ud7ff\ue000\uffff\U00010000\U0001f600", max_size=3)
MOMENTS = st.one_of(
    st.datetimes(dt.datetime(1969, 1, 1), dt.datetime(1980, 1, 1)),
    st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2026, 1, 1)),
    st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)),
)
FLOATS = st.sampled_from([0.0, -0.0, 0.1, -0.1, 1.5, 2**53, math.inf, -math.inf, math.nan, 1e-45]) | st.floats()
WHOLE = st.integers(-4, 4) | st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 2**31 - 1, -(2**31)])
DECIMALS = st.integers(-500, 500).map(lambda n: Decimal(n).scaleb(-2))

#: Type in the table, values in files, the class of their statistics, its encoding, and the values of filters.
KINDS: Mapping[str, tuple[pa.DataType, st.SearchStrategy[Any], str, Any, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-4, 4), "IntWrapper", int, WHOLE | FLOATS | DECIMALS),
    "int now long": (pa.int64(), st.integers(-4, 4), "IntWrapper", int, WHOLE | FLOATS),
    "long": (pa.int64(), WHOLE, "LongWrapper", int, WHOLE | FLOATS | DECIMALS),
    "long now double": (pa.float64(), WHOLE, "LongWrapper", int, WHOLE | FLOATS),
    "float": (pa.float32(), st.floats(width=32), "FloatWrapper", float, FLOATS | WHOLE),
    "float now double": (pa.float64(), st.floats(width=32), "FloatWrapper", float, FLOATS | WHOLE),
    "double": (pa.float64(), FLOATS, "DoubleWrapper", float, FLOATS | WHOLE),
    "text": (pa.string(), TEXTS, "StringWrapper", str, TEXTS),
    "truth": (pa.bool_(), st.booleans(), "BooleanWrapper", bool, st.booleans()),
    "date": (pa.date32(), st.dates(), "DateWrapper", "days", st.dates()),
    "date compacted": (pa.date32(), st.dates(), "IntWrapper", "days", st.dates()),
    "decimal": (pa.decimal128(10, 2), DECIMALS, "DecimalWrapper", "decimal", DECIMALS | WHOLE | FLOATS),
    "decimal compacted": (pa.decimal128(10, 2), DECIMALS, "BytesWrapper", "bytes", DECIMALS | WHOLE | FLOATS),
    "micros": (pa.timestamp("us", "UTC"), MOMENTS, "LongWrapper", "micros", MOMENTS),
    "millis": (pa.timestamp("us", "UTC"), MOMENTS, "LongWrapper", "millis", MOMENTS),
    "local": (pa.timestamp("us"), MOMENTS, "LongWrapper", "micros", MOMENTS),
    "number now text": (pa.string(), TEXTS, "IntWrapper", lambda text: len(text), TEXTS),
}
_FLOAT = pa.float32()
_TENTH = pa.scalar(0.1, _FLOAT).as_py()
OPS = ("=", "==", "!=", "<", "<=", ">", ">=", "in", "not in")


def stored(values: Sequence[Any], how: Any, wrapper: str, low: bool) -> dict[str, Any]:
    """The least or greatest value as Hudi stores it."""
    if wrapper == "StringWrapper":  # Java's order
        chosen = (min if low else max)(values, key=lambda text: text.encode("utf-16-be"))
    else:
        chosen = min(values) if low else max(values)
    epoch = dt.datetime(1970, 1, 1)
    if how == "days":
        value: Any = (chosen - dt.date(1970, 1, 1)).days
    elif how in ("decimal", "bytes"):
        unscaled = int(chosen.scaleb(15))
        value = chosen if how == "decimal" else unscaled.to_bytes(16, "big", signed=True)
    elif how in ("micros", "millis"):
        value = (chosen - epoch) // dt.timedelta(**{"microseconds" if how == "micros" else "milliseconds": 1})
    else:
        value = how(chosen)
    return {wrapper: value}


def statistics(values: Sequence[Any], how: Any, wrapper: str) -> dict[str, Any]:
    present = [value for value in values if value is not None]
    ordered = [value for value in present if value == value]  # without NaN
    bounded = bool(ordered)
    return {
        "min": stored(ordered, how, wrapper, True) if bounded else {"IntWrapper": 0},
        "max": stored(ordered, how, wrapper, False) if bounded else {"IntWrapper": 0},
        "values": len(values),
        "nulls": len(values) - len(present),
    }


@settings(max_examples=scaled(150, 600))
@given(st.data(), st.sampled_from(sorted(KINDS)))
def test_a_slice_that_is_ruled_out_holds_no_row_that_passes(data: st.DataObject, name: str) -> None:
    kind, strategy, wrapper, how, operands = KINDS[name]
    schema = pa.schema([("c", kind), ("other", pa.int64())])
    files = data.draw(st.lists(st.lists(strategy | st.none(), min_size=1, max_size=4), min_size=1, max_size=3))
    if how == "millis":
        files = [[v and v.replace(microsecond=v.microsecond // 1000 * 1000) for v in file] for file in files]
    known = {(str(at), "c"): bounds_of(statistics(file, how, wrapper), kind) for at, file in enumerate(files)}

    def operand() -> Any:
        value = data.draw(operands)
        return value.replace(tzinfo=UTC) if isinstance(value, dt.datetime) and kind.tz is not None else value

    op = data.draw(st.sampled_from(OPS))
    value = [operand() for _ in range(data.draw(st.integers(1, 2)))] if op in ("in", "not in") else operand()
    try:
        rows = read_filter([("c", op, value)], schema)
    except Exception:  # what Arrow cannot compare is refused before
        return
    assert rows is not None
    possible = may_pass(
        usable_tests(rows.tests, schema), partial(_united, known, [str(at) for at in range(len(files))])
    )
    if possible:
        return
    flat = list(itertools.chain.from_iterable(files))
    table = pa.table({"c": _column(flat, kind), "other": pa.nulls(len(flat), pa.int64())})
    try:
        passing = kept_rows(table, rows.expression).num_rows
    except pa.ArrowInvalid:  # Arrow takes no fractions for members of whole numbers
        return
    assert passing == 0, (files, op, value, known)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(kind):
        return pa.array([None if v is None else float(v) for v in values], pa.float64()).cast(kind)
    return pa.array(values, kind)


def test_statistics_do_rule_out() -> None:
    """Else the property would be worth nothing."""
    ruled_out = 0
    for name, (kind, strategy, wrapper, how, _) in KINDS.items():
        if name in ("number now text", "millis", "truth"):
            continue
        values = {"IntWrapper": [1, 3], "LongWrapper": [1, 3], "FloatWrapper": [1.0, 3.0], "DoubleWrapper": [1.0, 3.0]}
        file: list[Any] = values.get(wrapper, [])
        beyond: Any = 9
        if "date" in name:
            file, beyond = [dt.date(2024, 1, 1), dt.date(2024, 2, 1)], dt.date(2025, 1, 1)
        elif "decimal" in name:
            file, beyond = [Decimal("1.10"), Decimal("3.00")], Decimal("9.25")
        elif wrapper == "StringWrapper":
            file, beyond = ["a", "b"], "c"
        elif pa.types.is_timestamp(kind):
            beyond = dt.datetime(2025, 1, 1, tzinfo=None if kind.tz is None else UTC)
            file = [dt.datetime(2024, 1, 1), dt.datetime(2024, 2, 1)]
        schema = pa.schema([("c", kind)])
        known = {("f", "c"): bounds_of(statistics(file, how, wrapper), kind)}
        for op in ("=",) if pa.types.is_floating(kind) else ("=", ">", ">="):  # NaN is above all, and in no statistics
            rows = read_filter([("c", op, beyond)], schema)
            assert not may_pass(usable_tests(rows.tests, schema), partial(_united, known, ["f"])), (name, op)
            ruled_out += 1
        assert strategy is not None
    assert ruled_out > 30


def test_text_that_java_orders_otherwise_is_not_ruled_out() -> None:
    """The greatest in Java's order is not the greatest character."""
    file = ["a", "\U00010000", "\ue000"]
    bounds = bounds_of(statistics(file, str, "StringWrapper"), pa.string())
    schema = pa.schema([("c", pa.string())])
    rows = read_filter([("c", "=", "\U00010000")], schema)
    assert kept_rows(pa.table({"c": file}), rows.expression).num_rows == 1
    assert may_pass(usable_tests(rows.tests, schema), partial(_united, {("f", "c"): bounds}, ["f"]))


def test_a_number_that_is_rounded_to_the_column_is_not_ruled_out() -> None:
    """What the statistics say is the column's own 0.1, which is more than that of doubles."""
    bounds = bounds_of(
        {"min": {"FloatWrapper": _TENTH}, "max": {"FloatWrapper": _TENTH}, "values": 1, "nulls": 0}, _FLOAT
    )
    schema = pa.schema([("c", _FLOAT)])
    for op, value in (("=", 0.1), ("in", [0.1]), ("<=", 0.1), (">=", 0.1)):
        rows = read_filter([("c", op, value)], schema)
        passing = kept_rows(pa.table({"c": pa.array([0.1], _FLOAT)}), rows.expression).num_rows
        assert may_pass(usable_tests(rows.tests, schema), partial(_united, {("f", "c"): bounds}, ["f"])) >= passing
