"""Spark's column types and Arrow's, and Arrow rows as a DataFrame: in plain Python, so that it works over Spark
Connect, too."""

from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as arrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from hoodie.errors import SchemaMismatch
from hoodie.schema.conform import conform
from hoodie.schema.schema import COMMENT as ARROW_COMMENT
from hoodie.schema.schema import UNTYPED, with_comment
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_NTZ, is_list, list_of, map_of, spark_name

#: Key of a field's metadata.
COMMENT = "comment"

_TO_SPARK: dict[pa.DataType, sql.DataType] = {
    pa.bool_(): sql.BooleanType(),
    pa.int8(): sql.ByteType(),
    pa.int16(): sql.ShortType(),
    pa.int32(): sql.IntegerType(),
    pa.int64(): sql.LongType(),
    pa.float32(): sql.FloatType(),
    pa.float64(): sql.DoubleType(),
    pa.string(): sql.StringType(),
    pa.large_string(): sql.StringType(),
    pa.binary(): sql.BinaryType(),
    pa.large_binary(): sql.BinaryType(),
    pa.date32(): sql.DateType(),
}
_TO_ARROW: dict[type[sql.DataType], pa.DataType] = {
    sql.BooleanType: pa.bool_(),
    sql.ByteType: pa.int8(),
    sql.ShortType: pa.int16(),
    sql.IntegerType: pa.int32(),
    sql.LongType: pa.int64(),
    sql.FloatType: pa.float32(),
    sql.DoubleType: pa.float64(),
    sql.StringType: pa.string(),
    sql.CharType: pa.string(),
    sql.VarcharType: pa.string(),
    sql.BinaryType: pa.binary(),
    sql.DateType: pa.date32(),
    sql.TimestampType: TIMESTAMP,
    sql.TimestampNTZType: TIMESTAMP_NTZ,
}


def to_spark(schema: pa.Schema) -> sql.StructType:
    """The columns as Spark has them; order and nullability are kept.

    Raises  SchemaMismatch, one for all columns that Spark has no type for
    """
    bad: list[str] = []
    fields = [_spark_field(field, field.name, bad) for field in schema]
    if bad:
        raise SchemaMismatch(f"Spark has no type for these columns: {'; '.join(bad)}.")
    return sql.StructType(fields)


def to_arrow(schema: sql.StructType) -> pa.Schema:
    """The columns as Arrow has them: timestamps in UTC, char and varchar as string, bytes and shorts as they are.

    `model.schema.stored_form` makes of it what a table holds.
    Raises  SchemaMismatch, one for all columns of types that no table can hold: intervals, void, variant, maps with
            keys other than strings, user-defined types
    """
    bad: list[str] = []
    fields = [_commented(field, field.name, bad) for field in schema.fields]
    if bad:
        raise SchemaMismatch(f"These columns cannot be stored: {'; '.join(bad)}.")
    return pa.schema(fields)


def with_types_of(table: pa.Schema | None, schema: sql.StructType) -> sql.StructType:
    """The columns of a batch, those of type void as the table has them: none of their values tells a type."""
    names = set() if table is None else set(table.names)
    untyped = {field.name for field in schema.fields if isinstance(field.dataType, sql.NullType)} & names
    if table is None or not untyped:
        return schema
    table_types = to_spark(pa.schema([table.field(name) for name in untyped]))
    fields = [sql.StructField(f.name, table_types[f.name].dataType) if f.name in untyped else f for f in schema.fields]
    return sql.StructType(fields)


def spark_type_at(schema: sql.StructType, path: str) -> sql.DataType | None:
    """The type of a column, which may be nested ("a.b"); None: it is missing."""
    kind: sql.DataType = schema
    for name in path.split("."):
        if not isinstance(kind, sql.StructType) or name not in kind.names:
            return None
        kind = kind[name].dataType
    return kind


def as_ddl(schema: sql.StructType) -> str | None:
    """Nullable columns as SQL text, which Spark's readers take in one call, of a schema in several; None: a comment has
    characters that would have to be escaped, in a way that is a setting of the session."""
    comments: list[str] = []
    text = ", ".join(_column_text(field, " ", comments) for field in schema)
    return None if any("'" in comment or "\\" in comment for comment in comments) else text


def _column_text(field: sql.StructField, separator: str, comments: list[str]) -> str:
    comment = (field.metadata or {}).get(COMMENT, "")
    comments.append(comment)
    name = "`" + field.name.replace("`", "``") + "`"
    return f"{name}{separator}{_type_text(field.dataType, comments)}" + (f" comment '{comment}'" if comment else "")


def _type_text(kind: sql.DataType, comments: list[str]) -> str:
    if isinstance(kind, sql.StructType):
        return f"struct<{', '.join(_column_text(field, ': ', comments) for field in kind)}>"
    if isinstance(kind, sql.ArrayType):
        return f"array<{_type_text(kind.elementType, comments)}>"
    if isinstance(kind, sql.MapType):
        return f"map<{_type_text(kind.keyType, comments)}, {_type_text(kind.valueType, comments)}>"
    # What `timestamp` alone means is a setting of the session.
    return "timestamp_ltz" if isinstance(kind, sql.TimestampType) else kind.simpleString()


def all_nullable(schema: sql.StructType) -> sql.StructType:
    """The same columns, every level nullable, as Spark's file sources have them.

    For `frame.to(nullable(frame.schema)).toArrow()`, and for frames that we return: Spark 4's `toArrow` fails on a null
    struct whose fields take no nulls.
    """
    return sql.StructType(
        [sql.StructField(field.name, nullable_type(field.dataType), True, field.metadata) for field in schema.fields]
    )


def nullable_type(kind: sql.DataType) -> sql.DataType:
    """The same type, nullable at every level below it."""
    if isinstance(kind, sql.StructType):
        return all_nullable(kind)
    if isinstance(kind, sql.ArrayType):
        return sql.ArrayType(nullable_type(kind.elementType), True)
    if isinstance(kind, sql.MapType):
        return sql.MapType(kind.keyType, nullable_type(kind.valueType), True)
    return kind


def in_session_zone(schema: pa.Schema, zone: str) -> pa.Schema:
    """The same columns with timestamps in the session's time zone, as Spark insists on for rows that Python returns,
    and in microseconds, as it has no other.

    zone  the session's `spark.sql.session.timeZone`
    """
    return pa.schema([_in_zone(field, pa.timestamp("us", zone)) for field in schema])


def source_schema(schema: StructType) -> pa.Schema:
    """The columns of rows that a data source in Python gives Spark: as Spark has them in Arrow, with times in UTC."""
    in_utc: dict[str, Any] = {"timezone": "UTC"}
    if "timezone" not in signature(to_arrow_schema).parameters:
        in_utc = {}  # PySpark 4.1 has no other
    return to_arrow_schema(schema, **in_utc)


def fit_for_arrow(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as Spark handed them over, fit for all of Arrow.

    Spark 4.1 leaves out the offsets of empty lists within other types: the size of such an array cannot be asked for,
    the process ends. A copy has them.
    """
    if not any(_holds_lists(field.type) for field in batch.schema):
        return batch
    return batch.take(pa.array(np.arange(len(batch))))


def _holds_lists(kind: pa.DataType) -> bool:
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return any(arrow.is_list(child) or arrow.is_map(child) or _holds_lists(child) for child in inner)


def _spark_field(field: pa.Field, path: str, bad: list[str]) -> sql.StructField:
    comment = (field.metadata or {}).get(ARROW_COMMENT)
    metadata = {COMMENT: comment.decode()} if comment else None
    return sql.StructField(field.name, _spark_type(field.type, path, bad), field.nullable, metadata)


def _spark_type(kind: pa.DataType, path: str, bad: list[str]) -> sql.DataType:
    if kind in _TO_SPARK:
        return _TO_SPARK[kind]
    if arrow.is_timestamp(kind):
        return sql.TimestampType() if kind.tz else sql.TimestampNTZType()
    if arrow.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return sql.DecimalType(kind.precision, kind.scale)
    if arrow.is_fixed_size_binary(kind):
        return sql.BinaryType()
    if is_list(kind):
        return sql.ArrayType(_spark_type(kind.value_type, f"{path}.element", bad), kind.value_field.nullable)
    if arrow.is_map(kind):
        key = _spark_type(kind.key_type, f"{path}.key", bad)
        return sql.MapType(key, _spark_type(kind.item_type, f"{path}.value", bad), kind.item_field.nullable)
    if arrow.is_struct(kind):
        return sql.StructType([_spark_field(child, f"{path}.{child.name}", bad) for child in kind])
    bad.append(f"{path} is {spark_name(kind)}")
    return sql.NullType()  # never seen: the caller raises


def _commented(field: sql.StructField, path: str, bad: list[str]) -> pa.Field:
    comment = (field.metadata or {}).get(COMMENT)
    arrow_field = _arrow_field(field.name, field.dataType, field.nullable, path, bad)
    return with_comment(arrow_field, comment) if isinstance(comment, str) and comment else arrow_field


def _arrow_field(name: str, kind: sql.DataType, nullable: bool, path: str, bad: list[str]) -> pa.Field:
    return pa.field(name, _arrow_type(kind, path, bad), nullable)


def _arrow_type(kind: sql.DataType, path: str, bad: list[str]) -> pa.DataType:
    if type(kind) in _TO_ARROW:
        return _TO_ARROW[type(kind)]
    if isinstance(kind, sql.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, sql.ArrayType):
        return list_of(_arrow_field("element", kind.elementType, kind.containsNull, f"{path}.element", bad))
    if isinstance(kind, sql.StructType):
        return pa.struct([_commented(field, f"{path}.{field.name}", bad) for field in kind.fields])
    if isinstance(kind, sql.MapType) and _TO_ARROW.get(type(kind.keyType)) == pa.string():
        return map_of(_arrow_field("value", kind.valueType, kind.valueContainsNull, f"{path}.value", bad))
    problem = ": the keys of a map must be strings" if isinstance(kind, sql.MapType) else ""
    problem = UNTYPED if isinstance(kind, sql.NullType) else problem
    bad.append(f"{path} is {kind.simpleString()}{problem}")
    return pa.string()  # never seen: the caller raises


def _in_zone(field: pa.Field, stamp: pa.DataType) -> pa.Field:
    kind = field.type
    if arrow.is_timestamp(kind):
        return field.with_type(stamp if kind.tz else TIMESTAMP_NTZ)
    if arrow.is_list(kind):
        return field.with_type(list_of(_in_zone(kind.value_field, stamp)))
    if arrow.is_map(kind):
        return field.with_type(map_of(_in_zone(kind.item_field, stamp)))
    if arrow.is_struct(kind):
        return field.with_type(pa.struct([_in_zone(child, stamp) for child in kind]))
    return field


def local_frame(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Arrow rows as a DataFrame of a schema.

    PySpark 4.3 loses the rows that come after a record batch without rows, and takes no lists without a batch.
    """
    rows = conform(rows, in_session_zone(rows.schema, "UTC"))  # Spark has no times in milliseconds
    filled = [batch for batch in rows.to_batches() if len(batch)]
    whole = pa.Table.from_batches(filled, rows.schema) if filled else rows.schema.empty_table()
    return session.createDataFrame(whole, schema)
