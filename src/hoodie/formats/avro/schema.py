"""Table schemas as Avro JSON, in the shape Hudi gives them, and back.

Source: docs/format/base-files-and-bloom.md 3, docs/format/commit-metadata.md (`extraMetadata.schema`);
pinned by the schemas of real tables in tests/fixtures/avro_schemas.json.
"""

import dataclasses
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from hoodie.errors import CorruptFile, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro.compile import TYPE_ATTRIBUTE, BadSchema, compile_schema
from hoodie.formats.avro.nodes import Integer, Items, Node, Null, Nullable, Record, Vector, may_be_null
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.schema import (
    AVRO_DEFAULT,
    AVRO_LOGICAL,
    COMMENT,
    GROWN,
    LOCAL_MICROS,
    VECTOR,
    without_meta_fields,
)
from hoodie.schema.types import (
    TIMESTAMP_NTZ,
    is_list,
    list_of,
    map_of,
    spark_name,
)

_TO_PRIMITIVE = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
}
_DEFAULTS: dict[pa.DataType, tuple[type, ...]] = {
    pa.bool_(): (bool,),
    pa.int32(): (int,),
    pa.int64(): (int,),
    pa.float32(): (int, float),
    pa.float64(): (int, float),
    pa.string(): (str,),
}


def record_names(table_name: str) -> tuple[str, str]:
    """Name and namespace of a table's Avro record: (`<t>_record`, `hoodie.<t>`), `<t>` with `__` for other letters."""
    head = re.sub(r"[^A-Za-z_]", "__", table_name[:1])
    clean = head + re.sub(r"[^A-Za-z0-9_]", "__", table_name[1:])
    return f"{clean}_record", f"hoodie.{clean}"


def decimal_size(precision: int) -> int:
    """The fewest bytes whose two's complement holds every decimal of that many digits."""
    return int(10**precision - 1).bit_length() // 8 + 1


def to_avro(schema: pa.Schema, table_name: str, *, local_times: bool = False) -> str:
    """The schema as Avro JSON, nullable columns as `["null", T]` with default null.

    Every record and fixed type has a name of its own and stands where it is used, as Spark writes it.

    local_times  times without a zone are as `TableVersion.local_times` says
    Raises  SchemaMismatch, naming the column, on a type that has no form in a table
    """
    return _text(_Exact(schema.serialize().to_pybytes(), schema), table_name, local_times)


@dataclasses.dataclass(frozen=True, slots=True)
class _Exact:
    """A schema with the metadata of its fields, which schemas are not compared by."""

    encoded: bytes
    schema: pa.Schema = dataclasses.field(compare=False)


@lru_cache(maxsize=64)  # each write of a table asks for the same
def _text(columns: _Exact, table_name: str, local_times: bool) -> str:
    name, namespace = record_names(table_name)
    record = _record(list(columns.schema), name, namespace, "")
    return json.dumps(_local(record) if local_times else record, separators=(",", ":"), ensure_ascii=False)


def _local(node: Any) -> Any:
    """A schema, or a part of it, whose times without a zone have Avro's type for them, too."""
    if isinstance(node, list):
        return [_local(part) for part in node]
    if not isinstance(node, dict):
        return node
    logical = {"logicalType": LOCAL_MICROS.decode()} if TYPE_ATTRIBUTE in node else {}
    return {name: _local(part) for name, part in node.items()} | logical


def from_avro(text: str, path: str) -> pa.Schema:
    """The columns of an Avro record schema, in its order.

    path    of the file that the text came from, for messages
    Raises  CorruptFile on what is no Avro record schema; UnsupportedTable on a type that has no column form, such as a
            union of several types or a record within itself
    """
    return _columns(_Text(text, path))


def user_columns(text: str, path: str) -> pa.Schema:
    """The same without the five meta columns."""
    return _user_columns(_Text(text, path))


@dataclasses.dataclass(frozen=True, slots=True)
class _Text:
    text: str
    path: str = dataclasses.field(compare=False)  # every commit repeats the text


@lru_cache(maxsize=64)
def _columns(schema: _Text) -> pa.Schema:
    try:
        record = compile_schema(schema.text)
        return pa.schema(_fields(record, ""))
    except BadSchema as error:
        raise CorruptFile(schema.path, f"its Avro schema is none of a table: {error}") from error
    except UnsupportedTable as error:
        raise UnsupportedTable(f"{schema.path}: {error}") from error


@lru_cache(maxsize=64)
def _user_columns(schema: _Text) -> pa.Schema:
    return without_meta_fields(_columns(schema))


def _fields(record: Record, column: str) -> list[pa.Field]:
    entries = zip(record.fields, record.entries, strict=True)
    return [_field(name, node, f"{column}{name}", entry) for (name, node), entry in entries]


def _field(name: str, node: Node, column: str, entry: Mapping[str, Any] = MappingProxyType({})) -> pa.Field:
    """A column, an element of a list, or a value of a map."""
    kind, inner = _column_type(node, column), node.inner if isinstance(node, Nullable) else node
    marks: dict[bytes, bytes] = {}
    # Rows of files from before the column carry its default, which is not always null.
    if type(entry.get("default")) in _DEFAULTS.get(kind, ()):
        marks[AVRO_DEFAULT] = json.dumps(entry["default"]).encode()
    elif isinstance(inner, Vector) and entry:
        marks[AVRO_LOGICAL] = VECTOR
    elif isinstance(inner, Integer) and inner.logical.encode() == LOCAL_MICROS:
        marks[AVRO_LOGICAL] = LOCAL_MICROS
    if entry.get(GROWN.decode()) is True:
        marks[GROWN] = b"true"
    if isinstance(comment := entry.get("doc"), str) and comment:
        marks[COMMENT] = comment.encode()
    return pa.field(name, kind, may_be_null(node), metadata=marks or None)


def _column_type(node: Node, column: str) -> pa.DataType:
    if isinstance(node, Nullable):
        return _column_type(node.inner, column)
    if isinstance(node, Record):
        return pa.struct(_fields(node, f"{column}."))
    if isinstance(node, Items) and isinstance(node.item, Record) and pa.types.is_map(node.arrow):
        return map_of(_field("value", node.item.fields[1][1], f"{column}.value"))
    if isinstance(node, Items):
        return list_of(_field("element", node.item, f"{column}.element"))
    if isinstance(node, Null):
        raise UnsupportedTable(f"column {column} is of Avro type null, which is no column type")
    return node.column if isinstance(node, Vector) else node.arrow


def _record(fields: list[pa.Field], name: str, namespace: str, path: str) -> dict[str, Any]:
    inner = f"{namespace}.{name}"
    entries = []
    for field in fields:
        entry: dict[str, Any] = {"name": field.name}
        entry["type"] = _field_type(field, field.name, inner, f"{path}{field.name}")
        if field.name in META_COLUMNS and not path:
            entry["doc"] = ""
        elif comment := (field.metadata or {}).get(COMMENT):
            entry["doc"] = comment.decode()
        default = (field.metadata or {}).get(AVRO_DEFAULT)
        if default is not None:
            entry["default"] = json.loads(default)
            if field.nullable:
                entry["type"].reverse()  # a default is of the union's first type
        elif field.nullable:
            entry["default"] = None
        if GROWN in (field.metadata or {}):
            entry[GROWN.decode()] = True
        entries.append(entry)
    return {"type": "record", "name": name, "namespace": namespace, "fields": entries}


def _field_type(field: pa.Field, name: str, namespace: str, path: str) -> Any:
    plain = _plain_type(field.type, name, namespace, path)
    if field.type == TIMESTAMP_NTZ and (field.metadata or {}).get(AVRO_LOGICAL) == LOCAL_MICROS:
        # Another writer made the column, and goes by this type.
        plain = {"type": "long", "logicalType": LOCAL_MICROS.decode()}
    return ["null", plain] if field.nullable else plain


def _plain_type(kind: pa.DataType, name: str, namespace: str, path: str) -> Any:
    """name, namespace: of a record at this place; list elements and map values pass them on"""
    if kind in _TO_PRIMITIVE:
        return _TO_PRIMITIVE[kind]
    if pa.types.is_struct(kind):
        return _record(list(kind), name, namespace, f"{path}.")
    if is_list(kind):
        return {"type": "array", "items": _field_type(kind.value_field, name, namespace, f"{path}.element")}
    if pa.types.is_map(kind) and kind.key_type == pa.string():
        return {"type": "map", "values": _field_type(kind.item_field, name, namespace, f"{path}.value")}
    if pa.types.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        fixed = {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}"}
        size = {"size": decimal_size(kind.precision), "logicalType": "decimal"}
        return {**fixed, **size, "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_fixed_size_binary(kind):
        return {"type": "fixed", "name": "fixed", "namespace": f"{namespace}.{name}", "size": kind.byte_width}
    if kind == pa.date32():
        return {"type": "int", "logicalType": "date"}
    if pa.types.is_timestamp(kind) and kind.unit in ("us", "ms"):
        if kind.unit == "ms":
            return {"type": "long", "logicalType": "timestamp-millis" if kind.tz else "local-timestamp-millis"}
        if kind.tz:
            return {"type": "long", "logicalType": "timestamp-micros"}
        return {"type": "long", TYPE_ATTRIBUTE: "timestamp_ntz"}
    if kind == pa.time32("ms"):
        return {"type": "int", "logicalType": "time-millis"}
    if kind == pa.time64("us"):
        return {"type": "long", "logicalType": "time-micros"}
    raise SchemaMismatch(f"column {path} is {spark_name(kind)}, which a table cannot store")
