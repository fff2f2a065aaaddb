"""Cleaning the metadata table: old slices of its file groups are deleted, by a plan on its timeline.

The caller holds the lock of the table. Source: docs/format/metadata-table.md 8.2.
"""

import math
from contextlib import suppress

from hoodie.config.services import CleanOptions, CleanPolicy
from hoodie.formats.timeline.services import decode_clean_plan, encode_clean_metadata, encode_clean_plan
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.metadata.read import whole_view
from hoodie.metadata.table import MetadataTable
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie.plan.clean import earliest_retained, files_to_delete
from hoodie.storage.protocol import join
from hoodie.timeline.transition import complete, create_requested, instant_path, remove_pending, to_inflight

_SUFFIX = "002"
_LEAST = 20
_MORE = 1.2


def retained_commits(options: CleanOptions) -> int:
    """How many commits a metadata table keeps files for: a fifth more than its table, and twenty at least."""
    return max(_LEAST, math.ceil(_MORE * options.commits))


def clean_metadata(table: MetadataTable, options: CleanOptions) -> tuple[str, ...]:
    """Delete what reads of the newest delta commits do not need; paths of the files. options: of the table"""
    for instant in table.timeline.pending({Action.CLEAN}):
        return _finish(table, instant)
    how = CleanOptions(policy=CleanPolicy.KEEP_LATEST_COMMITS, commits=retained_commits(options))
    earliest = earliest_retained(table.timeline, how, "")
    if earliest is None or table.timeline.pending():
        return ()
    files: dict[str, tuple[str, ...]] = {}
    for kind in kinds_of(table.ready):
        files |= files_to_delete(whole_view(table, kind.partition), how, earliest)
    newest = table.timeline.completed({Action.DELTA_COMMIT})[-1].requested
    time = table.time(newest) if table.layout.version.logs_of_writes else newest + _SUFFIX
    if not files or any(instant.requested == time for instant in table.timeline.instants):
        return ()
    plan = CleanPlan(
        policy=how.policy.value,
        earliest=(earliest.requested, earliest.action.value, State.COMPLETED.name),
        last_completed=table.newest,
        files=files,
    )
    requested = create_requested(
        table.storage, time, Action.CLEAN, encode_clean_plan(plan, table.storage.root), layout=table.layout
    )
    return _carry_out(table, requested, plan)


def _finish(table: MetadataTable, instant: Instant) -> tuple[str, ...]:
    path = instant_path(Instant(instant.requested, Action.CLEAN, State.REQUESTED), layout=table.layout)
    data = table.storage.read(path)
    if not data:  # its writer died before it had a plan
        remove_pending(table.storage, instant, layout=table.layout)
        return ()
    return _carry_out(table, instant, decode_clean_plan(data, path))


def _carry_out(table: MetadataTable, instant: Instant, plan: CleanPlan) -> tuple[str, ...]:
    storage = table.storage
    if instant.state is State.REQUESTED:
        content = encode_clean_plan(plan, storage.root) if table.layout.version.clean_has_plan else b""
        instant = to_inflight(storage, instant, content, layout=table.layout)
    paths = tuple(join(partition, name) for partition, names in plan.files.items() for name in names)
    for path in paths:
        with suppress(FileNotFoundError):
            storage.delete(path)
    metadata = CleanMetadata(
        start=instant.requested,
        earliest=plan.earliest[0] if plan.earliest else "",
        last_completed=plan.last_completed,
        partitions={
            partition: CleanedPartition(policy=plan.policy, planned=names, deleted=names)
            for partition, names in plan.files.items()
        },
    )
    complete(storage, instant, encode_clean_metadata(metadata), layout=table.layout)
    return paths
