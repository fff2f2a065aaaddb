"""The end of a compaction's run: the files of its tasks are checked and published, or discarded.

Source: docs/format/table-services.md 5.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from hoodie.commit.markers import delete_markers
from hoodie.errors import HoodieError, InstantNotFound, LockLost, WriteConflict
from hoodie.locks import Lock
from hoodie.metadata.changes import changes_of_commit
from hoodie.metadata.keeping.follow import follow_change
from hoodie.metadata.partitions.kind import Change
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, parse_data_file
from hoodie.model.instant import Action, State
from hoodie.services.compaction.job import CompactionJob
from hoodie.services.compaction.schedule import marked_files, require_not_published, take_back_plan
from hoodie.storage.protocol import remove_with_temporaries, split
from hoodie.table.state import load_state
from hoodie.timeline.load import read_commit
from hoodie.timeline.transition import complete, completed_content
from hoodie.view.load import data_files, list_partitions


def give_up_compaction(job: CompactionJob, claim: Lock) -> None:
    """Undo an unfinished run: its files are removed, its plan stays."""
    try:
        claim.check()
        take_back_plan(job.storage, job.instant, layout=job.layout)
    except (LockLost, WriteConflict):  # another run has begun, or has published: only this run's own files are removed
        _discard(job)


def publish_compaction(job: CompactionJob, stats: Iterable[WriteStat | None]) -> CommitMetadata:
    """Make the new base files visible: one exclusive create.

    stats    of each task's winning attempt; None, or nothing, for a task without rows
    Raises   HoodieError when statistics do not fit the plan: nothing is published. InstantNotFound, WriteConflict when
             another process undid the run or published its own; the files of this run are removed
    """
    group_stats = _checked_stats(job, stats)
    by_partition: dict[str, list[WriteStat]] = {}
    for group, stat in group_stats.items():
        by_partition.setdefault(group.partition, []).append(stat)
    metadata = CommitMetadata(
        operation=Operation.COMPACT,
        stats={partition: tuple(part) for partition, part in by_partition.items()},
        extra=dict(job.extra),
        compacted=True,
    )
    sizes = {stat.path: stat.file_size for stat in group_stats.values() if stat.path}
    try:
        _finalize(job, sizes)
        state = load_state(job.storage)
        time = job.instant.requested
        follow_change(Change(job.storage, state.config, state.timeline, time, changes_of_commit(metadata), metadata))
        content = completed_content(metadata, job.instant.action, state.layout)
        complete(job.storage, job.instant, content, layout=state.layout)
    except (InstantNotFound, WriteConflict):
        _discard(job)
        raise
    with suppress(OSError):  # readers see the files by now, and markers of a completed instant have no effect
        # Abandoned attempts may have finished a file meanwhile. Later ones see that the run is over.
        lost = set(marked_files(job.storage, job.instant.requested)) - sizes.keys()
        remove_with_temporaries(job.storage, sorted(lost))
        delete_markers(job.storage, job.instant.requested)
    return metadata


def _checked_stats(job: CompactionJob, stats: Iterable[WriteStat | None]) -> dict[FileGroupId, WriteStat]:
    tasks = {task.slice.group: task for task in job.tasks}
    group_stats: dict[FileGroupId, WriteStat] = {}
    instant = job.instant.requested
    for stat in stats:
        if stat is None:
            continue
        group = FileGroupId(stat.partition or "", stat.file_id)
        if group not in tasks or group in group_stats:
            what = "was compacted twice" if group in group_stats else "is not in the plan"
            raise HoodieError(f"compaction {instant}: file group {group} {what}; nothing is published")
        file = parse_data_file(group.partition, split(stat.path or "")[1], stat.file_size)
        if not isinstance(file, BaseFile) or (file.path, file.group, file.instant) != (stat.path, group, instant):
            raise HoodieError(f"compaction {instant}: {stat.path} is not a base file of {group}; nothing is published")
        group_stats[group] = stat
    missing = [group for group, task in tasks.items() if group not in group_stats and task.slice.base is not None]
    if missing:
        raise HoodieError(f"compaction {instant}: {len(missing)} file groups, such as {missing[0]}, were not compacted")
    return {group: group_stats[group] for group in tasks if group in group_stats}


def _finalize(job: CompactionJob, sizes: Mapping[str, int]) -> None:
    """Check that all files exist, and remove those of lost attempts, which would be read as versions of rows."""
    files = _files_of(job)
    for path, size in sizes.items():
        if path not in files or files[path].size != size:
            raise WriteConflict(
                f"{path} of compaction {job.instant.requested} is missing: another process considered this run dead "
                "and started another. Nothing is published by this one."
            )
    others = sorted({*files, *marked_files(job.storage, job.instant.requested)} - sizes.keys())
    require_not_published(job.storage, job.instant, job.layout)  # else readers see these files
    remove_with_temporaries(job.storage, others)


def _files_of(job: CompactionJob) -> dict[str, BaseFile]:
    """The base files of the plan's instant in its file groups, by path."""
    groups = {task.slice.group for task in job.tasks}
    listed = list_partitions(job.storage, {group.partition for group in groups})
    return {
        file.path: file
        for file in data_files(listed)
        if isinstance(file, BaseFile) and file.group in groups and file.instant == job.instant.requested
    }


def _discard(job: CompactionJob) -> None:
    """Remove the files of a run that lost, unless they are published."""
    state = load_state(job.storage)
    current = state.timeline.find(job.instant.requested, Action.COMPACTION)
    published: set[str | None] = set()
    if current is not None and current.state is State.COMPLETED:
        stats = read_commit(job.storage, state.timeline, current).stats
        published = {stat.path for part in stats.values() for stat in part}
    for path, file in _files_of(job).items():
        if path not in published and file.token.split("-")[1] == str(job.compaction.run):
            job.storage.delete(path)
