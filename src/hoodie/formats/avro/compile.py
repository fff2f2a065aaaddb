"""An Avro schema as nodes that read and write columns."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hoodie.errors import UnsupportedTable
from hoodie.formats.avro.decimals import BytesDecimal, FixedDecimal
from hoodie.formats.avro.nodes import (
    Boolean,
    Bytes,
    Enum,
    FixedWidth,
    Integer,
    Items,
    Node,
    Null,
    Nullable,
    Record,
    Union,
    Vector,
    may_be_null,
)
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_MILLIS, TIMESTAMP_NTZ, TIMESTAMP_NTZ_MILLIS, list_of, map_of

#: Attribute of a `long` that holds a timestamp without zone. Avro readers skip attributes they do not know;
#: `local-timestamp-micros`, the logical type made for it, makes hudi-rs 0.5 panic.
TYPE_ATTRIBUTE = "hoodie.type"
#: (Avro type, logical type) -> the Arrow type of its column.
LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): TIMESTAMP_MILLIS,
    ("long", "timestamp-micros"): TIMESTAMP,
    ("long", "local-timestamp-millis"): TIMESTAMP_NTZ_MILLIS,
    ("long", "local-timestamp-micros"): TIMESTAMP_NTZ,
}
#: Element types of VECTOR columns, whose values are little-endian.
_VECTORS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64(), "INT8": pa.int8()}
_NULLS = ("null", {"type": "null"})
_MAX_DEPTH = 64
_MOST_LEAVES = 100_000  # a schema that names a type many times over grows without bound

_PLAIN: dict[str, Callable[[], Node]] = {
    "null": Null,
    "boolean": Boolean,
    "int": lambda: Integer(pa.int32()),
    "long": lambda: Integer(pa.int64()),
    "float": lambda: FixedWidth(pa.float32(), 4),
    "double": lambda: FixedWidth(pa.float64(), 8),
    "string": lambda: Bytes(pa.string()),
    "bytes": lambda: Bytes(pa.binary()),
}


class BadSchema(ValueError):
    """Text that is no Avro schema of a record."""


@lru_cache(maxsize=256)
def compile_schema(schema_json: str, unions: bool = False) -> Record:
    """The record that a schema describes.

    unions  take unions of several types beside null, too, as structs (`nodes.Union`)
    Raises  BadSchema if it is none; UnsupportedTable if Arrow has no type for a part of it
    """
    try:
        node = _Compiler(unions).node(json.loads(schema_json), "")
    except json.JSONDecodeError as error:
        raise BadSchema(f"no JSON: {error}") from error
    except RecursionError as error:
        raise BadSchema("no JSON: nested too deep") from error
    except (KeyError, TypeError) as error:
        raise BadSchema(f"a part is missing or of the wrong kind: {error}") from error
    if not isinstance(node, Record):
        raise BadSchema("the outermost type is no record")
    return node


class _Compiler:
    """One walk over one schema. Named types are known once they are complete: a type within itself has no columns.

    column  of a type, "a.b", for errors; "": the record itself
    """

    def __init__(self, unions: bool) -> None:
        self.unions = unions
        self.named: dict[str, Node | None] = {}

    def node(self, schema: Any, namespace: str, column: str = "", depth: int = 0) -> Node:
        if depth > _MAX_DEPTH:
            raise UnsupportedTable(f"{_at(column)} is nested more than {_MAX_DEPTH} deep")
        if isinstance(schema, list):
            return self.union(schema, namespace, column, depth + 1)
        if isinstance(schema, str):
            return self.reference(schema, namespace, column)
        if not isinstance(schema, dict) or "type" not in schema:
            raise BadSchema(f"{_at(column)} has no type")
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.node(kind, namespace, column, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self.define(kind, schema, namespace, column, depth + 1)
        if kind == "array":
            item = self.node(schema.get("items"), namespace, f"{column}.element", depth + 1)
            return Items(list_of(pa.field("element", item.arrow, may_be_null(item))), item)
        if kind == "map":
            value = self.node(schema.get("values"), namespace, f"{column}.value", depth + 1)
            pair = Record((("key", Bytes(pa.string())), ("value", value)))
            return Items(map_of(pa.field("value", value.arrow, may_be_null(value))), pair)
        logical = str(schema.get("logicalType"))
        if kind == "bytes" and logical == "decimal":
            return BytesDecimal(_decimal(schema, column))
        if kind == "long" and schema.get(TYPE_ATTRIBUTE) == "timestamp_ntz":
            return Integer(TIMESTAMP_NTZ)
        if kind == "long" and logical.endswith("-nanos"):
            raise UnsupportedTable(f"{_at(column)} is in nanoseconds, which no Spark type holds")
        if integer := LOGICAL.get((kind, logical)):
            return Integer(integer, logical)
        return self.reference(kind, namespace, column)

    def union(self, branches: list[Any], namespace: str, column: str, depth: int) -> Node:
        values = [branch for branch in branches if branch not in _NULLS]
        if len(values) == 1 and len(branches) <= 2 and not isinstance(values[0], list):
            null = None if len(branches) == 1 else 1 - branches.index(values[0])
            return Nullable(self.node(values[0], namespace, column, depth), null)
        if not branches or len(branches) - len(values) > 1:
            raise BadSchema(f"{_at(column)} is a union of no types, or of null twice")
        if self.unions:
            return Union(tuple(self.branch(branch, namespace, column, depth) for branch in branches))
        words = ", ".join(map(_word, branches))
        raise UnsupportedTable(f"{_at(column)} is an Avro union of {words:.200}; a column has one type, null aside")

    def branch(self, schema: Any, namespace: str, column: str, depth: int) -> tuple[str, Node] | None:
        if schema in _NULLS:
            return None
        name = schema.get("name", schema["type"]) if isinstance(schema, dict) else schema
        return str(name).rpartition(".")[2], self.node(schema, namespace, column, depth)

    def reference(self, name: str, namespace: str, column: str) -> Node:
        if name in _PLAIN:
            return _PLAIN[name]()
        for full in (f"{namespace}.{name}", name) if namespace and "." not in name else (name,):
            if full in self.named:
                if (node := self.named[full]) is None:
                    raise UnsupportedTable(f"{_at(column)} holds its own record type {full}")
                return node
        raise BadSchema(f"{_at(column)} is of the unknown type {name!r:.100}")

    def define(self, kind: str, schema: dict[str, Any], namespace: str, column: str, depth: int) -> Node:
        name, space = schema.get("name"), schema.get("namespace", namespace)
        if not isinstance(name, str) or not name or not (space is None or isinstance(space, str)):
            raise BadSchema(f"{_at(column)} is of a type {kind} without a name")
        if "." in name:
            space, _, name = name.rpartition(".")
        full = f"{space}.{name}" if space else name
        self.named[full] = None
        if kind == "enum":
            node: Node = Enum(tuple(str(symbol) for symbol in schema["symbols"]))
        elif kind == "fixed":
            node = _fixed(schema, column)
        else:
            node = self.record(schema, space or "", column, depth)
        self.named[full] = node
        return node

    def record(self, schema: dict[str, Any], namespace: str, column: str, depth: int) -> Record:
        entries = schema.get("fields")
        if not isinstance(entries, list) or not all(
            isinstance(entry, dict) and isinstance(entry.get("name"), str) for entry in entries
        ):
            raise BadSchema(f"{_at(column)} is a record without fields, or with one without a name")
        if not entries and column:
            raise UnsupportedTable(f"{_at(column)} has no fields; Parquet has no such type")
        before = f"{column}." if column else ""
        fields = tuple(
            (entry["name"], self.node(entry.get("type"), namespace, before + entry["name"], depth)) for entry in entries
        )
        if len({name for name, _ in fields}) < len(fields):
            raise BadSchema(f"{_at(column)} has two fields of one name")
        record = Record(fields, entries)
        if record.leaves > _MOST_LEAVES:
            raise UnsupportedTable(f"{_at(column)} has more than {_MOST_LEAVES} columns")
        return record


def _fixed(schema: dict[str, Any], column: str) -> Node:
    size, logical = schema.get("size"), schema.get("logicalType")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 2**31:
        raise BadSchema(f"{_at(column)} is of a fixed type of size {size!r}")
    if logical == "duration":
        raise UnsupportedTable(f"{_at(column)} is an Avro duration, which is no column type")
    if logical == "decimal":
        return FixedDecimal(_decimal(schema, column), size)
    if logical != "vector":
        return FixedWidth(pa.binary(size), size)
    word, backing, dimension = (schema.get(key) for key in ("elementType", "storageBacking", "dimension"))
    item = _VECTORS.get(str(word))
    if item is None or backing != "FIXED_BYTES":
        raise UnsupportedTable(f"{_at(column)} is a VECTOR of {word} in {backing}, which is not known here")
    if not isinstance(dimension, int) or size != dimension * item.bit_width // 8:
        raise BadSchema(f"{_at(column)} is a VECTOR of {dimension!r} numbers in {size} bytes")
    return Vector(item, size)


def _decimal(schema: dict[str, Any], column: str) -> pa.DataType:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision < 1:
        raise BadSchema(f"{_at(column)} is a decimal of precision {precision!r} and scale {scale!r}")
    if precision > 38:
        raise UnsupportedTable(f"{_at(column)} has {precision} digits; Spark's decimals have 38")
    return pa.decimal128(precision, scale)


def _word(schema: Any) -> str:
    """A type in a message: its name or its kind."""
    if isinstance(schema, dict):
        schema = schema.get("name") or schema.get("logicalType") or schema.get("type")
    return schema if isinstance(schema, str) else "a nested type"


def _at(column: str) -> str:
    return f"column {column}" if column else "the table's record"
