"""Metrics for Prometheus, by its own client: `pip install hoodie[prometheus]`."""

from collections.abc import Iterable
from typing import Any

from hoodie.errors import InvalidInput, MissingPackage
from hoodie.metrics.exporter import Exporter
from hoodie.metrics.measures import METRICS, Measure, Metric, MetricKind

__all__ = ["export"]

#: Upper bounds of the histogram of commits, in seconds.
_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


def export(registry: Any = None) -> Exporter:
    """Count all commits of this process from now on, in a registry of prometheus_client.

    registry  None: `prometheus_client.REGISTRY`, which `start_http_server`, `push_to_gateway`, `write_to_textfile` and
              `generate_latest` take
    Raises    InvalidInput when the registry has the metrics already; MissingPackage without prometheus_client
    """
    try:
        import prometheus_client
    except ModuleNotFoundError as missing:
        raise MissingPackage("prometheus-client", "prometheus", "hoodie.metrics.prometheus") from missing

    registry = prometheus_client.REGISTRY if registry is None else registry
    try:
        instruments = {metric: _instrument(prometheus_client, metric, registry) for metric in METRICS}
    except ValueError as error:
        raise InvalidInput(
            f"the registry has metrics of these names already; one exporter is enough: {error}"
        ) from error

    def record(measures: Iterable[Measure]) -> None:
        for measure in measures:
            labelled = instruments[measure.metric].labels(*measure.labels)
            if measure.metric.kind is MetricKind.COUNTER:
                labelled.inc(measure.value)
            elif measure.metric.kind is MetricKind.GAUGE:
                labelled.set(measure.value)
            else:
                labelled.observe(measure.value)

    return Exporter(record)


def _instrument(client: Any, metric: Metric, registry: Any) -> Any:
    if metric.kind is MetricKind.HISTOGRAM:
        return client.Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=_BUCKETS)
    kind = client.Counter if metric.kind is MetricKind.COUNTER else client.Gauge
    return kind(metric.name, metric.help, metric.labels, registry=registry)
