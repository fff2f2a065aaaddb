"""What monitoring systems are told: commits as they happen, and tables when they are looked at."""

from hoodie.metrics import otel, prometheus
from hoodie.metrics.exporter import Exporter

__all__ = ["Exporter", "otel", "prometheus"]
