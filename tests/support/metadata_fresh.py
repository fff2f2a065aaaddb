"""A metadata table that was kept, beside one that is built of the same table's files: an oracle that no write has
touched."""

import warnings
from typing import Any

import pyarrow.compute as pc

from hoodie.config.metadata import MetadataOptions
from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.errors import MetadataTableIgnored
from hoodie.metadata.keys import ALL_PARTITIONS, MetadataPartition
from hoodie.metadata.merging import united
from hoodie.metadata.read import read_records
from hoodie.metadata.records import file_ids
from hoodie.metadata.validate import validate_metadata
from hoodie.model.instant import State
from hoodie.reading.row_keys import read_keys
from hoodie.reading.snapshot import read_scan
from hoodie.services.metadata_table import create_metadata_table, drop_metadata_table
from hoodie.storage.protocol import Storage, join
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.metadata_tables import metadata_of
from support.scans import plan_scan

Told = dict[str, list[Any]]
_ONE_GROUP = {
    "hoodie.metadata.index.column.stats.file.group.count": "1",
    "hoodie.metadata.index.bloom.filter.file.group.count": "1",
}
#: A metadata table of all partitions, whose own services run as often as they can.
KEPT = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.compact.max.delta.commits": "2",
    **_ONE_GROUP,
}
_OFF = ReadSettings(metadata=MetadataOptions(enable=False))


def check_kept(storage: Storage) -> bool:
    """A table's metadata table tells what a build would, and reads that use it have the rows of reads that do not.

    returns  False: the table has none
    """
    state = load_state(storage)
    if not state.config.metadata_partitions:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableIgnored)
        if state.timeline.commits:
            by_metadata = plan_scan(state)
            assert by_metadata.listed
            rows, expected = (read_scan(scan).to_pylist() for scan in (by_metadata, plan_scan(state, settings=_OFF)))
            assert repr(rows) == repr(expected)  # as texts: NaN is equal to none
    validated = validate_metadata(storage, state.config, state.timeline, read_keys=read_keys)
    assert validated.problems == ()
    if all(instant.state is State.COMPLETED for instant in state.timeline.instants):  # else none is built
        kept, fresh = told(storage), told_afresh(storage)
        check_covers(kept.pop(MetadataPartition.PARTITION_STATS, []), fresh.get(MetadataPartition.PARTITION_STATS, []))
        for partition in kept:
            assert kept[partition] == fresh[partition], partition
    return True


def check_covers(kept: list[Any], fresh: list[Any]) -> None:
    """Statistics of partitions may be wider than a build has them, since files that are replaced count once more."""
    by_row = {record["row"]: record for record in kept}
    for record in fresh if kept else []:
        old = by_row[record["row"]]
        both = united(record, old)
        assert (both["min"], both["max"]) == (old["min"], old["max"]), record
        assert record["nulls"] <= old["nulls"], record


def told(storage: Storage) -> Told:
    """All that a metadata table says, by partition, but for what a build cannot know: when a key was inserted, and
    statistics of logs, which only the commits that wrote them have made; and for folders without files, which a
    rollback leaves on the storage and not in the lists."""
    table = metadata_of(load_state(storage))
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
        rows = records.drop_columns(
            [name for name in ("deleted", "instant") if name in records.column_names]
        ).to_pylist()
        if partition is MetadataPartition.FILES:
            filled = {row["row"] for row in rows}
            rows = [row for row in rows if row["row"] != ALL_PARTITIONS or row["name"] in filled]
        parts[partition] = sorted(rows, key=repr)
    return parts


def told_afresh(storage: Storage) -> Told:
    """The same of a copy of the table whose metadata table is dropped and built."""
    files = [join(folder, entry.name) for folder, entries in storage.list_tree().items() for entry in entries]
    other = MemoryStorage({path: storage.read(path) for path in files})
    partitions = load_state(other).config.metadata_partitions
    drop_metadata_table(other, Settings.of({}))
    fewest = Options({**_ONE_GROUP, "hoodie.metadata.record.index.min.filegroup.count": "1"})
    create_metadata_table(other, Settings.read(fewest), partitions)
    return told(other)
