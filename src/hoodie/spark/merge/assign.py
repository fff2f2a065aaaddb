"""Values that clauses assign, in the types of the table's columns."""

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyarrow import types as arrow
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from hoodie.errors import SchemaMismatch
from hoodie.expressions.typed import StructValue, plain_scalar
from hoodie.spark.types import nullable_type

_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_NUMBERS = (*_INTEGERS, T.FloatType, T.DoubleType, T.DecimalType)
_TIMES = (T.DateType, T.TimestampType, T.TimestampNTZType)
_TEXT = (T.StringType, T.CharType, T.VarcharType)


def in_types(
    rows: Mapping[str, Column], value_types: T.StructType, column_types: T.StructType, *, fields_by_name: bool = True
) -> list[Column]:
    """Values as columns of the table's types.

    rows            by column of `column_types`
    value_types     the types that the values have
    fields_by_name  the fields of structs are those of the same name; else of the same place
    Raises  SchemaMismatch, one for all columns whose values would lose their meaning: text for a number, and so on.
            A number that its column cannot hold fails the job with InvalidInput, in any mode of Spark's
    """
    casts, problems = [], []
    for field in column_types:
        kind, column = value_types[field.name].dataType, nullable_type(field.dataType)
        cast = _cast(rows[field.name], kind, column, (field.name,), fields_by_name)
        if cast is None:
            problems.append(
                f"column {field.name!r} is {column.simpleString()}, and the value {nullable_type(kind).simpleString()}"
            )
        else:
            casts.append(cast.alias(field.name))
    if problems:
        raise SchemaMismatch(f"Values do not fit the table: {'; '.join(problems)}. Cast them.")
    return casts


def failing_value(problem: str | Column) -> Column:
    """A value whose row fails the job, with an InvalidInput: see `worker_errors`. A Column's text has no quotes."""
    text = F.lit(json.dumps(problem)[1:-1]) if isinstance(problem, str) else problem
    return F.raise_error(F.concat(F.lit('hoodie-error ["InvalidInput", "'), text, F.lit('"]'))).cast("string")


def _holds_all(column: T.DataType, value: T.DataType) -> bool:
    """Whether a column of one type holds each value of another, and equal ones are equal in both."""
    if isinstance(value, T.NullType) or value == column:
        return True
    if isinstance(value, _INTEGERS) and isinstance(column, _INTEGERS):
        return _INTEGERS.index(type(value)) <= _INTEGERS.index(type(column))
    if isinstance(value, T.DecimalType) and isinstance(column, T.DecimalType):
        whole = column.precision - column.scale, value.precision - value.scale
        return whole[0] >= whole[1] and column.scale >= value.scale
    return isinstance(value, T.FloatType) and isinstance(column, T.DoubleType)


def equal_after_cast(column: T.DataType, value: T.DataType) -> bool:
    """Whether a value equals one of a column where it does so once it is cast to the column's type. A number that is
    too large is refused by the cast."""
    return _holds_all(column, value) or (isinstance(value, _INTEGERS) and isinstance(column, _INTEGERS))


def _cast(
    value: Column, value_type: T.DataType, column_type: T.DataType, path: tuple[str, ...], by_name: bool
) -> Column | None:
    """A value in the type of its column; None: it would lose its meaning. A number is cut or rounded to the column's
    type, and refused where it is within a nested value."""
    if nullable_type(value_type) == column_type:
        return value
    if isinstance(value_type, T.StructType) and isinstance(column_type, T.StructType):
        return _cast_struct(value, value_type, column_type, path, by_name)
    if isinstance(value_type, T.ArrayType) and isinstance(column_type, T.ArrayType):
        elements = value_type.elementType, column_type.elementType
        return _with_elements(F.transform, value, *elements, (*path, "element"), by_name)
    if isinstance(value_type, T.MapType) and isinstance(column_type, T.MapType):
        keyed = _with_elements(
            F.transform_keys, value, value_type.keyType, column_type.keyType, (*path, "key"), by_name
        )
        if keyed is None:
            return None
        values = value_type.valueType, column_type.valueType
        return _with_elements(F.transform_values, keyed, *values, (*path, "value"), by_name)
    if not _assignable(value_type, column_type):
        return None
    numbers = isinstance(value_type, _NUMBERS) and isinstance(column_type, (*_INTEGERS, T.DecimalType))
    if not numbers or _holds_all(column_type, value_type):
        return value.cast(column_type)
    fitting = value.try_cast(column_type)
    problem = F.concat(
        F.lit(f"column {'.'.join(path)} is {column_type.simpleString()}, and cannot hold the value "),
        value.cast("string"),
    )
    misfit = ~fitting.try_cast(value_type).eqNullSafe(value) if len(path) > 1 else value.isNotNull() & fitting.isNull()
    return F.when(misfit, failing_value(problem).cast(column_type)).otherwise(fitting)


def _cast_struct(
    value: Column, value_type: T.StructType, column_type: T.StructType, path: tuple[str, ...], by_name: bool
) -> Column | None:
    places = {field.name.lower(): place for place, field in enumerate(value_type)}
    if len(value_type) != len(column_type) or (
        by_name and places.keys() != {field.name.lower() for field in column_type}
    ):
        return None
    casts = []
    for place, field in enumerate(column_type):
        source = value_type.fields[places[field.name.lower()] if by_name else place]
        cast = _cast(value.getField(source.name), source.dataType, field.dataType, (*path, field.name), by_name)
        if cast is None:
            return None
        casts.append(cast.alias(field.name))
    return F.when(value.isNotNull(), F.struct(*casts))


def _with_elements(
    over: Callable[..., Column],
    value: Column,
    value_type: T.DataType,
    column_type: T.DataType,
    path: tuple[str, ...],
    by_name: bool,
) -> Column | None:
    """The value with its elements, keys or values in another type."""
    if nullable_type(value_type) == column_type:
        return value
    if _cast(value, value_type, column_type, path, by_name) is None:  # of the types alone
        return None

    def cast(item: Column) -> Column:
        column = _cast(item, value_type, column_type, path, by_name)
        assert column is not None
        return column

    if over is F.transform:
        return F.transform(value, cast)
    return over(value, lambda key, item: cast(key if over is F.transform_keys else item))


def _assignable(value: T.DataType, column: T.DataType) -> bool:
    if isinstance(value, T.NullType) or type(value) is type(column):
        return True
    if isinstance(column, _TEXT):
        return not isinstance(value, (T.StructType, T.ArrayType, T.MapType, T.BinaryType))
    return any(isinstance(value, kinds) and isinstance(column, kinds) for kinds in (_NUMBERS, _TIMES))


def first_that_holds(choices: Sequence[tuple[Column, Column]], otherwise: Column | None = None) -> Column:
    """CASE: the value of the first condition that holds; null, or `otherwise`, when none does."""
    if not choices:
        return F.lit(None) if otherwise is None else otherwise
    (condition, value), *rest = choices
    expression = F.when(condition, value)
    for condition, value in rest:
        expression = expression.when(condition, value)
    return expression if otherwise is None else expression.otherwise(otherwise)


def as_column(value: object, column: pa.DataType | None = None) -> Column:
    """An expression: text is SQL, a Column is itself, any other value stands for itself. Raises InvalidInput

    column  the type of the column that the value is for, by which a dict is a map
    """
    if isinstance(value, str):
        return F.expr(value)
    if isinstance(value, StructValue):
        types = {} if column is None else {field.name: field.type for field in column}
        return F.struct(*(as_column(part, types.get(name)).alias(name) for name, part in value.fields.items()))
    if hasattr(value, "alias") and hasattr(value, "cast"):
        return value  # type: ignore[return-value]
    return _literal(value if isinstance(value, pa.Scalar) else plain_scalar(value, column))


def _literal(scalar: pa.Scalar) -> Column:
    if scalar.is_valid and arrow.is_nested(scalar.type):
        if arrow.is_struct(scalar.type):
            return F.struct(*(_literal(part).alias(name) for name, part in scalar.items()))
        if arrow.is_map(scalar.type):
            return F.create_map(*(_literal(part) for pair in scalar.values for part in pair.values()))
        return F.array(*map(_literal, scalar.values))
    value = scalar.as_py()
    if isinstance(value, dt.datetime) and value.tzinfo is None:  # Spark takes it for a time of this machine's zone
        return F.lit(value.isoformat(" ")).cast(T.TimestampNTZType())
    return F.lit(value)


def one_value(value: object, column: pa.DataType | None = None) -> Column:
    """A value for one row. Within a function Spark refuses what gives several rows, such as `explode`."""
    return F.coalesce(as_column(value, column))


def filter_of(condition: str | Column | None) -> Column:
    """A condition as `where` takes it, where Spark evaluates nothing behind a conjunct that is null. In an expression
    around the condition it evaluates the right side of `null AND …`, which may fail."""
    return F.lit(True) if condition is None else as_column(condition)


def condition_holds(condition: str | Column | None) -> Column:
    """Whether a condition is true; null is not."""
    return F.lit(True) if condition is None else F.coalesce(as_column(condition), F.lit(False))
