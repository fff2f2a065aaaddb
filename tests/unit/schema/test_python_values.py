"""Dates and times that Python has no value for are text."""

import datetime as dt

import pyarrow as pa
import pytest

from hoodie.schema.python_values import python_values

DATES = pa.array([-800_000, 0, None], pa.int32()).cast(pa.date32())
TEXTS = ["-0221-09-04", "1970-01-01", None]


def test_values_are_those_of_arrow_where_python_has_them() -> None:
    assert python_values(DATES[1:]) == [dt.date(1970, 1, 1), None]
    assert python_values(pa.chunked_array([["a"], [None]])) == ["a", None]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (DATES, TEXTS),
        (pa.chunked_array([DATES]), TEXTS),
        (pa.StructArray.from_arrays([DATES, pa.array([1, 2, 3])], ["d", "n"]),
         [{"d": text, "n": number} for text, number in zip(TEXTS, [1, 2, 3], strict=True)]),
        (pa.ListArray.from_arrays([0, 3], DATES), [TEXTS]),
        (pa.MapArray.from_arrays([0, 3], ["a", "b", "c"], DATES), [list(zip("abc", TEXTS, strict=True))]),
        (pa.array([-(10**17)], pa.int64()).cast(pa.timestamp("us")), ["-1199-02-15 14:13:20.000000"]),
    ],
    ids=["date", "chunked", "struct", "list", "map", "timestamp"],
)  # fmt: skip
def test_a_date_beyond_the_calendar_makes_the_column_one_of_text(column: pa.Array, expected: list[object]) -> None:
    assert python_values(column) == expected
