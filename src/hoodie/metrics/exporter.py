"""An exporter: it hears of commits and failures, looks at tables when asked, and hands measures over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from hoodie.facts.table import table_facts
from hoodie.metrics.measures import Measure, measures_of_commit, measures_of_table, of_failure
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.writing.result import on_commit, on_failure

#: Hands measures over. It may be called by several threads at once.
_Record = Callable[[Iterable[Measure]], None]


class Observed(Protocol):
    """A table, such as `hoodie.open_table` gives."""

    @property
    def storage(self) -> Storage: ...

    @property
    def options(self) -> Mapping[str, str]: ...


class Exporter:
    """Tells a monitoring system of each commit and failed write of this process, until `cancel` or the end of a `with`
    block.
    """

    def __init__(self, record: _Record) -> None:
        self._record = record
        self._registration = on_commit(lambda result: record(measures_of_commit(result, time.time())))
        self._hears_no_failures = on_failure(lambda failed: record(of_failure(failed)))

    def observe(self, table: Observed) -> None:
        """Measure a table as it is now: bytes, file groups, small files, pending writes. It reads the timeline and
        lists the partitions; a scheduler calls it, as often as the listing may cost.

        Raises  TableNotFound; CorruptFile; UnsupportedTable
        """
        self._record(measures_of_table(table_facts(load_state(table.storage), Settings.of(table.options))))

    def cancel(self) -> None:
        """Count no more commits and failures. What was counted stays."""
        self._registration.cancel()
        self._hears_no_failures()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *raised: object) -> None:
        self.cancel()
