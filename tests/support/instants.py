"""Instant times for tests."""

from __future__ import annotations

from hoodie.storage.protocol import Storage
from hoodie.table.state import load_state
from hoodie.timeline.clock import new_time, utc_now


def next_time(storage: Storage) -> str:
    """The time that the next instant of a table would take now."""
    state = load_state(storage)
    return new_time(state.timeline, state.config.timezone, utc_now)
