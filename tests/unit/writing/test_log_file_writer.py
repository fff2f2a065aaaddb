"""What one task appends to the logs of a file group: files, blocks, statistics, markers."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie.commit.markers import Marker, MarkerKind, read_markers
from hoodie.config.options import read_options
from hoodie.config.write import BloomOptions, FileSizing, LogOptions
from hoodie.formats.avro.schema import to_avro
from hoodie.formats.log.blocks import BlockKind, HeaderKey, LogBlock, read_blocks
from hoodie.formats.log.content import data_rows, decode_positions
from hoodie.formats.log.delete_block import OrderingClass, decode_deletes
from hoodie.merge.base import Incoming
from hoodie.merge.payloads import DEFAULT, rule_for
from hoodie.model.commit import WriteStat
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile, log_token
from hoodie.plan.write import TaskKind, WriteTask
from hoodie.schema.schema import with_meta_fields
from hoodie.testing.storage import MemoryStorage
from hoodie.writing.tasks.base_file import WriteSpec, stamp
from hoodie.writing.tasks.log_file import append_log
from support.incoming import incoming_deletes, incoming_rows

INSTANT = "20250331030642808"
BASE = "20250101000000000"
GROUP = FileGroupId("oslo", "f1-0")
SCHEMA = with_meta_fields(pa.schema([("id", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())]))
RULE = rule_for(DEFAULT, ("ts",))


def spec(**options: Any) -> WriteSpec:
    names = {"max_size": "hoodie.logfile.max.size", "block_size": "hoodie.logfile.data.block.max.size"}
    names["block_format"] = "hoodie.logfile.data.block.format"
    logs = read_options(LogOptions, {names[name]: value for name, value in options.items()})
    avro = to_avro(SCHEMA, "trips")
    return WriteSpec(MemoryStorage(), INSTANT, SCHEMA, avro, FileSizing(), BloomOptions(), logs)


def slice_of(*logs: LogFile, base: bool = True, instant: str = BASE) -> FileSlice:
    file = BaseFile(GROUP, instant, "0-0-0", 9, f"f1-0_0-0-0_{instant}.parquet") if base else None
    return FileSlice(GROUP, instant, file, logs)


def log(version: int, token: str = "7-7-7") -> LogFile:
    return LogFile(GROUP, BASE, version, token, 9, f".f1-0_{BASE}.log.{version}_{token}")


def task(slice_: FileSlice | None, updates: int = 1, inserts: int = 0) -> WriteTask:
    return WriteTask(0, GROUP, TaskKind.APPEND, slice_, updates, inserts)


def incoming(spec_: WriteSpec, keys: Sequence[str], deleted: Sequence[bool] | None = None) -> Incoming:
    count = len(keys)
    flags = pa.array(deleted or [False] * count)
    rows = pa.table({"id": keys, "ts": pa.array(range(10, 10 + count), pa.int64()), "_hoodie_is_deleted": flags})
    rows = rows.append_column("_hoodie_record_key", pa.array(keys))
    rows = rows.append_column("_hoodie_partition_path", pa.array(["oslo"] * count))
    return incoming_rows(stamp(rows, pa.array(keys), "oslo", spec_, "0-1-2"))


def append(
    spec_: WriteSpec, keys: Sequence[str], slice_: FileSlice | None, deleted: Sequence[bool] | None = None
) -> list[WriteStat]:
    work = task(slice_, updates=0 if slice_ is None else len(keys), inserts=len(keys) if slice_ is None else 0)
    return append_log(spec_, RULE, work, incoming(spec_, keys, deleted), "0-1-2")


def blocks(spec_: WriteSpec, stat: WriteStat) -> list[LogBlock]:
    assert stat.path is not None
    return list(read_blocks(spec_.storage.read(stat.path), stat.path))


def keys_in(block: LogBlock) -> list[str]:
    return list(data_rows(block, "log")["_hoodie_record_key"].to_pylist())


def test_an_update_of_a_slice_without_logs_begins_its_first_log_file():
    made = spec()
    (stat,) = append(made, ["a", "b"], slice_of())
    token = log_token(INSTANT, "0-1-2")
    name = f".f1-0_{BASE}.log.1_{token}"
    size = made.storage.size(f"oslo/{name}")
    assert stat == WriteStat(
        file_id="f1-0",
        path=f"oslo/{name}",
        partition="oslo",
        prev_commit=BASE,
        num_writes=2,
        num_updates=2,
        total_write_bytes=size,
        file_size=size,
        log_version=1,
        log_offset=0,
        base_file=f"f1-0_0-0-0_{BASE}.parquet",
        log_files=(name,),
    )


def positions_in(block: LogBlock) -> list[int] | None:
    text = block.header.get(HeaderKey.RECORD_POSITIONS)
    found = None if text is None else decode_positions(text)
    return None if found is None else found.tolist()


def append_at(
    spec_: WriteSpec, keys: str, positions: Sequence[int], slice_: FileSlice, deleted: Sequence[bool] | None = None
) -> list[tuple[BlockKind, list[str], list[int] | None]]:
    at = np.array(positions, np.int64)
    work = task(slice_, updates=len(keys))
    (stat,) = append_log(spec_, RULE, work, incoming(spec_, list(keys), deleted), "0-1-2", positions=at)
    found = []
    for block in blocks(spec_, stat):
        gone = block.kind is BlockKind.DELETE
        block_keys = decode_deletes(block.content)["record_key"].to_pylist() if gone else keys_in(block)
        found.append((block.kind, block_keys, positions_in(block)))
        assert {key for key, _ in block.header.entries} <= {0, 2, 5}  # Hudi of table version 6 fails on others
    return found


def test_rows_whose_positions_are_known_come_in_their_order_and_the_others_after_them():
    found = append_at(spec(), "abcd", [7, -1, 3, -1], slice_of())
    assert found == [(BlockKind.AVRO_DATA, ["c", "a"], [3, 7]), (BlockKind.AVRO_DATA, ["b", "d"], None)]


def test_deletes_tell_their_positions_too():
    found = append_at(spec(), "abcd", [7, 9, 3, 1], slice_of(), deleted=[True, False, True, False])
    assert found == [(BlockKind.AVRO_DATA, ["d", "b"], [1, 9]), (BlockKind.DELETE, ["c", "a"], [3, 7])]


def test_each_block_of_many_tells_the_positions_of_its_own_rows():
    made = spec(block_size=300)
    found = append_at(made, "abcdefgh", [8, 7, 6, 5, 4, 3, 2, 1], slice_of())
    assert len(found) > 1
    assert [key for _, keys, _ in found for key in keys] == list("hgfedcba")
    assert [at for _, _, positions in found for at in positions or ()] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(len(keys) == len(positions or ()) for _, keys, positions in found)


def test_blocks_that_wait_for_a_pending_compaction_tell_no_positions():
    opened = slice_of(base=False, instant="20250201000000000")
    waiting = replace(opened, base=slice_of().base)
    for slice_ in (opened, waiting):
        assert append_at(spec(), "ab", [0, 1], slice_) == [(BlockKind.AVRO_DATA, ["a", "b"], None)]


def test_the_version_is_above_all_that_are_there_and_the_stat_names_earlier_logs():
    logs = (log(2), log(11), log(11, "9-9-9"))
    (stat,) = append(spec(), ["a"], slice_of(*logs))
    assert stat.log_version == 12
    assert stat.path is not None
    assert stat.log_files == (*(one.name for one in logs), stat.path.removeprefix("oslo/"))


def test_a_new_file_group_of_logs_begins_at_the_writes_own_instant():
    made = spec()
    (stat,) = append(made, ["a", "b"], None)
    assert (stat.prev_commit, stat.log_version, stat.base_file) == (INSTANT, 1, "")
    assert (stat.num_inserts, stat.num_updates) == (2, 0)
    assert f"_{INSTANT}.log.1_" in (stat.path or "")
    assert made.storage.exists("oslo/.hoodie_partition_metadata")


def test_a_slice_that_a_pending_compaction_opened_takes_logs_at_its_instant():
    opened = "20250201000000000"
    (stat,) = append(spec(), ["a"], slice_of(base=False, instant=opened))
    assert (stat.prev_commit, stat.base_file) == (opened, "")
    assert f"_{opened}.log.1_" in (stat.path or "")


def test_of_a_group_that_takes_both_planned_inserts_count_as_such():
    made = spec()
    (stat,) = append_log(made, RULE, task(slice_of(), updates=2, inserts=1), incoming(made, list("abc")), "0-1-2")
    assert (stat.num_inserts, stat.num_updates, stat.num_writes) == (1, 2, 3)


def test_the_marker_comes_before_the_file():
    class Refusing(MemoryStorage):
        def open_output(self, path: str) -> Any:
            raise PermissionError(path)

    made = replace(spec(), storage=Refusing())
    with pytest.raises(PermissionError):
        append(made, ["a"], slice_of())
    name = f"oslo/.f1-0_{BASE}.log.1_{log_token(INSTANT, '0-1-2')}"
    assert read_markers(made.storage, INSTANT) == (Marker(name, MarkerKind.APPEND),)


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_rows_come_back_as_they_were_with_the_file_id_as_file_name(block_format: str):
    made = spec(block_format=block_format)
    (stat,) = append(made, ["a", "b"], slice_of())
    (block,) = blocks(made, stat)
    assert block.kind is {"avro": BlockKind.AVRO_DATA, "parquet": BlockKind.PARQUET_DATA}[block_format]
    assert block.header.instant == INSTANT
    assert block.header.schema == made.avro_schema
    rows = data_rows(block, "log").to_pylist()
    assert [row["_hoodie_file_name"] for row in rows] == ["f1-0", "f1-0"]
    assert [row["_hoodie_commit_seqno"] for row in rows] == [f"{INSTANT}_0_0", f"{INSTANT}_0_1"]
    assert [(row["id"], row["ts"], row["_hoodie_is_deleted"]) for row in rows] == [("a", 10, False), ("b", 11, False)]


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
@pytest.mark.parametrize("limit", [1, 3_000, 8_000])
def test_a_block_has_at_most_the_maximum_size_unless_one_row_is_larger(block_format: str, limit: int):
    made = spec(block_size=limit, block_format=block_format)
    count = 10 if limit == 1 else 300
    keys = [f"k{n:03d}" + "x" * n for n in range(count)]  # rows grow: what the first ones take is too little
    (stat,) = append(made, keys, slice_of())
    found = blocks(made, stat)
    assert len(found) > 1
    for block in found:
        rows = keys_in(block)
        assert len(block.content) <= limit or len(rows) == 1
    assert [key for block in found for key in keys_in(block)] == keys


def test_a_full_log_file_is_followed_by_the_next_version():
    made = spec(block_size=2_000, max_size=5_000)
    keys = [f"k{n:03d}" for n in range(200)]
    stats = append(made, keys, slice_of(log(4)), [n % 50 == 0 for n in range(200)])
    assert [stat.log_version for stat in stats] == list(range(5, 5 + len(stats)))
    assert len(stats) > 2
    assert [stat.file_size for stat in stats] == [made.storage.size(stat.path or "") for stat in stats]
    assert all(stat.file_size >= 5_000 for stat in stats[:-1])
    assert sum(stat.num_writes for stat in stats) == sum(stat.num_updates for stat in stats) == 196
    assert [stat.num_deletes for stat in stats] == [0] * (len(stats) - 1) + [4]
    for number, stat in enumerate(stats):
        assert stat.log_files == (log(4).name, *((one.path or "").removeprefix("oslo/") for one in stats[: number + 1]))
        rows = [key for block in blocks(made, stat) if block.kind.is_data for key in keys_in(block)]
        assert len(rows) == stat.num_writes


def test_rows_flagged_as_deleted_go_to_one_delete_block_at_the_end_with_their_ordering_values():
    made = spec(block_size=200)
    (stat,) = append(made, list("abcdef"), slice_of(), [True, False, False, True, False, False])
    found = blocks(made, stat)
    assert [block.kind for block in found] == [BlockKind.AVRO_DATA] * (len(found) - 1) + [BlockKind.DELETE]
    assert [key for block in found[:-1] for key in keys_in(block)] == list("bcef")
    assert found[-1].header.schema == made.avro_schema
    deletes = decode_deletes(found[-1].content)
    assert deletes.select(["record_key", "partition", "ordering_class", "ordering_integer"]).to_pylist() == [
        {"record_key": "a", "partition": "oslo", "ordering_class": OrderingClass.LONG, "ordering_integer": 10},
        {"record_key": "d", "partition": "oslo", "ordering_class": OrderingClass.LONG, "ordering_integer": 13},
    ]
    assert (stat.num_writes, stat.num_updates, stat.num_deletes) == (4, 4, 2)


def test_keys_of_the_delete_operation_carry_the_integer_zero():
    made = spec()
    keys = incoming_deletes(pa.array(["a", "b"]), SCHEMA)
    (stat,) = append_log(made, RULE, task(slice_of()), keys, "0-1-2")
    (block,) = blocks(made, stat)
    deletes = decode_deletes(block.content)
    assert deletes["record_key"].to_pylist() == ["a", "b"]
    assert deletes["ordering_class"].to_pylist() == [OrderingClass.INT] * 2
    assert deletes["ordering_integer"].to_pylist() == [0, 0]
    assert (stat.num_writes, stat.num_deletes) == (0, 2)


def test_a_table_without_ordering_field_deletes_with_the_integer_zero():
    made = spec()
    rule = rule_for(DEFAULT, ())
    (stat,) = append_log(made, rule, task(slice_of()), incoming(made, ["a"], [True]), "0-1-2")
    deletes = decode_deletes(blocks(made, stat)[0].content)
    assert deletes["ordering_class"].to_pylist() == [OrderingClass.INT]


def test_an_append_that_fails_in_the_middle_of_a_file_leaves_none():
    class FullDisk(MemoryStorage):
        @contextmanager
        def open_output(self, path: str) -> Iterator[Any]:
            with super().open_output(path) as file:
                yield NoRoom(file)

    class NoRoom:
        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: bytes) -> None:
            if self.file.tell():
                raise OSError(28, "no space left")
            self.file.write(data)

    made = replace(spec(block_size=200), storage=FullDisk())
    with pytest.raises(OSError, match="no space left"):
        append(made, [f"k{n}" for n in range(50)], slice_of())
    found = [entry.name for part in made.storage.list_tree().values() for entry in part]
    assert [name for name in found if ".log." in name and not name.endswith(".marker.APPEND")] == []


def test_log_tokens_of_two_writes_differ_though_their_attempts_are_numbered_alike():
    instants = [INSTANT, "20250331030642809", "20250331030643808", "20260331030642808", "20250331030642"]
    assert len({log_token(instant, "0-0-0") for instant in instants}) == len(instants)


def test_log_tokens_of_two_attempts_differ_and_have_three_numbers_of_31_bits():
    tokens = [log_token(INSTANT, token) for token in ("0-3-5", "0-4-6", "1-4-6", "0-0-0", "9-0-1999999")]
    assert len(set(tokens)) == len(tokens)
    for token in [*tokens, log_token("99991231235959999", "0-0-1999999")]:
        assert re.fullmatch(r"\d+-\d+-\d+", token)
        assert all(int(part) < 2**31 for part in token.split("-"))
