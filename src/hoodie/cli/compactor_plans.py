"""Pending compactions, as commands show them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A pending compaction.

    state              REQUESTED, or INFLIGHT: somebody runs it, or died in it
    slices             file slices, a task each
    read_mb, write_mb  what a run reads and writes, as the plan guesses
    """

    instant: str
    state: str
    slices: int
    log_files: int
    read_mb: int
    write_mb: int


@dataclass(frozen=True, slots=True)
class Plans:
    """The pending compactions, oldest first."""

    plans: tuple[PlanLine, ...]
