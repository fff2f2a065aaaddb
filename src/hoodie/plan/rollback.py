"""Whether a completed commit may be rolled back: pure rules; `hoodie.recovery.rollback` looks and acts.

Source: docs/format/table-services.md 3.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, FileGroupId, LogFile, parse_data_file
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.model.plans import CompactionPlan
from hoodie.timeline.timeline import Timeline

#: A file slice: its group and base instant.
SliceId = tuple[FileGroupId, str]


@dataclass(frozen=True, slots=True)
class Before:
    """What the table needs once a commit is rolled back.

    slices    that the commit replaced by a newer version
    replaced  file groups that it replaced
    """

    slices: frozenset[SliceId] = field(default_factory=frozenset)
    replaced: frozenset[FileGroupId] = field(default_factory=frozenset)

    @property
    def groups(self) -> frozenset[FileGroupId]:
        return self.replaced | {group for group, _ in self.slices}


def needed_before(metadata: CommitMetadata, compaction: CompactionPlan | None = None) -> Before:
    """What readers see in place of a commit's files once it is rolled back. compaction: its plan, when it is one"""
    replaced = frozenset(
        FileGroupId(partition, file_id) for partition, ids in metadata.replaced.items() for file_id in ids
    )
    if compaction is not None:
        return Before(
            frozenset((operation.group, operation.base_instant) for operation in compaction.operations), replaced
        )
    slices = set()
    for partition, stats in metadata.stats.items():
        for stat in stats:
            file = parse_data_file(partition, (stat.path or "").rpartition("/")[2], 0)
            if isinstance(file, BaseFile) and stat.prev_commit not in ("null", ""):
                slices.add((file.group, stat.prev_commit))
    return Before(frozenset(slices), replaced)


def touched_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """The file groups that a commit wrote to or replaced."""
    written = {FileGroupId(partition, stat.file_id) for partition, part in metadata.stats.items() for stat in part}
    return frozenset(written) | needed_before(metadata).replaced


def why_no_rollback(
    timeline: Timeline,
    target: Instant,
    groups: Collection[FileGroupId],
    plans: Mapping[Instant, Collection[FileGroupId]],
) -> str:
    """Why a completed commit cannot be rolled back; "" when it can.

    groups  that it touched
    plans   pending compactions, log compactions and clusterings, with the file groups that they are to work on
    """
    newer = [commit.requested for commit in timeline.commits if commit.requested > target.requested]
    if len(newer) == 1:
        return f"a newer commit is completed, {newer[0]}: roll that back first, or restore the table to a savepoint"
    if newer:
        return (
            f"{len(newer)} newer commits are completed, the latest {newer[-1]}: roll those back first, newest first, "
            "or restore the table to a savepoint"
        )
    saved = timeline.find(target.requested, Action.SAVEPOINT)
    if saved is not None and saved.state is State.COMPLETED:
        return "it is a savepoint: delete the savepoint first"
    writes = [instant for instant in timeline.pending(COMMITS) if instant not in plans]
    if writes:
        return (
            f"the {writes[0].action} {writes[0].requested} is pending and may build on it: if its writer is dead, roll "
            "that back first, unless `hoodie check` says that its completed file is lost"
        )
    for instant, theirs in plans.items():
        if instant.requested > target.requested and not set(theirs).isdisjoint(groups):
            return f"the pending {instant.action} {instant.requested} builds on its files: run it or withdraw it first"
    return ""


def missing_before(before: Before, files: Collection[BaseFile | LogFile]) -> list[SliceId]:
    """Slices that are needed and have no file left, such as those that cleaning removed."""
    slices = {(file.group, file.base_instant) for file in files}
    return sorted(before.slices - slices)


def cleaned_before(before: Before, paths: Collection[str], target: str) -> list[str]:
    """Which of the files that cleaning removed, or is to remove, are needed."""
    needed_paths = []
    for path in sorted(paths):
        partition, _, name = path.rpartition("/")
        file = parse_data_file(partition, name, 0)
        if file is None:
            continue
        base = file.base_instant
        if (file.group, base) in before.slices or (file.group in before.replaced and base < target):
            needed_paths.append(path)
    return needed_paths
