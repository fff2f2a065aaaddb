"""The metadata table beside the timeline of its data table: what of it counts, and whether it is up to date.

Pure rules, except `open_metadata`. Source: docs/format/metadata-table.md 1.1, 5 and 7.2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from hoodie.config.table import TableConfig
from hoodie.merge.log_scan import Committed
from hoodie.metadata.keys import FOLDER, MetadataPartition
from hoodie.metadata.missing_instants import completed_of, missing_instants, of_restores
from hoodie.model.instant import Action, State
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import SubfolderStorage
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline, TimelineLayout, layout_of, time_after, utc_now

_UNDONE = frozenset({Action.ROLLBACK, Action.RESTORE})
#: What is read of its timeline again and again: compactions.
_STAMPED = frozenset({Action.COMMIT})
#: Instants of the metadata table's own: building, compaction and other services of it.
_OWN = re.compile(r"\d{17}(00[1-6]|0[1-9]\d|[1-9]\d\d)", re.ASCII)
_BUILDING = "00000000000000"


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A metadata table at one moment.

    storage   of its own folder
    config    of the data table: layout and time zone are the same
    timeline  its own, loaded after the data table's
    data      the data table's
    ready     the partitions that are complete
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    data: Timeline
    ready: frozenset[MetadataPartition]

    @property
    def newest(self) -> str:
        """Time of its newest completed instant; "" when there is none."""
        return max((instant.requested for instant in completed_of(self.timeline)), default="")

    @property
    def layout(self) -> TimelineLayout:
        """The layout of its timeline: that of its data table."""
        return layout_of(self.config)

    def time(self, after: str) -> str:
        """A time for an instant of its own, from table version 8 on, later than all there are and than another."""
        return time_after(max(self.timeline.newest, after), self.config.timezone, utc_now)

    @property
    def of_restores(self) -> frozenset[str]:
        """Times of what was done here for restores of the data table, where these are other times than there."""
        return frozenset().union(*of_restores(self.timeline, self.data).values())

    def reload(self) -> MetadataTable:
        """As it is now, beside the same timeline of its data table."""
        return replace(self, timeline=load_timeline(self.storage, self.config, before=self.timeline, stamped=_STAMPED))

    def blocks(self) -> Committed:
        """The log blocks that count: of instants that are completed here and on the data timeline, and of its own.

        An instant that the data table is still at, or gave up, is not among them. Hudi takes those as well that a
        completed rollback of the data table undid, and relies on its own rollback here to take them away. A later
        writer may have died with its block written: what a slower one put behind it counts, where Hudi's scan ends.
        """
        times = {instant.requested for instant in completed_of(self.timeline)}
        first = self.timeline.instants[0].requested if self.timeline.instants else ""
        valid = {instant.requested for instant in self.data.instants if instant.state is State.COMPLETED}
        valid = {time for time in valid if time in times or time < first} | self._archived(times)
        own = {*own_instants(self.timeline), *self.of_restores}
        archived = min(first, self.compacted)  # up to here both have archived, or may have
        return Committed(completed=frozenset(valid | own), latest=self.timeline.newest, first_active=archived)

    def unknown(self, instants: Iterable[str]) -> list[str]:
        """Those of some instants of log blocks that no longer are what they were, oldest first: completed here, and on
        the data timeline neither completed nor pending. Later ones than all there are those of a writer that began
        since the data timeline was loaded."""
        shown = self.blocks()
        times = {instant.requested for instant in completed_of(self.timeline)}
        on_timeline = {instant.requested for instant in self.data.instants}
        newest = max(on_timeline, default="")
        return sorted(
            time
            for time in instants
            if time in times and not shown.shows(time) and time not in on_timeline and time <= newest
        )

    def behind(self) -> tuple[str, ...]:
        """Instants that are completed on the data table and not in here, oldest first; it has completed instants."""
        return missing_instants(self.timeline, self.data)

    def problem(self) -> str:
        """Why it does not tell the state of the data table; "" when it does, as far as both timelines say."""
        if not self.newest:
            return "it has no completed instant"
        if lacking := self.behind():
            return (
                f"it is behind: {len(lacking)} instants of the table are not in it, the newest at {lacking[-1]}; "
                f"its own newest is {self.newest}"
            )
        return ""

    @property
    def compacted(self) -> str:
        """The newest compaction: what the data table did before it is completed, or was taken back. "": none"""
        return max((instant.requested for instant in self.timeline.completed({Action.COMMIT})), default="")

    def _archived(self, times: Collection[str]) -> set[str]:
        """Instants that the data table has archived, cleans before commits. A file group of which nothing stays gets no
        base file by a compaction, and keeps their blocks."""
        shown = {instant.requested for instant in self.data.instants}
        return {time for time in times if time < self.compacted and time not in shown}


def own_instants(timeline: Timeline) -> list[str]:
    """Completed instants of a metadata table that stand for none of the data table: by them it was built and kept."""
    return [
        instant.requested
        for instant in timeline.instants
        if instant.state is State.COMPLETED and (instant.action in _UNDONE or is_own(instant.requested))
    ]


def is_own(time: str) -> bool:
    """Whether the time of an instant is one of the metadata table's own: of building, compaction and other services."""
    return time.startswith(_BUILDING) or _OWN.fullmatch(time) is not None


def partitions_ready(config: TableConfig) -> frozenset[MetadataPartition]:
    """The partitions that are complete, by the data table's properties: none unless the file lists are."""
    kinds = {partition.value: partition for partition in MetadataPartition}
    ready = frozenset(kinds[name] for name in config.metadata_partitions if name in kinds)
    return ready if MetadataPartition.FILES in ready else frozenset()


def own_config(config: TableConfig) -> TableConfig:
    """The settings of the metadata table, whose folders have the names that a new table gives them."""
    return replace(config, timeline_path="timeline", history_path="history", archive_path="archived")


def open_metadata(storage: Storage, config: TableConfig, timeline: Timeline) -> MetadataTable | None:
    """The metadata table of a data table, by one listing of its timeline; None: the table has none.

    timeline  of the data table, loaded before: were it the later one, it could count what is not in here
    Raises    CorruptFile
    """
    ready = partitions_ready(config)
    if not ready:
        return None
    inside = SubfolderStorage(storage, FOLDER)
    own = own_config(config)
    return MetadataTable(inside, own, load_timeline(inside, own, stamped=_STAMPED), timeline, ready)
