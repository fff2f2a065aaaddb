"""Plans of reads in few words."""

from typing import Any

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.reading.filters.predicate import ANY, Tests
from hoodie.reading.scan import ScanKind, ScanPlan
from hoodie.reading.scan_plan import Read, plan_read
from hoodie.table.state import TableState


def plan_scan(
    state: TableState,
    kind: ScanKind | str = ScanKind.SNAPSHOT,
    *,
    settings: ReadSettings = DEFAULT_READ,
    for_spark: bool = False,
    tests: Tests = ANY,
    **asked: Any,
) -> ScanPlan:
    """asked: the other fields of `Read`"""
    return plan_read(state, Read(kind=kind, **asked), settings, for_spark=for_spark, tests=tests)
