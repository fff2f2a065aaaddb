"""Keeping the metadata table: what actions on the table do to it, before they are completed.

The partitions in `partitions.kinds` are kept. Others that another writer built are removed first, and so is a metadata
table that does not tell the state of the table: readers of Hudi do not notice either. The caller holds the table's
lock, where there is one. Source: docs/format/metadata-table.md 7.1 and 7.4. Design: docs/design/metadata-table.md.
"""

from dataclasses import replace

import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, UnsupportedTable
from hoodie.metadata.keeping.delta import append, died_later, finish_pending, is_compacted, orphans, take_back_delta
from hoodie.metadata.keeping.drop import drop_others, drop_partitions, drop_with_warning, not_kept, warn_of_drop
from hoodie.metadata.keys import MetadataPartition, partition_id
from hoodie.metadata.partitions.kind import Change
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.metadata.read import RecordSelection, instant_records, read_records
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.model.instant import Action, State
from hoodie.model.plans import RollbackMetadata
from hoodie.storage.protocol import Storage
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline


def follow_change(change: Change) -> None:
    """Write what an action changes to the metadata table, if the table has one. The action is completed after it.

    Warns  MetadataTableDropped when the metadata table, or a partition of it, cannot be kept and is removed
    """
    storage, instant = change.storage, change.instant
    table = _kept_table(storage, change.config, change.timeline)
    if table is None:
        return
    try:
        if orphans(table):  # looked at again: a writer without a lock may have begun since the timeline was loaded
            table = replace(table, data=load_timeline(storage, change.config))
        for given_up in sorted({*orphans(table), *died_later(table, instant)}):
            take_back_delta(table, given_up, max(given_up, instant))
            table = table.reload()
        table, records = _records(table, change)
        if table.timeline.find(instant, Action.DELTA_COMMIT) is not None:  # of an earlier attempt, which died
            if _is_written(table, instant, records):
                return
            take_back_delta(table, instant, instant)
            table = table.reload()
        append(table, instant, records)
    except (CorruptFile, UnsupportedTable) as damage:
        drop_with_warning(storage, str(damage))


def take_back_commit(storage: Storage, config: TableConfig, timeline: Timeline, target: str, by: str) -> bool:
    """Roll back what a commit wrote to the metadata table; that commit is pending, and is being rolled back.

    config, timeline  as of `Change`
    target, by        instants of the commit and of its rollback
    returns           whether what it wrote stays, as it is part of a base file by now
    Warns             as `follow`
    """
    table = _kept_table(storage, config, timeline)
    if table is None:
        return False
    try:
        take_back_delta(table, target, by)
    except (CorruptFile, UnsupportedTable) as damage:
        drop_with_warning(storage, str(damage))
        return False
    return is_compacted(table, target)


def still_listed(
    storage: Storage, config: TableConfig, timeline: Timeline, metadata: RollbackMetadata
) -> dict[str, frozenset[str]]:
    """The files that a rollback has deleted and that the lists have all the same, by partition path: those of a commit
    that is part of a base file by now, and logs that an earlier rollback put there.

    config, timeline  as of `Change`
    """
    deleted = {path: frozenset(part.deleted) for path, part in metadata.partitions.items() if part.deleted}
    if not deleted:
        return {}
    try:
        table = open_metadata(storage, config, timeline)
        if table is None:
            return {}
        # A partition that is none for the moment keeps its list: the next write to it shows that again.
        lists = RecordSelection(frozenset(map(partition_id, deleted)))
        listed = read_records(table, MetadataPartition.FILES, lists).select(["row", "name"]).to_pylist()
    except (CorruptFile, UnsupportedTable):  # removed by `follow`
        return {}
    files = {(entry["row"], entry["name"]) for entry in listed}
    return {
        path: frozenset(name for name in names if (partition_id(path), name) in files)
        for path, names in deleted.items()
    }


def _kept_table(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable | None:
    """The metadata table, with the partitions that are kept; None: there is none, or it was removed."""
    named = {*config.metadata_partitions, *config.metadata_inflight}
    if not named:
        return None
    if MetadataPartition.FILES not in config.metadata_partitions:
        drop_with_warning(storage, "its file lists were never finished")
        return None
    if others := not_kept(storage, config):
        config = drop_others(storage, config, others)
    try:
        table = open_metadata(storage, config, timeline)
        assert table is not None  # its file lists are complete
        if not (problem := table.problem()):
            return finish_pending(table)
    except (CorruptFile, UnsupportedTable) as damage:
        problem = str(damage)
    drop_with_warning(storage, problem)
    return None


def _records(table: MetadataTable, change: Change) -> tuple[MetadataTable, dict[MetadataPartition, pa.Table]]:
    """What changes in each partition. One that cannot tell is removed, and the metadata table is without it."""
    records: dict[MetadataPartition, pa.Table] = {}
    config = change.config
    for kind in kinds_of(table.ready):
        try:
            records[kind.partition] = kind.records(replace(change, config=config))
        except (CorruptFile, UnsupportedTable) as problem:
            if kind.partition is MetadataPartition.FILES:
                raise
            named = tuple(str(other.partition) for other in kinds_of(table.ready))
            config = replace(config, metadata_partitions=named, metadata_inflight=())
            config = drop_partitions(change.storage, config, [str(kind.partition)])
            table = replace(table, ready=table.ready - {kind.partition})
            warn_of_drop(change.storage, f"a part of the metadata table ({kind.partition})", str(problem))
    return table, records


def _is_written(table: MetadataTable, instant: str, records: dict[MetadataPartition, pa.Table]) -> bool:
    """Whether an earlier attempt at the action has written the same."""
    earlier = table.timeline.find(instant, Action.DELTA_COMMIT)
    return (
        earlier is not None
        and earlier.state is State.COMPLETED
        and all(
            _sorted(instant_records(table, partition, instant)).equals(_sorted(part))
            for partition, part in records.items()
        )
    )


def _sorted(records: pa.Table) -> pa.Table:
    return records.sort_by([(name, "ascending") for name in records.column_names[:2]])
