"""A slice of a base file and logs, read: which blocks count, what is decoded, how much is held, what is reported."""

import io
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.config.read import MergeOptions
from hoodie.errors import CorruptFile, CorruptLogBlock, DamagedLog, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro.schema import from_avro, to_avro
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock, encode_block
from hoodie.formats.log.content import avro_block, delete_block, parquet_block, rollback_block
from hoodie.formats.log.delete_block import deletes_of
from hoodie.keygen.keygen import key_generator
from hoodie.merge.log_scan import Committed
from hoodie.merge.payloads import DEFAULT, OVERWRITE_WITH_LATEST, PARTIAL_UPDATE, rule_for, rule_for_mode
from hoodie.merge.rules import MergeRule
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile, log_file_name
from hoodie.model.instant import Action, Instant, State
from hoodie.reading.slices.log_scanner import committed_blocks
from hoodie.reading.slices.reader import (
    ScanReport,
    SliceMerge,
    SliceReader,
    merged_batches,
    slice_threads,
)
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.wrapped import WrappedStorage
from hoodie.testing.storage import MemoryStorage
from hoodie.timeline.timeline import Timeline
from support.by_position import slice_by_position
from support.nightly import covering, nightly

USER = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string())])
SCHEMA = with_meta_fields(USER)
AVRO = to_avro(SCHEMA, "t")
OVERWRITE = rule_for(OVERWRITE_WITH_LATEST, ("ts",))
GROUP = FileGroupId("p", "f-0")
ALL = Committed(completed=frozenset("0123456789"), latest="9")


def rows(entries: Iterable[tuple[str, int, str]], instant: str = "1", schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows of (key, ts, v); w is made of the key."""
    keys, times, values = map(list, zip(*entries, strict=True))
    made = {
        "_hoodie_commit_time": [instant] * len(keys),
        "_hoodie_commit_seqno": [f"{instant}_{number}" for number in range(len(keys))],
        "_hoodie_record_key": keys,
        "_hoodie_partition_path": ["p"] * len(keys),
        "_hoodie_file_name": ["f-0"] * len(keys),
        "id": keys,
        "ts": times,
        "v": values,
        "w": [f"w{key}" for key in keys],
    }
    return pa.table([pa.array(made[field.name], field.type) for field in schema], schema=schema)


def put(instant: str, *entries: tuple[str, int, str]) -> bytes:
    return encode_block(avro_block(instant, AVRO, rows(entries, instant)))


def drop(instant: str, *entries: tuple[str, int | None]) -> bytes:
    keys, times = zip(*entries, strict=True)
    ordering = None if None in times else pa.array(times, pa.int64())
    return encode_block(delete_block(instant, AVRO, deletes_of(pa.array(keys), pa.array(["p"] * len(keys)), ordering)))


def base_file(table: pa.Table, row_group_size: int) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=row_group_size)
    return out.getvalue()


def slice_of(base: pa.Table | None, *logs: bytes) -> tuple[MemoryStorage, FileSlice]:
    """A storage with the files of one slice; the n-th log has version n."""
    files: dict[str, bytes] = {}
    found = None
    if base is not None:
        data = base_file(base, max(3, base.num_rows // 8))
        found = BaseFile(GROUP, "0", "0-0-0", len(data), "f-0_0-0-0_0.parquet")
        files[found.path] = data
    listed = []
    for version, content in enumerate(logs, 1):
        name = log_file_name(GROUP.file_id, "0", version, "0-0-0")
        listed.append(LogFile(GROUP, "0", version, "0-0-0", len(content), name))
        files[listed[-1].path] = content
    return MemoryStorage(files), FileSlice(GROUP, "0", found, tuple(listed))


def reader_of(
    storage: object, rule: MergeRule = OVERWRITE, committed: Committed = ALL, schema: pa.Schema = SCHEMA, **more: object
) -> SliceReader:
    return SliceReader(storage, schema, rule, committed, **more)  # type: ignore[arg-type]


def read(
    base: pa.Table | None, *logs: bytes, columns: Sequence[str] = ("id", "v"), **how: object
) -> list[tuple[object, ...]]:
    storage, slice_ = slice_of(base, *logs)
    reader = reader_of(storage, **how)  # type: ignore[arg-type]
    parts = list(merged_batches(reader, slice_, columns))
    merged = [tuple(row.values()) for part in parts for row in part.to_pylist()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedLog)  # once is enough
        assert sorted(map(repr, by_position(reader, slice_, columns))) == sorted(map(repr, merged))
    return merged


def by_position(reader: SliceReader, slice_: FileSlice, columns: Sequence[str]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for part in slice_by_position(reader, slice_, columns) for row in part.to_pylist()]


BASE = rows([("a", 5, "base"), ("b", 5, "base"), ("c", 5, "base"), ("d", 5, "base")], "0")


# --- the merge ---


def test_base_rows_keep_their_order_and_new_rows_follow() -> None:
    found = read(BASE, put("1", ("x", 1, "new"), ("c", 1, "log"), ("y", 1, "new")), drop("2", ("b", None)))
    assert found == [("a", "base"), ("c", "log"), ("d", "base"), ("x", "new"), ("y", "new")]


def test_a_slice_of_logs_only_has_the_rows_of_its_logs() -> None:
    assert read(None, put("1", ("a", 1, "1"), ("b", 1, "1")), drop("2", ("a", None))) == [("b", "1")]
    assert read(None, drop("1", ("a", None))) == []


def test_a_slice_without_logs_has_the_rows_of_its_base_file() -> None:
    assert read(BASE) == [(key, "base") for key in "abcd"]


def test_logs_are_taken_in_the_order_of_their_slice() -> None:
    """Those of a slice that a pending compaction opened come last, whatever their instants."""
    storage, slice_ = slice_of(BASE, put("1", ("a", 9, "first")), put("2", ("a", 9, "second")))
    swapped = replace(slice_, logs=slice_.logs[::-1])
    for logs, winner in ((slice_, "second"), (swapped, "first")):
        (part,) = merged_batches(reader_of(storage), logs, ["v"])
        assert part.column("v").to_pylist() == [winner, "base", "base", "base"]


def test_change_logs_are_left_out() -> None:
    storage, slice_ = slice_of(BASE, put("1", ("a", 9, "log")), b"no log at all")
    changes = replace(slice_.logs[1], cdc=True)
    (part,) = merged_batches(reader_of(storage), replace(slice_, logs=(slice_.logs[0], changes)), ["v"])
    assert part.column("v").to_pylist() == ["log", "base", "base", "base"]


def test_rows_have_the_tables_types_and_the_columns_in_the_order_wanted() -> None:
    strict = pa.schema([field.with_nullable(field.name not in ("id", "ts")) for field in SCHEMA])
    storage, slice_ = slice_of(BASE, put("1", ("a", 9, "log"), ("x", 9, "log")), drop("1", ("b", None)))
    for columns in (["v", "ts", "id"], strict.names):
        for part in merged_batches(reader_of(storage, schema=strict), slice_, columns):
            assert part.schema == pa.schema([strict.field(name) for name in columns])
            part.validate(full=True)


def test_threads_read_slices_that_are_large_or_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def slices(megabytes: int, *logs: int) -> list[FileSlice]:
        base = BaseFile(GROUP, "1", "0-0-0", megabytes << 20, "base")
        return [FileSlice(GROUP, "1", base, tuple(LogFile(GROUP, "1", 1, "0-0-0", size, "log") for size in logs))] * 20

    class Remote(WrappedStorage):
        remote = True

    monkeypatch.setattr("os.cpu_count", lambda: 4)
    local = MemoryStorage()
    assert slice_threads(local, slices(0)) == slice_threads(local, slices(2, 1000)) == 1
    assert slice_threads(local, slices(2)) == slice_threads(local, slices(8, 1000)) == 4
    assert slice_threads(Remote(local), slices(0)) == 6


def test_all_ways_to_merge_count_their_rows() -> None:
    storage, slice_ = slice_of(BASE, put("1", ("a", 9, "log"), ("x", 9, "log")), drop("1", ("b", None), ("gone", None)))
    merge = SliceMerge(reader_of(storage), slice_)
    assert sum(part.num_rows for part in merge.batches()) == 4
    assert (merge.updated, merge.unchanged, merge.deleted, merge.inserted) == (1, 2, 2, 1)
    assert merge.report == ScanReport(merged=2)


# --- which blocks count ---


def test_blocks_of_instants_that_are_not_completed_are_hidden() -> None:
    log = put("2", ("a", 9, "pending")), put("3", ("a", 9, "done"))
    some = Committed(completed=frozenset("03"), latest="5", inflight=frozenset("2"))
    assert read(BASE, *log, committed=some)[0] == ("a", "done")
    none = replace(some, completed=frozenset("0"), inflight=frozenset("23"))
    assert read(BASE, *log, committed=none)[0] == ("a", "base")


def test_blocks_from_before_the_timeline_count() -> None:
    some = Committed(completed=frozenset("5"), latest="5", first_active="4")
    assert read(BASE, put("3", ("a", 9, "archived")), committed=some)[0] == ("a", "archived")


def test_a_rollback_takes_the_blocks_of_its_target_away() -> None:
    log = put("1", ("a", 9, "kept")), put("2", ("a", 9, "undone")), encode_block(rollback_block("3", "2"))
    assert read(BASE, *log)[0] == ("a", "kept")


def test_a_block_of_a_log_compaction_stands_for_the_blocks_it_names() -> None:
    block = avro_block("3", AVRO, rows([("a", 1, "compacted")], "2"))
    entries = (*block.header.entries, (int(HeaderKey.COMPACTED_BLOCK_TIMES), "1,2"))
    compacted = encode_block(replace(block, header=BlockMap(entries)))
    log = put("1", ("a", 9, "old")), put("2", ("b", 9, "old")), put("4", ("c", 9, "later")), compacted
    assert read(BASE, *log) == [("a", "compacted"), ("b", "base"), ("c", "later"), ("d", "base")]


def test_a_timeline_tells_which_blocks_count() -> None:
    def instant(time: str, state: State = State.COMPLETED, action: Action = Action.DELTA_COMMIT) -> Instant:
        return Instant(time, action, state)

    timeline = Timeline(
        (
            instant("03"),
            instant("04", State.INFLIGHT),
            instant("05"),
            instant("06", State.REQUESTED, Action.COMPACTION),
            instant("07"),
            instant("08", State.COMPLETED, Action.ROLLBACK),
        )
    )

    def shown(committed: Committed) -> list[str]:
        return [time for time in (f"{number:02}" for number in range(1, 10)) if committed.shows(time)]

    assert shown(committed_blocks(timeline)) == ["01", "02", "03", "05", "07"]
    assert shown(committed_blocks(timeline, as_of="05")) == ["01", "02", "03", "05"]
    assert shown(committed_blocks(timeline, as_of="02")) == []
    assert committed_blocks(timeline).latest == "08"  # a rollback after the last commit counts
    newer = replace(timeline, layout=2, history={"01": "011"})  # log files of others are not among those of a slice
    assert shown(committed_blocks(newer)) == ["01", "02", "03", "05", "07"]
    assert shown(committed_blocks(newer, as_of="02")) == ["01"]


class Reads(WrappedStorage):
    """Notes what is read."""

    def __init__(self, inner: MemoryStorage) -> None:
        super().__init__(inner)
        self.taken: list[tuple[str, int, int]] = []

    def read(self, path: str) -> bytes:
        data: bytes = self.inner.read(path)
        self.taken.append((path, 0, len(data)))
        return data

    def read_range(self, path: str, start: int, end: int) -> bytes:
        self.taken.append((path, start, end))
        return self.inner.read_range(path, start, end)


def test_contents_of_blocks_that_do_not_count_are_not_read() -> None:
    big = put("2", *((str(number), 1, "x" * 100) for number in range(20_000)))
    log = put("1", ("a", 9, "1")) + big + put("3", ("a", 9, "3"))
    some = Committed(completed=frozenset("013"), latest="3", inflight=frozenset("2"))
    storage, slice_ = slice_of(None, log)
    counting = Reads(storage)
    (part,) = merged_batches(reader_of(counting, committed=some), slice_, ["v"])
    assert part.column("v").to_pylist() == ["3"]
    assert len(log) > 2_000_000
    assert sum(end - start for _, start, end in counting.taken) < 200_000


def test_small_logs_are_read_by_one_request_each() -> None:
    storage, slice_ = slice_of(None, *(put("1", (str(number), 1, "v")) for number in range(5)))
    counting = Reads(storage)
    (part,) = merged_batches(reader_of(counting), slice_, ["v"])
    assert part.num_rows == len(counting.taken) == 5


# --- columns ---


def decoded_columns(monkeypatch: pytest.MonkeyPatch, *args: object, **how: object) -> tuple[set[str], set[str]]:
    """The columns taken from log blocks and from the base file by `read`."""
    import hoodie.reading.slices.reader as module

    logged, stored = set(), set()
    decode = module.data_rows

    def noting(block: LogBlock, path: str, columns: list[str] | None) -> pa.Table:
        table = decode(block, path, columns)
        logged.update(table.column_names)
        return table

    batches = pq.ParquetFile.iter_batches

    def noting_batches(self: pq.ParquetFile, **how: object) -> object:
        for batch in batches(self, **how):
            stored.update(batch.schema.names)
            yield batch

    monkeypatch.setattr(module, "data_rows", noting)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noting_batches)
    read(*args, **how)  # type: ignore[arg-type]
    return logged, stored


@pytest.mark.parametrize("block", [avro_block, parquet_block])
def test_only_columns_that_matter_are_decoded(monkeypatch: pytest.MonkeyPatch, block: object) -> None:
    log = encode_block(block("1", AVRO, rows([("a", 9, "log"), ("a", 8, "log")])))  # type: ignore[operator]
    both = {"_hoodie_record_key", "ts", "v"}
    assert decoded_columns(monkeypatch, BASE, log, columns=["v"]) == (both, both)
    assert decoded_columns(monkeypatch, BASE, log, columns=["v"], rule=rule_for(OVERWRITE_WITH_LATEST)) == (
        both - {"ts"},
        both - {"ts"},
    )


@pytest.mark.parametrize("name", ["overwrite", "event time", "partial", "ordered deletes"])
def test_few_columns_are_those_of_the_whole_under_every_rule(name: str) -> None:
    base = rows([(f"k{number}", 5, "base") for number in range(0, 100, 2)], "0")
    storage, slice_ = slice_of(base, *random_logs(3, 100, 5, 60))
    reader = reader_of(storage, RULES[name])
    whole = pa.concat_tables(list(merged_batches(reader, slice_, SCHEMA.names)))
    for columns in (["v"], ["w", "_hoodie_commit_time"], ["id", "ts"], ["_hoodie_record_key"]):
        assert pa.concat_tables(list(merged_batches(reader, slice_, columns))).equals(whole.select(columns))


def test_without_blocks_that_count_the_base_file_gives_the_columns_wanted_only(monkeypatch: pytest.MonkeyPatch) -> None:
    none = Committed(completed=frozenset("0"), latest="5", inflight=frozenset("1"))
    assert decoded_columns(monkeypatch, BASE, put("1", ("a", 9, "log")), columns=["v"], committed=none) == (
        set(),
        {"v"},
    )


def test_columns_that_tell_deletes_are_read_though_nobody_asks_for_them() -> None:
    schema = with_meta_fields(pa.schema([*USER, ("_hoodie_is_deleted", pa.bool_())]))
    flags = pa.chunked_array([[True, False]])
    log = rows([("a", 9, "log"), ("b", 9, "log")]).append_column("_hoodie_is_deleted", flags)
    block = encode_block(avro_block("1", to_avro(schema, "t"), log))
    assert read(BASE, block, schema=schema, columns=["id"]) == [("b",), ("c",), ("d",)]


def test_no_columns_at_all_still_count_rows() -> None:
    storage, slice_ = slice_of(BASE, put("1", ("x", 9, "log")))
    assert sum(part.num_rows for part in merged_batches(reader_of(storage), slice_, [])) == 5


def test_keys_that_are_not_stored_are_made_of_their_columns() -> None:
    plain = USER
    storage, slice_ = slice_of(
        BASE.select(plain.names),
        encode_block(avro_block("1", to_avro(plain, "t"), rows([("a", 9, "log"), ("x", 9, "log")], schema=plain))),
        drop("2", ("b", None)),
    )
    keygen = key_generator({"hoodie.table.recordkey.fields": "id", "hoodie.table.keygenerator.type": "NON_PARTITION"})
    parts = merged_batches(reader_of(storage, schema=plain, keygen=keygen), slice_, ["v", "id"])
    assert [row for part in parts for row in part.to_pylist()] == [
        {"v": "log", "id": "a"},
        {"v": "base", "id": "c"},
        {"v": "base", "id": "d"},
        {"v": "log", "id": "x"},
    ]


# --- schemas that differ ---


def test_rows_of_older_and_newer_blocks_are_brought_into_the_tables_columns() -> None:
    def block(instant: str, key: str, **columns: tuple[pa.DataType, object]) -> bytes:
        schema = with_meta_fields(pa.schema([("id", pa.string()), *((n, kind) for n, (kind, _) in columns.items())]))
        table = rows([(key, 9, "")], instant).select([*SCHEMA.names[:6]])
        for name, (kind, value) in columns.items():
            table = table.append_column(name, pa.array([value], kind))
        return encode_block(avro_block(instant, to_avro(schema, "t"), table))

    older = block("1", "a", ts=(pa.int32(), 7))
    newer = block("2", "b", ts=(pa.int64(), 7), v=(pa.string(), "b"), extra=(pa.float64(), 0.5))
    assert read(BASE, older, newer, columns=["id", "ts", "v"])[:2] == [("a", 7, None), ("b", 7, "b")]


def test_a_column_that_a_block_lacks_has_its_default() -> None:
    schema = json.loads(AVRO)
    schema["fields"].append({"name": "extra", "type": "string", "default": "none yet"})
    columns = from_avro(json.dumps(schema), "test")
    assert read(BASE, put("1", ("a", 9, "log")), schema=columns, columns=["extra"]) == [("none yet",)] * 4


def test_a_schema_that_cannot_be_brought_into_the_tables_names_file_and_offset() -> None:
    other = pa.schema([field.with_type(pa.bool_()) if field.name == "v" else field for field in SCHEMA])
    table = rows([("a", 9, "")]).drop_columns("v").add_column(7, "v", pa.array([True]))
    block = encode_block(avro_block("1", to_avro(other, "t"), table))
    with pytest.raises(SchemaMismatch, match=r"p/\.f-0_0\.log\.1_0-0-0 at byte \d+: column v is boolean"):
        read(BASE, block)
    assert read(BASE, block, columns=["id"])[0] == ("a",)  # no one looks at it


def test_a_base_file_that_cannot_be_brought_into_the_tables_columns_is_named() -> None:
    table = BASE.drop_columns("v").add_column(7, "v", pa.array([True] * 4))
    with pytest.raises(SchemaMismatch, match=r"p/f-0_0-0-0_0\.parquet: column v is boolean"):
        read(table, put("1", ("a", 9, "log")))


# --- bytes that are wrong ---


def test_a_block_cut_short_is_skipped_and_reported() -> None:
    whole = put("1", ("a", 9, "log"))
    with pytest.warns(DamagedLog, match=r"log\.1_0-0-0 at byte 0: a block that is cut short") as seen:
        assert read(BASE, whole[:-1])[0] == ("a", "base")
    assert len(seen) == 1
    with pytest.warns(DamagedLog, match=rf"at byte {len(whole)}: a block that is cut short"):
        assert read(BASE, whole + whole[:-3])[0] == ("a", "log")
    with pytest.warns(DamagedLog, match=rf"at byte {len(whole)}: 3 bytes that are no block"):
        assert read(BASE, whole + whole[:3])[0] == ("a", "log")


def test_a_rollback_accounts_for_a_block_cut_short_before_it() -> None:
    log = put("1", ("a", 9, "log")), put("2", ("b", 9, "log"))[:-1], encode_block(rollback_block("3", "2"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(BASE, *log) == [("a", "log"), *((key, "base") for key in "bcd")]
        cut = put("1", ("a", 9, "log")) + put("2", ("b", 9, "log"))[:3]  # within the magic: it is no block
        assert read(BASE, cut, encode_block(rollback_block("3", "2")))[0] == ("a", "log")


def test_a_block_of_an_instant_that_nothing_tells_of_is_reported() -> None:
    some = Committed(completed=frozenset("013"), latest="5")
    with pytest.warns(DamagedLog, match="instant 2, which is not on the timeline"):
        assert read(BASE, put("2", ("a", 9, "log")), committed=some)[0] == ("a", "base")
    with warnings.catch_warnings():  # one that began after the timeline was read, and one that was rolled back
        warnings.simplefilter("error")
        read(BASE, put("6", ("a", 9, "log")), committed=some)
        read(BASE, put("2", ("a", 9, "log")), encode_block(rollback_block("3", "2")), committed=some)


def test_the_report_tells_what_the_scan_met() -> None:
    log = put("1", ("a", 9, "log")) + put("2", ("a", 9, "log")) + encode_block(rollback_block("3", "2"))
    storage, slice_ = slice_of(None, log + put("4", ("a", 1, "log")) + put("1", ("a", 9, "log"))[:-1])
    merge = SliceMerge(reader_of(storage, committed=replace(ALL, completed=frozenset("12"))), slice_, ["v"], [].append)
    assert [row for part in merge.batches() for row in part.column("v").to_pylist()] == ["log"]
    report = merge.report
    assert (report.merged, report.hidden, report.corrupt, report.rollbacks, report.rolled_back) == (1, 1, 1, 1, 1)
    assert [damage.offset > 0 for damage in report.damaged] == [True, True]  # the hidden one's instant is unknown


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        (lambda data: data.replace(b"\0\0\0\1\0\0\0\3", b"\0\0\0\2\0\0\0\3", 1), UnsupportedTable, "version 2"),
        (lambda data: data.replace(b"\0\0\0\1\0\0\0\3", b"\0\0\0\1\0\0\0\7", 1), CorruptLogBlock, "type 7"),
        (lambda data: data.replace(b"\0\0\0\1\0\0\0\3", b"\0\0\0\1\0\0\0\6", 1), UnsupportedTable, "change-data"),
        (lambda data: data.replace(b"\0\0\0\1\0\0\0\3", b"\0\0\0\1\0\0\0\0", 1), UnsupportedTable, "no rollback"),
        (lambda data: data.replace(b"\0\0\0\0\0\0\0\1\x31", b"\0\0\0\0\0\0\0\1x", 1), CorruptLogBlock, "instant 'x'"),
        (lambda data: b"rubbish" + data, CorruptLogBlock, "magic"),
    ],
)
def test_a_block_that_no_reader_can_pass_by_names_file_and_offset(change, error, problem) -> None:  # type: ignore[no-untyped-def]
    data = put("1", ("a", 9, "log"))
    with pytest.raises(error, match=rf"\.f-0_0\.log\.1_0-0-0 at byte \d+.*{problem}"):
        read(BASE, change(data))


def test_a_block_of_partial_updates_is_refused_where_a_payload_class_merges() -> None:
    block = avro_block("1", AVRO, rows([("a", 9, "log")]))
    partly = replace(block, header=BlockMap((*block.header.entries, (int(HeaderKey.IS_PARTIAL), "true"))))
    with pytest.raises(UnsupportedTable, match=r"log\.1_0-0-0 at byte 0: a block of partial updates"):
        read(BASE, encode_block(partly))


def test_rows_without_a_key_are_refused() -> None:
    no_key = rows([("a", 9, "log")]).set_column(2, "_hoodie_record_key", pa.array([None], pa.string()))
    empty = no_key.set_column(2, "_hoodie_record_key", pa.array([""]))
    for table in (no_key, empty):
        with pytest.raises(CorruptLogBlock, match="no record key"):
            read(BASE, encode_block(avro_block("1", AVRO, table)))
        with pytest.raises(CorruptFile, match=r"f-0_0-0-0_0\.parquet: some of 1 rows have no record key"):
            read(table, put("1", ("a", 9, "log")))
    with pytest.raises(CorruptLogBlock, match="no record key"):
        read(BASE, drop("1", ("", 1)))


def test_a_data_block_without_schema_is_refused() -> None:
    block = LogBlock(BlockKind.AVRO_DATA, BlockMap(((int(HeaderKey.INSTANT_TIME), "1"),)), b"\0\0\0\3\0\0\0\0")
    with pytest.raises(CorruptLogBlock, match="without the schema"):
        read(BASE, encode_block(block))


def test_a_log_that_became_shorter_is_an_error() -> None:
    storage, slice_ = slice_of(None, put("1", *((str(number), 1, "x" * 100) for number in range(5_000))))
    log = slice_.logs[0]
    storage.write(log.path, storage.read(log.path)[:-1000])
    with pytest.raises(CorruptFile, match=r"log\.1_0-0-0"):
        list(merged_batches(reader_of(storage), slice_, ["v"]))


# --- memory ---


RULES = {
    "overwrite": OVERWRITE,
    "event time": rule_for(DEFAULT, ("ts",)),
    "partial": rule_for(PARTIAL_UPDATE, ("ts",)),
    "ordered deletes": rule_for_mode("EVENT_TIME_ORDERING", ("ts",)),
}


def random_logs(seed: int, keys: int, blocks: int, size: int) -> list[bytes]:
    random = np.random.default_rng(seed)
    made = []
    for number in range(blocks):
        instant = str(number % 9 + 1)
        chosen = random.integers(0, keys, size)
        times = random.integers(0, 10, size)
        entries = [(f"k{key}", int(time), f"{number}-{key}") for key, time in zip(chosen, times, strict=True)]
        if number % 3 == 2:
            made.append(drop(instant, *((key, time) for key, time, _ in entries[: size // 2])))
        made.append(put(instant, *entries))
    return made


@pytest.mark.parametrize(("rule", "limit"), covering(RULES, [1, 4_000, 20_000]))
def test_rows_on_disk_merge_into_the_same_rows(rule: MergeRule, limit: int, tmp_path: Path) -> None:
    base = rows([(f"k{number}", 5, "base") for number in range(0, 400, 2)], "0")
    storage, slice_ = slice_of(base, *random_logs(limit, 300, 8, 60))
    held = SliceMerge(reader_of(storage, rule), slice_)
    spilling = SliceMerge(
        reader_of(storage, rule, options=MergeOptions(max_bytes=limit, spill_folder=str(tmp_path))), slice_
    )
    expected = pa.concat_tables(list(held.batches()))
    found = []
    for part in spilling.batches():
        assert len(list(tmp_path.iterdir())) == 1  # the rows are there, and go
        found.append(part)
    assert list(tmp_path.iterdir()) == []
    merged = pa.concat_tables(found)
    stored = expected.num_rows - held.inserted
    assert merged.slice(0, stored).equals(expected.slice(0, stored))
    by_key = [("_hoodie_record_key", "ascending")]
    assert merged.slice(stored).sort_by(by_key).equals(expected.slice(stored).sort_by(by_key))
    counts = [(each.updated, each.deleted, each.unchanged, each.inserted) for each in (held, spilling)]
    assert counts[0] == counts[1]


def test_a_record_after_a_delete_wins_though_both_came_when_rows_were_on_disk() -> None:
    many = put("1", ("a", 5, "first"), *((f"k{number}", 1, "v" * 50) for number in range(50)))
    log = many, drop("2", ("a", 7)), put("3", ("a", 1, "again"))
    for limit in (1 << 30, 4_000, 1):  # all in memory; the last two blocks wait together; each goes to disk by itself
        assert ("a", "again") in read(None, *log, options=MergeOptions(max_bytes=limit))


def test_a_merge_that_is_given_up_leaves_nothing_on_disk(tmp_path: Path) -> None:
    storage, slice_ = slice_of(BASE, *random_logs(1, 100, 4, 60))
    parts = merged_batches(
        reader_of(storage, options=MergeOptions(max_bytes=1, spill_folder=str(tmp_path))), slice_, ["v"]
    )
    next(parts)
    assert list(tmp_path.iterdir())
    parts.close()
    assert not list(tmp_path.iterdir())


def test_many_versions_of_few_rows_stay_in_memory(tmp_path: Path) -> None:
    storage, slice_ = slice_of(None, *(put("1", *((f"k{k}", n, "v" * 50) for k in range(20))) for n in range(40)))
    options = MergeOptions(max_bytes=40_000, spill_folder=str(tmp_path / "none"))
    merge = SliceMerge(reader_of(storage, options=options), slice_)
    assert [part.num_rows for part in merge.batches()] == [20]
    assert merge.largest < 30_000


@pytest.mark.parametrize("codec", [avro_block, nightly(parquet_block)])
def test_logs_of_several_times_the_limit_are_merged_within_it(  # type: ignore[no-untyped-def]
    codec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hoodie.reading.slices.reader._BATCH_ROWS", 8192)
    limit, count, blocks = 8 << 20, 20_000, 16
    text = pa.array(["v" * 80] * count)

    def block_rows(number: int) -> pa.Table:
        keys = pc.binary_join_element_wise(
            "key", pc.cast(pa.array(np.arange(count) + number * count), pa.string()), "-"
        )
        table = rows([("k", 1, "v")]).take(pa.array(np.zeros(count, np.int64)))
        for name, column in (("_hoodie_record_key", keys), ("id", keys), ("v", text)):
            table = table.set_column(SCHEMA.get_field_index(name), name, column)
        return table

    size = block_rows(0).nbytes
    assert blocks * size > 4 * limit
    logs = [encode_block(codec("1", AVRO, block_rows(number))) for number in range(blocks)]
    base = pa.concat_tables([block_rows(number) for number in (0, 5, 15)])
    storage, slice_ = slice_of(base, *logs)
    del logs
    merge = SliceMerge(reader_of(storage, options=MergeOptions(max_bytes=limit, spill_folder=str(tmp_path))), slice_)
    pool = pa.proxy_memory_pool(pa.system_memory_pool())  # counts from here
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        found = sum(part.num_rows for part in merge.batches())
    finally:
        pa.set_memory_pool(before)
    assert found == blocks * count
    assert (merge.updated, merge.inserted) == (3 * count, (blocks - 3) * count)
    assert merge.largest <= limit // 2 + size
    # Besides the logs' rows: one block, and of the base file a batch, its matches and the result.
    assert pool.max_memory() < 2 * limit, pool.max_memory()
