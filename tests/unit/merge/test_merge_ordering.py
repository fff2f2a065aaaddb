"""Ordering values compare as Java's."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput
from hoodie.merge.ordering import has_ordering, order_ranks, ordering_column, require_ordering

DAY = datetime.date
IN_ORDER: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [None, -128, -1, 0, 127]),
    (pa.int64(), [None, -(2**63), -1, 0, 2**63 - 1]),
    (pa.int64(), [-(2**63), -5, 2**63 - 1]),
    (pa.bool_(), [None, False, True]),
    (pa.float32(), [None, float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), float("nan")]),
    (pa.float64(), [float("-inf"), -1e300, -5e-324, -0.0, 0.0, 5e-324, float("nan")]),
    (pa.decimal128(38, 2), [None, Decimal("-999.99"), Decimal("0.01"), Decimal("12345678901234567890.12")]),
    (pa.date32(), [None, DAY(1960, 1, 1), DAY(1970, 1, 1), DAY(2024, 3, 1)]),
    (pa.timestamp("us", "UTC"), [datetime.datetime(1969, 1, 1), datetime.datetime(2024, 3, 1)]),
    (pa.timestamp("ms"), [None, datetime.datetime(1969, 1, 1), datetime.datetime(2024, 3, 1)]),
    (pa.string(), [None, "", "A", "B", "a", "aa", "z", "é"]),
    (pa.string(), ["\ud7ff", "\U0001f600", "\ue000", "\uffee"]),  # UTF-16: surrogates before the private use area
    (pa.dictionary(pa.int32(), pa.string()), [None, "a", "b"]),
    (pa.binary(), [None, b"", b"\x80", b"\xff", b"\x00", b"\x00\x01", b"\x7f"]),
    (pa.binary(2), [b"\xff\x00", b"\x00\x80", b"\x00\x01"]),
    (pa.time32("ms"), [None, datetime.time(1), datetime.time(23)]),
    (pa.time64("us"), [datetime.time(1), datetime.time(23)]),
    (pa.null(), [None]),
]


@pytest.mark.parametrize(("kind", "values"), IN_ORDER, ids=lambda p: str(p) if isinstance(p, pa.DataType) else "")
def test_values_rank_in_javas_order(kind: pa.DataType, values: list[Any]) -> None:
    array = pa.array(values, pa.string()).cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    mixed = np.random.default_rng(3).permutation(np.repeat(np.arange(len(values)), 3))
    table = pa.table({"ts": array}).take(pa.array(mixed))
    ranks = order_ranks([table.slice(0, 2), table.slice(2)], ("ts",))
    assert np.array_equal(np.less.outer(ranks, ranks), np.less.outer(mixed, mixed))


def test_several_fields_compare_one_after_the_other() -> None:
    table = pa.table({"a": [1, 1, 2, None, 1], "b": ["y", "x", "a", "z", "y"]})
    ranks = order_ranks([table], ("a", "b"))
    assert np.argsort(ranks, kind="stable").tolist() == [3, 1, 0, 4, 2]
    assert ranks[0] == ranks[4]


def test_a_nested_field_orders_by_its_path() -> None:
    table = pa.table({"a": [{"b": {"c": 2}}, {"b": {"c": 1}}, None, {"b": None}], "x.y": [1, 2, 3, 4]})
    assert np.argsort(order_ranks([table], ("a.b.c",)), kind="stable").tolist() == [2, 3, 1, 0]
    assert has_ordering(table, ("a.b.c",)).tolist() == [True, True, False, False]
    assert order_ranks([table], ("x.y",)).tolist() == [1, 2, 3, 4]
    assert ordering_column(table, "a.b.d") is None
    assert ordering_column(table, "a.b.c.d") is None


def test_a_field_that_no_row_has_orders_nothing() -> None:
    assert order_ranks([pa.table({"k": ["a", "b"]})], ("ts",)).tolist() == [0, 0]


def test_a_type_without_an_order_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'ts'.*no order"):
        order_ranks([pa.table({"ts": [[1]]})], ("ts",))


def test_a_null_ordering_value_is_told_with_its_number_and_a_key() -> None:
    batch = pa.table({"k": ["a", "b", "c"], "ts": [1, None, None]})
    with pytest.raises(InvalidInput, match=r"ordering value 'ts' is null in 2 of 3 rows.*'b'"):
        require_ordering(batch, ("ts",), "k")
    with pytest.raises(InvalidInput, match="'uhr'"):
        require_ordering(batch, ("uhr",), "k")
    require_ordering(batch, (), "k")
