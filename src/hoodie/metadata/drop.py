"""Removing the metadata table, or partitions of it: settings first, for readers must not be sent where nothing is.

The caller holds the table's lock, where there is one. Source: docs/format/metadata-table.md 8.4.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace

from hoodie.config.table import TableConfig
from hoodie.errors import MetadataTableDropped
from hoodie.metadata.keys import FOLDER, MetadataPartition
from hoodie.storage.protocol import Storage, join
from hoodie.table.properties import update_properties

PARTITIONS = "hoodie.table.metadata.partitions"
INFLIGHT = "hoodie.table.metadata.partitions.inflight"


def has_metadata_table(config: TableConfig) -> bool:
    """Whether there is a metadata table, or one that was begun."""
    return bool(config.metadata_partitions or config.metadata_inflight)


def drop(storage: Storage) -> None:
    """Remove the metadata table, as Hudi does with `hoodie.metadata.enable=false`: readers list folders then."""
    update_properties(storage, {PARTITIONS: None, INFLIGHT: None})
    storage.delete_tree(FOLDER)


def drop_partitions(storage: Storage, config: TableConfig, names: Collection[str]) -> TableConfig:
    """Remove some of its partitions; the table's settings afterwards. Without the file lists all of it goes."""
    rest = tuple(name for name in config.metadata_partitions if name not in names)
    building = tuple(name for name in config.metadata_inflight if name not in names)
    if MetadataPartition.FILES not in rest:
        drop(storage)
        return replace(config, metadata_partitions=(), metadata_inflight=())
    update_properties(storage, {PARTITIONS: ",".join(sorted(rest)), INFLIGHT: ",".join(sorted(building))})
    for name in names:
        storage.delete_tree(join(FOLDER, name))
    return replace(config, metadata_partitions=rest, metadata_inflight=building)


def drop_with_warning(storage: Storage, problem: str) -> None:
    """Remove a metadata table that cannot be kept right. Warns MetadataTableDropped"""
    drop(storage)
    tell_of_drop(storage, "the metadata table", problem)


def tell_of_drop(storage: Storage, what: str, problem: str) -> None:
    """Warn that something of the metadata table is gone."""
    warnings.warn(MetadataTableDropped(f"{storage.root.rstrip('/')}/{FOLDER}", what, problem), stacklevel=2)
