"""The metrics of commits and tables, the same for every monitoring system."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from hoodie.facts.table import TableFacts
from hoodie.model.instant import parse_time
from hoodie.table.state import KEEPS_SCHEMA
from hoodie.writing.result import FailedWrite, WriteResult


class MetricKind(Enum):
    """How values of a metric go together."""

    COUNTER = "counter"  # they add up
    GAUGE = "gauge"  # the newest counts
    HISTOGRAM = "histogram"  # their distribution


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. Names are those of Prometheus, without the ending "_total" that a counter has there."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ("table",)


@dataclass(frozen=True, slots=True)
class Measure:
    """A value of a metric, with its labels in the metric's order."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


_BY_OPERATION = ("table", "operation")
_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE

_COMMITS = Metric("hoodie_commits", _COUNTER, "Commits published, compactions among them.", _BY_OPERATION)
SECONDS = Metric("hoodie_commit_seconds", MetricKind.HISTOGRAM, "Wall time of commits, in seconds.", _BY_OPERATION)
_ROWS = Metric("hoodie_rows", _COUNTER, "Rows inserted, updated and deleted.", (*_BY_OPERATION, "change"))
_WRITTEN = Metric("hoodie_rows_written", _COUNTER, "Rows in the files written, copied ones included.", _BY_OPERATION)
_BYTES = Metric("hoodie_written_bytes", _COUNTER, "Bytes of the files written.", _BY_OPERATION)
_FILES = Metric("hoodie_files_written", _COUNTER, "Files written.", _BY_OPERATION)
PHASES = Metric("hoodie_phase_seconds", _COUNTER, "Wall time by phase of writes, in seconds.", ("table", "phase"))
_FAILED = Metric(
    "hoodie_failed_writes",
    _COUNTER,
    "Writes and compactions that raised an error, by its class.",
    (*_BY_OPERATION, "error"),
)
_NEWEST = Metric("hoodie_newest_commit_seconds", _GAUGE, "When this process last published a commit, Unix time.")
BASE_BYTES = Metric("hoodie_table_base_bytes", _GAUGE, "Bytes of the base files that readers see.")
LOG_BYTES = Metric("hoodie_table_log_bytes", _GAUGE, "Bytes of the logs that readers merge.")
OLDER_BYTES = Metric("hoodie_table_older_bytes", _GAUGE, "Bytes of files that reads of the newest state do not need.")
GROUPS = Metric("hoodie_table_file_groups", _GAUGE, "File groups.")
SMALL = Metric("hoodie_table_small_files", _GAUGE, "Base files up to the limit of small files.")
INSTANTS = Metric("hoodie_table_instants", _GAUGE, "Instants of the active timeline.")
PENDING = Metric("hoodie_table_pending_writes", _GAUGE, "Writes and plans that are not completed.")
AGE = Metric("hoodie_table_commit_age_seconds", _GAUGE, "Seconds since the newest commit of anybody.")

#: All of them.
METRICS = (
    *(_COMMITS, SECONDS, _ROWS, _WRITTEN, _BYTES, _FILES, PHASES, _FAILED, _NEWEST),
    *(BASE_BYTES, LOG_BYTES, OLDER_BYTES, GROUPS, SMALL, INSTANTS, PENDING, AGE),
)


def measures_of_commit(result: WriteResult, now: float) -> Iterator[Measure]:
    """What a commit adds. now: seconds since 1970"""
    metadata = result.metadata
    labels = (result.table, str(metadata.operation))
    yield Measure(_COMMITS, labels, 1)
    yield Measure(SECONDS, labels, sum(result.seconds.values()))
    if metadata.operation not in KEEPS_SCHEMA:  # a compaction counts the rows of writes before it
        for change, rows in (("inserted", result.inserted), ("updated", result.updated), ("deleted", result.deleted)):
            yield Measure(_ROWS, (*labels, change), rows)
    yield Measure(_WRITTEN, labels, sum(stat.num_writes for stat in result.stats))
    yield Measure(_BYTES, labels, metadata.bytes_written)
    yield Measure(_FILES, labels, metadata.files)
    for phase, seconds in result.seconds.items():
        yield Measure(PHASES, (result.table, phase), seconds)
    yield Measure(_NEWEST, (result.table,), now)


def of_failure(failed: FailedWrite) -> Iterator[Measure]:
    """What a write that raised adds."""
    yield Measure(_FAILED, (failed.table, failed.operation, failed.error), 1)


def measures_of_table(facts: TableFacts) -> Iterator[Measure]:
    """What a table is like at one moment."""
    values: list[tuple[Metric, float]] = [
        (BASE_BYTES, facts.sizes.base_bytes),
        (LOG_BYTES, facts.sizes.log_bytes),
        (OLDER_BYTES, facts.sizes.older_bytes),
        (GROUPS, facts.sizes.groups),
        (SMALL, facts.sizes.small),
        (INSTANTS, len(facts.instants)),
        (PENDING, len(facts.pending)),
    ]
    if facts.commits:
        newest = max(commit.instant for commit in facts.commits)
        values.append((AGE, (parse_time(facts.as_of) - parse_time(newest)).total_seconds()))
    return (Measure(metric, (facts.config.name,), value) for metric, value in values)
