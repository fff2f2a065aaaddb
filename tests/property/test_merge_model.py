"""Batches, logs and base files merge as a dict of rows does, taken row by row in the words of the format's rules."""

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.formats.log.delete_block import deletes_of
from hoodie.merge import payloads as p
from hoodie.merge.base import BaseMerge
from hoodie.merge.log_merge import LogMerge
from hoodie.merge.payloads import rule_for, with_defaults
from hoodie.writing.batch.duplicates import combine_duplicates
from support.incoming import PAYLOAD_COLUMNS, incoming_rows
from support.nightly import scaled

Row = dict[str, Any]

META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in META),
        *PAYLOAD_COLUMNS,
        ("tags", pa.list_(pa.string())),
    ]
)
AVRO = '{"type": "record", "name": "r", "fields": [{"name": "n", "type": "int", "default": -1}]}'
GAP = "__debezium_unavailable_value"
PAYLOADS = [
    p.OVERWRITE_WITH_LATEST,
    p.DEFAULT,
    p.EVENT_TIME,
    p.FIRST_VALUE,
    p.OVERWRITE_NON_DEFAULTS,
    p.PARTIAL_UPDATE,
    p.AWS_DMS,
    p.MYSQL_DEBEZIUM,
    p.POSTGRES_DEBEZIUM,
    p.EMPTY,
]

ROWS = st.fixed_dictionaries(
    {
        "_hoodie_commit_time": st.just("2"),
        "_hoodie_record_key": st.sampled_from("abcdef"),
        "_hoodie_partition_path": st.sampled_from(["x", "y"]),
        "ts": st.integers(-2, 3),
        "v": st.sampled_from([None, "1", "2", "3", GAP]),
        "n": st.sampled_from([-1, 1, 2, 3]),
        "_hoodie_is_deleted": st.sampled_from([None, None, False, True]),
        "Op": st.sampled_from([None, "I", "U", "d", "D"]),
        "_change_operation_type": st.sampled_from([None, "c", "u", "d"]),
        "_event_seq": st.builds("{}.{}".format, st.integers(1, 2), st.sampled_from([1, 9, 10, 100])),
        "_event_lsn": st.integers(-1, 2),
        "tags": st.sampled_from([None, [], ["t"], [None]]),
    }
)


# --- the rules, row by row ---


def is_delete(payload: str, row: Row) -> bool:
    if payload == p.EMPTY:
        return True
    if payload == p.AWS_DMS and (row["Op"] or "").upper() == "D":
        return True
    if payload in (p.MYSQL_DEBEZIUM, p.POSTGRES_DEBEZIUM) and row["_change_operation_type"] == "d":
        return True
    return row["_hoodie_is_deleted"] is True


def filled(lead: Row, other: Row, newer: Row, gap: Any) -> Row:
    """lead's values, the other's where `gap` says so; meta columns from the newer."""
    made = {name: other[name] if gap(name, lead[name]) else lead[name] for name in lead}
    return made | {name: newer[name] for name in META}


def precombine(payload: str, old: Row, new: Row) -> Row:
    if payload == p.EMPTY:
        return old
    if payload == p.FIRST_VALUE:
        return new if new["ts"] > old["ts"] else old
    lead, other = (old, new) if old["ts"] > new["ts"] else (new, old)
    if payload == p.PARTIAL_UPDATE and not is_delete(payload, lead):
        return filled(lead, other, new, lambda _, value: value is None)
    return lead


def combine(payload: str, stored: Row, new: Row) -> Row | None:
    """The row to write, `stored` itself when it is kept, None for a delete."""
    gone = is_delete(payload, new)
    if payload == p.DEFAULT and stored["ts"] > new["ts"]:
        return stored
    if payload == p.FIRST_VALUE and stored["ts"] >= new["ts"]:
        return stored
    if payload == p.EVENT_TIME and not gone and stored["ts"] > new["ts"]:
        return stored
    if payload == p.MYSQL_DEBEZIUM:
        at, ahead = (tuple(int(part) for part in row["_event_seq"].split(".")) for row in (stored, new))
        if ahead <= at:
            return stored
    if payload == p.POSTGRES_DEBEZIUM and new["_event_lsn"] < stored["_event_lsn"]:
        return stored
    if gone:
        return None
    if payload == p.POSTGRES_DEBEZIUM:
        return filled(new, stored, new, lambda _, value: value == GAP)
    if payload == p.OVERWRITE_NON_DEFAULTS:
        return filled(new, stored, new, lambda name, value: value == (-1 if name == "n" else None))
    if payload == p.PARTIAL_UPDATE:
        lead, other = (stored, new) if stored["ts"] > new["ts"] else (new, stored)
        return filled(lead, other, new, lambda _, value: value is None)
    return dict(new)


def write(
    payload: str,
    base: list[Row],
    incoming: dict[str, Row | None],
    after_delete: Collection[str] = (),
    versions: Mapping[str, list[Row]] | None = None,
) -> tuple[list[Row], int, int, int]:
    """The base file's new rows, and how many stored ones were updated, deleted and inserted (None: a tombstone).

    after_delete  keys whose stored row was deleted before the incoming one came
    versions  of keys that meet the stored row one by one
    """
    left = dict(incoming)
    out: list[Row] = []
    updated = deleted = 0
    for stored in base:
        key = stored["_hoodie_record_key"]
        if key not in incoming:
            out.append(stored)
            continue
        new = incoming[key]
        left.pop(key, None)
        if new is not None and key in after_delete:
            found = None if is_delete(payload, new) else dict(new)
        elif versions and key in versions:
            found = stored
            for version in versions[key]:
                found = combine(payload, found, version)
                assert found is not None
        else:
            found = None if new is None else combine(payload, stored, new)
        if found is None:
            deleted += 1
        else:
            out.append(found)
            updated += found is not stored
    added = [row for row in left.values() if row is not None and not is_delete(payload, row)]
    return out + added, updated, deleted + len(left) - len(added), len(added)


# --- the same by tables ---


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def write_tables(payload: str, base: list[Row], incoming: Any, size: int) -> tuple[list[Row], int, int, int]:
    merge = BaseMerge(incoming, with_defaults(rule_for(payload, ("ts",)), AVRO))
    out: list[Row] = []
    for batch in table(base).to_batches(max_chunksize=size):
        out += merge.batch(batch).to_pylist()
    out += merge.inserts().to_pylist()
    assert merge.unchanged + merge.updated + merge.inserted == len(out)
    return out, merge.updated, merge.deleted, merge.inserted


# Without delete marks too: rules that make rows then fold in closed form.
BATCHES = st.lists(ROWS, max_size=14) | st.lists(ROWS.map(lambda row: row | {"_hoodie_is_deleted": None}), max_size=20)
BASES = st.lists(ROWS, max_size=6, unique_by=lambda row: row["_hoodie_record_key"]).map(
    lambda rows: [row | {"_hoodie_commit_time": "1", "_hoodie_is_deleted": None} for row in rows]
)


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda name: name.rpartition(".")[2])
@settings(max_examples=scaled(15, 100))
@given(rows=BATCHES, base=BASES, size=st.integers(1, 6), by_partition=st.booleans())
def test_a_batch_is_combined_and_written_as_row_by_row(
    payload: str, rows: list[Row], base: list[Row], size: int, by_partition: bool
) -> None:
    keys = ("_hoodie_partition_path", "_hoodie_record_key") if by_partition else ("_hoodie_record_key",)
    survivors: dict[tuple[str, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        survivors[key] = precombine(payload, survivors[key], row) if key in survivors else row
    combined = combine_duplicates(table(rows), keys, with_defaults(rule_for(payload, ("ts",)), AVRO))
    assert combined.to_pylist() == list(survivors.values())

    unique = {row["_hoodie_record_key"]: row for row in survivors.values()}
    incoming = incoming_rows(table(list(unique.values())))
    assert write_tables(payload, base, incoming, size) == write(payload, base, unique)


DELETES = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(-2, 3)), max_size=4)
BLOCKS = st.lists(st.lists(ROWS, max_size=6) | DELETES.map(tuple), max_size=6)


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda name: name.rpartition(".")[2])
@settings(max_examples=scaled(15, 100))
@given(blocks=BLOCKS, base=BASES, size=st.integers(1, 6), fold_rows=st.sampled_from([1, 4, 1000]))
def test_a_log_is_folded_and_compacted_as_row_by_row(
    payload: str, blocks: list[Any], base: list[Row], size: int, fold_rows: int
) -> None:
    log = LogMerge(SCHEMA, with_defaults(rule_for(payload, ("ts",)), AVRO), fold_rows)
    folded: dict[str, Row | None] = {}
    after_delete = set()
    versions: dict[str, list[Row]] = {}
    deleted = set()
    for block in blocks:
        if isinstance(block, list):
            log.add(log.records(table(block)))
            for row in block:
                key = row["_hoodie_record_key"]
                old = folded.get(key)
                versions.setdefault(key, []).append(row)
                if key in folded and old is None:
                    after_delete.add(key)
                folded[key] = row if old is None else precombine(payload, old, row)
        else:
            keys, values = (pa.array([e[i] for e in block], t) for i, t in enumerate((pa.string(), pa.int64())))
            log.add(log.tombstones(deletes_of(keys, pa.array(["x"] * len(keys), pa.string()), values)))
            for key, ordering in block:
                deleted.add(key)
                old = folded.get(key)
                if old is None or ordering is None or not old["ts"] > ordering:
                    folded[key] = None
    incoming = log.finish()
    assert set(incoming.keys.to_pylist()) == set(folded)
    one_by_one = {
        key: rows
        for key, rows in versions.items()
        if payload == p.PARTIAL_UPDATE and key not in deleted and not any(is_delete(payload, row) for row in rows)
    }
    # Inserts of a compaction stand in no order that means anything.
    out, *counts = write_tables(payload, base, incoming, size)
    wanted, *wanted_counts = write(payload, base, folded, after_delete, one_by_one)
    by_key = sorted(out, key=lambda row: row["_hoodie_record_key"])
    assert by_key == sorted(wanted, key=lambda row: row["_hoodie_record_key"])
    assert counts == wanted_counts
