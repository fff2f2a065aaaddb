"""Logs in which rows hold some columns only, as a MERGE of Hudi 1.x writes them, beside a model of single keys."""

import io
import random
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.read import MergeOptions
from hoodie.formats.avro.schema import to_avro
from hoodie.formats.log.blocks import BlockMap, HeaderKey, LogBlock, encode_block
from hoodie.formats.log.content import avro_block, delete_block
from hoodie.formats.log.delete_block import deletes_of
from hoodie.merge.log_scan import Committed
from hoodie.merge.payloads import COMMIT_TIME_ORDERING, EVENT_TIME_ORDERING, rule_for_mode
from hoodie.merge.rules import MergeRule
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile, log_file_name
from hoodie.reading.slices.reader import SliceReader, WholeSlices, merged_batches
from hoodie.schema.schema import with_meta_fields
from hoodie.testing.storage import MemoryStorage
from support.by_position import slice_by_position
from support.nightly import scaled

ID = pa.field("id", pa.string(), nullable=False)
USER = pa.schema([ID, ("ts", pa.int64()), ("v", pa.string()), ("w", pa.int32())])
SCHEMA = with_meta_fields(USER)
GROUP = FileGroupId("p", "f-0")
KEYS = [f"k{number}" for number in range(6)]


@dataclass(frozen=True)
class Row:
    """A row of the model; `held` is what it says of the columns besides the key. A tombstone holds nothing."""

    time: str
    ts: int | None
    held: dict[str, object]
    gone: bool = False


def commit(rows: dict[str, Row], instant: str) -> list[LogBlock]:
    """The blocks of a commit: one for the rows of each set of columns, one for deletes."""
    blocks = []
    for columns in {tuple(row.held) for row in rows.values() if not row.gone}:
        of_kind = {key: row for key, row in rows.items() if not row.gone and tuple(row.held) == columns}
        full = "id" in columns
        schema = pa.schema([field for field in SCHEMA if field.name.startswith("_") or field.name in columns])
        block = avro_block(instant, to_avro(schema, "t"), table(of_kind, schema))
        if not full:
            header = BlockMap((*block.header.entries, (int(HeaderKey.IS_PARTIAL), "true")))
            block = replace(block, header=header)
        blocks.append(block)
    if gone := {key: row for key, row in rows.items() if row.gone}:
        times = pa.array([row.ts for row in gone.values()], pa.int64())
        keys = pa.array(list(gone))
        blocks.append(delete_block(instant, to_avro(SCHEMA, "t"), deletes_of(keys, pa.repeat("p", len(keys)), times)))
    return blocks


def table(rows: dict[str, Row], schema: pa.Schema) -> pa.Table:
    made = [
        {
            "_hoodie_commit_time": row.time,
            "_hoodie_commit_seqno": f"{row.time}_{key}",
            "_hoodie_record_key": key,
            "_hoodie_partition_path": "p",
            "_hoodie_file_name": "f-0",
            **row.held,
        }
        for key, row in rows.items()
    ]
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in made], schema=schema)


def slice_of(base: dict[str, Row], commits: list[list[LogBlock]]) -> tuple[MemoryStorage, FileSlice]:
    out = io.BytesIO()
    pq.write_table(table(base, SCHEMA), out)
    stored = BaseFile(GROUP, "0", "0-0-0", len(out.getvalue()), "f-0_0-0-0_0.parquet")
    files = {stored.path: out.getvalue()}
    logs = []
    for number, blocks in enumerate(commits, 1):
        data = b"".join(map(encode_block, blocks))
        name = log_file_name(GROUP.file_id, "0", number, "0-0-0")
        logs.append(LogFile(GROUP, "0", number, "0-0-0", len(data), name))
        files[logs[-1].path] = data
    return MemoryStorage(files), FileSlice(GROUP, "0", stored, tuple(logs))


def reader_of(storage: MemoryStorage, rule: MergeRule, **more: object) -> SliceReader:
    every = Committed(completed=frozenset(map(str, range(10))), latest="9")
    return SliceReader(storage, SCHEMA, rule, **{"committed": every, **more})  # type: ignore[arg-type]


def versions(rng: random.Random, instant: str) -> dict[str, Row]:
    """Some rows: whole ones, rows with one or two columns, deletes."""
    rows = {}
    for key in rng.sample(KEYS, rng.randint(1, 4)):
        ts, kind = rng.randint(1, 5), rng.random()
        values = {"v": rng.choice([None, f"v{instant}"]), "w": rng.choice([None, int(instant)])}
        if kind < 0.15:
            rows[key] = Row(instant, rng.choice([None, ts]), {}, gone=True)
        elif kind < 0.4:
            rows[key] = Row(instant, ts, {"id": key, "ts": ts, **values})
        else:
            held = rng.choice([["v"], ["w"], ["v", "w"]])
            rows[key] = Row(instant, ts, {"ts": ts, **{name: values[name] for name in held}})
    return rows


def merged(older: Row, newer: Row, ordered: bool) -> Row:
    """What two versions make: the one that wins, with what it does not hold from the other."""
    newer_wins = not ordered or older.ts is None or newer.ts is None or newer.ts >= older.ts
    if newer.gone and older.gone and older.ts is None:
        return older  # a delete without ordering value stays until a row comes
    if newer.gone or older.gone:
        return newer if newer_wins else older
    first, second = (newer, older) if newer_wins else (older, newer)
    return replace(first, held={**second.held, **first.held})


def expected(base: dict[str, Row], commits: list[dict[str, Row]], ordered: bool) -> dict[str, tuple[object, ...]]:
    logs: dict[str, Row] = {}
    cut = set()  # keys of which a delete without ordering value took the stored row away
    for rows in commits:
        for key, row in rows.items():
            older = logs.get(key)
            logs[key] = row if older is None else merged(older, row, ordered)
            if older is not None and older.gone and not logs[key].gone and (older.ts is None or not ordered):
                cut.add(key)
    found = {key: row for key, row in base.items() if key not in logs or key not in cut}
    for key, row in logs.items():
        found[key] = merged(found[key], row, ordered) if key in found else row
    return {
        key: (row.time, row.held.get("ts"), row.held.get("v"), row.held.get("w"))
        for key, row in found.items()
        if not row.gone
    }


COLUMNS = ["_hoodie_record_key", "_hoodie_commit_time", "ts", "v", "w"]


def by_key(parts: list[pa.Table]) -> dict[str, tuple[object, ...]]:
    rows = [tuple(row.values()) for part in parts for row in part.to_pylist()]
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: row[1:] for row in rows}


@pytest.mark.parametrize("mode", [EVENT_TIME_ORDERING, COMMIT_TIME_ORDERING])
def test_the_row_that_wins_keeps_what_it_holds_and_the_other_gives_the_rest(mode: str) -> None:
    rule = rule_for_mode(mode, ("ts",))
    for seed in range(scaled(2, 3)):
        rng = random.Random(seed)
        base = {key: Row("0", 3, {"id": key, "ts": 3, "v": "base", "w": 0}) for key in KEYS[:4]}
        history = [versions(rng, str(number)) for number in range(1, rng.randint(2, 7))]
        commits = [commit(rows, str(number)) for number, rows in enumerate(history, 1)]
        storage, slice_ = slice_of(base, commits)
        wanted = expected(base, history, mode == EVENT_TIME_ORDERING)
        if not any(block.header.get(HeaderKey.IS_PARTIAL) for blocks in commits for block in blocks):
            continue
        for options in (MergeOptions(), MergeOptions(max_bytes=1)):  # in memory, and by files
            reader = reader_of(storage, rule, options=options)
            assert by_key(list(merged_batches(reader, slice_, COLUMNS))) == wanted, seed
            assert by_key(slice_by_position(reader, slice_, COLUMNS)) == wanted, seed


@pytest.mark.parametrize("columns", [COLUMNS, ["_hoodie_record_key", "ts"]])
def test_rows_that_fill_gaps_replace_the_same_rows_whatever_columns_are_read(columns: list[str]) -> None:
    base = {key: Row("0", 5, {"id": key, "ts": 5, "v": None, "w": 0}) for key in ("k1", "k2")}
    late = {key: Row("1", 3, {"id": key, "ts": 3, "v": value, "w": 1}) for key, value in (("k1", "x"), ("k2", None))}
    storage, slice_ = slice_of(base, [commit(late, "1")])
    properties = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}
    reader = reader_of(storage, rule_for_mode(EVENT_TIME_ORDERING, ("ts",), properties))
    wanted = {"k1": ("0", 5, "x", 0), "k2": ("0", 5, None, 0)} if columns == COLUMNS else {"k1": (5,), "k2": (5,)}
    assert by_key(list(merged_batches(reader, slice_, columns))) == wanted
    assert by_key(slice_by_position(reader, slice_, columns)) == wanted


def test_a_range_reads_slices_with_such_rows_whole() -> None:
    base = {"k1": Row("0", 1, {"id": "k1", "ts": 1, "v": "base", "w": 0})}
    storage, slice_ = slice_of(base, [commit({"k1": Row("1", 2, {"ts": 2, "v": "new"})}, "1")])
    within = Committed(completed=frozenset("1"), latest="9", inflight=frozenset("0"))
    every = Committed(completed=frozenset("01"), latest="9")
    assert slice_.base is not None
    whole = WholeSlices(every, {GROUP: slice_.base})
    reader = reader_of(storage, rule_for_mode(EVENT_TIME_ORDERING, ("ts",)), committed=within, whole=whole)
    without_base = replace(slice_, base=None)
    row = {"k1": ("1", 2, "new", 0)}
    assert by_key(list(merged_batches(reader, without_base, COLUMNS))) == row
    assert by_key(slice_by_position(reader, without_base, COLUMNS)) == row


def test_a_schema_of_many_columns_and_batches_keeps_what_rows_hold_apart() -> None:
    wide = pa.schema([("id", pa.string()), *((f"c{number}", pa.int32()) for number in range(70))])
    schema = with_meta_fields(wide)
    key = {"_hoodie_commit_time": "1", "_hoodie_record_key": "k1", "_hoodie_partition_path": "p"}

    def block(columns: list[str], value: int) -> LogBlock:
        part = pa.schema([field for field in schema if field.name[0] == "_" or field.name in columns])
        rows = pa.Table.from_pylist([{**key, **dict.fromkeys(columns, value)}], schema=part)
        made = avro_block("1", to_avro(part, "t"), rows)
        return replace(made, header=BlockMap((*made.header.entries, (int(HeaderKey.IS_PARTIAL), "true"))))

    data = b"".join(
        encode_block(block([f"c{number}" for number in which], value))
        for value, which in enumerate(([0, 8, 69], [69, 7], [33]))
    )
    name = log_file_name(GROUP.file_id, "0", 1, "0-0-0")
    log = LogFile(GROUP, "0", 1, "0-0-0", len(data), name)
    slice_ = FileSlice(GROUP, "0", None, (log,))
    every = Committed(completed=frozenset("1"), latest="9")
    reader = SliceReader(MemoryStorage({log.path: data}), schema, rule_for_mode(COMMIT_TIME_ORDERING), every)
    (rows,) = merged_batches(reader, slice_, wide.names)
    (row,) = rows.to_pylist()
    assert {name: value for name, value in row.items() if value is not None} == {
        "c0": 0,
        "c7": 1,
        "c8": 0,
        "c33": 2,
        "c69": 1,
    }
