"""The options of rollbacks."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackOptions:
    """How a rollback finds the files and blocks to remove."""

    using_markers: bool = option(
        "hoodie.rollback.using.markers",
        True,
        "A rollback of a pending write removes what the write's markers name. `false`: it lists all partitions and "
        "searches all logs, as it does anyway where markers are missing or unreadable.",
    )
