"""The index definitions of a table from version 8 on, `.hoodie/.index_defs/index.json`: what its metadata table has
statistics of, and in which form.

Source: docs/format/table-versions-8-9.md 11; pinned by the tables of Hudi 1.x in tests/fixtures.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile
from hoodie.metadata.keys import MetadataPartition
from hoodie.storage.protocol import Storage, rewrite

#: The setting of a table that names the file.
PATH = "hoodie.table.index.defs.path"
DEFAULT_PATH = ".hoodie/.index_defs/index.json"
#: The version of definitions whose statistics say the types of their values.
TYPED = "V2"
#: The beginning of the names of expression indexes.
EXPRESSION = "expr_index_"
#: Partitions that are what they are without a definition.
UNDEFINED = frozenset({str(MetadataPartition.FILES), str(MetadataPartition.BLOOM_FILTERS)})


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """One definition.

    name      the partition of the metadata table
    kind      such as "column_stats"
    function  of the values; "" for none
    fields    the columns that it is about
    options   its own
    version   of its form; "" up to table version 8
    """

    name: str
    kind: str
    function: str = ""
    fields: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    version: str = ""


def read_definitions(storage: Storage, config: TableConfig) -> dict[str, IndexDefinition]:
    """The definitions of a table, by partition; none where the table never had a file of them. Raises CorruptFile"""
    path = config.properties.get(PATH, DEFAULT_PATH)
    try:
        content = storage.read(path)
    except FileNotFoundError as error:
        if PATH in config.properties:
            raise CorruptFile(f"{storage.root}/{path}", f"missing, though {PATH} names it") from error
        return {}
    try:
        stored = json.loads(content)["indexDefinitions"]
        return {name: _definition(name, entry) for name, entry in stored.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptFile(f"{storage.root}/{path}", f"no index definitions: {error}") from error


def write_definitions(storage: Storage, config: TableConfig, definitions: Mapping[str, IndexDefinition]) -> None:
    """Replace the definitions of a table."""
    stored = {name: _as_stored(definition) for name, definition in definitions.items()}
    content = json.dumps({"indexDefinitions": stored}, indent=2, separators=(",", " : "))
    rewrite(storage, config.properties.get(PATH, DEFAULT_PATH), content.encode())


def undefine_expressions(storage: Storage, config: TableConfig, partitions: Collection[str]) -> None:
    """Remove the definitions of expression indexes that are not among the partitions of a metadata table: Hudi's
    queries read by what is defined, and fail where there is nothing. (It makes secondary indexes again by theirs.)
    Definitions that are damaged are all removed."""
    try:
        defined = read_definitions(storage, config)
    except CorruptFile:
        write_definitions(storage, config, {})
        return
    rest = {name: d for name, d in defined.items() if name in partitions or not name.startswith(EXPRESSION)}
    if len(rest) < len(defined):
        write_definitions(storage, config, rest)


def _definition(name: str, entry: Mapping[str, Any]) -> IndexDefinition:
    return IndexDefinition(
        name=name,
        kind=str(entry.get("indexType") or ""),
        function=str(entry.get("indexFunction") or ""),
        fields=tuple(map(str, entry.get("sourceFields") or ())),
        options={str(key): str(value) for key, value in (entry.get("indexOptions") or {}).items()},
        version=str(entry.get("version") or ""),
    )


def _as_stored(definition: IndexDefinition) -> dict[str, Any]:
    stored: dict[str, Any] = {
        "indexName": definition.name,
        "indexType": definition.kind,
        "indexFunction": definition.function,
        "sourceFields": list(definition.fields),
        "indexOptions": dict(definition.options),
    }
    return {**stored, "version": definition.version} if definition.version else stored
