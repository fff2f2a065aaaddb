"""Instant times for tests."""

import datetime as dt
from collections.abc import Iterable

from hoodie.model.instant import format_time, parse_time
from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.timeline import new_time, utc_now


def next_time(storage: Storage) -> str:
    """The time that the next instant of a table would take now."""
    state = load_state(storage)
    return new_time(state.timeline, state.config.timezone, utc_now)


def aged(storage: MemoryStorage, instants: Iterable[str], days: int) -> MemoryStorage:
    """The same table, some of whose instants took place days earlier."""
    files = storage.snapshot()
    for instant in instants:
        earlier = format_time(parse_time(instant) - dt.timedelta(days=days))
        files = {
            path.replace(instant, earlier): data
            if path.endswith(".parquet")  # whose pages have checksums
            else data.replace(instant.encode(), earlier.encode())
            for path, data in files.items()
        }
    return MemoryStorage(files)
