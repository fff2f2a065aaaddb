"""Writers that add to the logs of one file group at a time, each to a file of its own: which writes, on which tables.

What the others do is checked as for optimistic writers: `hoodie.plan.conflict`. Source:
docs/format/table-versions-8-9.md 8.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie.config.locks import ConcurrencyMode
from hoodie.config.options import Options
from hoodie.config.write import BucketEngine, WriteOperation
from hoodie.errors import InvalidOption
from hoodie.index import bucket
from hoodie.index.choose import bucket_engine
from hoodie.index.consistent_hashing import keeps_metadata
from hoodie.index.contract import Index
from hoodie.table.settings import Settings
from hoodie.table.state import TableState

#: Operations whose rows go to logs in this mode. The others write base files, or take file groups away.
APPENDING = frozenset({WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.DELETE})
_MODE = "hoodie.write.concurrency.mode"


def blocking(settings: Settings) -> Settings:
    """The settings of a write that does not add to logs: its new file groups have ids of their own."""
    if not settings.writers.concurrency.non_blocking:
        return settings
    mode = ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL.value
    return replace(settings, given=Options({**settings.given, _MODE: mode}))


def require_logs(state: TableState, index: Index, settings: Settings) -> None:
    """Raises InvalidOption where writers of the mode could not keep out of each other's way: on a table of another
    kind than Hudi has it for."""
    if not settings.writers.concurrency.non_blocking:
        return
    config, lacking = state.config, []
    if not config.merge_on_read:
        lacking.append("it is Copy-on-Write")
    if not state.layout.version.logs_of_writes:
        lacking.append(f"it has version {config.version}, whose log files do not say which write they are of")
    if index.name != bucket.NAME:
        lacking.append(f"its index is {index.name}")
    elif bucket_engine(settings.given, config) is not BucketEngine.SIMPLE or keeps_metadata(
        state.storage, state.timeline
    ):
        lacking.append(f"its buckets are those of {bucket.ENGINE}={BucketEngine.CONSISTENT_HASHING}")
    if lacking:
        raise InvalidOption(
            f"{_MODE}={ConcurrencyMode.NON_BLOCKING_CONCURRENCY_CONTROL} is for Merge-on-Read tables of version 8 or 9 "
            f"with the index BUCKET, engine SIMPLE. {config.name} is none: {'; '.join(lacking)}. Take "
            f"{ConcurrencyMode.OPTIMISTIC_CONCURRENCY_CONTROL}"
        )
