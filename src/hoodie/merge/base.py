"""Incoming rows merged into the rows of a base file: the kernel of Copy-on-Write, snapshot reads and compaction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.formats.parquet.hashed_keys import MANY_KEYS, HashedKeys
from hoodie.merge.fields import fold_fields
from hoodie.merge.ordering import has_ordering, order_ranks
from hoodie.merge.rows import (
    Mask,
    Positions,
    as_array,
    as_table,
    check_same_columns,
    distinct,
    key_groups,
    nullable,
    pick,
    take_rising,
)
from hoodie.merge.rules import Choice, Choices, MergeRule
from hoodie.model.meta import PARTITION_PATH, RECORD_KEY
from hoodie.schema.encoded import decoded_columns, plain_type


@dataclass(frozen=True, slots=True, eq=False)
class Incoming:
    """What is to be merged into the base file of a file group; each key once, unless there are `versions`.

    rows     the table's columns, meta columns included; they go into the file as they are
    keys     string[n], the record key of each row
    deleted  bool[n]: rows that are tombstones: they have a key, may have an ordering value, and no more. None: none
    added    bool[n]: rows that are inserted where no stored row has their key; None: all but tombstones
    keeps_stored  bool[n]: rows that leave a stored row of their key as it is; None: none
    after_delete  bool[n]: rows that came after a delete, which took the stored row of their key away, and tombstones
             that delete it whatever its ordering value; None: none
    versions  several rows of a key may be there, in the order of their arrival, none of them a delete: each in turn
              meets what the ones before made of the stored row
    """

    rows: pa.Table
    keys: pa.Array
    deleted: Mask | None = None
    added: Mask | None = None
    keeps_stored: Mask | None = None
    after_delete: Mask | None = None
    versions: bool = False

    @property
    def num_rows(self) -> int:
        return int(self.rows.num_rows)


def taken(incoming: Incoming, rows: Positions) -> Incoming:
    """Some of the incoming rows. rows: int64[...], rising, each once"""
    if len(rows) == incoming.num_rows:
        return incoming
    masks = {name: getattr(incoming, name) for name in ("deleted", "added", "keeps_stored", "after_delete")}
    return replace(
        incoming,
        rows=take_rising(incoming.rows, rows),
        keys=incoming.keys.take(pa.array(rows)),
        **{name: mask[rows] for name, mask in masks.items() if mask is not None},
    )


def tombstones(
    keys: pa.Array,
    schema: pa.Schema,
    partitions: pa.Array | pa.ChunkedArray | None = None,
    values: Mapping[str, pa.Array] | None = None,
) -> pa.Table:
    """Rows of the schema, made nullable, that hold a key, a partition path and the columns `values`, all else null."""
    arrays = {RECORD_KEY: keys, **({} if partitions is None else {PARTITION_PATH: partitions}), **(values or {})}
    columns = [
        as_array(arrays[field.name]).cast(field.type) if field.name in arrays else pa.nulls(len(keys), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=nullable(schema))


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """One batch of stored rows after the merge.

    rows     in the order of the file; rows that no incoming one replaced are as they were
    matched  int64[...]: positions of the incoming rows whose key is that of a stored row, each once
    updated, deleted, unchanged  numbers of stored rows: replaced or changed, dropped, as they were
    met      int64[...], rising: positions of the stored rows that met an incoming one
    choice   int8[...]: what became of these
    """

    rows: pa.Table
    matched: Positions
    updated: int
    deleted: int
    unchanged: int
    met: Positions
    choice: Choices


def merge_base(
    stored: pa.Table | pa.RecordBatch,
    incoming: Incoming,
    rule: MergeRule,
    keys: pa.Array | pa.ChunkedArray | None = None,
) -> Merged:
    """Merge into one batch of a base file's rows. Streams: only this batch and the incoming rows are held.

    Matching costs about one hash of every incoming key a call: of very many only those near the batch should be given.
    A key that is stored twice is updated twice. Rows written because of an incoming one carry its meta columns,
    `_hoodie_commit_time` among them; where the rule keeps the stored row it keeps its own.

    stored  the columns of `incoming.rows`, in their order; columns of few values may be encoded, as in the result
    keys    string[n], the stored rows' record keys; None: their column `_hoodie_record_key`
    Raises  SchemaMismatch when columns differ
    """
    table = as_table(stored)
    check_same_columns(incoming.rows.schema, table.schema, "incoming rows")
    if incoming.versions:
        single, groups = single_versions(incoming, rule, table, keys)
        merged = merge_base(table, single, rule, keys)
        return replace(merged, matched=np.flatnonzero(np.isin(groups, merged.matched)))
    stored_rows, incoming_rows = _matched_rows(table.column(RECORD_KEY) if keys is None else keys, incoming.keys)
    if not len(stored_rows):
        return Merged(table, incoming_rows, 0, 0, table.num_rows, stored_rows, np.empty(0, np.int8))
    choice, merged_rows = _decide(table, stored_rows, incoming, incoming_rows, rule)
    taken = incoming_rows[choice == Choice.TAKE]
    parts = [
        table,
        *([incoming.rows.take(pa.array(taken))] if len(taken) else []),
        *([] if merged_rows is None else [merged_rows]),
    ]
    source = np.arange(table.num_rows)
    source[stored_rows[choice == Choice.TAKE]] = table.num_rows + np.arange(len(taken))
    merged_at = stored_rows[choice == Choice.MERGED]
    source[merged_at] = table.num_rows + len(taken) + np.arange(len(merged_at))
    deleted = int(np.count_nonzero(choice == Choice.DELETE))
    updated = len(taken) + len(merged_at)
    stays = np.ones(table.num_rows, np.bool_)
    stays[stored_rows[choice == Choice.DELETE]] = False
    if updated:
        rows = pick(parts, source[stays] if deleted else source, table.schema)
    else:
        rows = table.filter(pa.array(stays)) if deleted else table
    unchanged = table.num_rows - updated - deleted
    return Merged(rows, distinct(incoming_rows), updated, deleted, unchanged, stored_rows, choice)


@dataclass(frozen=True, slots=True, eq=False)
class Replaced:
    """What takes the place of stored rows in a merge; the others stay as they are.

    stored   int64[...], rising: positions of the stored rows that are replaced or deleted, be it by rows like them
    rows     those that take their place: fewer than `stored`, as some are deleted
    matched  as in `Merged`
    """

    stored: Positions
    rows: pa.Table
    matched: Positions


def replaced_rows(stored: pa.Table, incoming: Incoming, rule: MergeRule) -> Replaced:
    """As `merge_base`, without the stored rows that stay.

    stored  `_hoodie_record_key` and the columns that the rule decides on; for a rule that makes rows
            (`MergeRule.takes_whole_rows` is false) the columns of `incoming.rows`, in their order

    Which rows are replaced does not depend on the other columns: where a rule compares them to tell whether a stored
    row stays as it is (`MergeRule.leader_meta`), that row takes its own place.
    """
    if incoming.versions:
        single, groups = single_versions(incoming, rule, stored)
        replaced = replaced_rows(stored, single, rule)
        return replace(replaced, matched=np.flatnonzero(np.isin(groups, replaced.matched)))
    stored_rows, incoming_rows = _matched_rows(stored.column(RECORD_KEY), incoming.keys)
    if not len(stored_rows):
        return Replaced(stored_rows, incoming.rows.slice(0, 0), incoming_rows)
    choice, merged_rows = _decide(stored, stored_rows, incoming, incoming_rows, rule)
    rows = incoming.rows.take(pa.array(incoming_rows[choice == Choice.TAKE]))
    if merged_rows is not None:
        rows = pa.concat_tables([rows, merged_rows.cast(rows.schema)])
    if rule.leader_meta:
        stays = stored.take(pa.array(stored_rows[choice == Choice.KEEP]))
        return Replaced(stored_rows, pa.concat_tables([rows, stays.cast(rows.schema)]), distinct(incoming_rows))
    return Replaced(stored_rows[choice != Choice.KEEP], rows, distinct(incoming_rows))


@dataclass(frozen=True, slots=True, eq=False)
class Inserted:
    """Incoming rows that no stored row had the key of.

    rows     to be written at the end of the file, in their order
    deleted  incoming deletes among them: nothing to delete, counted
    """

    rows: pa.Table
    deleted: int


def inserts(incoming: Incoming, matched: Mask, rule: MergeRule) -> Inserted:
    """What is left of the incoming rows once all stored rows have been seen.

    matched  bool[n]: incoming rows that met a stored one
    """
    if incoming.versions:
        incoming, groups = single_versions(incoming, rule)
        met, matched = matched, np.zeros(incoming.num_rows, np.bool_)
        matched[groups[met]] = True
    remaining = ~matched
    if incoming.added is not None:
        remaining &= incoming.added
    elif incoming.deleted is not None:
        remaining &= ~incoming.deleted
    if not remaining.any():
        return Inserted(incoming.rows.slice(0, 0), int(np.count_nonzero(~matched)))
    rows = incoming.rows if remaining.all() else incoming.rows.filter(pa.array(remaining))
    deletes = rule.is_delete(rows)
    if deletes.any():
        rows = rows.filter(pa.array(~deletes))
    return Inserted(rows, int(np.count_nonzero(~matched)) - rows.num_rows)


class BaseMerge:
    """The merge of one base file, batch by batch: keeps what has been matched, and the counts of the write stat."""

    def __init__(self, incoming: Incoming, rule: MergeRule) -> None:
        self.incoming, self.rule = incoming, rule
        self.updated = self.deleted = self.unchanged = self.inserted = 0
        self._matched = np.zeros(incoming.num_rows, np.bool_)
        self._hashed = HashedKeys.of(incoming.keys) if incoming.num_rows > MANY_KEYS else None

    def batch(self, stored: pa.Table | pa.RecordBatch, keys: pa.Array | pa.ChunkedArray | None = None) -> pa.Table:
        """The rows to write for one batch of stored rows: see `merge_base`."""
        return self.merge(stored, keys).rows

    def merge(self, stored: pa.Table | pa.RecordBatch, keys: pa.Array | pa.ChunkedArray | None = None) -> Merged:
        """As `batch`, with what became of each row."""
        if self._hashed is None:
            merged = merge_base(stored, self.incoming, self.rule, keys)
        else:
            near = self._hashed.find(as_array(as_table(stored).column(RECORD_KEY) if keys is None else keys))
            merged = merge_base(stored, taken(self.incoming, near), self.rule, keys)
            merged = replace(merged, matched=near[merged.matched])
        self._matched[merged.matched] = True
        self.updated += merged.updated
        self.deleted += merged.deleted
        self.unchanged += merged.unchanged
        return merged

    def inserts(self) -> pa.Table:
        """After the last batch: the incoming rows whose keys were not stored. Deletes among them are counted."""
        inserted = inserts(self.incoming, self._matched, self.rule)
        self.deleted += inserted.deleted
        self.inserted += inserted.rows.num_rows
        return inserted.rows


def single_versions(
    incoming: Incoming,
    rule: MergeRule,
    stored: pa.Table | None = None,
    stored_keys: pa.Array | pa.ChunkedArray | None = None,
) -> tuple[Incoming, Positions]:
    """The incoming rows with each key once: the versions of a key as they end on the stored row, which the row then
    stands for; without one, or where several have the key, as they end among themselves.

    returns  also int64[n]: where the row for each version is
    """
    once = replace(incoming, versions=False)
    groups = key_groups(incoming.rows, (RECORD_KEY,))
    if groups is None:
        return once, np.arange(incoming.num_rows)
    order = np.argsort(groups, kind="stable")
    first = order[np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))]
    several = np.bincount(groups) > 1
    order = order[several[groups[order]]]
    numbers, rows = np.cumsum(several) - 1, incoming.rows
    versions, of_key = pick([rows], order), numbers[groups[order]]
    at = np.full(int(np.count_nonzero(several)), -1, np.int64)
    if stored is not None:
        all_keys = as_array(stored.column(RECORD_KEY) if stored_keys is None else stored_keys)
        keys = incoming.keys.take(pa.array(first[several]))
        place = pc.index_in(all_keys, value_set=keys.cast(all_keys.type))
        hits = np.flatnonzero(place.is_valid().to_numpy(zero_copy_only=False))
        keyed = place.drop_null().to_numpy().astype(np.int64)
        unique = np.bincount(keyed, minlength=len(at))[keyed] == 1
        at[keyed[unique]] = hits[unique]
        base = stored.take(pa.array(at[at >= 0])).cast(versions.schema)
        versions = pa.concat_tables([base, versions])
        of_key = np.concatenate([np.flatnonzero(at >= 0), of_key])
        in_turn = np.argsort(of_key, kind="stable")
        versions, of_key = pick([versions], in_turn), of_key[in_turn]
    folded = fold_fields(versions, of_key, rule)
    source = first.copy()
    source[several] = rows.num_rows + np.arange(folded.num_rows)
    after_delete = np.zeros(len(first), np.bool_) if once.after_delete is None else once.after_delete[first]
    after_delete[several] = at >= 0
    rows = pick([rows, folded], source)
    return replace(
        once,
        rows=rows,
        keys=as_array(rows.column(RECORD_KEY)),
        deleted=None if once.deleted is None else once.deleted[first],
        after_delete=after_delete,
    ), groups


def _matched_rows(stored: pa.Array | pa.ChunkedArray, incoming: pa.Array) -> tuple[Positions, Positions]:
    """Positions of the stored rows whose key an incoming row has, rising, and of these incoming rows."""
    keys = as_array(stored)
    if keys.null_count or incoming.null_count:
        raise InvalidInput(f"{keys.null_count} stored and {incoming.null_count} incoming record keys are null")
    hits = pc.index_in(keys, value_set=incoming if incoming.type == keys.type else incoming.cast(keys.type))
    return np.flatnonzero(hits.is_valid().to_numpy(zero_copy_only=False)), hits.drop_null().to_numpy().astype(np.int64)


def _decide(
    stored: pa.Table, stored_rows: Positions, incoming: Incoming, incoming_rows: Positions, rule: MergeRule
) -> tuple[Choices, pa.Table | None]:
    """What becomes of each matched pair, and the rows made of both, in the order of their pairs."""
    if incoming.keeps_stored is not None and (stays := incoming.keeps_stored[incoming_rows]).any():
        choice = np.full(len(stored_rows), Choice.KEEP, np.int8)
        others = replace(incoming, keeps_stored=None)
        choice[~stays], merged = _decide(stored, stored_rows[~stays], others, incoming_rows[~stays], rule)
        return choice, merged
    if incoming.after_delete is not None and (alone := incoming.after_delete[incoming_rows]).any():
        choice = np.full(len(stored_rows), Choice.TAKE, np.int8)
        rows = incoming_rows[alone]
        deletes = rule.is_delete(incoming.rows.take(pa.array(rows)))
        deletes |= False if incoming.deleted is None else incoming.deleted[rows]
        choice[alone] = np.where(deletes, Choice.DELETE, Choice.TAKE)
        others = replace(incoming, after_delete=None)
        choice[~alone], merged = _decide(stored, stored_rows[~alone], others, incoming_rows[~alone], rule)
        return choice, merged
    deleted = None if incoming.deleted is None else incoming.deleted[incoming_rows]
    if deleted is None or not deleted.any():
        outcome = rule.combine(*_pairs(stored, stored_rows, incoming, incoming_rows, rule))
        return outcome.choice, outcome.merged
    choice = np.full(len(stored_rows), Choice.DELETE, np.int8)
    if rule.ordered_deletes:
        older, newer = _pairs(stored, stored_rows[deleted], incoming, incoming_rows[deleted], rule)
        ranks = order_ranks([older, newer], rule.ordering)
        outranked = ranks[: older.num_rows] > ranks[older.num_rows :]
        choice[deleted] = np.where(outranked & has_ordering(newer, rule.ordering), Choice.KEEP, Choice.DELETE)
    if deleted.all():
        return choice, None
    outcome = rule.combine(*_pairs(stored, stored_rows[~deleted], incoming, incoming_rows[~deleted], rule))
    choice[~deleted] = outcome.choice
    return choice, outcome.merged


def _pairs(
    stored: pa.Table, stored_rows: Positions, incoming: Incoming, incoming_rows: Positions, rule: MergeRule
) -> tuple[pa.Table, pa.Table]:
    """The matched rows side by side, with the columns that the rule looks at."""
    columns = rule.decides_on(stored.column_names)
    if not columns:  # a table without columns has no rows in pyarrow: rows that nobody looks at stand for them
        return pa.table({"": pa.nulls(len(stored_rows))}), pa.table({"": pa.nulls(len(stored_rows))})
    fields = [incoming.rows.schema.field(name) for name in columns]
    schema = nullable(pa.schema([field.with_type(plain_type(field.type)) for field in fields]))
    older = stored.select(columns).take(pa.array(stored_rows))
    newer = incoming.rows.select(columns).take(pa.array(incoming_rows))
    return (
        pa.Table.from_arrays(decoded_columns(older), schema=schema),
        pa.Table.from_arrays(decoded_columns(newer), schema=schema),
    )
