"""Which keys a write put into which file groups, and took from them, by the files that it wrote: for the record index.

Counts of a rewritten base file say whether its keys changed at all; if they did, the key columns of both versions are
compared. Keys in new logs were found where they are, unless rows moved or were deleted, or another index looked. What
a delete in a log comes to is certain where it wins against every version, else the merged slice is asked.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile, CorruptIndex, UnsupportedTable
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.log.content import data_rows
from hoodie.formats.log.delete_block import decode_deletes, without_ordering
from hoodie.index.contract import Index
from hoodie.index.stored_keys import keys_in
from hoodie.lookup.record_index import uses_record_index
from hoodie.merge.rows import as_array
from hoodie.metadata.changes import KeyChanges
from hoodie.metadata.locations import RecordLocator, open_locator
from hoodie.metadata.record_index import PLACES, places_table
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId, FileSlice, LogFile, parse_data_file
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.row_keys import KeyReader
from hoodie.reading.slices.reader import slice_reader
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.state import TableState
from hoodie.view.slices import FileSystemView, merged_slices


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What a write left, unpublished.

    state     of the table when the instant was taken
    instant   of the write
    schema    the user's columns after it
    stats     of its files
    replaced  file groups that it takes away, by partition path
    index     that looked the keys up
    looked_up it did look them up
    threads   that read
    """

    state: TableState
    instant: str
    schema: pa.Schema
    stats: Sequence[WriteStat]
    replaced: Mapping[str, Collection[str]]
    index: Index
    looked_up: bool
    threads: int = 1


@dataclass(frozen=True, slots=True)
class _Group:
    """What one file group got."""

    group: FileGroupId
    before: FileSlice | None
    bases: tuple[WriteStat, ...]
    logs: tuple[WriteStat, ...]


_Changed = tuple[pa.Table, pa.Table]  # of the schema `PLACES`: inserted, deleted


def key_changes(written: WrittenFiles) -> KeyChanges | None:
    """What a write changes in the record index of its table; None: the index is of no use.

    Costs the key columns of new base files, and of both versions of rewritten ones that gained or lost rows; of
    replaced file groups those of their slices; the new logs where they may hold other keys than were there.
    """
    state = written.state
    exact = written.looked_up and uses_record_index(written.index)
    try:
        parts = _changes(written, exact)
    except CorruptIndex:  # it is removed when the write is published
        return None
    empty = PLACES.empty_table()
    inserted = pa.concat_tables([empty, *(part for part, _ in parts)])
    deleted = pa.concat_tables([empty, *(part for _, part in parts)])
    return KeyChanges(inserted, deleted, exact, state.timeline.commits)


def _changes(written: WrittenFiles, exact: bool) -> list[_Changed]:
    view, groups = _groups(written)
    slices = merged_slices(view)
    replaced_slices = [
        slices[FileGroupId(path, name)]
        for path, ids in written.replaced.items()
        for name in ids
        if FileGroupId(path, name) in slices
    ]
    keys_of = _reader(written, [*replaced_slices, *(part.before for part in groups if part.before is not None)])
    calls: list[Callable[[], _Changed]] = [partial(_replaced, keys_of, slice_) for slice_ in replaced_slices]
    calls += [partial(_of_bases, written, keys_of, part) for part in groups if part.bases]
    if logged := [part for part in groups if part.logs]:
        moves = any(stat.num_deletes for stat in written.stats)
        sure = exact and not moves
        locator = None if sure else open_locator(written.state.storage, written.state.config, written.state.timeline)
        if isinstance(locator, str):
            raise CorruptIndex(locator)
        calls += [partial(_of_logs, written, locator, part) for part in logged]
    return in_threads(lambda call: call(), calls, written.threads)


def _groups(written: WrittenFiles) -> tuple[FileSystemView, list[_Group]]:
    """The file groups whose keys may have changed, with the slices that they had; one listing of their partitions."""
    order = sorted(written.stats, key=lambda stat: (stat.partition or "", stat.file_id))
    parts: list[_Group] = []
    for group, group_stats in groupby(order, key=lambda stat: FileGroupId(stat.partition or "", stat.file_id)):
        stats = list(group_stats)
        bases = tuple(stat for stat in stats if stat.log_version is None and _changes_keys(stat))
        logs = tuple(stat for stat in stats if stat.log_version is not None)
        if bases or logs:
            parts.append(_Group(group, None, bases, logs))
    old = {part.group.partition for part in parts if part.logs or any(_is_next(stat) for stat in part.bases)}
    needed = old | {path for path, ids in written.replaced.items() if ids}
    view = FileSystemView(written.state.timeline)
    if needed:
        view = written.state.view(needed)
    slices = merged_slices(view)
    return view, [replace(part, before=slices.get(part.group)) for part in parts]


def _is_next(stat: WriteStat) -> bool:
    """Whether a base file is a further version of its file group's."""
    return stat.prev_commit not in ("null", "")


def _changes_keys(stat: WriteStat) -> bool:
    return not _is_next(stat) or bool(stat.num_inserts or stat.num_deletes)


def _reader(written: WrittenFiles, slices: Sequence[FileSlice]) -> Callable[[FileSlice], pa.Array]:
    state = written.state
    reader = KeyReader.of(state, FileSystemView(state.timeline), slices)

    def keys(slice_: FileSlice) -> pa.Array:
        if slice_.base is not None and not slice_.logs:
            return keys_in(state.storage, slice_.base.path, slice_.base.size)
        return as_array(reader.keys(slice_)).cast(pa.string())

    return keys


def _replaced(keys_of: Callable[[FileSlice], pa.Array], slice_: FileSlice) -> _Changed:
    return PLACES.empty_table(), places_table(keys_of(slice_), slice_.group)


def _of_bases(written: WrittenFiles, keys_of: Callable[[FileSlice], pa.Array], part: _Group) -> _Changed:
    storage = written.state.storage
    new = pa.concat_arrays([keys_in(storage, stat.path or "", stat.file_size) for stat in part.bases])
    old = pa.array([], pa.string()) if part.before is None else keys_of(part.before)
    return _difference(part.group, new, old)


def _difference(group: FileGroupId, new: pa.Array, old: pa.Array) -> _Changed:
    if not len(old):
        return places_table(new, group), PLACES.empty_table()
    return places_table(_without(new, old), group), places_table(_without(old, new), group)


def _without(keys: pa.Array, others: pa.Array) -> pa.Array:
    return keys.filter(pc.invert(pc.is_in(keys, value_set=others)))


# --- logs ---


def _of_logs(written: WrittenFiles, locator: RecordLocator | None, part: _Group) -> _Changed:
    """locator  None: rows of the logs are where the record index has their keys, and none is deleted"""
    if locator is None and not any(stat.num_inserts for stat in part.logs):
        return PLACES.empty_table(), PLACES.empty_table()
    stored, certain, doubtful = _keys_in_logs(written.state.storage, written.instant, part.logs)
    if locator is not None:
        stored = _not_there(locator, part.group, stored)
    candidates = pa.concat_arrays([stored, doubtful])
    live = _live(written, part, candidates) if len(candidates) else candidates
    deleted_keys = pa.concat_arrays([certain, _without(doubtful, live)])
    return places_table(stored.filter(pc.is_in(stored, value_set=live)), part.group), places_table(
        deleted_keys, part.group
    )


def _keys_in_logs(storage: Storage, instant: str, logs: Iterable[WriteStat]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Keys of rows that a write put into logs, of deletes that win against every version, and of other deletes."""
    rows, certain, doubtful = [], [], []
    for stat in logs:
        path = stat.path or ""
        for block in read_blocks(storage.read(path), path):
            if block.header.instant != instant:
                continue
            if block.kind is BlockKind.DELETE:
                deletes = decode_deletes(block.content, path, block.offset)
                keys, sure = as_array(deletes.column("record_key")), as_array(without_ordering(deletes))
                certain.append(keys.filter(sure))
                doubtful.append(keys.filter(pc.invert(sure)))
            elif block.kind in (BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA):
                rows.append(as_array(data_rows(block, path, [RECORD_KEY]).column(0)).cast(pa.string()))
    return tuple(pa.concat_arrays([pa.array([], pa.string()), *part]).unique() for part in (rows, certain, doubtful))


def _not_there(locator: RecordLocator, group: FileGroupId, keys: pa.Array) -> pa.Array:
    """Those of the keys whose entries say another file group, or that have none."""
    try:
        paths, ids = locator.locate(keys)
    except (CorruptFile, UnsupportedTable, FileNotFoundError) as damage:
        raise CorruptIndex(str(damage)) from damage
    in_group = pc.and_(pc.equal(paths, group.partition), pc.equal(ids, group.file_id))
    return keys.filter(pc.invert(pc.fill_null(in_group, False)))


def _live(written: WrittenFiles, part: _Group, keys: pa.Array) -> pa.Array:
    """Those of the keys that rows have once the write is published: its logs are merged with what was there."""
    state = written.state
    reader = slice_reader(state, with_meta_fields(written.schema))
    shown = reader.committed
    shown = replace(
        shown,
        completed=shown.completed | {written.instant},
        inflight=shown.inflight - {written.instant},
        latest=max(shown.latest, written.instant),
    )
    files = [
        parse_data_file(part.group.partition, (stat.path or "").rpartition("/")[2], stat.file_size)
        for stat in part.logs
    ]
    new = tuple(file for file in files if isinstance(file, LogFile))
    before = part.before
    merged = FileSlice(
        part.group,
        written.instant if before is None else before.base_instant,
        None if before is None else before.base,
        new if before is None else (*before.logs, *new),
    )
    own = KeyReader(state.storage, with_meta_fields(written.schema), replace(reader, committed=shown))
    live_keys = own.keys(merged)
    return keys.filter(pc.is_in(keys, value_set=as_array(live_keys).cast(pa.string())))
