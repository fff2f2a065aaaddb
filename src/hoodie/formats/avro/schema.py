"""Table schemas as Avro JSON, in the shape Hudi gives them, and back.

Source: docs/format/base-files-and-bloom.md 3, docs/format/commit-metadata.md (`extraMetadata.schema`);
pinned by the schemas of real tables in tests/fixtures/avro_schemas.json.
"""

import dataclasses
import json
import re
from functools import lru_cache
from typing import Any

import pyarrow as pa

from hoodie.errors import CorruptFile, SchemaMismatch, UnsupportedTable
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.schema import AVRO_DEFAULT, AVRO_LOGICAL, COMMENT, GROWN, LOCAL_MICROS, VECTOR
from hoodie.schema.types import (
    TIMESTAMP,
    TIMESTAMP_MILLIS,
    TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_MILLIS,
    is_list,
    list_of,
    map_of,
    spark_name,
)

#: Attribute of a `long` that holds a timestamp without zone. Avro readers skip attributes they do not know;
#: `local-timestamp-micros`, the logical type made for it, makes hudi-rs 0.5 panic.
TYPE_ATTRIBUTE = "hoodie.type"

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_TO_PRIMITIVE = {kind: name for name, kind in _PRIMITIVES.items()} | {
    pa.int8(): "int",
    pa.int16(): "int",
    pa.large_string(): "string",
    pa.large_binary(): "bytes",
}
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
_DEFAULTS: dict[pa.DataType, tuple[type, ...]] = {
    pa.bool_(): (bool,),
    pa.int32(): (int,),
    pa.int64(): (int,),
    pa.float32(): (int, float),
    pa.float64(): (int, float),
    pa.string(): (str,),
}
_MAX_DEPTH = 64


def record_names(table_name: str) -> tuple[str, str]:
    """Name and namespace of a table's Avro record: (`<t>_record`, `hoodie.<t>`), `<t>` with `__` for other letters."""
    head = re.sub(r"[^A-Za-z_]", "__", table_name[:1])
    clean = head + re.sub(r"[^A-Za-z0-9_]", "__", table_name[1:])
    return f"{clean}_record", f"hoodie.{clean}"


def decimal_size(precision: int) -> int:
    """The fewest bytes whose two's complement holds every decimal of that many digits."""
    return int(10**precision - 1).bit_length() // 8 + 1


def to_avro(schema: pa.Schema, table_name: str) -> str:
    """The schema as Avro JSON, nullable columns as `["null", T]` with default null.

    Every record and fixed type has a name of its own and stands where it is used, as Spark writes it.
    Raises  SchemaMismatch, naming the column, on a type that has no form in a table
    """
    name, namespace = record_names(table_name)
    return json.dumps(_record(list(schema), name, namespace, ""), separators=(",", ":"), ensure_ascii=False)


def from_avro(text: str, path: str) -> pa.Schema:
    """The columns of an Avro record schema, in its order.

    path    of the file that the text came from, for messages
    Raises  CorruptFile on what is no Avro record schema; UnsupportedTable on a type that has no column form, such as a
            union of several types or a record within itself
    """
    return _columns(_Text(text, path))


@dataclasses.dataclass(frozen=True, slots=True)
class _Text:
    text: str
    path: str = dataclasses.field(compare=False)  # every commit repeats the text


@lru_cache(maxsize=64)
def _columns(schema: _Text) -> pa.Schema:
    try:
        parsed = json.loads(schema.text)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(schema.path, f"its Avro schema is no JSON: {error}") from error
    kind, _ = _Reader(schema.path).type(parsed, "", "", ())
    if not pa.types.is_struct(kind):
        raise CorruptFile(schema.path, "its Avro schema is not of a record")
    return pa.schema(list(kind))


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


def _word(node: Any) -> str:
    """A schema node in a message: its name or its kind."""
    if isinstance(node, dict):
        node = node.get("name") or node.get("logicalType") or node.get("type")
    return node if isinstance(node, str) else "a nested type"


def _marks(node: Any, kind: pa.DataType) -> dict[bytes, bytes] | None:
    """Metadata of a field: which of two Avro forms a timestamp without zone has."""
    if kind != TIMESTAMP_NTZ:
        return None
    while isinstance(node, list) or (isinstance(node, dict) and not isinstance(node.get("type"), str)):
        node = next((part for part in node if part != "null"), None) if isinstance(node, list) else node.get("type")
    return {AVRO_LOGICAL: LOCAL_MICROS} if isinstance(node, dict) and TYPE_ATTRIBUTE not in node else None


class _Reader:
    """One walk over one Avro schema; keeps the named types it has met."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.named: dict[str, pa.DataType | None] = {}  # None: its definition is still open
        self.vectors: list[pa.DataType] = []  # other columns refer to them by name

    def type(self, node: Any, column: str, namespace: str, open_: tuple[str, ...]) -> tuple[pa.DataType, bool]:
        """(type, nullable) of a schema node. open_: the columns around this one, to bound the depth"""
        if len(open_) > _MAX_DEPTH:
            raise UnsupportedTable(f"{self.path}: {self._at(column)} is nested more than {_MAX_DEPTH} deep")
        inside = (*open_, column)
        if isinstance(node, list):
            return self._union(node, column, namespace, inside)
        if isinstance(node, str):
            return self._reference(node, column, namespace), False
        if not isinstance(node, dict) or "type" not in node:
            raise self._corrupt(column, "no Avro type")
        word = node["type"]
        if not isinstance(word, str):
            return self.type(word, column, namespace, inside)
        if word in ("record", "error", "enum", "fixed"):
            return self._definition(word, node, column, namespace, inside), False
        if word == "array":
            item, nullable = self.type(node.get("items"), f"{column}.element", namespace, inside)
            return list_of(pa.field("element", item, nullable, _marks(node.get("items"), item))), False
        if word == "map":
            value, nullable = self.type(node.get("values"), f"{column}.value", namespace, inside)
            return map_of(pa.field("value", value, nullable, _marks(node.get("values"), value))), False
        return self._logical(word, node, column, namespace), False

    def _union(
        self, branches: list[Any], column: str, namespace: str, inside: tuple[str, ...]
    ) -> tuple[pa.DataType, bool]:
        others = [branch for branch in branches if branch not in ("null", {"type": "null"})]
        if len(others) == 1 and not isinstance(others[0], list) and len(branches) <= 2:
            kind, _ = self.type(others[0], column, namespace, inside)
            return kind, len(branches) == 2
        words = ", ".join(_word(branch) for branch in branches)
        raise UnsupportedTable(
            f"{self.path}: {self._at(column)} is an Avro union of {words:.200}; a column has one type, null aside"
        )

    def _reference(self, name: str, column: str, namespace: str) -> pa.DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        if name == "null":
            raise UnsupportedTable(f"{self.path}: {self._at(column)} is of Avro type null, which is no column type")
        for full in (f"{namespace}.{name}", name) if namespace and "." not in name else (name,):
            if full in self.named:
                kind = self.named[full]
                if kind is None:
                    raise UnsupportedTable(f"{self.path}: {self._at(column)} holds its own record type {full}")
                return kind
        raise self._corrupt(column, f"the unknown Avro type {name!r:.100}")

    def _definition(
        self, word: str, node: dict[str, Any], column: str, namespace: str, inside: tuple[str, ...]
    ) -> pa.DataType:
        name, space = node.get("name"), node.get("namespace", namespace)
        if not isinstance(name, str) or not name or not (space is None or isinstance(space, str)):
            raise self._corrupt(column, f"an Avro {word} without a name")
        if "." in name:
            space, _, name = name.rpartition(".")
        full = f"{space}.{name}" if space else name
        if word == "enum":
            self.named[full] = kind = pa.string()
        elif word == "fixed":
            self.named[full] = kind = self._fixed(node, column)
        else:
            self.named[full] = None
            self.named[full] = kind = self._fields(node, column, space or "", inside)
        return kind

    def _fields(self, node: dict[str, Any], column: str, space: str, inside: tuple[str, ...]) -> pa.DataType:
        entries = node.get("fields")
        if not isinstance(entries, list):
            raise self._corrupt(column, "an Avro record without fields")
        fields = []
        for entry in entries:
            if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
                raise self._corrupt(column, "an Avro field without a name")
            name = entry["name"]
            kind, nullable = self.type(entry.get("type"), f"{column}.{name}" if column else name, space, inside)
            # Rows of files from before the column carry its default, which is not always null.
            default_json = (
                json.dumps(entry.get("default")) if type(entry.get("default")) in _DEFAULTS.get(kind, ()) else None
            )
            marks = {AVRO_DEFAULT: default_json.encode()} if default_json else _marks(entry.get("type"), kind)
            if any(kind is vector for vector in self.vectors):
                marks = {AVRO_LOGICAL: VECTOR}
            if entry.get(GROWN.decode()) is True:
                marks = {**(marks or {}), GROWN: b"true"}
            if isinstance(comment := entry.get("doc"), str) and comment:
                marks = {**(marks or {}), COMMENT: comment.encode()}
            fields.append(pa.field(name, kind, nullable, metadata=marks))
        if len({field.name for field in fields}) < len(fields):
            raise self._corrupt(column, "an Avro record with two fields of one name")
        return pa.struct(fields)

    def _fixed(self, node: dict[str, Any], column: str) -> pa.DataType:
        size = node.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 2**31:
            raise self._corrupt(column, "an Avro fixed type without a size")
        if node.get("logicalType") == "duration":
            raise UnsupportedTable(f"{self.path}: {self._at(column)} is an Avro duration, which is no column type")
        if node.get("logicalType") == "vector":
            return self._vector(node, size, column)
        return self._decimal(node, column) or pa.binary(size)

    def _vector(self, node: dict[str, Any], size: int, column: str) -> pa.DataType:
        """The list that a VECTOR of Hudi 1.2 is; files have its numbers as bytes, which `conform` decodes."""
        word, dimension = node.get("elementType"), node.get("dimension")
        item = _VECTORS.get(str(word))
        if item is None or node.get("storageBacking") != "FIXED_BYTES":
            words = f"a VECTOR of {word} in {node.get('storageBacking')}, which is not known here"
            raise UnsupportedTable(f"{self.path}: {self._at(column)} is {words}")
        if not isinstance(dimension, int) or size != dimension * item.bit_width // 8:
            raise self._corrupt(column, f"a VECTOR of {dimension!r} numbers in {size} bytes")
        self.vectors.append(list_of(pa.field("element", item, nullable=False)))
        return self.vectors[-1]

    def _logical(self, word: str, node: dict[str, Any], column: str, namespace: str) -> pa.DataType:
        logical = node.get("logicalType")
        if word == "bytes":
            return self._decimal(node, column) or pa.binary()
        if word == "long" and node.get(TYPE_ATTRIBUTE) == "timestamp_ntz":
            return TIMESTAMP_NTZ
        if word == "long" and isinstance(logical, str) and logical.endswith("-nanos"):
            raise UnsupportedTable(f"{self.path}: {self._at(column)} is in nanoseconds, which no Spark type holds")
        if isinstance(logical, str) and (word, logical) in LOGICAL:
            return LOGICAL[word, logical]
        return self._reference(word, column, namespace)

    def _decimal(self, node: dict[str, Any], column: str) -> pa.DataType | None:
        if node.get("logicalType") != "decimal":
            return None
        precision, scale = node.get("precision"), node.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision or precision < 1:
            raise self._corrupt(column, "an Avro decimal whose precision and scale do not go together")
        if precision > 38:
            raise UnsupportedTable(f"{self.path}: {self._at(column)} has {precision} digits; Spark's decimals have 38")
        return pa.decimal128(precision, scale)

    def _corrupt(self, column: str, problem: str) -> CorruptFile:
        return CorruptFile(self.path, f"in its Avro schema {self._at(column)} is {problem}")

    @staticmethod
    def _at(column: str) -> str:
        return f"column {column}" if column else "the table's record"
