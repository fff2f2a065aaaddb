"""Blocks of change data: the three schemas that they have, and changes as their rows.

Source: docs/format/cdc.md 1 and 2 (HoodieCDCUtils).
"""

import json
from typing import Any

import pyarrow as pa

from hoodie.config.table import LoggedImages
from hoodie.formats.avro.rows import encode_rows
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock
from hoodie.model.meta import META_COLUMNS

#: Columns of a block. The key is there where an image is not.
OP, TS, KEY, BEFORE, AFTER = "op", "ts_ms", "record_key", "before", "after"
COLUMNS = {
    LoggedImages.OP_KEY_ONLY: (OP, KEY),
    LoggedImages.DATA_BEFORE: (OP, KEY, BEFORE),
    LoggedImages.DATA_BEFORE_AFTER: (OP, TS, BEFORE, AFTER),
}


def cdc_schema(avro_schema: str, logged: LoggedImages) -> str:
    """The schema of a block, as Hudi writes it.

    avro_schema  of the table's rows, as Avro JSON; the meta columns are left out
    """
    if logged is LoggedImages.OP_KEY_ONLY:
        fields = [{"name": name, "type": ["string", "null"]} for name in COLUMNS[logged]]
        return _text({"type": "record", "name": "Record", "fields": fields})
    table = json.loads(avro_schema)
    row = {
        "type": "record",
        "name": table["name"],
        "fields": [field for field in table["fields"] if field["name"] not in META_COLUMNS],
    }
    types: dict[str, Any] = {BEFORE: row, AFTER: table["name"]}  # the second by its name
    nullable: list[dict[str, Any]] = [
        {"name": name, "type": ["null", types.get(name, "string")], "doc": "", "default": None}
        for name in COLUMNS[logged]
    ]
    return _text({"type": "record", "name": "CDC", "namespace": table["namespace"], "fields": nullable})


def cdc_block(instant: str, schema_json: str, changes: pa.Table) -> LogBlock:
    """A block of changes, in columns of the schema."""
    header = BlockMap(((HeaderKey.INSTANT_TIME, instant), (HeaderKey.SCHEMA, schema_json)))
    return LogBlock(BlockKind.CDC_DATA, header, encode_rows(changes, schema_json))


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
