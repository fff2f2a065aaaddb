"""What a compaction should do: whether one is due, which file slices it takes, and whether a plan fits the table.

Source: docs/format/table-services.md 5, docs/format/avro-payloads.md (HoodieCompactionPlan).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.config.compaction import CompactionOptions, Trigger
from hoodie.errors import InvalidOption
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import Action, Instant, parse_time
from hoodie.model.plans import CompactionOperation, CompactionPlan
from hoodie.plan.compaction_strategies import OPTION, Planning, Strategy, io_mb
from hoodie.timeline.timeline import Timeline
from hoodie.view.slices import FileSystemView, GroupFiles, latest_slices

# --- when ---


def compaction_is_due(timeline: Timeline, instant: str, options: CompactionOptions) -> bool:
    """Whether a compaction is to be planned at an instant."""
    since = _newest(timeline.completed({Action.COMMIT}))
    if options.trigger is Trigger.NUM_COMMITS_AFTER_LAST_REQUEST:
        since = _newest(timeline.pending_compactions) or since
    # Pending delta commits count, too. A commit of a Merge-on-Read table is a compaction.
    deltas = [i.requested for i in timeline.instants if i.action is Action.DELTA_COMMIT]
    if not since and not deltas:
        return False
    enough = sum(delta > since for delta in deltas) >= options.delta_commits

    def waited() -> bool:
        start = parse_time(since or min(deltas))
        return (parse_time(instant) - start).total_seconds() >= options.delta_seconds

    match options.trigger:
        case Trigger.NUM_COMMITS | Trigger.NUM_COMMITS_AFTER_LAST_REQUEST:
            return enough
        case Trigger.TIME_ELAPSED:
            return waited()
        case Trigger.NUM_AND_TIME:
            return enough and waited()
        case Trigger.NUM_OR_TIME:
            return enough or waited()


def _newest(instants: Iterable[Instant]) -> str:
    return max((instant.requested for instant in instants), default="")


# --- what ---


def candidates(view: FileSystemView, also_planned: Collection[FileGroupId] = ()) -> list[FileSlice]:
    """The newest slices that have logs and are in no pending plan, ordered by partition path and file id.

    also_planned  file groups of pending plans that the view does not know: of log compactions
    """
    return [
        slice_
        for group, slice_ in latest_slices(view).items()
        if slice_.logs and group not in view.compacting and group not in view.clustering and group not in also_planned
    ]


def plan_compaction(
    strategy: Strategy,
    slices: Iterable[FileSlice],
    planning: Planning,
    partitions: Collection[str],
    extra: Mapping[str, str] | None = None,
) -> CompactionPlan:
    """The plan that a strategy makes; without operations when there is nothing to do.

    slices      `candidates`
    partitions  all that the table has, those without candidates included
    extra       stored in the plan and in its commit
    Raises      InvalidOption naming a slice that the strategy took twice or that is no candidate
    """
    by_partition: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        by_partition.setdefault(slice_.group.partition, []).append(slice_)
    looked_at = strategy.partitions(sorted({*partitions, *by_partition}), planning) if by_partition else ()
    offered = [slice_ for partition in looked_at for slice_ in by_partition.get(partition, ())]
    chosen = strategy.select(tuple(offered), planning) if offered else ()
    return CompactionPlan(
        operations=tuple(operation_of(s, planning.max_file_size) for s in _checked(strategy, chosen, offered)),
        extra=dict(extra or {}),
    )


def _checked(strategy: Strategy, chosen: Iterable[FileSlice], offered: Sequence[FileSlice]) -> list[FileSlice]:
    slices_by_group = {slice_.group: slice_ for slice_ in offered}
    taken: set[FileGroupId] = set()
    slices = []
    for slice_ in chosen:
        group = slice_.group if isinstance(slice_, FileSlice) else None
        if group in taken:
            raise InvalidOption(f"{OPTION}={strategy.name!r} took the slice of file group {group} twice")
        offered_slice = None if group is None else slices_by_group.get(group)
        if group is None or (offered_slice is not slice_ and offered_slice != slice_):
            raise InvalidOption(f"{OPTION}={strategy.name!r} took {slice_!r}, which is none of the slices it was given")
        taken.add(group)
        slices.append(slice_)
    return slices


def operation_of(slice_: FileSlice, max_file_size: int) -> CompactionOperation:
    """The work on one slice, with its metrics.

    max_file_size  bytes that the new base file is taken to have where there is none yet
    """
    read, write = io_mb(slice_, max_file_size)
    return CompactionOperation(
        group=slice_.group,
        base_instant=slice_.base_instant,
        base_file=slice_.base.name if slice_.base else "",
        log_files=tuple([log.name for log in slice_.logs]),
        metrics={
            "TOTAL_LOG_FILES": float(len(slice_.logs)),
            "TOTAL_LOG_FILES_SIZE": float(slice_.log_bytes),
            "TOTAL_IO_READ_MB": float(read),
            "TOTAL_IO_WRITE_MB": float(write),
            "TOTAL_IO_MB": float(read + write),
        },
    )


# --- a plan against the files on storage ---


@dataclass(frozen=True, slots=True)
class OperationFiles:
    """The files of an operation on storage.

    missing   names of the plan that no file has
    unknown   logs of the slice that the plan does not name: written after it was made by a writer that did not see it
    leftover  base files of the plan's instant: of an unfinished run
    later     logs of the slice that the plan opened
    """

    slice: FileSlice
    missing: tuple[str, ...] = ()
    unknown: tuple[LogFile, ...] = ()
    leftover: tuple[BaseFile, ...] = ()
    later: tuple[LogFile, ...] = ()


def find_files(
    plan: CompactionPlan, instant: str, groups: Mapping[FileGroupId, GroupFiles]
) -> tuple[OperationFiles, ...]:
    """The files of each operation, in the order of the plan.

    groups  all files of the plan's partitions, committed or not
    """
    return tuple(_find(operation, instant, groups.get(operation.group, GroupFiles())) for operation in plan.operations)


def _find(operation: CompactionOperation, instant: str, files: GroupFiles) -> OperationFiles:
    bases = {base.name: base for base in files.bases}
    logs = {log.name: log for log in (*files.logs, *files.changes)}
    names = ([operation.base_file] if operation.base_file else []) + list(operation.log_files)
    planned = tuple(sorted((logs[name] for name in operation.log_files if name in logs), key=lambda log: log.order))
    planned_names = set(operation.log_files)
    return OperationFiles(
        FileSlice(operation.group, operation.base_instant, bases.get(operation.base_file), planned),
        missing=tuple(name for name in names if name not in bases and name not in logs),
        unknown=tuple(
            log for log in files.logs if log.base_instant == operation.base_instant and log.name not in planned_names
        ),
        leftover=tuple(base for base in files.bases if base.instant == instant),
        later=tuple(log for log in (*files.logs, *files.changes) if log.base_instant == instant),
    )


def problems(operations: Iterable[OperationFiles]) -> list[str]:
    """Why a plan cannot be carried out, a line each. Logs that it does not name are none: the run takes them in."""
    lines = []
    for operation in operations:
        where = f"file group {operation.slice.group.file_id} of partition {operation.slice.group.partition!r}"
        lines += [f"{where}: {name} is missing" for name in operation.missing]
    return lines
