"""When the positions in the headers of log blocks are believed: else the keys of the base file are read."""

import io
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.formats.avro.schema import to_avro
from hoodie.formats.log.blocks import BlockMap, HeaderKey, LogBlock, encode_block
from hoodie.formats.log.content import avro_block, delete_block, encode_positions
from hoodie.formats.log.delete_block import deletes_of
from hoodie.merge.log_scan import Committed
from hoodie.merge.payloads import DEFAULT, OVERWRITE_WITH_LATEST, PARTIAL_UPDATE, rule_for
from hoodie.merge.rules import MergeRule
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile, log_file_name, log_token
from hoodie.reading.slices import reader as reader_module
from hoodie.reading.slices import slice_changes as changes_module
from hoodie.reading.slices.reader import SliceMerge, SliceReader
from hoodie.reading.slices.slice_changes import SliceChanges
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.testing.storage import MemoryStorage

FIRST, SECOND = "20250101000000000", "20250331030642808"
GROUP = FileGroupId("p", "f-0")
SCHEMA = with_meta_fields(pa.schema([("id", pa.string()), ("ts", pa.int64())]))
AVRO = to_avro(SCHEMA, "t")
OVERWRITE = rule_for(OVERWRITE_WITH_LATEST, ("ts",))
OURS = log_token(SECOND, "0-0-0")


def rows(keys: str, ts: int, instant: str) -> pa.Table:
    texts = {name: [instant] * len(keys) for name in SCHEMA.names[:5]}
    made = {**texts, "_hoodie_record_key": list(keys), "id": list(keys), "ts": [ts] * len(keys)}
    return pa.table([pa.array(made[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


def with_entry(block: LogBlock, key: HeaderKey, text: str) -> LogBlock:
    return replace(block, header=BlockMap((*block.header.entries, (int(key), text))))


def positions(*given: int) -> str:
    text = encode_positions(np.array(given, np.int64))
    assert text is not None
    return text


def changes_of(
    *blocks: LogBlock, token: str = OURS, base_instant: str = FIRST, rule: MergeRule = OVERWRITE, keys: str = "abcdef"
) -> SliceChanges:
    out = io.BytesIO()
    pq.write_table(rows(keys, 5, FIRST), out, row_group_size=2)
    base = BaseFile(GROUP, FIRST, "0-0-0", len(out.getvalue()), f"f-0_0-0-0_{FIRST}.parquet")
    content = b"".join(map(encode_block, blocks))
    log = LogFile(GROUP, base_instant, 1, token, len(content), log_file_name("f-0", base_instant, 1, token))
    storage = MemoryStorage({base.path: out.getvalue(), log.path: content})
    committed = Committed(completed=frozenset({FIRST, SECOND}), latest="9")
    return SliceChanges(SliceReader(storage, SCHEMA, rule, committed), FileSlice(GROUP, FIRST, base, (log,)), ["id"])


def believed(changes: SliceChanges) -> bool:
    """Whether nothing of the base file is read. Positions of the blocks here are wrong, to tell them from keys'."""
    again = SliceChanges(changes.reader, changes.slice, changes.columns)
    ids = [key for part in changes.rows() for key in part.column("id").to_pylist()]
    assert sorted(ids) == ["b", "e"]
    assert again.positions().tolist() == changes.replaced.tolist()
    assert changes.replaced.tolist() in ([0, 2], [1, 4])
    return changes.replaced.tolist() == [0, 2]


def columns_read(changes: SliceChanges, columns: tuple[str, ...] | None = None) -> set[str]:
    """The columns of the base file that are read; columns: of a merge, None: of the changes alone."""
    read: set[str] = set()
    inner = reader_module.base_batches

    def noted(storage: Storage, file: BaseFile, target: pa.Schema) -> Iterator[pa.Table]:
        read.update(target.names)
        return inner(storage, file, target)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reader_module, "base_batches", noted)
        patched.setattr(changes_module, "base_batches", noted)
        again = SliceChanges(changes.reader, changes.slice, changes.columns)
        list(again.rows() if columns is None else reader_module.merged_batches(changes.reader, changes.slice, columns))
    return read


def without_positions(block: LogBlock) -> LogBlock:
    entries = tuple(entry for entry in block.header.entries if entry[0] != int(HeaderKey.RECORD_POSITIONS))
    return replace(block, header=BlockMap(entries))


TOLD = avro_block(SECOND, AVRO, rows("be", 9, SECOND), positions(0, 2))
RIGHT = avro_block(SECOND, AVRO, rows("be", 9, SECOND), positions(1, 4))
LATE = avro_block(SECOND, AVRO, rows("bf", 4, SECOND), positions(1, 5))
GONE = delete_block(SECOND, AVRO, deletes_of(pa.array(["a", "f"]), pa.array(["p"] * 2), None), positions(0, 5))


def test_positions_of_this_library_are_believed() -> None:
    assert believed(changes_of(TOLD))


@pytest.mark.parametrize("token", ["0-0-0", "0-12-34", ""])
def test_positions_that_another_writer_put_into_a_table_of_version_6_are_not_believed(token: str) -> None:
    assert not believed(changes_of(TOLD, token=token))


def test_positions_of_logs_that_follow_another_base_file_are_not_believed() -> None:
    assert not believed(changes_of(TOLD, base_instant="20250201000000000"))


@pytest.mark.parametrize(("stated", "expected"), [(FIRST, True), (SECOND, False)])
def test_from_version_8_on_the_header_says_which_file_they_are_of(stated: str, expected: bool) -> None:
    block = with_entry(TOLD, HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS, stated)
    assert believed(changes_of(block, token="0-12-34", base_instant=SECOND)) is expected


def test_a_block_that_tells_none_has_all_keys_compared() -> None:
    assert not believed(changes_of(TOLD, avro_block(SECOND, AVRO, rows("e", 9, SECOND))))


def test_a_rule_that_compares_ordering_values_takes_stored_ones_by_position() -> None:
    changes = changes_of(TOLD, rule=rule_for(DEFAULT, ("ts",)))
    assert believed(changes)
    assert columns_read(changes) == {"ts"}


def test_a_rule_that_makes_rows_of_both_has_keys_compared() -> None:
    assert not believed(changes_of(TOLD, rule=rule_for(PARTIAL_UPDATE, ("ts",))))


@pytest.mark.parametrize(("columns", "read"), [((), {"ts"}), (("ts",), {"ts"}), (("id",), {"id", "ts"})])
def test_a_merge_by_position_reads_no_keys_that_nobody_wants(columns: tuple[str, ...], read: set[str]) -> None:
    changes = changes_of(RIGHT, rule=rule_for(DEFAULT, ("ts",)))
    assert columns_read(changes, columns) == read


@pytest.mark.parametrize("blocks", [(RIGHT,), (RIGHT, LATE), (LATE,), (LATE, GONE, RIGHT), (GONE,), (RIGHT, GONE)])
@pytest.mark.parametrize("payload", [DEFAULT, OVERWRITE_WITH_LATEST, PARTIAL_UPDATE])
def test_a_merge_by_position_gives_the_rows_and_counts_of_one_by_keys(
    blocks: tuple[LogBlock, ...], payload: str
) -> None:
    def merged(*given: LogBlock) -> tuple[object, ...]:
        changes = changes_of(*given, rule=rule_for(payload, ("ts",)))
        merge = SliceMerge(changes.reader, changes.slice)
        rows = [row for part in merge.batches() for row in part.to_pylist()]
        return rows, merge.records, merge.keys, merge.updated, merge.deleted, merge.unchanged, merge.inserted

    assert merged(*blocks) == merged(*map(without_positions, blocks))


def test_a_stored_row_that_wins_is_not_replaced() -> None:
    late = avro_block(SECOND, AVRO, rows("be", 4, SECOND), positions(1, 4))
    changes = changes_of(late, rule=rule_for(DEFAULT, ("ts",)))
    assert sum(part.num_rows for part in changes.rows()) == 0
    assert changes.replaced.tolist() == []


def test_deleted_rows_are_replaced_by_nothing() -> None:
    gone = delete_block(SECOND, AVRO, deletes_of(pa.array(["c"]), pa.array(["p"]), None), positions(2))
    changes = changes_of(TOLD, gone)
    assert sorted(key for part in changes.rows() for key in part.column("id").to_pylist()) == ["b", "e"]
    assert changes.replaced.tolist() == [0, 2]


def test_a_key_that_is_stored_twice_is_updated_twice() -> None:
    changes = changes_of(avro_block(SECOND, AVRO, rows("be", 9, SECOND)), keys="abbcde")
    assert sorted(key for part in changes.rows() for key in part.column("id").to_pylist()) == ["b", "b", "e"]
    assert changes.replaced.tolist() == [1, 2, 5]
