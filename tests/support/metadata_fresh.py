"""A metadata table that was kept, beside one that is built of the same table's files: an oracle that no write has
touched."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from hoodie.config.options import Options
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.read import read_records
from hoodie.metadata.records import file_ids
from hoodie.metadata.table import open_metadata
from hoodie.services.metadata_table import create_metadata_table, drop_metadata_table
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage

Told = dict[str, list[Any]]


def told(storage: MemoryStorage) -> Told:
    """All that a metadata table says, by partition, but for what a build cannot know: when a key was inserted, and
    statistics of logs, which only the commits that wrote them have made."""
    state = load_state(storage)
    table = open_metadata(storage, state.config, state.timeline)
    assert table is not None
    assert not table.problem()
    parts: Told = {}
    for partition in sorted(table.ready):
        records = read_records(table, partition)
        if partition is MetadataPartition.RECORD_INDEX:
            columns = [records.column("row"), records.column("partition"), file_ids(records)]
            parts[partition] = sorted(zip(*(column.to_pylist() for column in columns), strict=True))
            continue
        if partition is MetadataPartition.COLUMN_STATS:
            records = records.filter(pc.invert(pc.starts_with(records.column("file"), ".")))
        rows = records.drop_columns([name for name in ("deleted", "instant") if name in records.column_names])
        parts[partition] = sorted(rows.to_pylist(), key=repr)
    return parts


def told_afresh(storage: MemoryStorage) -> Told:
    """The same of a copy of the table whose metadata table is dropped and built."""
    other = storage.copy()
    partitions = load_state(other).config.metadata_partitions
    drop_metadata_table(other, Options({}))
    create_metadata_table(other, Options({}), partitions)
    return told(other)
