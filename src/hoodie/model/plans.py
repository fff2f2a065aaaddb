"""Plans and results of table services: compaction, clustering, cleaning, rollback, savepoint, restore.

Files are given by name; their folder is the partition's. Plans of other writers may hold absolute paths of the machine
that wrote them: only the names in them count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hoodie.display.short import Short
from hoodie.model.files import FileGroupId


@dataclass(frozen=True, slots=True)
class InstantRef:
    """An instant as a plan names it: its time and the word of its action."""

    time: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStrategy:
    """The Java class that carries out a plan, and its parameters."""

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompactionOperation(Short):
    """One file slice to be compacted: its base file and logs become the base file of the plan's instant."""

    group: FileGroupId
    base_instant: str
    base_file: str  # name; "" when the slice has logs only
    log_files: tuple[str, ...]  # names, oldest first
    metrics: Mapping[str, float] = field(default_factory=dict)  # TOTAL_LOG_FILES, TOTAL_LOG_FILES_SIZE in bytes, ...

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files, relative to the table's base path."""
        return _paths(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompactionPlan(Short):
    """Content of a requested compaction, or log compaction."""

    operations: tuple[CompactionOperation, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    strategy: PlanStrategy | None = None
    preserve_meta: bool = False  # rows keep their meta columns


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClusteringSlice(Short):
    """One file slice to be clustered."""

    group: FileGroupId
    base_file: str  # name; "" when the slice has logs only
    log_files: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files, relative to the table's base path."""
        return _paths(self)


PlannedSlice = CompactionOperation | ClusteringSlice


def _paths(planned: PlannedSlice) -> tuple[str, ...]:
    folder = f"{planned.group.partition}/" if planned.group.partition else ""
    return tuple(folder + name for name in (planned.base_file, *planned.log_files) if name)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClusteringGroup(Short):
    """Slices whose rows are rewritten together."""

    slices: tuple[ClusteringSlice, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    outputs: int = 1  # file groups to make
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClusteringPlan(Short):
    """Which slices become which new file groups."""

    groups: tuple[ClusteringGroup, ...] = ()
    strategy: PlanStrategy | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    preserve_meta: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReplacePlan(Short):
    """Content of a requested replace commit; an insert overwrite's has nothing in it."""

    operation: str = ""  # "CLUSTER", "DELETE_PARTITION" or ""
    clustering: ClusteringPlan | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def slices(self) -> tuple[ClusteringSlice, ...]:
        """Those of a clustering."""
        return tuple(slice_ for group in (self.clustering.groups if self.clustering else ()) for slice_ in group.slices)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CleanPlan(Short):
    """Content of a requested clean: the files to delete, and the oldest commit that stays readable."""

    policy: str
    earliest: tuple[str, str, str] | None = None  # (time, action, state) of the oldest commit kept; None: by versions
    last_completed: str = ""  # newest completed commit at planning
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # partition path -> names
    partitions: tuple[str, ...] = ()  # removed whole
    extra: Mapping[str, str] = field(default_factory=dict)  # "savepointed_timestamps"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CleanedPartition(Short):
    """What a clean did in one partition."""

    policy: str
    planned: tuple[str, ...] = ()  # names
    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    removed: bool = False  # the partition itself


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CleanMetadata(Short):
    """Content of a completed clean."""

    start: str  # instant
    millis: int = 0
    earliest: str = ""
    last_completed: str = ""
    partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)

    @property
    def files_deleted(self) -> int:
        return sum(len(partition.deleted) for partition in self.partitions.values())


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackRequest(Short):
    """Work of a rollback in one partition: files to delete, or logs to neutralise by a command block."""

    partition: str
    file_id: str = ""
    base_instant: str = ""
    delete: tuple[str, ...] = ()  # names
    log_blocks: Mapping[str, int] = field(default_factory=dict)  # log file name -> bytes that the failed write appended


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackPlan(Short):
    """Content of a requested rollback."""

    instant: InstantRef
    requests: tuple[RollbackRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RolledBackPartition(Short):
    """What a rollback did in one partition. Names of files."""

    deleted: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    command_logs: Mapping[str, int] = field(default_factory=dict)  # log file with a command block -> its size in bytes
    failed_logs: Mapping[str, int] = field(default_factory=dict)  # log file of the failed write -> its size in bytes


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RollbackMetadata(Short):
    """Content of a completed rollback."""

    start: str  # instant
    millis: int = 0
    files_deleted: int = 0
    commits: tuple[str, ...] = ()
    partitions: Mapping[str, RolledBackPartition] = field(default_factory=dict)
    instants: tuple[InstantRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SavepointMetadata(Short):
    """Content of a savepoint: the files that must stay."""

    by: str
    at: int  # milliseconds since 1970, UTC
    comments: str = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # partition path -> names, base and log


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RestorePlan(Short):
    """Content of a requested restore: instants to roll back, newest first."""

    instants: tuple[InstantRef, ...] = ()
    savepoint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RestoreMetadata(Short):
    """Content of a completed restore."""

    start: str  # instant
    millis: int = 0
    instants: tuple[str, ...] = ()
    rollbacks: Mapping[str, tuple[RollbackMetadata, ...]] = field(default_factory=dict)  # by instant rolled back
    refs: tuple[InstantRef, ...] = ()
