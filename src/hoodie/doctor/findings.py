"""The results of an examination: findings, and their remedies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from hoodie.config.table import TableConfig
from hoodie.display.render import Displayed, DisplayedTuple
from hoodie.display.summary import ResultSummary, count_text, summary
from hoodie.errors import clause
from hoodie.model.commit import CommitMetadata
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import (
    CleanMetadata,
    CleanPlan,
    CompactionPlan,
    PlannedSlice,
    ReplacePlan,
    RollbackMetadata,
    SavepointMetadata,
)
from hoodie.storage.protocol import Entry, Storage
from hoodie.timeline.timeline import Timeline


class Severity(IntEnum):
    """How much a finding matters."""

    NOTE = 1  # takes space, or could not be examined; no reader is affected
    WARNING = 2  # readers see the right rows; a writer, a service or a later state of the timeline is affected
    ERROR = 3  # some reader fails, or sees wrong rows


class Fault(StrEnum):
    """The kinds of problems. The value is the name in messages."""

    PROPERTIES = "damaged properties"
    CHECKSUM = "wrong checksum"
    COLUMN = "column that the table lacks"
    BACKUP = "leftover properties backup"
    UNKNOWN_NAME = "unknown instant file"
    EMPTY = "0-byte instant"
    UNREADABLE = "damaged instant"
    HALF = "half an instant"
    HOLLOW = "hollow instant"
    STALE = "stale pending instant"
    PLAN = "plan without its files"
    MISSING = "missing file"
    ORPHAN = "orphan file"
    STRAY = "stray file"
    TWICE = "file of two commits"
    SIZE = "wrong file size"
    COUNT = "wrong row count"
    INVISIBLE = "partition without metafile"
    DAMAGED = "damaged file"
    FILTER = "bloom filter lacks keys"
    RANGE = "key range lacks keys"
    KEY = "bad key"
    DUPLICATE = "duplicate key"
    MARKERS = "leftover markers"
    TEMPORARY = "temporary file"
    HEARTBEAT = "leftover heartbeat"
    LOCK = "leftover lock"
    PENDING = "pending compaction"
    PAYLOAD = "payload class"
    ARCHIVE = "archive that Hudi 1.x refuses"
    HISTORY = "damaged archive"
    UPGRADE = "stopped upgrade"
    DOWNGRADE = "stopped downgrade"
    UNLISTED = "log that Hudi 1.x lacks"
    LISTS = "wrong metadata table"
    UNLIKE = "storage unlike the metadata table"
    COLUMNS = "damaged history of columns"
    MISPLACED = "in the table's way"
    FOREIGN = "not read alike"
    UNEXAMINED = "not examined"


class Mend(StrEnum):
    """What a repair can do, each safe on its own. The value is the description in messages."""

    DELETE = "delete the file"
    DELETE_TREE = "delete the folder"
    ROLL_BACK = "roll the failed write back"
    RESUME = "finish the rollback"
    RECOVER = "restore hoodie.properties from its backup, or remove the backup"
    CHECKSUM = "rewrite the checksum"
    MOVE_BACK = "move the instants back, as version 6 has them"
    FINISH = "finish the downgrade: give logs the names of version 6"
    ARCHIVE = "write Java strings into the schemas of the archive file"
    METADATA = "remove the metadata table, which Hudi builds again"
    COLUMNS = "write the history of the columns anew, by its other files and the commits"
    METAFILE = "restore the partition's .hoodie_partition_metadata"


@dataclass(frozen=True, slots=True, order=True)
class Remedy:
    """A repair of one thing: a path relative to the table's base path, or an instant time."""

    mend: Mend
    target: str

    def __str__(self) -> str:
        return f"{self.mend}: {self.target}"


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Displayed):
    """One problem of a table.

    where    path relative to the table's base path, or a partition path
    problem  what is wrong
    advice   what to do
    remedy   what a repair would do; None: nothing is safe to do without a person
    """

    severity: Severity
    fault: Fault
    where: str
    problem: str
    advice: str
    remedy: Remedy | None = None

    def __str__(self) -> str:
        return finding_text(self.severity.name, self.fault, self.where, self.problem, self.advice)

    def _summary(self) -> ResultSummary:
        return summary(str(self))


def finding_text(severity: str, fault: str, where: str, problem: str, advice: str) -> str:
    """A finding on one line."""
    return f"{severity} {fault}: {where or '(base path)'}: {clause(problem)}. {advice}"


class Findings(DisplayedTuple[Finding]):
    """The problems of a table, worst first; none: it is healthy."""

    __slots__ = ()

    def _summary(self) -> ResultSummary:
        counts = ", ".join(
            count_text(number, severity.name.lower())
            for severity in sorted(Severity, reverse=True)
            if (number := sum(finding.severity is severity for finding in self))
        )
        rows = ((f.severity.name, str(f.fault), f.where or "(base path)", f.problem, f.advice) for f in self)
        columns = ("severity", "fault", "where", "problem", "advice")
        return summary(counts or "no problems found", columns, rows, len(self))


class Remedies(DisplayedTuple[Remedy]):
    """What a repair did, or would do, in order."""

    __slots__ = ()

    def _summary(self) -> ResultSummary:
        rows = ((str(remedy.mend), remedy.target) for remedy in self)
        return summary(count_text(len(self), "repair"), ("what", "where"), rows, len(self))


@dataclass(frozen=True, slots=True)
class Contents:
    """The content of the timeline's files, of those that could be read."""

    commits: Mapping[Instant, CommitMetadata] = field(default_factory=dict)  # completed
    compactions: Mapping[Instant, CompactionPlan] = field(default_factory=dict)  # pending, log compactions too
    replaces: Mapping[Instant, ReplacePlan] = field(default_factory=dict)  # pending
    clean_plans: Mapping[Instant, CleanPlan] = field(default_factory=dict)  # pending, or with an empty record
    cleans: Mapping[Instant, CleanMetadata] = field(default_factory=dict)
    rollbacks: Mapping[Instant, RollbackMetadata] = field(default_factory=dict)
    savepoints: Mapping[Instant, SavepointMetadata] = field(default_factory=dict)

    @property
    def plans(self) -> dict[Instant, tuple[PlannedSlice, ...]]:
        """The file slices that pending compactions, log compactions and clusterings are to read."""
        compactions = {instant: plan.operations for instant, plan in self.compactions.items()}
        return {**compactions, **{instant: plan.slices for instant, plan in self.replaces.items()}}


@dataclass(frozen=True, slots=True)
class Scene:
    """What the examination found on storage.

    states     the timeline's files by (instant time, action at completion) and state
    aside      files below `.hoodie/.temp` and `.hoodie/.heartbeat`, by folder
    tree       the files of the table outside `.hoodie`, by folder
    now        milliseconds since 1970
    grace      milliseconds; younger files may be the work of a live process
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    states: Mapping[tuple[str, Action], Mapping[State, Entry]]
    aside: Mapping[str, Sequence[Entry]]
    tree: Mapping[str, Sequence[Entry]]
    files: Sequence[BaseFile | LogFile]
    now: int
    grace: float

    def is_settled(self, mtime: int) -> bool:
        """Whether something is too old to be the work of a live process. mtime 0: the storage has no times."""
        return mtime > 0 and self.now - mtime >= self.grace
