"""The Avro schemas of the metadata table's records, character by character as Hudi writes them into its files: 0.15
that of table version 6, 1.0 that of 8, and 1.1 that of 9.

Source: docs/format/metadata-table.md 4.1; pinned by tests/vectors/mdt_schema.json and the tables in tests/fixtures.
"""

import json
from functools import cache
from typing import Any

from hoodie.model.table_version import TableVersion

_TEXT = {"type": "string", "avro.java.string": "String"}
_META_FIELDS = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
_UUID_NOTE = (
    "\nA UUID based fileId is stored as 3 pieces in RLI (fileIdHighBits, fileIdLowBits and fileIndex). \n"
    "FileID format is {UUID}-{fileIndex}."
)


def _field(name: str, kind: Any, doc: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "doc": doc}


def _optional(name: str, kind: Any, doc: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "doc": doc, "default": None}


def _wrapper(name: str, of: str, kind: Any) -> dict[str, Any]:
    doc = f"A record wrapping {of} type to be able to be used it w/in Avro's Union"
    return {"type": "record", "name": name, "doc": doc, "fields": [{"name": "value", "type": kind}]}


_WRAPPERS = [
    _wrapper("BooleanWrapper", "boolean", "boolean"),
    _wrapper("IntWrapper", "int", "int"),
    _wrapper("LongWrapper", "long", "long"),
    _wrapper("FloatWrapper", "float", "float"),
    _wrapper("DoubleWrapper", "double", "double"),
    _wrapper("BytesWrapper", "bytes", "bytes"),
    _wrapper("StringWrapper", "string", _TEXT),
    _wrapper("DateWrapper", "Date logical", "int"),
    _wrapper(
        "DecimalWrapper", "Decimal logical", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}
    ),
    _wrapper("TimeMicrosWrapper", "Time-micros logical", {"type": "long", "logicalType": "time-micros"}),
    _wrapper("TimestampMicrosWrapper", "Timestamp-micros logical", "long"),
]
_FILE_INFO = {
    "type": "record",
    "name": "HoodieMetadataFileInfo",
    "fields": [
        _field("size", "long", "Size of the file"),
        _field("isDeleted", "boolean", "True if this file has been deleted"),
    ],
}
_BLOOM_FILTER = {
    "type": "record",
    "name": "HoodieMetadataBloomFilter",
    "doc": "Data file bloom filter details",
    "fields": [
        _field("type", _TEXT, "Bloom filter type code"),
        _field("timestamp", _TEXT, "Instant timestamp when this metadata was created/updated"),
        _field("bloomFilter", "bytes", "Bloom filter binary byte array"),
        _field("isDeleted", "boolean", "Bloom filter entry valid/deleted flag"),
    ],
}
_COLUMN_STATS: dict[str, Any] = {
    "type": "record",
    "name": "HoodieMetadataColumnStats",
    "doc": "Data file column statistics",
    "fields": [
        _optional("fileName", _TEXT, "File name for which this column statistics applies"),
        _optional("columnName", _TEXT, "Column name for which this column statistics applies"),
        {
            "name": "minValue",
            "type": ["null", *_WRAPPERS],
            "doc": "Minimum value in the range. Based on user data table schema, we can convert this to appropriate "
            "type",
            "default": None,
        },
        {
            "name": "maxValue",
            "type": ["null", *(wrapper["name"] for wrapper in _WRAPPERS)],
            "doc": "Maximum value in the range. Based on user data table schema, we can convert it to appropriate type",
            "default": None,
        },
        _optional("valueCount", "long", "Total count of values"),
        _optional("nullCount", "long", "Total count of null values"),
        _optional("totalSize", "long", "Total storage size on disk"),
        _optional("totalUncompressedSize", "long", "Total uncompressed storage size on disk"),
        _field("isDeleted", "boolean", "Column range entry valid/deleted flag"),
    ],
}
_RECORD_INDEX: dict[str, Any] = {
    "type": "record",
    "name": "HoodieRecordIndexInfo",
    "fields": [
        _optional("partitionName", _TEXT, "Refers to the partition name the record belongs to"),
        _optional(
            "fileIdHighBits", "long", f"Refers to high 64 bits if the fileId is based on UUID format. {_UUID_NOTE}"
        ),
        _optional(
            "fileIdLowBits", "long", f"Refers to low 64 bits if the fileId is based on UUID format. {_UUID_NOTE}"
        ),
        _optional(
            "fileIndex",
            "int",
            "Index representing file index which is used to re-construct UUID based fileID. Applicable when the fileId "
            f"is based on UUID format. {_UUID_NOTE}",
        ),
        _optional(
            "fileId",
            _TEXT,
            "Represents fileId of the location where record belongs to. When the encoding is 1, fileID is stored in "
            "raw string format.",
        ),
        _optional(
            "instantTime", "long", "Epoch time in millisecond representing the commit time at which record was added"
        ),
        {
            "name": "fileIdEncoding",
            "type": "int",
            "doc": "Represents fileId encoding. Possible values are 0 and 1. O represents UUID based fileID, and 1 "
            "represents raw string format of the fileId. \nWhen the encoding is 0, reader can deduce fileID from "
            "fileIdLowBits, fileIdLowBits and fileIndex.",
            "default": 0,
        },
    ],
}
_FIELDS = [
    {"name": "key", "type": _TEXT},
    _field("type", "int", "Type of the metadata record"),
    _field(
        "filesystemMetadata",
        ["null", {"type": "map", "values": _FILE_INFO, "avro.java.string": "String"}],
        "Contains information about partitions and files within the dataset",
    ),
    _optional(
        "BloomFilterMetadata", _BLOOM_FILTER, "Metadata Index of bloom filters for all data files in the user table"
    ),
    _optional(
        "ColumnStatsMetadata", _COLUMN_STATS, "Metadata Index of column statistics for all data files in the user table"
    ),
    _optional(
        "recordIndexMetadata",
        _RECORD_INDEX,
        "Metadata Index that contains information about record keys and their location in the dataset",
    ),
]


def _schema(fields: list[dict[str, Any]]) -> str:
    record = {
        "type": "record",
        "name": "HoodieMetadataRecord",
        "namespace": "org.apache.hudi.avro.model",
        "doc": "A record saved within the Metadata Table",
        "fields": fields,
    }
    return json.dumps(record, separators=(",", ":"))


_STORED_META = [_optional(f"_hoodie_{name}", "string", "") for name in _META_FIELDS]
#: As it stands in commits of table version 6.
SCHEMA = _schema(_FIELDS)
#: As it stands in base files and log blocks of table version 6.
STORED_SCHEMA = _schema([*_STORED_META, *_FIELDS])


@cache
def record_schema_text(version: TableVersion) -> str:
    """As it stands in commits of a metadata table."""
    return _schema(_fields_of(version))


@cache
def stored_schema_of(version: TableVersion) -> str:
    """As it stands in the first files of a partition."""
    return _schema([*_STORED_META, *_fields_of(version)])


def _fields_of(version: TableVersion) -> list[dict[str, Any]]:
    if not version.defines_indexes:
        return _FIELDS
    wrappers = [*_WRAPPERS, _wrapper("LocalDateWrapper", "Local Date", "int")]
    names = [wrapper["name"] for wrapper in wrappers]
    if version.types_statistics:
        items = {"type": "array", "items": ["null", *names]}
        doc = "An array where each element is one of the supported wrapper types."
        several = {"type": "record", "name": "ArrayWrapper", "doc": "A record containing a list of wrapped values."}
        wrappers.append({**several, "fields": [_optional("wrappedValues", items, doc)]})
        names.append("ArrayWrapper")
    statistics = [dict(member) for member in _COLUMN_STATS["fields"]]
    statistics[2]["type"], statistics[3]["type"] = ["null", *wrappers], ["null", *names]
    tight = _field("isTightBound", "boolean", "Whether the min/max range of a column is tight bound or not")
    statistics.append({**tight, "default": False})
    if version.types_statistics:
        ordinal = _field("typeOrdinal", "int", "Enum type ordinal representing the value type")
        more = _optional("additionalInfo", _TEXT, "Optional additional information about the value type")
        kind = {"type": "record", "name": "HoodieValueTypeInfo", "fields": [ordinal, more]}
        doc = "Value type information containing enum ordinal and optional additional information"
        statistics.append(_optional("valueType", kind, doc))
    keys = [dict(member) for member in _RECORD_INDEX["fields"]]
    keys[-1]["doc"] = keys[-1]["doc"].replace("fileIdLowBits, fileIdLowBits", "fileIdLowBits, fileIdHighBits")
    doc = "Represents position of record within a file group for easier access. It will be used for index lookup."
    keys.append(_optional("position", "long", doc))
    deleted_flag = _field("isDeleted", "boolean", "True if this entry has been deleted")
    secondary = {"type": "record", "name": "HoodieSecondaryIndexInfo", "fields": [deleted_flag]}
    members = {
        "ColumnStatsMetadata": {**_COLUMN_STATS, "fields": statistics},
        "recordIndexMetadata": {**_RECORD_INDEX, "fields": keys},
    }
    fields = [
        {**member, "type": ["null", members[member["name"]]]} if member["name"] in members else member
        for member in _FIELDS
    ]
    doc = (
        "Metadata Index that contains information about secondary keys and the corresponding record keys in the dataset"
    )
    return [*fields, _optional("SecondaryIndexMetadata", secondary, doc)]
