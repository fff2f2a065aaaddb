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
    may_be_null,
)
from hoodie.formats.avro.schema import LOGICAL, TYPE_ATTRIBUTE
from hoodie.schema.types import TIMESTAMP_NTZ

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

    unions  take unions of several types beside null, too, as structs (`unions.Union`); they can be read only
    Raises  BadSchema if it is none; UnsupportedTable if Arrow has no type for a part of it
    """
    try:
        node = _Compiler(unions).node(json.loads(schema_json), "")
    except json.JSONDecodeError as error:
        raise BadSchema(f"no JSON: {error}") from error
    except RecursionError as error:
        raise BadSchema("nested too deep") from error
    except (KeyError, TypeError) as error:
        raise BadSchema(f"a part is missing or of the wrong kind: {error}") from error
    if not isinstance(node, Record):
        raise BadSchema("the outermost type is no record")
    return node


class _Compiler:
    """Named types are known once they are complete: a type within itself has no columns."""

    def __init__(self, unions: bool) -> None:
        self.unions = unions
        self.named: dict[str, Node | None] = {}

    def node(self, schema: Any, namespace: str) -> Node:
        if isinstance(schema, list):
            return self.union(schema, namespace)
        if isinstance(schema, str):
            return self.reference(schema, namespace)
        if not isinstance(schema, dict):
            raise BadSchema(f"{schema!r} is no type")
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.node(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self.define(kind, schema, namespace)
        if kind == "array":
            item = self.node(schema["items"], namespace)
            return Items(pa.list_(pa.field("element", item.arrow, may_be_null(item))), item)
        if kind == "map":
            value = self.node(schema["values"], namespace)
            item_field = pa.field("value", value.arrow, may_be_null(value))
            pair = Record((("key", Bytes(pa.string())), ("value", value)))
            return Items(pa.map_(pa.string(), item_field), pair)
        logical = schema.get("logicalType")
        if kind == "bytes" and logical == "decimal":
            return BytesDecimal(_decimal(schema))
        if kind == "long" and schema.get(TYPE_ATTRIBUTE) == "timestamp_ntz":
            return Integer(TIMESTAMP_NTZ)
        if integer := LOGICAL.get((kind, str(logical))):
            return Integer(integer)
        return self.reference(kind, namespace)

    def union(self, branches: list[Any], namespace: str) -> Node:
        nulls = [index for index, branch in enumerate(branches) if branch in ("null", {"type": "null"})]
        if not branches or len(nulls) > 1:
            raise BadSchema("a union of no types, or of null twice")
        if len(branches) - len(nulls) != 1 and self.unions:
            return Union(tuple(self.branch(branch, namespace) for branch in branches))
        if len(branches) - len(nulls) != 1:
            raise UnsupportedTable(f"an Avro union of {json.dumps(branches)[:200]}: only one type and null are read")
        null = nulls[0] if nulls else None
        return Nullable(self.node(branches[1 if null == 0 else 0], namespace), null)

    def branch(self, schema: Any, namespace: str) -> tuple[str, Node] | None:
        if schema in ("null", {"type": "null"}):
            return None
        name = schema.get("name", schema["type"]) if isinstance(schema, dict) else schema
        return str(name).rpartition(".")[2], self.node(schema, namespace)

    def reference(self, name: str, namespace: str) -> Node:
        if name in _PLAIN:
            return _PLAIN[name]()
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full not in self.named:
            raise BadSchema(f"type {name!r} is not defined")
        node = self.named[full]
        if node is None:
            raise UnsupportedTable(f"Avro type {full!r} holds itself; such a column has no Arrow or Parquet type")
        return node

    def define(self, kind: str, schema: dict[str, Any], namespace: str) -> Node:
        name = str(schema["name"])
        inner = name.rpartition(".")[0] if "." in name else str(schema.get("namespace") or namespace)
        full = name if "." in name or not inner else f"{inner}.{name}"
        self.named[full] = None
        node = self.enum_or_fixed(kind, schema) if kind in ("enum", "fixed") else self.record(schema, inner)
        self.named[full] = node
        return node

    def enum_or_fixed(self, kind: str, schema: dict[str, Any]) -> Node:
        if kind == "enum":
            return Enum(tuple(str(symbol) for symbol in schema["symbols"]))
        size = schema["size"]
        if not isinstance(size, int) or not 0 < size < 2**31:
            raise BadSchema(f"a fixed type of size {size!r}")
        if schema.get("logicalType") == "decimal":
            return FixedDecimal(_decimal(schema), size)
        return FixedWidth(pa.binary(size), size)

    def record(self, schema: dict[str, Any], namespace: str) -> Record:
        fields = tuple((str(field["name"]), self.node(field["type"], namespace)) for field in schema["fields"])
        if not fields:
            raise UnsupportedTable(f"Avro record {schema['name']!r} has no fields; Parquet has no such type")
        if len({name for name, _ in fields}) < len(fields):
            raise BadSchema(f"record {schema['name']!r} has two fields of one name")
        record = Record(fields)
        if record.leaves > _MOST_LEAVES:
            raise UnsupportedTable(f"Avro record {schema['name']!r} has more than {_MOST_LEAVES} columns")
        return record


def _decimal(schema: dict[str, Any]) -> pa.DataType:
    precision, scale = schema["precision"], schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision < 1:
        raise BadSchema(f"a decimal of precision {precision!r} and scale {scale!r}")
    if precision > 38:
        raise UnsupportedTable(f"a decimal of precision {precision}: Spark holds at most 38")
    return pa.decimal128(precision, scale)
