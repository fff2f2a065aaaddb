"""Keeping the metadata table: what actions on the table do to it, before they are completed.

Only the file lists are kept. Other partitions that another writer built are removed first, and so is a metadata table
that does not tell the state of the table: readers of Hudi do not notice either. The caller holds the table's lock,
where there is one. Source: docs/format/metadata-table.md 7.1 and 7.4. Design: docs/design/metadata-table.md.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.metadata.changes import FileChanges
from hoodie.metadata.delta import append, finish_rollbacks, is_compacted, orphans, take_back
from hoodie.metadata.drop import NOT_KEPT, drop_partitions, drop_with_warning, tell_of_drop
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.read import instant_records
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.model.instant import Action, State
from hoodie.storage.protocol import Storage
from hoodie.timeline.layout import layout_of
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline

#: The partitions that are kept.
KEPT = frozenset({str(MetadataPartition.FILES)})


def follow(storage: Storage, config: TableConfig, timeline: Timeline, instant: str, changes: FileChanges) -> None:
    """Write what an action changes to the metadata table, if the table has one. The action is completed after it.

    config, timeline  of the table, loaded just now, the instant pending
    instant           of the action
    Warns             MetadataTableDropped when the metadata table, or a partition of it, cannot be kept and is removed
    """
    table = _kept(storage, config, timeline)
    if table is None:
        return
    try:
        if orphans(table):  # looked at again: a writer without a lock may have begun since the timeline was loaded
            table = replace(table, data=load_timeline(storage, config))
        for orphan in orphans(table):
            take_back(table, orphan, instant)
            table = table.reload()
        if not _written(table, instant, changes):
            append(table.reload(), instant, changes.records())
    except (CorruptFile, UnsupportedTable) as damage:
        drop_with_warning(storage, str(damage))


def take_back_commit(storage: Storage, config: TableConfig, timeline: Timeline, target: str, by: str) -> bool:
    """Roll back what a commit wrote to the metadata table; that commit is pending, and is being rolled back.

    config, timeline  as of `follow`
    target, by        instants of the commit and of its rollback
    returns           whether its files stay in the lists, as they are part of a base file by now: the rollback deletes
                      them there
    Warns             as `follow`
    """
    table = _kept(storage, config, timeline)
    if table is None:
        return False
    try:
        take_back(table, target, by)
    except (CorruptFile, UnsupportedTable) as damage:
        drop_with_warning(storage, str(damage))
        return False
    return is_compacted(table, target)


def _kept(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable | None:
    """The metadata table, with the partitions that are kept; None: there is none, or it was removed."""
    named = {*config.metadata_partitions, *config.metadata_inflight}
    if not named:
        return None
    if not layout_of(config).version.keeps_metadata:
        drop_with_warning(storage, NOT_KEPT)
        return None
    if MetadataPartition.FILES not in config.metadata_partitions:
        drop_with_warning(storage, "its file lists were never finished")
        return None
    if others := sorted(named - KEPT):
        drop_partitions(storage, config, others)
        tell_of_drop(storage, f"of the metadata table: {', '.join(others)}", "only its file lists are kept")
    try:
        table = open_metadata(storage, config, timeline)
        assert table is not None  # its file lists are complete
        if not (problem := table.problem()):
            return finish_rollbacks(table)
    except (CorruptFile, UnsupportedTable) as damage:
        problem = str(damage)
    drop_with_warning(storage, problem)
    return None


def _written(table: MetadataTable, instant: str, changes: FileChanges) -> bool:
    """Whether an earlier attempt at the action, which died, has written the same; else what it wrote is taken back."""
    earlier = table.timeline.find(instant, Action.DELTA_COMMIT)
    if earlier is None:
        return False
    if earlier.state is State.COMPLETED and _entries(instant_records(table, instant)) == _entries(changes.records()):
        return True
    take_back(table, instant, instant)
    return False


def _entries(records: pa.Table) -> set[tuple[object, ...]]:
    return set(zip(*(records.column(name).to_pylist() for name in records.column_names), strict=True))
