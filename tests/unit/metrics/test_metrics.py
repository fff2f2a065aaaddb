"""Exporters tell what commits did and what tables are like; page, dashboard and alerts name what there is."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import prometheus_client
import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import hoodie
from hoodie.errors import (
    AccessDenied,
    InstantNotFound,
    InvalidInput,
    MissingPackage,
    PlanInUse,
    SchemaMismatch,
    UnsupportedTable,
)
from hoodie.metrics import otel, prometheus
from hoodie.metrics.measures import METRICS, MetricKind
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage import storage_for
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.writing.result import failures_heard
from support.reported import DUE, table_with_history

ROOT = Path(__file__).parents[3]
ROWS = pa.table({"id": ["t0", "t1", "new"], "city": ["oslo", "rome", "rome"], "ts": [9, 9, 9]})


def value(registry: Any, name: str, **labels: str) -> float | None:
    found: float | None = registry.get_sample_value(name, {"table": "trips", **labels})
    return found


def test_prometheus_is_told_of_writes_and_compactions() -> None:
    registry = prometheus_client.CollectorRegistry()
    table = table_with_history(MemoryStorage())
    with prometheus.export(registry):
        result = table.upsert(ROWS)
        compact(table.storage, Settings.of({}), schedule_compaction(table.storage, Settings.read(DUE)))
    table.upsert(ROWS)
    assert value(registry, "hoodie_commits_total", operation="UPSERT") == 1
    assert value(registry, "hoodie_commits_total", operation="COMPACT") == 1
    changes = {change: value(registry, "hoodie_rows_total", operation="UPSERT", change=change) for change in CHANGES}
    assert changes == {"inserted": 1, "updated": 2, "deleted": 0}
    assert value(registry, "hoodie_rows_total", operation="COMPACT", change="updated") is None
    assert value(registry, "hoodie_written_bytes_total", operation="UPSERT") == result.metadata.bytes_written
    assert value(registry, "hoodie_files_written_total", operation="UPSERT") == len(result.files)
    assert value(registry, "hoodie_commit_seconds_count", operation="UPSERT") == 1
    assert value(registry, "hoodie_commit_seconds_sum", operation="UPSERT") == pytest.approx(
        sum(result.seconds.values()), rel=0.5
    )
    assert value(registry, "hoodie_phase_seconds_total", phase="write")
    assert value(registry, "hoodie_newest_commit_seconds")


CHANGES = ("inserted", "updated", "deleted")


def test_a_table_is_measured_when_asked() -> None:
    registry = prometheus_client.CollectorRegistry()
    table = table_with_history(MemoryStorage())
    with prometheus.export(registry) as exporter:
        assert value(registry, "hoodie_table_base_bytes") is None
        exporter.observe(table)
        slices = table.slices()
        assert value(registry, "hoodie_table_base_bytes") == sum(s.base.size for s in slices if s.base)
        assert value(registry, "hoodie_table_log_bytes") == sum(log.size for s in slices for log in s.logs)
        assert value(registry, "hoodie_table_file_groups") == 3
        assert value(registry, "hoodie_table_pending_writes") == 0
        schedule_compaction(table.storage, Settings.of(DUE))
        exporter.observe(table)
        assert value(registry, "hoodie_table_pending_writes") == 1
        age = value(registry, "hoodie_table_commit_age_seconds")
        assert age is not None
        assert 0 <= age < 60


def test_two_exporters_to_one_registry_are_refused() -> None:
    registry = prometheus_client.CollectorRegistry()
    with prometheus.export(registry), pytest.raises(InvalidInput, match="already"):
        prometheus.export(registry)


@pytest.mark.parametrize(
    ("package", "export"), [("prometheus_client", prometheus.export), ("opentelemetry", otel.export)]
)
def test_an_exporter_without_its_package_names_the_extra(
    package: str, export: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=r"pip install 'hoodie\[(prometheus|opentelemetry)\]'"):
        export()


def test_open_telemetry_is_told_the_same() -> None:
    reader = InMemoryMetricReader()
    table = table_with_history(MemoryStorage())
    with otel.export(MeterProvider(metric_readers=[reader])) as exporter:
        result = table.upsert(ROWS)
        exporter.observe(table)
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: metric.data.data_points
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    (commits,) = found["hoodie.commits"]
    assert (dict(commits.attributes or {}), commits.value) == ({"table": "trips", "operation": "UPSERT"}, 1)
    (size,) = found["hoodie.written_bytes"]
    assert size.value == result.metadata.bytes_written
    (base,) = found["hoodie.table.base_bytes"]
    assert base.value == sum(s.base.size for s in table.slices() if s.base)
    (seconds,) = found["hoodie.commit_seconds"]
    assert seconds.count == 1


def test_no_option_of_the_storage_is_in_the_metrics() -> None:
    secret = "hush-7f3a"
    registry = prometheus_client.CollectorRegistry()
    with prometheus.export(registry) as exporter:
        table = table_with_history(storage_for("memory://measured/trips", {"token": secret}))
        exporter.observe(table)
    text = prometheus_client.generate_latest(registry).decode()
    assert 'table="trips"' in text
    assert secret not in text


# --- the page, the dashboard and the alerts ---


def exported() -> set[str]:
    """The names of series as Prometheus has them."""
    endings = {
        MetricKind.COUNTER: ("_total",),
        MetricKind.GAUGE: ("",),
        MetricKind.HISTOGRAM: ("_bucket", "_sum", "_count"),
    }
    return {metric.name + ending for metric in METRICS for ending in endings[metric.kind]}


def named(text: str) -> set[str]:
    return set(re.findall(r"\bhoodie_[a-z_]+", text))


def test_the_dashboard_and_the_alerts_ask_for_metrics_that_there_are() -> None:
    dashboard = json.loads((ROOT / "docs" / "metrics-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(expressions) >= 8
    assert all(named(expression) for expression in expressions)
    assert named(" ".join(expressions)) <= exported()
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
    alerts = (ROOT / "docs" / "metrics-alerts.yml").read_text()
    assert len(re.findall(r"- alert: ", alerts)) >= 4
    assert named(alerts) <= exported()


def test_the_page_has_all_metrics() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    for metric in METRICS:
        ending = "_total" if metric.kind is MetricKind.COUNTER else ""
        line = f"| `{metric.name}{ending}` | {metric.kind.value} | {', '.join(metric.labels)} | {metric.help} |"
        assert line in page, line


# --- failures ---


def failed(registry: Any, operation: str, error: str, table: str = "trips") -> float | None:
    found: float | None = registry.get_sample_value(
        "hoodie_failed_writes_total", {"table": table, "operation": operation, "error": error}
    )
    return found


def test_writes_that_raise_are_counted_by_their_error(tmp_path: Path) -> None:
    registry = prometheus_client.CollectorRegistry()
    table = hoodie.create_table(tmp_path / "t", name="trips", record_key="id", partition_by="city", ordering="ts")
    with prometheus.export(registry):
        table.upsert(ROWS)
        with pytest.raises(SchemaMismatch):
            table.upsert(ROWS.drop_columns(["id"]))
        with pytest.raises(InvalidInput):
            table.delete_partitions(["nowhere"])
        with pytest.raises(SchemaMismatch):
            hoodie.hudi.write(ROWS.drop_columns(["id"]), str(tmp_path / "t"), {})
        with pytest.raises(InstantNotFound):
            hoodie.hudi.HoodieWriteClient(str(tmp_path / "t")).insert(ROWS, "20240101000000000")
        with pytest.raises(UnsupportedTable):
            table.compact()
    with pytest.raises(SchemaMismatch):
        table.upsert(ROWS.drop_columns(["id"]))
    assert failed(registry, "UPSERT", "SchemaMismatch") == 2
    assert failed(registry, "DELETE_PARTITION", "InvalidInput") == 1
    assert failed(registry, "INSERT", "InstantNotFound") == 1
    assert failed(registry, "COMPACT", "UnsupportedTable") == 1
    assert value(registry, "hoodie_commits_total", operation="UPSERT") == 1


def test_a_write_to_a_storage_that_fails_is_counted_by_the_path_and_asks_it_nothing_more() -> None:
    registry = prometheus_client.CollectorRegistry()
    asked: list[str] = []

    class Refusing(MemoryStorage):
        @property
        def root(self) -> str:
            return "lake/t"

        def read(self, path: str) -> bytes:
            asked.append(path)
            raise PermissionError(13, "denied", path)

    storage = Refusing()
    with prometheus.export(registry), pytest.raises(AccessDenied), failures_heard(storage, "upsert"):
        storage.read("rows")
    assert failed(registry, "UPSERT", "AccessDenied", table="t") == 1
    assert asked == ["rows"]


def test_a_compaction_that_another_process_runs_is_no_failure() -> None:
    registry = prometheus_client.CollectorRegistry()
    with prometheus.export(registry), pytest.raises(PlanInUse), failures_heard(MemoryStorage(), "compact"):
        raise PlanInUse("somebody runs it")
    assert not [sample for family in registry.collect() for sample in family.samples if "failed" in sample.name]
