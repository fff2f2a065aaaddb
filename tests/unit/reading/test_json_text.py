"""JSON text of Arrow columns is what Python's json reads back."""

import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.reading.changes.json_text import json_text

ROW = pa.struct(
    [
        ("a", pa.string()),
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("s", pa.struct([("x", pa.int32()), ('q"', pa.list_(pa.struct([("y", pa.string())])))])),
    ]
)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ints = st.integers(-(2**31), 2**31 - 1)


def maybe(values):
    return st.none() | values


row = st.fixed_dictionaries(
    {
        "a": maybe(text),
        "n": maybe(st.integers(-(2**63), 2**63 - 1)),
        "f": maybe(st.floats(allow_nan=False, allow_infinity=False)),
        "b": maybe(st.booleans()),
        "l": maybe(st.lists(maybe(text), max_size=3)),
        "m": maybe(st.dictionaries(text, maybe(ints), max_size=3)),
        "s": maybe(
            st.fixed_dictionaries(
                {"x": maybe(ints), 'q"': maybe(st.lists(maybe(st.fixed_dictionaries({"y": maybe(text)})), max_size=2))}
            )
        ),
    }
)


@settings(max_examples=15)
@given(st.lists(maybe(row), max_size=6), st.integers(0, 3))
def test_values_come_back(rows, start):
    values = pa.array(
        [None if one is None else {**one, "m": None if one["m"] is None else list(one["m"].items())} for one in rows],
        ROW,
    )
    texts = json_text(values[start:]).to_pylist()
    assert [None if one is None else json.loads(one) for one in texts] == rows[start:]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (decimal.Decimal("1.50"), pa.decimal128(9, 2), "1.50"),
        (dt.date(2024, 2, 29), pa.date32(), '"2024-02-29"'),
        (dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC), pa.timestamp("us", "UTC"), '"2024-02-29T01:02:03.000004Z"'),
        (dt.datetime(2024, 2, 29, 1, 2, 3), pa.timestamp("us"), '"2024-02-29T01:02:03.000000"'),
        (b"\x00\xff", pa.binary(), '"AP8="'),
        (float("nan"), pa.float64(), '"NaN"'),
        (float("-inf"), pa.float32(), '"-Infinity"'),
        (31.0, pa.float64(), "31.0"),
        (1e20, pa.float64(), "1e+20"),
    ],
)
def test_what_json_has_no_form_for(value, kind, expected):
    assert json_text(pa.array([value, None], kind)).to_pylist() == [expected, None]
