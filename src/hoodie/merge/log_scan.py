"""Which blocks of a file slice's logs count, and in which order they are merged."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hoodie.errors import UnsupportedTable
from hoodie.formats.log.blocks import BlockKind, BlockMap
from hoodie.formats.log.content import is_rollback


class Headed(Protocol):
    """A block, with or without its content."""

    @property
    def kind(self) -> BlockKind: ...
    @property
    def header(self) -> BlockMap: ...


B = TypeVar("B", bound=Headed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """Which instants' blocks a reader sees."""

    completed: AbstractSet[str]  # of commit, deltacommit and replacecommit, in the active timeline
    latest: str  # the instant of the query, inclusive: the scan stops at the first block of a later one
    first_active: str = ""  # oldest instant of the active timeline: older ones are archived, hence complete
    inflight: AbstractSet[str] = frozenset()
    after: str = ""  # only instants after this one are wanted (exclusive)
    rollbacks: tuple[str, ...] = ()  # paths of completed rollbacks, read where a block is of an instant not known
    archive: str = ""  # the folder with those that left the timeline

    def shows(self, instant: str) -> bool:
        complete = instant in self.completed or instant < self.first_active
        return complete and instant not in self.inflight and instant > self.after


@dataclass(frozen=True, slots=True)
class Scanned(Generic[B]):
    """What a scan of logs comes to."""

    blocks: tuple[B, ...]  # data and delete blocks to merge, oldest first
    corrupt: int = 0  # CORRUPT blocks met
    rollbacks: int = 0  # rollback blocks met
    rolled_back: int = 0  # blocks those took away, corrupt ones included
    hidden: int = 0  # data and delete blocks of instants that the reader does not see


def blocks_to_merge(blocks: Iterable[B], committed: Committed) -> Scanned[B]:
    """The blocks that count.

    blocks  of the slice's log files in their order (change logs left out), each file's in its order;
            none is asked for after the one that stops the scan
    Raises  UnsupportedTable on a command that is no rollback, or a change-data block
    Source  Hudi 0.15's merged log scanner; pinned by tests/vectors/log_scan.json
    """
    queue: list[B] = []
    corrupt = rollbacks = rolled_back = hidden = 0
    for block in blocks:
        if block.kind is BlockKind.CORRUPT:
            corrupt += 1
            queue.append(block)  # kept, for a rollback to take away
        elif block.header.instant > committed.latest:
            break
        elif block.kind is BlockKind.COMMAND:
            # Honoured whatever the state of the rollback itself: its target may be archived by now.
            target = _target(block)
            remaining = [one for one in queue if one.kind is not BlockKind.CORRUPT and one.header.instant != target]
            rollbacks, rolled_back = rollbacks + 1, rolled_back + len(queue) - len(remaining)
            queue = remaining
        elif not _mergeable(block) or not committed.shows(block.header.instant):
            hidden += 1
        else:
            queue.append(block)
    merged = tuple(block for block in queue if block.kind is not BlockKind.CORRUPT)
    return Scanned(merged, corrupt, rollbacks, rolled_back, hidden)


def blocks_to_merge_compacted(blocks: Iterable[B], committed: Committed) -> Scanned[B]:
    """As `blocks_to_merge`, for logs in which a log compaction has run.

    A block that names COMPACTED_BLOCK_TIMES stands for the blocks of those instants, at the place of the newest of
    them, or, where the reader sees none of them, at its own; compacted blocks may be compacted again. A rollback takes
    away its target's blocks wherever they are.
    """
    by_instant: dict[str, list[B]] = {}  # in order of arrival
    targets: set[str] = set()
    corrupt = rollbacks = hidden = 0
    for block in blocks:
        if block.kind is BlockKind.CORRUPT:
            corrupt += 1
        elif block.header.instant > committed.latest:
            break
        elif block.kind is BlockKind.COMMAND:
            rollbacks += 1
            targets.add(_target(block))
        elif not _mergeable(block) or not committed.shows(block.header.instant):
            hidden += 1
        else:
            by_instant.setdefault(block.header.instant, []).append(block)
    rolled_back = sum(len(by_instant.pop(target, ())) for target in targets)
    stands_for: dict[str, str] = {}  # instant -> the instant of the compacted block that holds its rows in the end
    newest_first: dict[str, None] = {}
    for instant, of_instant in reversed(by_instant.items()):
        if compacted := of_instant[0].header.compacted:
            final = stands_for.get(instant, instant)
            stands_for.update(dict.fromkeys(compacted, final))
            if by_instant.keys().isdisjoint(compacted):  # the reader does not see them: then at its own place
                newest_first.setdefault(final)
        else:
            newest_first.setdefault(stands_for.get(instant, instant))
    merged = tuple(block for instant in reversed(newest_first) for block in by_instant[instant])
    return Scanned(merged, corrupt, rollbacks, rolled_back, hidden)


def _mergeable(block: Headed) -> bool:
    if block.kind is BlockKind.CDC_DATA:
        raise UnsupportedTable("a change-data block among the logs of a slice: leave out files that end in .cdc")
    return block.kind.is_data or block.kind is BlockKind.DELETE


def _target(block: Headed) -> str:
    if not is_rollback(block.header) or block.header.target is None:
        raise UnsupportedTable(f"a command block that is no rollback, of instant {block.header.instant}")
    return block.header.target
