"""How records of one key are combined: log blocks in their order, then what comes of them with the base file.

Source: docs/format/metadata-table.md 4.6; pinned by tests/vectors/mdt_payload_merge.json.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata.keys import MetadataPartition

#: The type of a decimal in `records.VALUE_TYPE`.
DECIMAL = 10
_COUNTS = ("values", "nulls", "size", "uncompressed_size")


def merged(base: pa.Table, logs: Sequence[pa.Table], partition: MetadataPartition) -> pa.Table:
    """The records that a partition, or a part of it, comes to; deleted ones are left out, order is not kept.

    base  of base files: one record a key
    logs  of log blocks, oldest first
    All of the partition's schema in `records.SCHEMAS`.
    """
    combine = _COMBINE.get(partition, _newest)
    newer = combine(pa.concat_tables([base.slice(0, 0), *logs]))
    both = combine(pa.concat_tables([base, newer])) if len(newer) else base
    return both.filter(pc.invert(both.column("deleted")))


def _newest(records: pa.Table) -> pa.Table:
    """The last record of each key, a tombstone perhaps."""
    codes = _codes(records.column("row"))
    _, first = np.unique(codes[::-1], return_index=True)
    return records.take(pa.array(np.sort(len(codes) - 1 - first)))


def _files(records: pa.Table) -> pa.Table:
    """Entries of lists: a file that is added and deleted is no entry at all, one that is only deleted stays as such.

    The greatest size counts of those since the last deletion.
    """
    if not len(records):
        return records
    names = pc.binary_join_element_wise(records.column("row"), records.column("name"), "\0")
    codes = _codes(names)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    deleted = records.column("deleted").to_numpy()[order].astype(np.bool_)
    sizes = records.column("size").to_numpy()[order]
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True))
    starts = np.append(0, ends[:-1] + 1)
    places = np.arange(len(codes))
    # The place of the last entry so far that lives, and of the last deletion so far; before the key's first: none.
    last_live = np.maximum.accumulate(np.where(deleted, -1, places))[ends]
    last_deletion = np.maximum.accumulate(np.where(deleted, places, -1))[ends]
    has_live, has_deletion = last_live >= starts, last_deletion >= starts
    live = has_live & (last_live > np.where(has_deletion, last_deletion, -1))
    # One deletion after a live entry takes it away; a second one stands for a file that nobody added.
    trailing = ends - np.where(has_live, last_live, starts - 1)
    stays = live | ~has_live | (trailing > 1)
    since = np.where(has_deletion, last_deletion + 1, starts)
    running = np.maximum.reduceat(
        np.append(sizes, 0), np.stack([np.where(live, since, ends), ends + 1], axis=1).ravel()
    )[::2]
    taken = records.take(pa.array(order[ends]))
    columns = [taken.column("row"), taken.column("name"), pa.array(np.where(live, running, 0)), pa.array(~live)]
    return pa.Table.from_arrays(columns, schema=records.schema).filter(pa.array(stays))


def _column_stats(records: pa.Table) -> pa.Table:
    """Statistics: ranges are united and counts added, unless one of two is deleted; then the newer one counts."""
    codes = _codes(records.column("row"))
    counts = np.bincount(codes, minlength=1)
    if not (counts > 1).any():
        return records
    single = counts[codes] == 1
    singles = records.filter(pa.array(single))
    several: dict[str, dict[str, Any]] = {}
    for record in records.filter(pa.array(~single)).to_pylist():  # few: a file has one record, if it is not appended to
        old = several.get(record["row"])
        several[record["row"]] = record if old is None else _united(record, old)
    return pa.concat_tables([singles, pa.Table.from_pylist(list(several.values()), schema=records.schema)])


def _united(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    if new["deleted"] or old["deleted"] or new["tight"]:  # the newer one says all there is to say
        return new
    return united(new, old)


def united(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """What two records of `records.COLUMN_STATS` say together, of a column of one type."""
    number = new["type"] or old["type"] or {}
    value = partial(_comparable, number=number.get("typeOrdinal") == DECIMAL)
    ends = {"min": _extreme(new["min"], old["min"], partial(min, key=value))}
    ends["max"] = _extreme(new["max"], old["max"], partial(max, key=value))
    return {**new, **ends, **{name: new[name] + old[name] for name in _COUNTS}}


def _extreme(new: dict[str, Any] | None, old: dict[str, Any] | None, choose: Any) -> dict[str, Any] | None:
    """The least or greatest of two; values of two classes have none."""
    if new is None or old is None:
        return old if new is None else new
    (one,) = [name for name, value in new.items() if value is not None] or [""]
    if not one or old.get(one) is None:
        return dict.fromkeys(new)
    return {**dict.fromkeys(new), one: choose(new[one], old[one])}


def _comparable(value: Any, *, number: bool) -> Any:
    """A bound in the order of its type: decimals are the bytes of a number, and NaN is above all, as in Java."""
    if number and isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    return (value != value, value) if isinstance(value, float) else value


_COMBINE = {
    MetadataPartition.FILES: _files,
    MetadataPartition.COLUMN_STATS: _column_stats,
    MetadataPartition.PARTITION_STATS: _column_stats,
}


def _codes(keys: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """int64[n]: a number for each key, from 0 up, in the order of their first appearance."""
    combined = pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], pa.string())
    return np.asarray(combined.dictionary_encode().indices.to_numpy(zero_copy_only=False), np.int64)
