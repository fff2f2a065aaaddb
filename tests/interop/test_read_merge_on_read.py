"""Tables with logs that Hudi wrote, read without Spark: the rows that Hudi and hudi-rs see, now and at each instant."""

import io
import json
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie import open_table
from hoodie.config.read import DEFAULT_READ, MissingFileOptions
from hoodie.errors import (
    CorruptFile,
    DamagedLog,
    HoodieError,
    InvalidInput,
    InvalidOption,
    MissingFileIgnored,
    UnsupportedTable,
)
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.log.delete_block import OrderingClass, decode_deletes
from hoodie.model.files import FileSlice
from hoodie.reading.snapshot import read_table
from hoodie.storage.local import LocalStorage
from hoodie.table.state import TableState, load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices
from support.nightly import by_day, nightly
from support.oracles import META, assert_same_rows, expected_rows, fixture_facts, fixture_names, read_hudi_rs

Unpack = Callable[[str], Path]

MERGE_ON_READ = [name for name in fixture_names() if "mor" in name]
#: Tables without rows noted down: of a version that hudi-rs does not read, with types it fails on, and one whose writer
#: tried a payload class (which its properties do not name).
UNTOLD = ["v3_mor_stock_ticks", "v6_mor_nested_types", "v6_mor_payload_partial_update"]
TOLD = [name for name in MERGE_ON_READ if name not in UNTOLD]
#: hudi-rs leaves out the rows of logs that wait for a pending compaction.
NOT_JOINED = "mor_pending_compaction"
#: By day every other one, all of them as of now.
PAST = [*(name for name in TOLD if name != NOT_JOINED), "v6_mor_payload_partial_update"]


@pytest.fixture(autouse=True)
def nothing_is_skipped() -> Iterator[None]:
    """Reading what Hudi wrote warns about nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedLog)
        yield


@pytest.mark.parametrize("name", TOLD)
def test_a_snapshot_has_the_rows_that_hudi_reads(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    rows = open_table(path).snapshot(meta=True).to_arrow()
    assert_same_rows(rows, expected_rows(name))
    assert rows.column_names == read_hudi_rs(path).column_names
    assert tuple(rows.column_names[:5]) == META
    rows.validate(full=True)


@pytest.mark.parametrize("name", [*UNTOLD, "v6_mor_payload_default", "mor_nonpartitioned", "mor_deletes"])
def test_a_snapshot_has_the_rows_that_the_rules_give(name: str, fixture_table: Unpack) -> None:
    """All of these have OverwriteWithLatestAvroPayload: see `by_hand`. The last three are told by Hudi, too."""
    path = fixture_table(name)
    rows = open_table(path).snapshot(meta=True).to_arrow()
    assert_same_rows(rows, by_hand(path, rows.schema))
    assert rows.num_rows


@pytest.mark.parametrize("name", by_day(PAST, PAST[::2].__contains__))
def test_the_past_has_the_rows_that_hudi_rs_reads(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    instants = [instant.requested for instant in load_state(LocalStorage(path)).timeline.commits]
    for instant in instants:
        if name == "v6_mor_with_services" and instant != instants[-1]:
            try:
                open_table(path).snapshot(as_of=instant, meta=True).to_arrow()
            except InvalidInput as refused:  # hudi-rs gives the rows that are left
                assert "cleaning removed" in str(refused)  # noqa: PT017
                continue
        rows, expected = (
            open_table(path).snapshot(as_of=instant, meta=True).to_arrow(),
            read_hudi_rs(path, as_of=instant),
        )
        # A read as of then has the columns of then; hudi-rs has those of today.
        later = [column for column in expected.column_names if column not in rows.column_names]
        assert later == (["extra"] if name == "mor_schema_evolution" and instant < instants[-1] else [])
        assert_same_rows(rows, expected.drop_columns(later))
    assert_same_rows(
        open_table(path).snapshot(as_of=instants[-1], meta=True).to_arrow(),
        open_table(path).snapshot(meta=True).to_arrow(),
    )


def test_the_past_of_a_pending_compaction_has_all_logs_up_to_then(fixture_table: Unpack) -> None:
    path = fixture_table(NOT_JOINED)
    now = open_table(path).snapshot(meta=True).to_arrow()
    steps = [step["instant"] for step in fixture_facts(NOT_JOINED)["steps"] if step["op"] != "schedule compaction"]
    counts = []
    for instant in steps:
        then = open_table(path).snapshot(as_of=instant, meta=True).to_arrow()
        counts.append(then.num_rows)
        assert pc.max(then.column("_hoodie_commit_time")).as_py() == (instant if instant != steps[-1] else steps[-2])
        # What is there today and was not written since was there then.
        old = now.filter(pc.less_equal(now.column("_hoodie_commit_time"), instant))
        keys = pa.chunked_array(old.column("_hoodie_record_key").chunks)
        assert_same_rows(then.filter(pc.is_in(then.column("_hoodie_record_key"), keys.combine_chunks())), old)
    assert counts == [300, 300, 300, 300, 320, 310]
    assert_same_rows(now, expected_rows(NOT_JOINED))


@pytest.mark.parametrize("name", ["mor_nonpartitioned", "mor_deletes"])
def test_logs_of_archived_instants_count(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    for instant in [step["instant"] for step in fixture_facts(name)["steps"]][:-1]:
        for file in (path / ".hoodie").glob(f"{instant}.*"):
            file.unlink()
    assert_same_rows(open_table(path).snapshot(meta=True).to_arrow(), expected_rows(name))


def test_rows_that_wait_on_disk_are_the_same(fixture_table: Unpack, tmp_path: Path) -> None:
    path = fixture_table("mor_deletes")
    options = {"hoodie.memory.merge.max.size": 1, "hoodie.memory.spillable.map.path": str(tmp_path / "spill")}
    (tmp_path / "spill").mkdir()
    assert_same_rows(open_table(path, options=options).snapshot(meta=True).to_arrow(), expected_rows("mor_deletes"))
    assert not list((tmp_path / "spill").iterdir())
    with pytest.raises(FileNotFoundError):
        open_table(path, options={**options, "hoodie.memory.spillable.map.path": str(tmp_path / "nowhere")}).snapshot(
            meta=True
        ).to_arrow()
    with pytest.raises(InvalidOption, match=r"hoodie\.memory\.merge\.max\.size"):
        open_table(path, options={"hoodie.memory.merge.max.sizes": 1}).snapshot(meta=True).to_arrow()
    with pytest.raises(InvalidOption, match="expected bytes"):
        open_table(path, options={"hoodie.memory.merge.max.size": 0}).snapshot(meta=True).to_arrow()


@pytest.mark.parametrize("name", ["mor_types", "mor_schema_evolution", "v9_mor_txns"])
def test_single_columns_are_those_of_the_whole(name: str, fixture_table: Unpack) -> None:
    path = fixture_table(name)
    whole = open_table(path).snapshot(meta=True).to_arrow()
    for column in whole.column_names:
        assert_same_rows(open_table(path).snapshot(columns=[column]).to_arrow(), whole.select([column]))
    assert (
        open_table(path).snapshot(columns=whole.column_names[::-1]).to_arrow().column_names == whole.column_names[::-1]
    )


def test_filters_see_merged_rows(fixture_table: Unpack) -> None:
    path, expected = fixture_table("mor_logs"), expected_rows("mor_logs")
    seen = (
        open_table(path)
        .snapshot(columns=["note", "id"], filters=[("qty", ">", 100), ("ds", "=", "2024-03-02")])
        .to_arrow()
    )
    keep = pc.and_(pc.greater(expected.column("qty"), 100), pc.equal(expected.column("ds"), "2024-03-02"))
    assert seen.num_rows
    assert_same_rows(seen, expected.filter(keep).select(["note", "id"]))
    with pytest.raises(InvalidInput, match="'note'"):
        open_table(path).snapshot(columns=["nota"]).to_arrow()


def test_a_table_whose_rows_have_no_rule_is_refused_unless_there_is_nothing_to_merge(fixture_table: Unpack) -> None:
    for name in ("mor_logs", "mor_compacted"):
        path = fixture_table(name)
        properties = path / ".hoodie" / "hoodie.properties"
        text = properties.read_text().replace("OverwriteWithLatestAvroPayload", "MyOwnPayload")
        properties.write_text(text)
        with pytest.raises(UnsupportedTable, match="MyOwnPayload"):
            open_table(path).snapshot(meta=True).to_arrow()
    slices = [s for s in slices_of(load_state(LocalStorage(path))) if s.logs]
    for log in (log for slice_ in slices for log in slice_.logs):
        (path / log.path).unlink()
    with pytest.warns(MissingFileIgnored):
        assert (
            open_table(path, options={"hoodie.read.ignore.missing.files": "true"})
            .snapshot(meta=True)
            .to_arrow()
            .num_rows
        )


# --- damage ---


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], str, pa.Table, pa.Table]:
    """A table's files, the path of its one log (one block of one row), its rows without and with the log."""
    from support.oracles import unpack_table

    root = unpack_table("v6_mor_avro_8_inserts_1_update", tmp_path_factory.mktemp("small"))
    files = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    files = {path: data for path, data in files.items() if "/metadata/" not in path and not path.endswith(".crc")}
    (log,) = [path for path in files if ".log." in path]
    without = read(files, {log: b""}, ignore=True)
    whole = read(files, {})
    assert whole.num_rows == without.num_rows == 8
    assert not whole.equals(without)
    return files, log, without, whole


def read(files: dict[str, bytes], changed: dict[str, bytes], *, ignore: bool = False) -> pa.Table:
    """ignore: go on without what is lost"""
    settings = replace(DEFAULT_READ, missing=MissingFileOptions(ignore=ignore))
    return read_table(load_state(MemoryStorage({**files, **changed})), settings=settings)


#: By day each third byte of head and end, and few of the texts between them; by night all.
EACH = pytest.mark.parametrize("step", [29, nightly(1)])


def places(data: bytes, step: int) -> list[int]:
    size = len(data)
    return [at for at in range(size) if at % (1 if step == 1 else 3 if at < 100 or at >= size - 100 else step) == 0]


@EACH
def test_a_log_cut_short_anywhere_is_refused_and_without_its_rows_where_that_is_asked_for(
    small: tuple[dict[str, bytes], str, pa.Table, pa.Table], step: int
) -> None:
    files, log, without, _ = small
    for size in places(files[log], step):
        cut = {log: files[log][:size]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedLog)  # of an empty one
            with pytest.raises(CorruptFile, match=f"it has {size} bytes, and .* published {len(files[log])}"):
                read(files, cut)
        with pytest.warns(DamagedLog) as seen:
            rows = read(files, cut, ignore=True)
        assert {(w.message.path, w.message.offset) for w in seen} == {(log, 0), (log, size)}  # type: ignore[union-attr]
        assert rows.equals(without), size


def test_a_log_without_a_byte_that_no_commit_filled_is_nothing_to_tell_of(
    small: tuple[dict[str, bytes], str, pa.Table, pa.Table],
) -> None:
    files, log, _, whole = small
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(files, {log.replace(".log.1_", ".log.2_"): b""}).equals(whole)


@EACH
def test_a_flipped_bit_never_goes_unseen_but_within_a_value(
    small: tuple[dict[str, bytes], str, pa.Table, pa.Table], step: int
) -> None:
    """The format has no checksums: a bit within a row's values, or within names in its schema, cannot be told."""
    files, log, without, whole = small
    data = files[log]
    content = data.index(b"\0\0\0\3\0\0\0\1\0\0")  # of the block: version, one row
    unseen = 0
    for at in places(data, step):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 8
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                rows = read(files, {log: bytes(flipped)})
            except HoodieError as problem:
                assert log in str(problem), at  # noqa: PT017
                continue
        if any(isinstance(warned.message, DamagedLog) for warned in seen):
            assert rows.equals(without), at
            continue
        if rows.equals(whole) or rows.equals(without):  # e.g. the name of the schema; an instant that is yet to come
            continue
        unseen += 1
        keys = set(rows.column("_hoodie_record_key").to_pylist())
        missing = set(whole.column("_hoodie_record_key").to_pylist()) - keys
        assert not missing, at
        assert data.index(b'{"type"') < at < len(data) - 12, at  # within the schema or the row
        if len(keys) > 8:
            assert at > content, at  # the key itself is another
    assert 0 < unseen < 400


def test_a_log_of_noise_is_an_error_that_names_it(
    small: tuple[dict[str, bytes], str, pa.Table, pa.Table],
) -> None:
    files, log, *_ = small
    for noise in (b"noise" * 300, b"\0" * 2000):
        with pytest.raises(CorruptFile, match=r"\.log\.1_\S+ at byte 0: no block starts here"):
            read(files, {log: noise})


def test_noise_behind_a_block_is_skipped_and_makes_the_block_one_that_was_cut_short(
    small: tuple[dict[str, bytes], str, pa.Table, pa.Table],
) -> None:
    files, log, without, whole = small
    with pytest.warns(DamagedLog, match=rf"at byte {len(files[log])}: 5 bytes that are no block"):
        assert read(files, {log: files[log] + b"noise"}).equals(whole)
    with pytest.warns(DamagedLog, match="at byte 0: a block that is cut short"):
        assert read(files, {log: files[log] + b"noise" * 2}).equals(without)


def test_a_log_that_went_away_meanwhile_is_not_corrupt(fixture_table: Unpack) -> None:
    path = fixture_table("mor_nonpartitioned")
    state = load_state(LocalStorage(path))
    log = next(log for slice_ in slices_of(state) for log in slice_.logs)

    class Gone(MemoryStorage):
        def read(self, name: str) -> bytes:
            if name == log.path:
                raise FileNotFoundError(name)
            return super().read(name)

    files = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
    with pytest.raises(FileNotFoundError):
        read_table(load_state(Gone(files)))


# --- the rules by hand ---


def slices_of(state: TableState) -> list[FileSlice]:
    return list(merged_slices(load_view(state.storage, state.timeline, state.config)).values())


def by_hand(path: Path, schema: pa.Schema) -> pa.Table:
    """The rows of a table with OverwriteWithLatestAvroPayload, one by one, by the rules of Hudi's documentation.

    Log records fold by `preCombine`: the older one stays only if its ordering value is greater. A delete takes what
    was before it, unless it has an ordering value of the record's type that is less. The outcome replaces the stored
    row whatever that one's ordering value. Rows of blocks are decoded by fastavro. Which files count is told by
    hudi-rs elsewhere (test_slices_in_hudi_rs).
    """
    state = load_state(LocalStorage(path))
    (ordering,) = state.config.ordering or ("",)
    committed = {instant.requested for instant in state.timeline.commits}
    found: list[dict[str, Any]] = []
    for slice_ in slices_of(state):
        base = pq.read_table(path / slice_.base.path, partitioning=None).to_pylist() if slice_.base else []
        log: dict[str, dict[str, Any] | None] = {}
        for file in slice_.logs:
            for block in read_blocks((path / file.path).read_bytes(), file.path):
                assert block.header.instant in committed
                if block.kind is BlockKind.DELETE:
                    for delete in decode_deletes(block.content).to_pylist():
                        old = log.get(delete["record_key"])
                        bound = _value(delete)
                        if old is None or bound is None or not old[ordering] > bound:
                            log[delete["record_key"]] = None
                    continue
                assert block.kind is BlockKind.AVRO_DATA
                for record in _records(bytes(block.content), json.loads(block.header.schema or "")):
                    old = log.get(record["_hoodie_record_key"])
                    if old is None or not ordering or not old[ordering] > record[ordering]:
                        log[record["_hoodie_record_key"]] = record
        stored = {row["_hoodie_record_key"] for row in base}
        merged = [log.get(row["_hoodie_record_key"], row) for row in base]
        merged += [row for key, row in log.items() if key not in stored]
        found += [row for row in merged if row is not None and not row.get("_hoodie_is_deleted")]
    columns = [pa.array([_arrow_value(row.get(f.name), f.type) for row in found], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema.names)


def _value(delete: dict[str, Any]) -> Any:
    """The ordering value of a delete; None for Hudi's "none", the Integer 0."""
    kind = OrderingClass(delete["ordering_class"])
    assert kind in (OrderingClass.INT, OrderingClass.LONG)  # the tables at hand have no others
    return None if kind is OrderingClass.INT and delete["ordering_integer"] == 0 else delete["ordering_integer"]


def _records(content: bytes, schema: Any) -> Iterator[dict[str, Any]]:
    parsed = fastavro.parse_schema(schema)
    _, count = struct.unpack_from(">ii", content)
    at = 8
    for _ in range(count):
        (length,) = struct.unpack_from(">i", content, at)
        at += 4
        yield fastavro.schemaless_reader(io.BytesIO(content[at : at + length]), parsed, None)  # type: ignore[misc]
        at += length


def _arrow_value(value: Any, kind: pa.DataType) -> Any:
    """fastavro's maps as Arrow takes them."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        entries = value.items() if isinstance(value, dict) else value
        return [(key, _arrow_value(item, kind.item_type)) for key, item in entries]
    if pa.types.is_list(kind):
        return [_arrow_value(item, kind.value_type) for item in value]
    if pa.types.is_struct(kind):
        return {field.name: _arrow_value(value[field.name], field.type) for field in kind}
    return value
