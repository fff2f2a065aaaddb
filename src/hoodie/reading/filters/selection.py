"""What a reader asks of a table: columns by name, and which rows to keep."""

from __future__ import annotations

import datetime as dt
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.errors import InvalidInput
from hoodie.expressions.kinds import is_number
from hoodie.model.meta import META_COLUMNS
from hoodie.reading.filters.exact_numbers import fitting_comparison, is_exact, members, number_beside
from hoodie.reading.filters.predicate import ANY, Test, Tests, sql_of, tests_of

if TYPE_CHECKING:
    from hoodie.reading.filters.condition import SqlCondition

_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)

#: Which rows to keep. Text is a condition in SQL, "amount > 3 and city in ('oslo', 'rome')"; else as pyarrow.parquet
#: takes them: an expression, or tuples (column, operator, value) in lists of and, or.
Filters: TypeAlias = str | pc.Expression | Sequence[Any]

#: What Arrow says of an expression that asks for a column which is not there; of a nested one the first name.
_UNKNOWN_COLUMN = re.compile(r"No match for FieldRef\.(?:Nested\(FieldRef\.)?Name\((.*?)\)(?: in | FieldRef\.)")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Which rows to keep.

    expression  over the table's columns
    columns     those that it may ask for
    tests       what is known of it column by column, to leave out what cannot pass
    """

    expression: pc.Expression | SqlCondition
    columns: Sequence[str]
    tests: Tests = ANY


def kept_rows(rows: _Rows, expression: pc.Expression | SqlCondition | None) -> _Rows:
    """The rows that pass a filter's expression; None: all."""
    if expression is None:
        return rows
    if isinstance(expression, pc.Expression):
        return rows.filter(expression)
    return rows.filter(expression.mask(rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])))


def read_filter(filters: Filters | None, schema: pa.Schema) -> RowFilter | None:
    """The filter as an expression; None: there is none.

    Raises InvalidInput on a malformed filter; MissingPackage for one in SQL without the package that parses it
    """
    if filters is None:
        return None
    if isinstance(filters, str):
        from hoodie.reading.filters.condition import read_sql  # with the parser of SQL, which few reads need

        condition = read_sql(filters, schema)
        return RowFilter(condition, condition.columns, condition.tests)
    if isinstance(filters, pc.Expression):
        return _fitting_filter(filters, RowFilter(filters, filter_columns(filters, schema, ())), schema)
    plain, is_whole = _read_tuples(filters, schema)
    if is_whole or any(name not in schema.names for name in plain.columns):  # what is not there is for the caller
        return plain
    from hoodie.reading.filters.condition import read_sql

    condition = read_sql(_text_of(filters, plain.tests, schema), schema)
    return RowFilter(condition, plain.columns, condition.tests)


def _read_tuples(filters: Any, schema: pa.Schema) -> tuple[RowFilter, bool]:
    """What of the tuples Arrow compares as SQL does, and whether that is all of them. Raises InvalidInput"""
    if not isinstance(filters, (list, tuple)):
        raise InvalidInput(
            f'filters is a {type(filters).__name__}: expected a condition as text, such as "fare > 3", an expression '
            f"of pyarrow's, or tuples (column, operator, value){_other_way(filters)}"
        )
    try:
        tests = tests_of(filters)
        exact = [[_exact_test(test, schema) for test in clause if not _is_for_sql(test, schema)] for clause in tests]
        clauses = [[(test.column, test.op, test.value) for test in clause] for clause in exact if clause]
        expression = pq.filters_to_expression(clauses) if clauses else pc.scalar(True)
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, NotImplementedError) as problem:
        raise InvalidInput(f"filters={filters!r}: expected tuples (column, operator, value), {problem}") from problem
    columns = list(dict.fromkeys(_top_column(test.column, schema) for clause in tests for test in clause))
    plain = _fitting_filter(filters, RowFilter(expression, columns, tests), schema)
    return plain, sum(map(len, exact)) == sum(map(len, tests))


def condition_of(filters: Any, schema: pa.Schema, *, nulls: bool = True) -> Any:
    """Tuples as a condition in SQL, which is what they mean to Spark and to updates. What is none is returned as it is.

    nulls  comparisons with null, which no row passes, are taken
    Raises InvalidInput on tuples that do not fit these columns
    """
    if not isinstance(filters, Sequence) or isinstance(filters, str):
        return filters
    row_filter, text = tuples_in_sql(filters, schema)
    never = [test for clause in row_filter.tests for test in clause if test.value is None]
    if never and not nulls:
        column, op = never[0].column, never[0].op
        raise InvalidInput(
            f"where={filters!r}: expected tuples (column, operator, value), and no row has {column!r} {op} None: "
            f"take a condition as text, such as \"{column} is null\", or ({column!r}, 'in', [None])"
        )
    return text


def tuples_in_sql(filters: Any, schema: pa.Schema) -> tuple[RowFilter, str]:
    """Tuples as a filter, whose expression is not the whole of it, and as a condition in SQL. Raises InvalidInput"""
    row_filter, _ = _read_tuples(filters, schema)
    check_columns(row_filter.columns, schema)
    return row_filter, _text_of(filters, row_filter.tests, schema)


def _text_of(filters: Sequence[Any], tests: Tests, schema: pa.Schema) -> str:
    """The tests of tuples in SQL, their numbers in the columns' types where that is exact: Spark takes these to the
    files. It takes null for less than some that are beyond the column's type."""
    try:
        return sql_of(
            tuple(
                tuple(test if _is_for_sql(test, schema) else _exact_test(test, schema) for test in clause)
                for clause in tests
            ),
            schema.names,
        )
    except ValueError as problem:
        raise InvalidInput(f"filters={filters!r}: expected tuples (column, operator, value), {problem}") from problem


def _top_column(name: str, schema: pa.Schema) -> str:
    """The struct that has a field "struct.field" of a tuple; else the name as it is."""
    top = name.partition(".")[0]
    is_field = name not in schema.names and top in schema.names and pa.types.is_struct(schema.field(top).type)
    return top if is_field else name


def _other_way(filters: object) -> str:
    """How an expression of another library filters rows, as the end of a message; "" for what is none."""
    module = type(filters).__module__.lstrip("_").partition(".")[0]
    ways = {
        "polars": "lazy().filter(…)",
        "duckdb": "snapshot().to_duckdb().filter(…)",
        "pyspark": "snapshot().where(…)",
    }
    return f". An expression of its own is for table.{ways[module]}" if module in ways else ""


def filter_columns(
    expression: pc.Expression | SqlCondition | None, schema: pa.Schema, columns: Sequence[str]
) -> list[str]:
    """The wanted columns, and those that an expression asks for: all where that is not to be told."""
    if expression is not None and not isinstance(expression, pc.Expression):
        return list(dict.fromkeys([*columns, *expression.columns]))
    needed = list(dict.fromkeys(columns))
    while expression is not None:
        try:
            pa.schema([schema.field(name) for name in needed]).empty_table().filter(expression)
            return needed
        except (pa.ArrowException, KeyError) as problem:
            unknown = _UNKNOWN_COLUMN.search(str(problem))
            if unknown is None or unknown[1] not in schema.names or unknown[1] in needed:
                return list(schema.names)
            needed.append(unknown[1])
    return needed


def _is_for_sql(test: Test, schema: pa.Schema) -> bool:
    """Whether Arrow does not compare as Spark does: fields of structs, text beside another type, and numbers that Spark
    compares as doubles, where a result may be another than of exact numbers."""
    at = schema.get_field_index(test.column)
    values = [value for value in _values(test) if value is not None]
    if at < 0:
        return _top_column(test.column, schema) != test.column
    kind = schema.field(at).type
    if any(isinstance(value, str) for value in values) and (
        is_number(kind) or pa.types.is_temporal(kind) or kind == pa.bool_()
    ):
        return True
    if not all(isinstance(value, (Real, Decimal)) and not isinstance(value, bool) for value in values):
        return False
    if pa.types.is_floating(kind):
        return True
    if not is_exact(kind) or not any(isinstance(value, float) for value in values):
        return False
    return pa.types.is_decimal(kind) or not all(abs(value) < _EXACT_IN_DOUBLES for value in values)


#: Whole numbers up to here are all doubles.
_EXACT_IN_DOUBLES = 2**53


def _values(test: Test) -> Sequence[Any]:
    return test.value if test.op in ("in", "not in") else [test.value]


def _exact_test(test: Test, schema: pa.Schema) -> Test:
    """The test with a value, of Arrow's, that Arrow compares with the column without rounding."""
    at = schema.get_field_index(test.column)
    if at < 0:
        return test
    kind = schema.field(at).type
    _require_kind(test, kind)
    if pa.types.is_date(kind) and test.op in ("in", "not in"):  # Arrow would cut times to their days
        return replace(test, value=pa.array([value for value in test.value if not _within_day(value)], kind))
    if test.op in ("in", "not in") and all(value is None for value in test.value):
        return replace(test, value=pa.array(test.value, kind))  # else they are of no type
    if not is_exact(kind):
        return test
    if test.op not in ("in", "not in"):
        number = number_beside(kind, test.value)
        return test if number is None else Test(test.column, *fitting_comparison(test.op, number, kind))
    values = test.value
    numbers = [number_beside(kind, value) for value in values if value is not None]
    held = [number for number in numbers if number is not None]
    if len(held) < len(numbers):
        return test
    nulls = [None] if None in values else []
    return replace(test, value=pa.array([*members(held, kind), *nulls], kind))


def _require_kind(test: Test, kind: pa.DataType) -> None:
    """Raises ValueError on values that Arrow takes for others: truth values for numbers, and the reverse, and numbers
    for bytes; and on times without a zone beside those with one, and the reverse, which it refuses once there are rows.
    """
    values = [value for value in _values(test) if value is not None]
    if test.op in ("in", "not in"):
        truths = {isinstance(value, bool) for value in values}
        is_bytes = all(isinstance(value, (bytes, str)) for value in values)
        if (
            (pa.types.is_boolean(kind) and False in truths)
            or (is_number(kind) and True in truths)
            or (pa.types.is_binary(kind) and not is_bytes)
        ):
            raise ValueError(f"and the values of {test.column!r} are {kind}")
    if pa.types.is_timestamp(kind) and any(
        isinstance(value, dt.datetime) and (value.tzinfo is None) != (kind.tz is None) for value in values
    ):
        has, lacks = ("the time", "the column") if kind.tz is None else ("the column", "the time")
        raise ValueError(f"and {has} has a zone, and {lacks} has none: {test.column!r} is {kind}")


def _within_day(value: Any) -> bool:
    """Whether it is a time that is no day's beginning."""
    return isinstance(value, dt.datetime) and value.time() != dt.time()


def _fitting_filter(filters: Filters, row_filter: RowFilter, schema: pa.Schema) -> RowFilter:
    """The filter, seen to be one of these columns' types. Columns that are not there are for the caller."""
    if isinstance(row_filter.expression, pc.Expression) and all(name in schema.names for name in row_filter.columns):
        try:
            schema.empty_table().filter(row_filter.expression)
        except pa.ArrowException as problem:
            raise InvalidInput(f"filters={filters!r} do not fit the columns: {problem}") from problem
    return row_filter


def texts(values: Any) -> tuple[str, ...] | None:
    """The texts of a list; None: it is none, such as a text alone, or holds something else."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return None
    listed = tuple(values)
    return listed if all(isinstance(text, str) for text in listed) else None


def selected_columns(columns: Iterable[str] | None, every: Sequence[str]) -> tuple[str, ...]:
    """The columns of a read; None: every one. Raises InvalidInput on what is no list of names"""
    if isinstance(columns, str):
        raise InvalidInput(f"columns={columns!r}: expected a list, such as [{columns!r}]")
    names = texts(every if columns is None else columns)
    if names is None:
        raise InvalidInput(f"columns={columns!r}: expected a list of names, such as {list(every[-1:])}")
    return names


def check_columns(names: Iterable[str], schema: pa.Schema) -> None:
    """Raises InvalidInput naming a column that is not in the schema, and the nearest one that is."""
    for name in names:
        if name not in schema.names:
            spellings = {column.lower(): column for column in schema.names}
            near = difflib.get_close_matches(str(name).lower(), spellings, n=1, cutoff=0.5)
            own = ", ".join(column for column in schema.names if column not in META_COLUMNS) or "none yet"
            hint = f" Did you mean {spellings[near[0]]!r}?" if near else f" It has {own}."
            raise InvalidInput(f"the table has no column {name!r}.{hint}")


#: How far the moment that a time without a zone stands for is from UTC in any zone, and more.
ANY_ZONE = dt.timedelta(days=1)


def certain_tests(tests: Tests, schema: pa.Schema, slack: dt.timedelta = ANY_ZONE) -> Tests:
    """Tests of columns of the schema that pass all that passes these in any engine: whole numbers, text, truth values
    and dates, each compared with one of its kind; and times, wider than they are. NaN has its own rules in each.

    slack  how far a time with a zone, as SQL has it, may be from the moment that the engine takes it for
    """
    return tuple(
        tuple(one for test in clause if test.column in schema.names for one in _sure_tests(test, schema, slack))
        for clause in tests
    )


def _sure_tests(test: Test, schema: pa.Schema, slack: dt.timedelta) -> tuple[Test, ...]:
    if test.op in ("null", "not null"):
        return (test,)
    kind = schema.field(test.column).type
    values = test.value if test.op in ("in", "not in") else [test.value]
    if values and pa.types.is_timestamp(kind) and all(type(value) is dt.datetime for value in values):
        try:
            return _widened_tests(test, values, slack if all(value.tzinfo for value in values) else ANY_ZONE)
        except (OverflowError, TypeError):  # the end of the calendar; times with a zone beside those without
            return ()
    is_kind = [_SURE.get(type(value)) for value in values]
    return (test,) if all(one is not None and one(kind) for one in is_kind) else ()


def _widened_tests(test: Test, values: Sequence[dt.datetime], slack: dt.timedelta) -> tuple[Test, ...]:
    above, below = (Test(test.column, ">=", min(values) - slack), Test(test.column, "<=", max(values) + slack))
    match test.op:
        case ">" | ">=":
            return (above,)
        case "<" | "<=":
            return (below,)
        case "=" | "==" | "in":
            return (above, below)
        case _:
            return ()


_SURE: Mapping[type, Callable[[pa.DataType], bool]] = {
    int: pa.types.is_integer,
    str: pa.types.is_string,
    bool: pa.types.is_boolean,
    dt.date: pa.types.is_date32,
}
