"""Where the rows of a batch go that a global index finds in other partitions, or in several file groups.

A base file may still hold a key that a log has deleted, and an index of its own may know one that is gone: of doubtful
hits the stored rows are read. They also tell whether the incoming version wins: only then does the row move.
Source: docs/format/indexing-and-write-path.md 2 (update.partition.path) and 5.
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.read import ReadSettings
from hoodie.errors import KeyInTwoPartitions
from hoodie.lookup.batch import KeyLocations
from hoodie.merge.rows import KeyStatus, KeyStatuses, Mask, Positions, as_array, nullable, pick
from hoodie.merge.rules import Choice, MergeRule
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.reading.slices.reader import SliceReader, slice_reader
from hoodie.reading.snapshot import merged_rows, read_base_file
from hoodie.schema.conform import conform
from hoodie.schema.schema import with_meta_fields
from hoodie.table.state import TableState
from hoodie.view.slices import merged_slices

_NAMED = 5  # keys that an error names


@dataclass(frozen=True, slots=True)
class RelocationRule:
    """What decides where a row goes; picklable.

    schema      the user's columns after the write
    rule        which version of a row wins
    partitions  columns that the partition path is made of
    moves       a row goes where it says (True), or stays where it is stored
    delete      the rows are keys to be deleted, and say nothing of a partition
    """

    schema: pa.Schema
    rule: MergeRule
    partitions: tuple[str, ...]
    moves: bool
    delete: bool

    @property
    def columns(self) -> list[str]:
        """The columns of stored rows that are looked at, the record key first."""
        if self.delete or not self.moves:
            return [RECORD_KEY]
        return [RECORD_KEY, *self.rule.decides_on(self.schema.names)]


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Which rows of a batch were found in which file groups.

    rows      int64[h], positions in the batch
    groups    int64[h], positions in `places`
    stored    int64[h], of doubtful hits the position of the stored row in `versions`; GONE_NOW: the file group holds
              the key no more; UNREAD: the hit is not doubtful
    versions  stored rows: the columns of `RelocationRule`
    """

    rows: Positions
    groups: Positions
    places: tuple[FileGroupId, ...]
    stored: Positions
    versions: pa.Table


UNREAD, GONE_NOW = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """Rows with their places. A row that is in several file groups occurs as often.

    rows      as given, some with another partition path, and such as stand for a key that moves away
    groups    int64[n], positions in `places` of the hits; -1: none holds the row
    statuses  int8[n] of `KeyStatus`
    """

    rows: pa.Table
    groups: Positions
    statuses: KeyStatuses


def doubtful(partitions: pa.Array, rows: Positions, groups: Positions, places: Sequence[FileGroupId]) -> Mask:
    """bool[h]: hits of keys that are found in several file groups, or not in the partition that their row names.

    partitions  string[n], of the batch's rows
    """
    several = np.bincount(rows, minlength=len(partitions))[rows] > 1
    other: Mask = ~_same_partition(partitions, rows, groups, places)
    elsewhere = np.zeros(len(partitions), np.bool_)
    elsewhere[rows[other]] = True
    return several | elsewhere[rows]


def _same_partition(partitions: pa.Array, rows: Positions, groups: Positions, places: Sequence[FileGroupId]) -> Mask:
    if not len(rows):
        return np.zeros(0, np.bool_)
    stored = pa.array([place.partition for place in places], pa.string()).take(pa.array(groups))
    return np.asarray(pc.equal(stored, partitions.take(pa.array(rows))), np.bool_)


def resolve_locations(rows: pa.Table, hits: Hits, how: RelocationRule) -> Resolved:
    """Decide on each row.

    rows    the user's columns, record key and partition path; each key once
    Raises  KeyInTwoPartitions naming keys that the table holds in more than one partition, unless they are deleted
    """
    partitions = as_array(rows.column(PARTITION_PATH))
    count = rows.num_rows
    deletes = np.ones(count, np.bool_) if how.delete else how.rule.is_delete(rows)
    own = _same_partition(partitions, hits.rows, hits.groups, hits.places)
    live = hits.stored != GONE_NOW
    _refuse_two_partitions(rows, hits, live, deletes)

    # A key that no group holds comes back where a log of its partition deleted it.
    has_live = _any(hits.rows[live], count)
    back = _first_of_each(np.flatnonzero(~live & own & ~has_live[hits.rows] & ~deletes[hits.rows]), hits.rows)
    elsewhere = live & ~own & ~deletes[hits.rows]
    leaves, rows = _leaving(rows, hits, elsewhere, how)
    # A row that moves to a partition in whose files its key lies deleted takes its old place there.
    moved = _any(hits.rows[elsewhere & leaves[hits.rows]], count)
    into = _first_of_each(np.flatnonzero(~live & own & moved[hits.rows]), hits.rows)

    stays = np.flatnonzero(live & ~moved[hits.rows])  # updates where the key is, deletes among them
    moved_out = np.flatnonzero(elsewhere & moved[hits.rows])
    placed = _any(hits.rows[np.concatenate([stays, back, into])], count)
    fresh = np.flatnonzero(~placed & ~deletes)
    at_hit = np.concatenate([stays, back, moved_out, into])
    source = np.concatenate([hits.rows[at_hit], fresh])
    groups = np.concatenate([hits.groups[at_hit], np.full(len(fresh), -1, np.int64)])
    statuses = np.concatenate(
        [
            np.full(len(stays), KeyStatus.UPDATE),
            np.full(len(back), KeyStatus.INSERT),
            np.full(len(moved_out), KeyStatus.MOVED_OUT),
            np.full(len(into), KeyStatus.MOVED_IN),
            np.where(moved[fresh], KeyStatus.MOVED_IN, KeyStatus.INSERT),
        ]
    ).astype(np.int8)
    order = np.argsort(source, kind="stable")
    source, groups, statuses = source[order], groups[order], statuses[order]
    return Resolved(_at_places(rows.take(pa.array(source)), groups, hits.places), groups, statuses)


def _any(rows: Positions, count: int) -> Mask:
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return mask


def _first_of_each(hits: Positions, rows: Positions) -> Positions:
    """The first hit of each row; hits come in order."""
    return hits[np.unique(rows[hits], return_index=True)[1]] if len(hits) else hits


def _refuse_two_partitions(rows: pa.Table, hits: Hits, live: Mask, deletes: Mask) -> None:
    names = {path: code for code, path in enumerate(dict.fromkeys(place.partition for place in hits.places))}
    codes = np.array([names[place.partition] for place in hits.places], np.int64)
    relevant = live & ~deletes[hits.rows]
    pairs = np.unique(np.stack([hits.rows[relevant], codes[hits.groups[relevant]]]), axis=1)
    of_row = np.bincount(pairs[0], minlength=rows.num_rows)
    if (of_row < 2).all():
        return
    twice = np.flatnonzero(of_row > 1)
    paths = list(names)
    keys = as_array(rows.column(RECORD_KEY)).take(pa.array(twice[:_NAMED])).to_pylist()
    named = {
        key: tuple(paths[code] for code in pairs[1][pairs[0] == row])
        for key, row in zip(keys, twice[:_NAMED].tolist(), strict=True)
    }
    raise KeyInTwoPartitions(len(twice), named)


def _leaving(rows: pa.Table, hits: Hits, elsewhere: Mask, how: RelocationRule) -> tuple[Mask, pa.Table]:
    """Which rows leave the partition where their key is stored: those whose version wins, and says so. Where a rule
    makes one row of the two, it is that row which moves."""
    leaves = np.zeros(rows.num_rows, np.bool_)
    if not how.moves or not elsewhere.any():
        return leaves, rows
    first = _first_of_each(np.flatnonzero(elsewhere), hits.rows)
    at = hits.rows[first]
    columns = how.columns[1:]
    if not columns:  # a table without columns has no rows in pyarrow
        newer = older = pa.table({"": pa.nulls(len(at))})
    else:
        target = nullable(pa.schema([how.schema.field(name) for name in columns]))
        newer = conform(rows.take(pa.array(at)), target, drop_extra=True)
        older = conform(hits.versions.select(columns).take(pa.array(hits.stored[first])), target, drop_extra=True)
    outcome = how.rule.combine(older, newer)
    leaves[at[outcome.choice == Choice.TAKE]] = True
    if outcome.merged is None:
        return leaves, rows
    merged_at = np.flatnonzero(outcome.choice == Choice.MERGED)
    stays = np.ones(len(merged_at), np.bool_)
    for name in {path.partition(".")[0] for path in how.partitions}:
        before, after = older.column(name).take(pa.array(merged_at)), outcome.merged.column(name)
        stays &= np.asarray(
            pc.or_(pc.fill_null(pc.equal(before, after), False), pc.and_(before.is_null(), after.is_null()))
        )
    leaves[at[merged_at[~stays]]] = True
    return leaves, _replaced(rows, at[merged_at[~stays]], outcome.merged.filter(pa.array(~stays)), how)


def _replaced(rows: pa.Table, at: Positions, merged: pa.Table, how: RelocationRule) -> pa.Table:
    """The rows, in all columns of the table, those at some positions replaced."""
    if not len(at):
        return rows
    keys = [rows.schema.field(name) for name in (RECORD_KEY, PARTITION_PATH)]
    schema = pa.schema([*how.schema, *keys])
    whole = conform(rows, nullable(schema), drop_extra=True)
    replacements = pa.Table.from_arrays(
        [
            *(merged.column(f.name).cast(f.type) for f in how.schema),
            *(rows.column(f.name).take(pa.array(at)) for f in keys),
        ],
        schema=nullable(schema),
    )
    source = np.arange(rows.num_rows)
    source[at] = rows.num_rows + np.arange(len(at))
    return pick([whole, replacements], source)


def _at_places(rows: pa.Table, groups: Positions, places: Sequence[FileGroupId]) -> pa.Table:
    """The rows with the partition path of the file group that each goes to."""
    if not (groups >= 0).any():
        return rows
    at = rows.schema.get_field_index(PARTITION_PATH)
    paths = pa.array([place.partition for place in places], pa.string())
    stored = paths.take(pa.array(np.where(groups >= 0, groups, 0)))
    partition = pc.if_else(pa.array(groups >= 0), stored, as_array(rows.column(at)).cast(pa.string()))
    return rows.set_column(at, rows.schema.field(at), partition)


# --- stored rows ---


@dataclass(frozen=True, slots=True)
class StoredReader:
    """How stored rows are read by their keys; picklable.

    schema   of the table after the write, meta columns included
    slices   what a reader merges, by file group; one that is not there holds nothing
    columns  those of `RelocationRule`
    """

    reader: SliceReader
    schema: pa.Schema
    slices: Mapping[FileGroupId, FileSlice]
    columns: tuple[str, ...]

    @property
    def row_schema(self) -> pa.Schema:
        return nullable(pa.schema([self.schema.field(name) for name in self.columns]))


def stored_reader(
    state: TableState, partitions: Collection[str], how: RelocationRule, settings: ReadSettings
) -> StoredReader:
    """How rows of some partitions are read as a snapshot reader does. One listing of each."""
    view = state.view(partitions)
    schema = with_meta_fields(how.schema)
    return StoredReader(slice_reader(state, schema, settings=settings), schema, merged_slices(view), tuple(how.columns))


def stored_rows(stored: StoredReader, group: FileGroupId, keys: pa.Array) -> pa.Table:
    """The rows that a file group holds of keys, each key once."""
    slice_ = stored.slices.get(group)
    if slice_ is None:
        return stored.row_schema.empty_table()
    if slice_.logs:
        rows = merged_rows(stored.reader, slice_, stored.schema, stored.columns)
    else:
        assert slice_.base is not None  # a slice without logs has a base file
        rows = read_base_file(stored.reader.storage, slice_.base, stored.schema, stored.columns, threads=False)
    rows = rows.filter(pc.is_in(rows.column(RECORD_KEY), keys.cast(pa.string())))
    stored_keys = as_array(rows.column(RECORD_KEY))
    codes = stored_keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first = np.sort(np.unique(codes, return_index=True)[1])
    unique_rows = rows.take(pa.array(first)) if len(first) < len(stored_keys) else rows
    return pa.Table.from_arrays(unique_rows.columns, schema=stored.row_schema)


def with_stored(
    state: TableState,
    rows: pa.Table,
    located: KeyLocations,
    how: RelocationRule,
    certain: bool,
    settings: ReadSettings,
    pool: Executor,
) -> Hits:
    """Hits with the stored rows of those that are doubtful, each file group read by a thread of the pool.

    certain  a hit is in its file group for certain: nothing is read if the rule looks at no column either
    """
    at, groups, places = located.rows, located.groups, located.places
    unread = np.full(len(at), UNREAD, np.int64)
    keys = as_array(rows.column(RECORD_KEY))
    doubts = doubtful(as_array(rows.column(PARTITION_PATH)), at, groups, places)
    if not doubts.any() or (certain and len(how.columns) == 1):
        return Hits(at, groups, places, unread, pa.table({RECORD_KEY: pa.array([], pa.string())}))
    doubtful_groups = np.unique(groups[doubts]).tolist()
    stored = stored_reader(state, {places[group].partition for group in doubtful_groups}, how, settings)
    doubtful_keys = [keys.take(pa.array(at[doubts & (groups == group)])) for group in doubtful_groups]
    parts = list(
        pool.map(
            lambda call: stored_rows(stored, places[call[0]], call[1]), zip(doubtful_groups, doubtful_keys, strict=True)
        )
    )
    offset = 0
    for group, own_keys, part in zip(doubtful_groups, doubtful_keys, parts, strict=True):
        place = pc.index_in(own_keys, value_set=as_array(part.column(RECORD_KEY)).cast(own_keys.type))
        positions = place.fill_null(-1).to_numpy().astype(np.int64)
        unread[doubts & (groups == group)] = np.where(positions < 0, GONE_NOW, positions + offset)
        offset += part.num_rows
    return Hits(at, groups, places, unread, pa.concat_tables(parts))
