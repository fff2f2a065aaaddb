"""Tables as text in the exposition format of Prometheus, for the node exporter's textfile collector or a scrape.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from collections.abc import Iterator, Mapping, Sequence

from hoodie.facts.files import Stats
from hoodie.facts.health import Health
from hoodie.metrics.measures import AGE, BASE_BYTES, GROUPS, LOG_BYTES, OLDER_BYTES, PENDING, SMALL, Metric, MetricKind

_GAUGE = MetricKind.GAUGE
UP = Metric("hoodie_table_up", _GAUGE, "1: the table can be read; 0: it cannot.")
LOG_FILES = Metric("hoodie_table_log_files", _GAUGE, "Logs that readers merge.")
BASE_FILES = Metric("hoodie_table_base_files", _GAUGE, "Base files that readers see.")
_PARTITIONS = Metric("hoodie_table_partitions", _GAUGE, "Partitions with file groups.")
_PLANS = Metric("hoodie_table_pending_plans", _GAUGE, "Compactions and clusterings that are not completed.")
FINDINGS = Metric("hoodie_table_findings", _GAUGE, "What the doctor finds without opening data files.")

_SIZES: Mapping[Metric, str] = {
    BASE_BYTES: "base_bytes",
    LOG_BYTES: "log_bytes",
    OLDER_BYTES: "older_bytes",
    GROUPS: "file_groups",
    SMALL: "small_files",
    LOG_FILES: "log_files",
    BASE_FILES: "base_files",
    _PARTITIONS: "partitions",
}


def exposition(tables: Sequence[tuple[str, Health]]) -> str:
    """The text.

    tables  path and health. The path, which may be a URI with credentials, is as it is to be shown
    """
    lines: list[str] = []
    for metric, samples in _families(tables):
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind.value}")
        lines += [f"{metric.name}{{{_labels(labels)}}} {value:.15g}" for labels, value in samples]
    return "\n".join(lines) + "\n"


Samples = list[tuple[dict[str, str], float]]


def _families(tables: Sequence[tuple[str, Health]]) -> Iterator[tuple[Metric, Samples]]:
    """Each metric with all of its samples: the format has them together."""
    labelled = [({"path": path, "table": health.name}, health) for path, health in tables]
    yield UP, [({**labels, "error": health.error}, float(health.up)) for labels, health in labelled]
    for metric, field in _SIZES.items():
        yield metric, [(labels, _size(health.stats, field)) for labels, health in labelled if health.stats is not None]
    up = [(labels, health) for labels, health in labelled if health.name]
    yield PENDING, [(labels, health.pending) for labels, health in up]
    yield _PLANS, [(labels, health.plans) for labels, health in up]
    yield AGE, [(labels, health.age) for labels, health in up if health.newest]
    yield (
        FINDINGS,
        [
            ({**labels, "severity": finding.severity.lower(), "fault": finding.fault}, finding.count)
            for labels, health in labelled
            for finding in health.findings
        ],
    )


def _size(stats: Stats, field: str) -> float:
    return float(getattr(stats, field))


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    """What is no Unicode, as in the name of a folder, is shown by its code: one such letter would spoil the whole."""
    value = value.encode("utf-8", "backslashreplace").decode()
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
