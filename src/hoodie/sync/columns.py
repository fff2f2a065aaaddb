"""The columns of a table as Hive and as Spark's data source properties have them. Pure rules.

Source: docs/format/engines.md 2 and 3.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from hoodie.errors import SyncRefused
from hoodie.schema.types import is_list, spark_name

#: Words of Spark's SQL that Hive has, too.
_SHARED = frozenset({"boolean", "int", "bigint", "float", "double", "string", "binary", "date"})
#: Hive's words that Spark has others for.
_IN_SPARK = {"int": "integer", "bigint": "long"}


def hive_type(kind: pa.DataType, *, timestamps: bool = False, where: str = "") -> str:
    """Hive's name of a column's type, in lower case.

    timestamps  an instant in time is `timestamp` instead of `bigint`
    where       the column, for the error
    Raises      SyncRefused on a type that Hive has no word for
    """
    if word := _word(kind, timestamps=timestamps):
        return word
    if is_list(kind):
        return f"array<{hive_type(kind.value_type, timestamps=timestamps, where=where)}>"
    if pa.types.is_map(kind):
        if kind.key_type not in (pa.string(), pa.large_string()):
            raise SyncRefused(where, f"a map with keys of {kind.key_type}, where Hive takes text alone")
        return f"map<string,{hive_type(kind.item_type, timestamps=timestamps, where=where)}>"
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        parts = (f"{_nested(f.name)}:{hive_type(f.type, timestamps=timestamps, where=where)}" for f in fields)
        return f"struct<{','.join(parts)}>"
    raise SyncRefused(where, f"the type {kind} has no counterpart in Hive")


def _word(kind: pa.DataType, *, timestamps: bool) -> str:
    """Hive's word for a type that is not nested; "": there is none."""
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return "int"
    if (name := spark_name(kind)) in _SHARED:
        return name
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if timestamps and kind.tz else "bigint"
    if pa.types.is_time32(kind):
        return "int"
    if pa.types.is_time64(kind):
        return "bigint"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    return ""


def _nested(name: str) -> str:
    """A field's name within a struct type, where Hive's parser takes neither."""
    return name.replace("-", "_").replace("$", "_dollar_")


def spark_type(kind: pa.DataType, where: str = "") -> Any:
    """The type in the JSON of Spark's schemas: a word, or an object for a nested one."""
    # Files and Avro schemas of Hudi have a plain long for a time without zone.
    if word := _word(kind, timestamps=True):
        return _IN_SPARK.get(word, word)
    if is_list(kind):
        value = kind.value_field
        return {"type": "array", "elementType": spark_type(value.type, where), "containsNull": value.nullable}
    if pa.types.is_map(kind):
        item = kind.item_field
        return {
            "type": "map",
            "keyType": spark_type(kind.key_type, where),
            "valueType": spark_type(item.type, where),
            "valueContainsNull": item.nullable,
        }
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_spark_field(kind.field(n), where) for n in range(kind.num_fields)]}
    raise SyncRefused(where, f"the type {kind} has no counterpart in Spark's schemas")


def _spark_field(field: pa.Field, where: str) -> dict[str, Any]:
    return {"name": field.name, "type": spark_type(field.type, where), "nullable": field.nullable, "metadata": {}}


def spark_schema(schema: pa.Schema, partition_fields: Sequence[str]) -> str:
    """Spark's JSON of a schema: partition columns last, in partition order; text where the schema lacks one."""
    data = [field for field in schema if field.name not in partition_fields]
    names = set(schema.names)
    last = [schema.field(name) if name in names else pa.field(name, pa.string()) for name in partition_fields]
    fields = [_spark_field(field, field.name) for field in [*data, *last]]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def spark_properties(schema: pa.Schema, partition_fields: Sequence[str], piece: int, version: str) -> dict[str, str]:
    """The table properties by which Spark takes an entry for a table of the data source `hudi`.

    piece    characters in one property
    version  of Spark; "": not said
    """
    text = spark_schema(schema, partition_fields)
    pieces = [text[start : start + piece] for start in range(0, len(text), piece)]
    properties = {"spark.sql.sources.provider": "hudi"}
    if version:
        properties["spark.sql.create.version"] = version
    properties["spark.sql.sources.schema.numParts"] = str(len(pieces))
    properties |= {f"spark.sql.sources.schema.part.{number}": part for number, part in enumerate(pieces)}
    if partition_fields:
        properties["spark.sql.sources.schema.numPartCols"] = str(len(partition_fields))
        names = {f"spark.sql.sources.schema.partCol.{number}": name for number, name in enumerate(partition_fields)}
        properties |= names
    return properties


def hive_columns(
    schema: pa.Schema, partition_fields: Sequence[str], *, timestamps: bool = False, omit_meta: bool = False
) -> tuple[dict[str, str], dict[str, str]]:
    """(columns, partition keys): name -> Hive's type, in order.

    schema   meta columns first, as reads have them
    Raises   SyncRefused on types that Hive lacks, and on names that Hive cannot tell apart or cannot hold
    """
    _check_names([*schema.names, *(name for name in partition_fields if name not in schema.names)])
    types = {field.name: hive_type(field.type, timestamps=timestamps, where=field.name) for field in schema}
    keys = {name: types.get(name, "string") for name in partition_fields}
    for name, kind in keys.items():
        if "<" in kind:
            raise SyncRefused(name, f"a partition column of type {kind}: Hive partitions by simple types alone")
    columns = {name: kind for name, kind in types.items() if name not in keys}
    if omit_meta:
        columns = {name: kind for name, kind in columns.items() if not name.startswith("_hoodie_")}
    return columns, keys


def _check_names(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.lower(), name)
        if first != name:
            raise SyncRefused(name, f"Hive folds names to lower case and cannot tell it from the column {first}")
        if bad := sorted({char for char in name if char in ",:;`" or char < " "}):
            raise SyncRefused(name, f"Hive's serde has no column names with {', '.join(map(repr, bad))}")


#: Changes of a column's type that Hive reads old files with.
_WIDER = {("int", "bigint"), ("float", "double")}


def changed_columns(old: Mapping[str, str], new: Mapping[str, str], where: str) -> bool:
    """Whether the metastore's columns are to be replaced: by name, whatever its case, in any order.

    old, new  name -> Hive's type
    where     the entry, for the error
    Raises    SyncRefused when a column changed to a type that Hive cannot read old files with
    """
    before = {name.lower(): kind.lower() for name, kind in old.items()}
    now = {name.lower(): kind.lower() for name, kind in new.items()}
    for name in before.keys() & now.keys():
        have, want = before[name], now[name]
        both_structs = have.startswith("struct<") and want.startswith("struct<")
        if have != want and (have, want) not in _WIDER and not both_structs:
            raise SyncRefused(
                f"{where}: column {name}",
                f"it is {have} in the metastore and {want} in the table, and Hive cannot read files of one as the "
                "other. Drop the entry in the metastore (its data stays, the table being external) and sync again",
            )
    return before != now
