"""Whether a write that is to be published conflicts with other writes since it began.

Concurrent writes do not conflict when they change different file groups. New file groups belong to one write: two
inserts never conflict here, though they may write the same new key.

Source: docs/format/table-services.md 7.
It goes by times of instants, "newer than the last completed one"; here an instant counts as since the beginning when
the timeline of the beginning did not have it: clocks of writers may differ.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import FileGroupId
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.model.plans import CompactionPlan, PlannedSlice, ReplacePlan
from hoodie.timeline.timeline import Timeline, comparable_action

#: File ids of a bucket index begin with the number of the bucket. One UUID in 43 does, too, and stays unique so.
_BUCKET = re.compile(r"\d{8}-", re.ASCII)

#: The entry of a commit's extra metadata with the newest commits that it was made on, separated by commas.
SEEN = "_hoodie_made_on"

#: Operations of table services: they move rows and change none.
SERVICES = frozenset({Operation.COMPACT, Operation.CLUSTER, Operation.LOG_COMPACT, Operation.INDEX})
#: Pending instants that claim file groups before they are completed.
_PLANNED = frozenset({Action.COMPACTION, Action.REPLACE_COMMIT, Action.CLUSTERING})


@dataclass(frozen=True, slots=True)
class Other:
    """What another instant changed, or will change.

    operation  None: not known yet
    seen       of a completed commit: newest instants that were completed when it looked at the table (`SEEN`)
    files      of a plan: paths of the files that it takes in
    appended   of a completed commit: the file groups to whose logs it added, and did nothing else
    """

    instant: Instant
    operation: Operation | None
    groups: frozenset[FileGroupId]
    seen: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    appended: frozenset[FileGroupId] = frozenset()

    def __str__(self) -> str:
        word = self.operation or self.instant.action
        return f"{word} at {self.instant.requested} ({self.instant.state.name.lower()})"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another instant, and the file groups that both change; none: the other alone is the conflict."""

    other: Other
    groups: tuple[FileGroupId, ...]

    def __str__(self) -> str:
        if not self.groups:
            return f"{self.other}"
        names = ", ".join(f"{group.partition}/{group.file_id}".lstrip("/") for group in self.groups[:5])
        more = f" and {len(self.groups) - 5} more" if len(self.groups) > 5 else ""
        return f"{self.other} with file group{'s' if len(self.groups) > 1 else ''} {names}{more}"


def since(before: Timeline, now: Timeline, own: Instant) -> tuple[Instant, ...]:
    """The instants whose file groups are to be compared with a write's, oldest first.

    before  the timeline when the write looked at the table's files
    now     when it is to be published
    own     its instant
    """
    completed_before = {instant.requested for instant in before.completed(COMMITS)}
    planned_before = {(i.requested, comparable_action(i.action)) for i in before.pending(_PLANNED)}
    completed = [
        i for i in now.completed(COMMITS) if i.requested not in completed_before and i.requested != own.requested
    ]
    planned = [
        i
        for i in now.pending(_PLANNED)
        if i.requested != own.requested
        and (i.requested > own.requested or (i.requested, comparable_action(i.action)) not in planned_before)
    ]
    return tuple(sorted(completed + planned))


def conflicts(
    before: Timeline,
    own: Collection[FileGroupId],
    others: Iterable[Other],
    alone: bool,
    appended: Collection[FileGroupId] = frozenset(),
    completed: str = "",
) -> list[Conflict]:
    """The conflicts of a write that is to be published.

    own       file groups that it changes, and those that it takes away
    others    of the instants of `since`
    alone     it was to be the only writer, without a lock: any other write is a conflict. Table services are compared
              by their file groups
    appended  those to whose logs it adds rows that it made without a look at the table's, in a log file that is named
              after itself: others may do so as well, and a compaction leaves the file to the next slice
    completed when it was published, if it is: a compaction that was planned later should have the file in its plan
    """
    planned = {instant.requested for instant in before.pending_compactions}
    mine = set(map(_place, own))
    against = []
    for other in others:
        # The write knew of this compaction: it added to the slice that the compaction had opened.
        if other.instant.requested in planned and other.operation in (Operation.COMPACT, None):
            continue
        free = _groups_open_to_logs(other, completed).intersection(appended)
        both = tuple(sorted(group for group in other.groups - free if _place(group) in mine))
        unwanted = alone and other.instant.state is State.COMPLETED and other.operation not in SERVICES
        if both or unwanted:
            against.append(Conflict(other, both))
    return against


def _groups_open_to_logs(other: Other, completed: str) -> frozenset[FileGroupId]:
    """The file groups of another instant to whose logs a write may add whatever that does, if it is published at that
    time, or now."""
    if other.operation is not Operation.COMPACT:
        return other.appended
    return other.groups if not completed or other.instant.requested < completed else frozenset()


def _place(group: FileGroupId) -> FileGroupId:
    """What two writes must not both change: a file group, or the bucket of an index that its file id begins with; two
    new file groups of one bucket would be one too many."""
    bucket = _BUCKET.match(group.file_id)
    return FileGroupId(group.partition, bucket[0]) if bucket else group


def unaware(own: Instant, metadata: CommitMetadata, others: Collection[Other]) -> list[Other]:
    """The other writes that did not see a commit of ours: those that began before it was published."""
    aware, more = set[str](), {own.requested}
    while more:  # a write that saw a commit that saw ours, saw ours as well
        aware |= more
        more = {o.instant.requested for o in others if not o.seen.isdisjoint(aware)} - aware
    paths = {stat.path for stat in metadata.all_stats}
    return [o for o in others if o.instant.requested not in aware and o.files.isdisjoint(paths)]


def vanished(before: Timeline, now: Timeline) -> tuple[Instant, ...]:
    """Completed commits that existed when a write began and were rolled back since. (Archiving takes the oldest.)"""
    completed = {instant.requested for instant in now.completed(COMMITS)}
    oldest = min(completed, default="")
    return tuple(i for i in before.completed(COMMITS) if i.requested not in completed and i.requested >= oldest)


def commits_seen(metadata: CommitMetadata) -> frozenset[str]:
    """The newest commits that a commit was made on."""
    return frozenset(filter(None, metadata.extra.get(SEEN, "").split(",")))


def made_of(metadata: CommitMetadata) -> frozenset[str]:
    """The commits that a commit was made on, as far as it names them: their rows, or their file slices."""
    return commits_seen(metadata) | {stat.prev_commit for stat in metadata.all_stats} - {"null", ""}


def groups_of_commit(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """The file groups that a commit changed, or an inflight one will change, and those that it replaced."""
    written = {
        FileGroupId(partition, stat.file_id)
        for partition, part in metadata.stats.items()
        for stat in part
        if stat.file_id
    }
    replaced = {FileGroupId(partition, file_id) for partition, ids in metadata.replaced.items() for file_id in ids}
    return frozenset(written | replaced)


def appended_groups(metadata: CommitMetadata) -> frozenset[FileGroupId]:
    """The file groups to whose logs a commit added, and of which it wrote no base file and took none away."""
    rebuilt = {
        FileGroupId(partition, stat.file_id)
        for partition, part in metadata.stats.items()
        for stat in part
        if stat.log_version is None
    }
    replaced = {FileGroupId(partition, file_id) for partition, ids in metadata.replaced.items() for file_id in ids}
    return groups_of_commit(metadata) - rebuilt - replaced


def other_of_commit(instant: Instant, metadata: CommitMetadata) -> Other:
    """What a completed commit, or an inflight one of an overwrite, says."""
    compaction = metadata.compacted and metadata.operation is not Operation.LOG_COMPACT
    operation = Operation.COMPACT if compaction else metadata.operation
    appended = frozenset() if metadata.operation is Operation.LOG_COMPACT else appended_groups(metadata)
    return Other(instant, operation, groups_of_commit(metadata), commits_seen(metadata), appended=appended)


def other_of_compaction(instant: Instant, plan: CompactionPlan) -> Other:
    """A compaction by its plan."""
    return _planned(instant, Operation.COMPACT, plan.operations)


def other_of_clustering(instant: Instant, plan: ReplacePlan) -> Other:
    """A pending replacement by its plan. The file groups that an overwrite takes away only its completion tells."""
    return _planned(instant, Operation.CLUSTER if plan.clustering else None, plan.slices)


def _planned(instant: Instant, operation: Operation | None, slices: Collection[PlannedSlice]) -> Other:
    groups = frozenset(slice_.group for slice_ in slices)
    return Other(instant, operation, groups, files=frozenset(path for slice_ in slices for path in slice_.paths))
