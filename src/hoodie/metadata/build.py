"""Building the metadata table: the file lists, from a listing of the storage.

The caller holds the table's lock, where there is one. Source: docs/format/metadata-table.md 1.1, 1.2, 7.2 and 7.5;
pinned by tests/unit/metadata/test_metadata_build.py.
"""

from __future__ import annotations

import time

from hoodie.config.table import TableConfig
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock, encode_block
from hoodie.formats.log.delete_block import DELETES, encode_deletes
from hoodie.formats.timeline.commit_json import encode_commit
from hoodie.metadata.changes import FileChanges, of_listing
from hoodie.metadata.drop import PARTITIONS, drop
from hoodie.metadata.encode import base_file
from hoodie.metadata.keys import FOLDER, MetadataPartition
from hoodie.metadata.record_schema import SCHEMA
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, log_file_name
from hoodie.model.instant import Action, State
from hoodie.storage.protocol import Storage, join
from hoodie.storage.subfolder import SubfolderStorage
from hoodie.table.partition_metadata import ensure_partition
from hoodie.table.properties import create_properties, update_properties
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline
from hoodie.timeline.transition import complete, create_requested, to_inflight
from hoodie.view.load import data_files, list_folders, load_view

#: What a table's instant is called before its first commit.
_NOTHING = "0" * 14
_FIRST = 10
FILE_ID = "files-0000-0"
_TOKEN = "0-0-0"
_PROPERTIES = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.populate.meta.fields": "false",
    "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.archivelog.folder": "archived",
    "hoodie.datasource.write.drop.partition.columns": "false",
}


def why_not(timeline: Timeline) -> str:
    """Why the file lists of a table cannot be built now; "" when they can."""
    pending = [instant for instant in timeline.instants if instant.state is not State.COMPLETED]
    if pending:
        return f"{pending[0].action} {pending[0].requested} is pending: which files it leaves is not known yet"
    return ""


def build(storage: Storage, config: TableConfig, timeline: Timeline) -> bool:
    """Build the file lists of a table that has no metadata table, or one that was begun; whether they are there now.

    timeline  of the table, loaded just now, for which `why_not` has no reason
    returns   False when another writer began meanwhile, whose files may not be among those that were listed
    Raises    as `load_view`
    """
    drop(storage)
    inside, instant = SubfolderStorage(storage, FOLDER), _initial_time(timeline)
    changes = _all_files(storage, config, timeline)
    create_properties(inside, {"hoodie.table.name": f"{config.name}_metadata", **_PROPERTIES})
    _write_first(inside, instant, changes)
    if _began_meanwhile(storage, config, timeline):
        storage.delete_tree(FOLDER)
        return False
    update_properties(storage, {PARTITIONS: str(MetadataPartition.FILES)})
    if _began_meanwhile(storage, config, timeline):  # a writer that does not know of it would leave it behind
        drop(storage)
        return False
    return True


def _began_meanwhile(storage: Storage, config: TableConfig, timeline: Timeline) -> bool:
    return load_timeline(storage, config).instants != timeline.instants


def _all_files(storage: Storage, config: TableConfig, timeline: Timeline) -> FileChanges:
    """The files of a table, without those of writes that no instant stands for."""
    folders = list_folders(storage)
    view = load_view(storage, timeline, config, folders=folders)
    partitions = folders.with_unmarked(view.unmarked)
    visible = timeline.visible()
    files = [
        file
        for file in data_files(partitions)
        if visible.committed(file.instant if isinstance(file, BaseFile) else file.base_instant)
    ]
    return of_listing(partitions, files)


def _initial_time(timeline: Timeline) -> str:
    """The newest completed instant of the table with three digits more, as Hudi has it."""
    times = [instant.requested for instant in timeline.instants]
    return f"{max(times, default=_NOTHING)}{_FIRST:03}"


def _write_first(storage: Storage, instant: str, changes: FileChanges) -> None:
    """The first delta commit: a log file that marks the file group, and its base file."""
    started, folder = time.monotonic(), str(MetadataPartition.FILES)
    ensure_partition(storage, folder, instant)
    storage.create_new(join(folder, log_file_name(FILE_ID, instant, 1, _TOKEN)), _empty_log(instant))
    requested = create_requested(storage, instant, Action.DELTA_COMMIT)
    begun = to_inflight(storage, requested, just_requested=True)
    name, records = f"{FILE_ID}_{_TOKEN}_{instant}.hfile", changes.records()
    content = base_file(name, records)
    storage.create_new(join(folder, name), content)
    count = len({*changes.added, *changes.deleted}) + 1  # the list of all partitions included
    stat = WriteStat(
        file_id=FILE_ID,
        path=join(folder, name),
        partition=folder,
        num_writes=count,
        num_inserts=count,
        total_write_bytes=len(content),
        file_size=len(content),
        create_time=int((time.monotonic() - started) * 1000),
    )
    done = CommitMetadata(operation=Operation.BULK_INSERT, stats={folder: (stat,)}, extra={"schema": SCHEMA})
    complete(storage, begun, encode_commit(done))


def _empty_log(instant: str) -> bytes:
    """A block that deletes nothing."""
    header = BlockMap(((HeaderKey.INSTANT_TIME, instant),))
    return encode_block(LogBlock(BlockKind.DELETE, header, encode_deletes(DELETES.empty_table())))
