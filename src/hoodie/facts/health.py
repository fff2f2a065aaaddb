"""How a table is, for those who watch many: sizes, what is pending, its age, and what the doctor finds."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hoodie.doctor.examine import examine
from hoodie.doctor.findings import Fault, Finding, Severity
from hoodie.errors import HoodieError
from hoodie.facts.files import Stats, stats
from hoodie.facts.look import look
from hoodie.model.instant import WRITES, parse_time
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.timeline.timeline import Clock, new_time, utc_now

_PLANS = frozenset({"compaction", "logcompaction", "clustering"})
#: With these nothing of the table can be read. (Reading its settings again would take a second.)
_CLOSED = frozenset({Fault.PROPERTIES, Fault.CHECKSUM, Fault.UPGRADE})


@dataclass(frozen=True, slots=True)
class FindingCount:
    """How many findings of a kind there are."""

    severity: str
    fault: str
    count: int


@dataclass(frozen=True, slots=True)
class Health:
    """A table at one moment.

    up        it can be read: its settings, its timeline, and a listing of its files
    error     the class of the error that says why not; ""
    problem   what it says; ""
    newest    instant of the newest commit; ""
    age       seconds since then; -1 of a table without commits, or of one that is not up
    pending   writes that are not completed
    plans     of compactions and clusterings that are not completed
    findings  of the doctor, without a look into data files
    stats     null of a table that is not up
    """

    name: str = ""
    type: str = ""
    up: bool = False
    error: str = ""
    problem: str = ""
    newest: str = ""
    age: float = -1.0
    pending: int = 0
    plans: int = 0
    findings: tuple[FindingCount, ...] = field(default=())
    stats: Stats | None = None

    def count(self, severity: str) -> int:
        """Findings of a severity."""
        return sum(finding.count for finding in self.findings if finding.severity == severity)

    @property
    def worst(self) -> str:
        """ "down", or the greatest severity of the findings; "" of a table that is as it should be."""
        if not self.up:
            return "down"
        return next((s.name for s in sorted(Severity, reverse=True) if self.count(s.name)), "")


def health(storage: Storage, settings: Settings, *, grace: float = 3600.0, clock: Clock = utc_now) -> Health:
    """Look at a table: two listings, its timeline, no data file. A table that is damaged is a result, not an error.

    grace  as `check` takes it
    """
    findings: tuple[Finding, ...] = ()
    try:
        with typed_errors():
            findings = examine(storage, settings.reading, rows=False, grace=grace)
            if closed := next((f for f in findings if f.fault in _CLOSED and f.severity is Severity.ERROR), None):
                return Health(error="CorruptFile", problem=str(closed), findings=_counted(findings))
            config, timeline = look(storage)
            base = Health(config.name, config.type.value, findings=_counted(findings))
    except HoodieError as error:
        named = Health()
        with suppress(HoodieError), typed_errors():
            config, _ = look(storage)
            named = Health(config.name, config.type.value)
        return replace(named, error=type(error).__name__, problem=_line(error), findings=_counted(findings))
    pending = [i for i in timeline.pending() if i.action in WRITES]
    newest = timeline.newest_commit
    age = -1.0
    if newest:
        now = parse_time(new_time(timeline, config.timezone, clock))
        age = round((now - parse_time(newest)).total_seconds(), 3)
    plans = sum(instant.action.value in _PLANS for instant in pending)
    try:
        with typed_errors():
            sizes = stats(storage, settings)
    except HoodieError as error:
        return Health(
            base.name, base.type, False, type(error).__name__, _line(error), newest, age, len(pending), plans,
            base.findings,
        )  # fmt: skip
    return Health(base.name, base.type, True, "", "", newest, age, len(pending), plans, base.findings, sizes)


def _counted(findings: tuple[Finding, ...]) -> tuple[FindingCount, ...]:
    counts = Counter((finding.severity.name, finding.fault.value) for finding in findings)
    return tuple(FindingCount(*kind, number) for kind, number in counts.items())


def _line(error: HoodieError) -> str:
    return " ".join(str(error).split())
