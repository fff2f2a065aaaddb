"""Which columns have statistics in a table with index definitions, and what a write with other columns makes of that.

Hudi takes a file that has statistics, but none of one column that the definition names, for one without values in it,
and leaves the file out. So each file that is written has statistics of all, and a column that comes later is named with
the first file that has it.

Source: docs/format/table-versions-8-9.md 11.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from hoodie.config.metadata import COLUMN_LIST
from hoodie.config.table import TableConfig
from hoodie.errors import UnsupportedTable
from hoodie.formats.avro.schema import user_columns
from hoodie.metadata.definitions import IndexDefinition, read_definitions, write_definitions
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.kind import Building, Change
from hoodie.metadata.partitions.value_types import is_not_written, type_in_rows
from hoodie.model.meta import META_COLUMNS
from hoodie.schema.schema import without_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, declared_schema

#: Those of Hudi's columns that have statistics.
_OWN = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
#: Columns that Hudi's default takes, beside its own.
MOST_COLUMNS = 32


def definition_of(storage: Storage, config: TableConfig) -> IndexDefinition | None:
    """The definition of a table's column statistics; None: it has none."""
    return read_definitions(storage, config).get(MetadataPartition.COLUMN_STATS)


def with_statistics(schema: pa.Schema) -> list[str]:
    """The columns whose types have statistics, in their order."""
    return [name for name in schema.names if type_in_rows(schema.field(name).type) is not None]


def first_columns(building: Building) -> tuple[str, ...]:
    """The columns of which a table gets statistics: those of the option, else the first ones that can have some.

    Raises UnsupportedTable where one of the option's cannot
    """
    definition = definition_of(building.storage, building.config)
    if definition is not None and MetadataPartition.COLUMN_STATS in building.config.metadata_partitions:
        return definition.fields
    own = _OWN if building.config.meta_fields else ()
    schema = declared_schema(TableState(building.storage, building.config, building.timeline))
    if schema is None:  # the first commit says which there are
        return own
    return (*own, *_indexed(without_meta_fields(schema), building.options.column_list))


def _indexed(schema: pa.Schema, listed: str) -> list[str]:
    """The columns of a list, by commas, that have statistics; without a list the first ones."""
    able = with_statistics(schema)
    named = [name.strip() for name in listed.split(",") if name.strip()]
    if unfit := [name for name in named if name not in able and name not in META_COLUMNS]:
        raise UnsupportedTable(f"the column {unfit[0]} has no statistics in tables of this version")
    if unknown := [name for name in schema.names if not named and is_not_written(schema.field(name).type)]:
        raise UnsupportedTable(f"statistics of the column {unknown[0]} are not written here")
    return [name for name in named if name not in META_COLUMNS] or able[:MOST_COLUMNS]


def kept_columns(change: Change) -> tuple[str, ...]:
    """The columns of which an action on a table writes statistics. New ones of the table are defined first, if the
    statistics are of all columns.

    Raises UnsupportedTable where the columns of the table are others than those that the statistics are of
    """
    definition = definition_of(change.storage, change.config)
    if definition is None:
        raise UnsupportedTable("the table has no definition of its column statistics")
    if change.commit is None or not change.commit.schema:
        return definition.fields
    new = user_columns(change.commit.schema, f"the schema of {change.instant}")
    old = declared_schema(TableState(change.storage, change.config, change.timeline))
    own = [name for name in definition.fields if name not in META_COLUMNS]
    if lost := [name for name in own if name not in new.names]:
        raise UnsupportedTable(f"the table no longer has the column {lost[0]}, or gave it another name")
    if old is None:
        return _defined(change, definition, [] if own else _indexed(new, change.config.properties.get(COLUMN_LIST, "")))
    old = without_meta_fields(old)
    for name in own:
        if name in old.names and type_in_rows(old.field(name).type) != type_in_rows(new.field(name).type):
            raise UnsupportedTable(f"the column {name} has another type now")
    if not set(with_statistics(old)) <= set(own):
        return definition.fields
    unknown = [name for name in new.names if name not in old.names and is_not_written(new.field(name).type)]
    if unknown:
        raise UnsupportedTable(f"statistics of the new column {unknown[0]} are not written here")
    added = [name for name in with_statistics(new) if name not in old.names and name not in own]
    return _defined(change, definition, added[: max(0, MOST_COLUMNS - len(own))])


def _defined(change: Change, definition: IndexDefinition, added: Sequence[str]) -> tuple[str, ...]:
    """The columns of a definition, with others that it gets."""
    if not added:
        return definition.fields
    fields = (*definition.fields, *added)
    stored = read_definitions(change.storage, change.config)
    stored[definition.name] = replace(definition, fields=fields)
    write_definitions(change.storage, change.config, stored)
    return fields
