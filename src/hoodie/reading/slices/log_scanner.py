"""Which blocks of a slice's logs count, found by reading their headers, and what was skipped.

Source: docs/format/log-files.md 7 and 8.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hoodie.errors import CorruptFile, CorruptLogBlock, DamagedLog, UnsupportedTable
from hoodie.formats.log.blocks import BlockHead, BlockKind, BlockMap, read_block_headers
from hoodie.formats.log.content import is_rollback
from hoodie.merge.log_scan import Committed, Scanned, blocks_to_merge, blocks_to_merge_compacted
from hoodie.model.files import LogFile
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage, in_threads, waiting_threads
from hoodie.timeline.archive import rolled_back_in_archive
from hoodie.timeline.completions import rolled_back_times
from hoodie.timeline.timeline import Timeline
from hoodie.view.published import PublishedNames

_LOGS_AT_ONCE = 8
#: A log up to this many bytes is read whole at once, unless the slice has very many of them.
_WHOLE = 256 * 1024
_WHOLE_LOGS = 256


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What a scan of a slice's logs met, in blocks. `damaged` is what was skipped without a rollback's word."""

    merged: int = 0
    hidden: int = 0  # of instants that the reader does not see
    corrupt: int = 0
    rollbacks: int = 0
    rolled_back: int = 0
    damaged: tuple[DamagedLog, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block of a log file, its content yet to be read unless the file was read whole."""

    path: str
    head: BlockHead
    data: bytes | None = field(default=None, repr=False)  # the whole file

    @property
    def kind(self) -> BlockKind:
        return self.head.kind

    @property
    def header(self) -> BlockMap:
        return self.head.header


def committed_blocks(timeline: Timeline, as_of: str | None = None, archive: str = "") -> Committed:
    """The blocks that a reader sees: of completed instants, and of those before the timeline.

    as_of    only instants up to this one (inclusive); None: now
    archive  the folder of instants that left the timeline
    Blocks of later instants are passed by; Hudi ends its scan at the first one, and so misses a block that a slower
    writer with an earlier instant put behind it. A rollback counts whenever it was: its target was never to be seen.
    From table version 8 on the history knows which older instants were completed, and the view leaves out log files of
    others (`hoodie.view.slices`); what is left counts.
    """
    visible = timeline.visible(as_of)
    # Where two actions have one time, only a delta commit writes logs.
    completed = visible.completed - {instant.requested for instant in timeline.pending({Action.DELTA_COMMIT})}
    instants = {instant.requested for instant in timeline.instants} | set(timeline.history)
    return Committed(
        completed=completed,
        latest=timeline.newest,
        first_active=visible.first,
        inflight=frozenset(instants - completed),
        rollbacks=tuple(timeline.path(instant) for instant in timeline.completed({Action.ROLLBACK})),
        archive=archive,
    )


def find_blocks(
    storage: Storage, logs: Iterable[LogFile], committed: Committed
) -> tuple[tuple[PlacedBlock, ...], ScanReport]:
    """The blocks that count, oldest first, found by reading headers; change logs are left out.

    logs    in the order in which they are merged, as a slice has them
    Raises  CorruptLogBlock, UnsupportedTable, naming file and offset: bytes that are no block of this format version;
            FileNotFoundError when a log was cleaned away meanwhile
    """
    opened = _opened(storage, [log for log in logs if not log.cdc])
    blocks = [_checked_block(block) for blocks_of_file, _ in opened for block in blocks_of_file]
    compacted = any(block.header.compacted for block in blocks)
    scanned: Scanned[PlacedBlock]
    scanned = blocks_to_merge_compacted(blocks, committed) if compacted else blocks_to_merge(blocks, committed)
    damaged = (*_unexplained_damage(blocks), *_unknown(storage, blocks, committed), *_unexplained_rests(opened))
    report = ScanReport(
        len(scanned.blocks), scanned.hidden, scanned.corrupt, scanned.rollbacks, scanned.rolled_back, damaged
    )
    return scanned.blocks, report


def block_content(storage: Storage, block: PlacedBlock) -> bytes | memoryview:
    """The content of a block. Raises CorruptLogBlock when the file has become shorter."""
    start, length = block.head.content_offset, block.head.content_length
    if block.data is not None:
        return memoryview(block.data)[start : start + length]
    content = storage.read_range(block.path, start, start + length)
    if len(content) != length:
        raise CorruptLogBlock(block.path, f"{len(content)} bytes read where {length} were expected", start)
    return content


def _opened(storage: Storage, logs: Sequence[LogFile]) -> list[tuple[list[PlacedBlock], DamagedLog | None]]:
    whole = len(logs) <= _WHOLE_LOGS
    return in_threads(lambda log: _blocks_of(storage, log, whole), logs, min(_LOGS_AT_ONCE, waiting_threads(storage)))


def _blocks_of(storage: Storage, log: LogFile, whole: bool) -> tuple[list[PlacedBlock], DamagedLog | None]:
    """The blocks of a file, and bytes behind the last one if there are.

    Raises CorruptFile if it is shorter than listed: the metadata table lists files as they were published
    """
    data = storage.read(log.path) if whole and log.size <= _WHOLE else None
    size = log.size if data is None else len(data)

    def read(offset: int, length: int) -> bytes:
        end = offset + length
        return storage.read_range(log.path, offset, end) if data is None else data[offset:end]

    blocks = [PlacedBlock(log.path, head, data) for head in read_block_headers(read, size, log.path)]
    end = blocks[-1].head.end if blocks else 0
    if data is None and (end < size or any(block.kind is BlockKind.CORRUPT for block in blocks)):
        size = storage.size(log.path)
    if size < log.size:
        advice = "Restore it from a copy of the table; or read what is left with hoodie.read.ignore.missing.files=true."
        raise CorruptFile(log.path, f"it has {size} bytes, and was published with {log.size}", advice=advice)
    rest = DamagedLog(log.path, end, f"{size - end} bytes that are no block") if end < size else None
    return blocks, rest


def _checked_block(block: PlacedBlock) -> PlacedBlock:
    """The block. Raises CorruptLogBlock or UnsupportedTable if it is of a kind that no reader can pass by."""
    where = f"{block.path} at byte {block.head.offset}"
    if block.kind is BlockKind.CORRUPT:
        return block
    if block.kind is BlockKind.CDC_DATA:
        raise UnsupportedTable(f"{where}: a change-data block in a log that is not named .cdc")
    if block.kind is BlockKind.COMMAND and not is_rollback(block.header):
        raise UnsupportedTable(f"{where}: a command block that is no rollback; read the table with newer Hudi")
    instant = block.header.instant
    if not (instant.isascii() and instant.isdigit()):
        raise CorruptLogBlock(block.path, f"a block of instant {instant!r}, which is none", block.head.offset)
    return block


def _unexplained_damage(blocks: Iterable[PlacedBlock]) -> list[DamagedLog]:
    """Corrupt blocks that no later rollback accounts for."""
    damaged: list[DamagedLog] = []
    for block in blocks:
        if block.kind is BlockKind.COMMAND:
            damaged = []
        elif block.kind is BlockKind.CORRUPT:
            damaged.append(DamagedLog(block.path, block.head.offset, "a block that is cut short or damaged"))
    return damaged


def _unexplained_rests(opened: Sequence[tuple[list[PlacedBlock], DamagedLog | None]]) -> list[DamagedLog]:
    """Bytes that are no block and that no rollback in a later log accounts for."""
    rests: list[DamagedLog] = []
    for blocks, rest in opened:
        if any(block.kind is BlockKind.COMMAND for block in blocks):
            rests = []
        rests += [rest] if rest is not None else []
    return rests


def _unknown(storage: Storage, blocks: Sequence[PlacedBlock], committed: Committed) -> list[DamagedLog]:
    """Blocks of instants that neither the timeline nor a rollback names, be it in the logs, on the timeline or in the
    archive: another may be archived before the commits around what it undid."""
    targets = {block.header.target for block in blocks if block.kind is BlockKind.COMMAND}
    unknown = [
        block
        for block in blocks
        if block.kind not in (BlockKind.CORRUPT, BlockKind.COMMAND)
        and not committed.shows(instant := block.header.instant)
        and instant not in committed.inflight
        and instant not in targets
        and committed.after < instant <= committed.latest
    ]
    undone = rolled_back_times(storage, committed.rollbacks) if unknown else frozenset()
    if committed.archive and (times := frozenset(block.header.instant for block in unknown) - undone):
        undone |= rolled_back_in_archive(storage, committed.archive, times)
    return [
        DamagedLog(
            block.path, block.head.offset, f"a block of instant {instant}, which is not on the timeline", instant
        )
        for block in unknown
        if (instant := block.header.instant) not in undone
    ]


def logs_shown_since(
    then: Committed, now: Committed, commits: Iterable[PublishedNames]
) -> frozenset[tuple[str, str]] | None:
    """The files whose blocks count now and did not then, by partition path and name. In all others the same blocks
    count, as long as they have as many bytes.

    commits  what completed commits wrote, as far as it is known
    returns  None when it is not known: blocks no longer count, or it is not known what a commit wrote
    """
    if then.after != now.after or now.first_active > then.latest or not all(map(now.shows, then.completed)):
        return None
    shown = {instant for instant in {*now.completed, *then.inflight} if now.shows(instant) and not then.shows(instant)}
    written = {commit.instant.requested: commit.files for commit in commits} if shown else {}
    if not shown <= written.keys():
        return None
    return frozenset(
        (partition, name) for instant in shown for partition, names in written[instant].items() for name in names
    )
