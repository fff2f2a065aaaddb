"""Removing the metadata table, or partitions of it: settings first, for readers must not be sent where nothing is.

What a write does not keep is removed before it, with a warning: a partition that says nothing of a write hides its rows
from Hudi, or gives it statistics that are no longer true.

The caller holds the table's lock, where there is one. Source: docs/format/metadata-table.md 8.4.
"""

import warnings
from collections.abc import Collection
from dataclasses import replace

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, MetadataTableDropped, clause
from hoodie.metadata.definitions import EXPRESSION, TYPED, UNDEFINED, read_definitions, undefine_expressions
from hoodie.metadata.keys import FOLDER, MetadataPartition
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.model.table_version import VERSIONS
from hoodie.storage.protocol import Storage, join
from hoodie.table.properties import update_properties

PARTITIONS = "hoodie.table.metadata.partitions"
INFLIGHT = "hoodie.table.metadata.partitions.inflight"


def drop_metadata(storage: Storage) -> None:
    """Remove the metadata table, as Hudi does with `hoodie.metadata.enable=false`: readers list folders then."""
    update_properties(storage, {PARTITIONS: None, INFLIGHT: None})
    storage.delete_tree(FOLDER)


def drop_partitions(storage: Storage, config: TableConfig, names: Collection[str]) -> TableConfig:
    """Remove some of its partitions; the table's settings afterwards. Without the file lists all of it goes."""
    rest = tuple(name for name in config.metadata_partitions if name not in names)
    building = tuple(name for name in config.metadata_inflight if name not in names)
    if MetadataPartition.FILES not in rest:
        drop_metadata(storage)
        return replace(config, metadata_partitions=(), metadata_inflight=())
    undefine_expressions(storage, config, {*rest, *building})
    update_properties(storage, {PARTITIONS: ",".join(sorted(rest)), INFLIGHT: ",".join(sorted(building))})
    for name in names:
        storage.delete_tree(join(FOLDER, name))
    return replace(config, metadata_partitions=rest, metadata_inflight=building)


def drop_with_warning(storage: Storage, problem: str) -> None:
    """Remove a metadata table that cannot be kept right. Warns MetadataTableDropped"""
    drop_metadata(storage)
    warn_of_drop(storage, "the metadata table", problem)


def warn_of_drop(storage: Storage, what: str, problem: str) -> None:
    """Warn that something of the metadata table is gone."""
    warnings.warn(MetadataTableDropped(f"{storage.root.rstrip('/')}/{FOLDER}", what, problem), stacklevel=2)


def not_kept(storage: Storage, config: TableConfig) -> tuple[str, ...]:
    """The partitions of a table's metadata table that are not kept, those that were begun among them, sorted."""
    named = {*config.metadata_partitions, *config.metadata_inflight}
    whole = {str(kind.partition) for kind in kinds_of(config.metadata_partitions)} - {*config.metadata_inflight}
    if VERSIONS[config.version].defines_indexes:
        whole = set() if config.was_upgraded else whole - _of_another_form(storage, config, whole)
    return tuple(sorted(named - whole))


def _of_another_form(storage: Storage, config: TableConfig, names: Collection[str]) -> set[str]:
    """Partitions whose definitions say that their records are others than those that are written here, or are lost."""
    try:
        definitions = read_definitions(storage, config) if len(names) > 1 else {}
    except CorruptFile:
        return {*names} - UNDEFINED
    others = set()
    columns = definitions.get(MetadataPartition.COLUMN_STATS)
    if MetadataPartition.COLUMN_STATS not in names or columns is None or columns.version != TYPED:
        others |= {str(MetadataPartition.COLUMN_STATS), str(MetadataPartition.PARTITION_STATS)}
    keys = definitions.get(MetadataPartition.RECORD_INDEX)
    if keys is not None and keys.options.get("isPartitioned", "").lower() == "true":  # keys are found by partition
        others.add(str(MetadataPartition.RECORD_INDEX))
    return others & {*names}


def drop_others(storage: Storage, config: TableConfig, names: tuple[str, ...]) -> TableConfig:
    """Remove what `not_kept` names; the table's settings afterwards. Warns MetadataTableDropped"""
    problem = "such partitions are not kept here"
    try:
        read_definitions(storage, config)
    except CorruptFile as damage:
        problem = clause(damage)
    config = drop_partitions(storage, config, names)
    if str(MetadataPartition.FILES) in names and config.was_upgraded:
        problem = "the table was upgraded, and Hudi may have left log files of then out of the lists"
        warn_of_drop(storage, "the metadata table", problem)
        return config
    if any(name.startswith(EXPRESSION) for name in names):
        problem += ", and an expression index needs Hudi's CREATE INDEX again"
    warn_of_drop(storage, f"a part of the metadata table ({', '.join(names)})", problem)
    return config
