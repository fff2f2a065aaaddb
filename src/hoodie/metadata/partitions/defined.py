"""The index definitions that come with partitions of the metadata table, in versions of the table that have them."""

from __future__ import annotations

from collections.abc import Collection

from hoodie.metadata.definitions import DEFAULT_PATH, PATH, TYPED, IndexDefinition, read_definitions, write_definitions
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.partitions.indexed_columns import first_columns
from hoodie.metadata.partitions.kind import Building
from hoodie.model.table_version import VERSIONS


def define(building: Building, names: Collection[str]) -> dict[str, str]:
    """Define the partitions that have been built; settings of the table that say where the definitions are.

    names  of the partitions
    """
    if not VERSIONS[building.config.version].types_statistics:
        return {}
    new = {}
    if MetadataPartition.COLUMN_STATS in names:
        name = str(MetadataPartition.COLUMN_STATS)
        new[name] = IndexDefinition(name, name, name, first_columns(building), version=TYPED)
    if MetadataPartition.RECORD_INDEX in names:
        name = str(MetadataPartition.RECORD_INDEX)
        new[name] = IndexDefinition(name, name, options={"isPartitioned": "false"}, version="V1")
    if not new:
        return {}
    write_definitions(building.storage, building.config, {**read_definitions(building.storage, building.config), **new})
    return {PATH: building.config.properties.get(PATH, DEFAULT_PATH)}
