"""Metrics for OpenTelemetry, by its API: `pip install hoodie[opentelemetry]`. The SDK is the choice of the user."""

from collections.abc import Iterable
from typing import Any

from hoodie.errors import MissingPackage
from hoodie.metrics.exporter import Exporter
from hoodie.metrics.measures import METRICS, Measure, Metric, MetricKind

__all__ = ["export"]


def export(meter_provider: Any = None) -> Exporter:
    """Record all commits of this process from now on.

    meter_provider  of the OpenTelemetry SDK; None: the one that is set for the process
    Raises          MissingPackage without opentelemetry-api
    Names have dots where those of Prometheus have the first underscore: `hoodie.commits`, `hoodie.table.log_bytes`.
    """
    try:
        from opentelemetry import metrics
    except ModuleNotFoundError as missing:
        raise MissingPackage("opentelemetry-api", "opentelemetry", "hoodie.metrics.otel") from missing

    meter = metrics.get_meter("hoodie", meter_provider=meter_provider)
    instruments = {metric: _instrument(meter, metric) for metric in METRICS}

    def record(measures: Iterable[Measure]) -> None:
        for measure in measures:
            attributes = dict(zip(measure.metric.labels, measure.labels, strict=True))
            instrument = instruments[measure.metric]
            if measure.metric.kind is MetricKind.COUNTER:
                instrument.add(measure.value, attributes)
            elif measure.metric.kind is MetricKind.GAUGE:
                instrument.set(measure.value, attributes)
            else:
                instrument.record(measure.value, attributes)

    return Exporter(record)


def _instrument(meter: Any, metric: Metric) -> Any:
    name = metric.name.replace("hoodie_table_", "hoodie.table.").replace("hoodie_", "hoodie.")
    unit = "By" if name.endswith("bytes") else "s" if name.endswith("seconds") else "1"
    makers = {
        MetricKind.COUNTER: meter.create_counter,
        MetricKind.GAUGE: meter.create_gauge,
        MetricKind.HISTOGRAM: meter.create_histogram,
    }
    return makers[metric.kind](name, unit=unit, description=metric.help)
