"""Which file slices a filter can find rows in, by the column statistics of the metadata table.

A slice is left out only if none of its rows can pass, whatever its logs do to them: ranges of all its files are united
first, and what is not known for certain rules nothing out.

Source: docs/format/metadata-table.md 4.3 and 6.
"""

import datetime as dt
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie.metadata.statistics import column_statistics
from hoodie.metadata.table import MetadataTable
from hoodie.metadata.trusted import read_or_warn
from hoodie.model.files import FileSlice
from hoodie.model.table_version import VERSIONS
from hoodie.reading.filters.predicate import ANY, Bounds, Test, Tests, may_pass, widened_bounds

#: The statistics of a file and a column.
Known = Mapping[tuple[str, str], Bounds]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SCALE = 15  # of decimals whose class got lost
#: The last millisecond of the year 9999. A larger number is none of milliseconds.
_LAST_MILLI = 253_402_300_799_999
#: Java compares UTF-16 units, we and Parquet compare characters: the order is the same of all below the surrogates.
_FIRST_SURROGATE = "\ud800"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type of column whose statistics are used.

    fits    whether a test's value is one that columns of this type are compared with in one way only
    bounds  least and greatest value, of what is stored by the class it had in its writer; None: it says nothing
    exact   the values between are all that there are, and both ends are among them
    """

    is_kind: Callable[[pa.DataType], bool]
    fits: Callable[[Any], bool]
    bounds: Callable[[pa.DataType, Mapping[str, Any], Mapping[str, Any]], tuple[Any, Any] | None]
    exact: bool = True


def slices_with_statistics(
    table: MetadataTable, slices: Sequence[FileSlice], tests: Tests, schema: pa.Schema, *, merged: bool
) -> tuple[FileSlice, ...]:
    """The slices but those that hold no row which passes, by the statistics of their files.

    table   one that has told the files of the table
    merged  slices with logs are looked at, too: their rows hold values of their files, and no others
    Warns   MetadataTableIgnored when the statistics are damaged; then all slices stay
    """
    tests = usable_tests(tests, schema)
    columns = {test.column for clause in tests for test in clause}
    if VERSIONS[table.config.version].layout == 2:  # values of some types have other forms there
        return tuple(slices)
    if not columns or not all(tests) or not slices:
        return tuple(slices)
    partitions = {slice_.group.partition for slice_ in slices}
    records = read_or_warn(table, partial(column_statistics, columns=columns, partitions=partitions))
    if records is None:
        return tuple(slices)
    bounds = known_bounds(records, schema, columns)
    return tuple(
        slice_
        for slice_ in slices
        if (slice_.logs and not merged) or may_pass(tests, partial(_united, bounds, _names(slice_)))
    )


def usable_tests(tests: Tests, schema: pa.Schema) -> Tests:
    """The tests whose meaning statistics can tell: a column of a plain type, and values of its kind. The others of an
    *and* are left out, so that it passes more."""
    if tests == ANY:
        return ANY
    return tuple(
        tuple(usable for test in clause if (usable := _usable_test(test, schema)) is not None) for clause in tests
    )


def known_bounds(records: pa.Table, schema: pa.Schema, columns: Collection[str]) -> Known:
    """What statistics say of columns of the table, by file and column. What two records of one file say of a column
    differently counts for nothing."""
    statistics: dict[tuple[str, str], Bounds] = {}
    twice: set[tuple[str, str]] = set()
    for record in records.select(["file", "column", "min", "max", "values", "nulls"]).to_pylist():
        key = (record["file"], record["column"])
        if record["column"] not in columns or None in key:
            continue
        bounds = bounds_of(record, schema.field(record["column"]).type)
        if key in statistics and statistics[key] != bounds:
            twice.add(key)
        statistics[key] = bounds
    return {key: bounds for key, bounds in statistics.items() if key not in twice}


def bounds_of(record: Mapping[str, Any], kind: pa.DataType) -> Bounds:
    """What one record says, in values of the column's type.

    record  `min`, `max` (a struct with a member for each class), `values`, `nulls`
    kind    of the column, in the table
    """
    values, nulls = record["values"], record["nulls"]
    if values is None or nulls is None or values < 1 or not 0 <= nulls <= values:
        return Bounds()
    if nulls == values:  # Parquet has 0 for the least value of a column without one
        return Bounds(nulls=nulls)
    low, high, statistics_kind = record["min"], record["max"], _kind(kind)
    if low is None or high is None or statistics_kind is None:
        return Bounds(nulls=nulls)
    pair = statistics_kind.bounds(kind, low, high)
    if pair is None or not pair[0] <= pair[1]:
        return Bounds(nulls=nulls)
    return Bounds(pair[0], pair[1], nulls, exact=statistics_kind.exact)


def _united(statistics: Known, names: Iterable[str], column: str) -> Bounds | None:
    """What is known of a column in some files together; None: nothing of one of them."""
    lows, highs, nulls, exact = [], [], 0, True
    for name in names:
        bounds = statistics.get((name, column))
        if bounds is None or bounds.nulls is None:
            return None
        if bounds.low is None or bounds.high is None:
            return None
        lows.append(bounds.low)
        highs.append(bounds.high)
        nulls += bounds.nulls
        exact = exact and bounds.exact
    return Bounds(min(lows), max(highs), nulls, exact)


def _names(slice_: FileSlice) -> list[str]:
    base = [] if slice_.base is None else [slice_.base.name]
    return [*base, *(log.name for log in slice_.logs if not log.cdc)]


def _usable_test(test: Test, schema: pa.Schema) -> Test | None:
    at = schema.get_field_index(test.column)
    statistics_kind = _kind(schema.field(at).type) if at >= 0 else None
    if statistics_kind is None:
        return None
    if test.op in ("null", "not null"):
        return test
    values = test.value if test.op in ("in", "not in") else [test.value]
    if not all(value is None or statistics_kind.fits(value) for value in values):
        return None
    if pa.types.is_floating(schema.field(at).type):  # Arrow compares it as one
        if test.op in ("in", "not in"):
            return Test(test.column, test.op, [None if value is None else float(value) for value in values])
        return Test(test.column, test.op, float(test.value)) if test.value is not None else None
    return test


# --- types ---


def _kind(kind: pa.DataType) -> _Kind | None:
    return next((statistics_kind for statistics_kind in _KINDS if statistics_kind.is_kind(kind)), None)


def _member(value: Mapping[str, Any], *names: str) -> Any:
    """The value, if it is of one of these classes."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def _pair(low: Mapping[str, Any], high: Mapping[str, Any], *names: str) -> tuple[Any, Any] | None:
    pair = _member(low, *names), _member(high, *names)
    return None if None in pair else pair


def _floating(kind: pa.DataType, low: Mapping[str, Any], high: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Widened also as whole numbers of an older type are rounded."""
    pair = _pair(low, high, "FloatWrapper", "DoubleWrapper", "IntWrapper", "LongWrapper")
    if pair is None or any(isinstance(value, float) and math.isnan(value) for value in pair):
        return None
    return widened_bounds(*pair, kind)


def _text(kind: pa.DataType, low: Mapping[str, Any], high: Mapping[str, Any]) -> tuple[Any, Any] | None:
    pair = _pair(low, high, "StringWrapper")
    if pair is None or any(char >= _FIRST_SURROGATE for text in pair for char in text):
        return None
    return pair


def _date(kind: pa.DataType, low: Mapping[str, Any], high: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """A compaction of the metadata table makes plain numbers of dates."""
    pair = _pair(low, high, "DateWrapper", "IntWrapper")
    if pair is None:
        return None
    try:
        return tuple(dt.date(1970, 1, 1) + dt.timedelta(days=days) for days in pair)  # type: ignore[return-value]
    except OverflowError:
        return None


def _decimal(kind: pa.DataType, low: Mapping[str, Any], high: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """A compaction of the metadata table makes plain bytes of decimals."""
    pair = _pair(low, high, "DecimalWrapper", "BytesWrapper")
    if pair is None:
        return None
    numbers = []
    for value in pair:
        if isinstance(value, bytes):
            unscaled = int.from_bytes(value, "big", signed=True)
            digits = tuple(map(int, str(abs(unscaled))))
            numbers.append(Decimal((int(unscaled < 0), digits, -_SCALE)))
        else:
            numbers.append(Decimal(value))
    return numbers[0], numbers[1]


def _moment(kind: pa.DataType, low: Mapping[str, Any], high: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """Stored is the number that the file has, not its unit, and files of one table may differ in it.

    A number of milliseconds ends with the year 9999. One that is larger counts microseconds; of a smaller one both
    moments are within the range.
    """
    pair = _pair(low, high, "LongWrapper", "TimestampMicrosWrapper")
    if pair is None or kind.unit not in ("ms", "us"):
        return None
    moments = []
    for number in pair:
        try:
            moments.append(_EPOCH + dt.timedelta(microseconds=number))
            if abs(number) <= _LAST_MILLI:
                moments.append(_EPOCH + dt.timedelta(milliseconds=number))
        except OverflowError:
            return None
    ends = min(moments), max(moments)
    return ends if kind.tz is not None else (ends[0].replace(tzinfo=None), ends[1].replace(tzinfo=None))


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


_types = pa.types
_KINDS = (
    _Kind(_types.is_integer, _is_number, lambda kind, low, high: _pair(low, high, "IntWrapper", "LongWrapper")),
    _Kind(
        _types.is_floating,
        lambda value: _is_number(value) and not isinstance(value, Decimal),
        _floating,
        exact=False,  # NaN is in no statistics
    ),
    _Kind(
        lambda kind: bool(_types.is_string(kind) or _types.is_large_string(kind)),
        lambda value: isinstance(value, str),
        _text,
        exact=False,  # a writer may cut long ones
    ),
    _Kind(
        _types.is_boolean,
        lambda value: isinstance(value, bool),
        lambda kind, low, high: _pair(low, high, "BooleanWrapper"),
    ),
    _Kind(_types.is_date32, lambda value: isinstance(value, dt.date) and not isinstance(value, dt.datetime), _date),
    _Kind(_types.is_decimal, lambda value: _is_number(value) and not isinstance(value, float), _decimal),
    _Kind(_types.is_timestamp, lambda value: isinstance(value, dt.datetime), _moment, exact=False),
)
