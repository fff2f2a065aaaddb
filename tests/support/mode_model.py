"""The model of a table of version 8 or 9: its merge mode says which version of a row wins, in logs as in base files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from support.history_model import BY_ORDERING, Copy, Identity, Row, TableModel, Tombstone, Version, above, deleted


@dataclass(frozen=True)
class OrderedTombstone(Tombstone):
    """after_delete: a delete without ordering value was before it, so that the base file's row no longer counts."""

    after_delete: bool = False


@dataclass(frozen=True)
class ModeModel(TableModel):
    """Commit time: what comes later wins. Event time: the greater ordering value, of deletes that have one as well."""

    @property
    def by_event_time(self) -> bool:
        return bool(self.payload == BY_ORDERING and self.shape.ordering)

    def combined(self, batch: Sequence[tuple[Identity, Row]], last: bool = False) -> list[tuple[Identity, Row]]:
        return super().combined(batch, last or not self.by_event_time)

    def visible(self, copy: Copy) -> Version | None:
        base, log = copy.base, copy.log
        if base is None or log is None:
            return base if log is None else log if isinstance(log, Version) else None
        if isinstance(log, Version):
            return self.outcome(base, log)
        final = log.ordering is None or (isinstance(log, OrderedTombstone) and log.after_delete)
        outranked = self.by_event_time and not final and above(self.ordering(base.values), log.ordering)
        return base if outranked else None

    def logged(self, log: Version | Tombstone | None, row: Row, instant: str) -> Version | Tombstone:
        if deleted(row):
            return super().logged(log, row, instant)
        after_delete = getattr(log, "after_delete", False) or (isinstance(log, Tombstone) and log.ordering is None)
        if log is not None and self.by_event_time:
            before = self.ordering(log.values) if isinstance(log, Version) else log.ordering
            if above(before, self.ordering(row)):
                return log
        return Version(row, instant, after_delete or (isinstance(log, Tombstone) and not self.by_event_time))

    def tombstone(self, log: Version | Tombstone | None, ordering: Any) -> Version | Tombstone:
        if not self.by_event_time or ordering is None:
            return OrderedTombstone(None)
        if isinstance(log, Tombstone):
            return log if log.ordering is None or log.ordering > ordering else self._over(log, ordering)
        if log is not None and above(self.ordering(log.values), ordering):
            return log
        return self._over(log, ordering)

    def _over(self, log: Version | Tombstone | None, ordering: Any) -> Tombstone:
        return OrderedTombstone(ordering, getattr(log, "after_delete", False))
