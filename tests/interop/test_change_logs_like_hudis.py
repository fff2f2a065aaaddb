"""Change logs that this library writes are like Hudi's, and say the same of the same writes."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.table import LoggedImages
from hoodie.formats.log.blocks import BlockKind, encode_block, read_blocks
from hoodie.formats.log.change_data import cdc_block, cdc_schema
from hoodie.formats.log.content import data_rows
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.change_data import FOLDER, NAMES, change, ordered, ranges, unpack

ROWS = pa.schema(
    [("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("v", pa.float64()), ("name", pa.string())]
)


def change_logs(path: Path) -> list[Path]:
    return sorted(path.glob("*/.*.cdc"))


@pytest.mark.parametrize("name", NAMES)
def test_a_log_is_encoded_to_the_bytes_that_hudi_wrote(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    state = load_state(LocalStorage(path))
    commit = next(state.commits())
    schema = cdc_schema(_named(commit.schema, name), state.config.logged_images)
    logs = change_logs(path)
    assert logs
    for log in logs:
        (block,) = read_blocks(log.read_bytes(), log.name)
        assert block.header.schema == schema
        ours = cdc_block(block.header.instant, schema, data_rows(block, log.name))
        assert encode_block(ours) == log.read_bytes()


def _named(avro: str, table: str) -> str:
    """A schema as the writer's is: commits of Hudi may have another namespace."""
    return json.dumps({**json.loads(avro), "name": f"{table}_record", "namespace": f"hoodie.{table}"})


@pytest.mark.parametrize(
    ("logged", "table_type", "version"),
    [
        *((logged, kind, 6) for logged in LoggedImages for kind in ("COPY_ON_WRITE", "MERGE_ON_READ")),
        (LoggedImages.DATA_BEFORE, "COPY_ON_WRITE", 8),
        (LoggedImages.OP_KEY_ONLY, "MERGE_ON_READ", 8),
        (LoggedImages.DATA_BEFORE_AFTER, "MERGE_ON_READ", 9),
    ],
)
def test_the_same_writes_have_the_same_change_data(
    logged: LoggedImages, table_type: str, version: int, tmp_path: Path
) -> None:
    name = "cdc_cow_data_before"
    facts = json.loads((FOLDER / f"{name}.json").read_text())
    theirs = ranges(name, unpack(name, tmp_path))[0].changes
    table = hoodie.create_table(
        tmp_path / "ours",
        name="ours",
        record_key="id",
        partition_by="part",
        ordering="ts",
        table_type=table_type,
        options={
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": logged.lower(),
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "3",
            "hoodie.write.table.version": str(version),
        },
    )
    times = {}
    for operation in facts["operations"]:
        rows = pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in operation["rows"]], ROWS)
        result = getattr(table, operation["operation"])(rows)
        times[operation["instants_after"][-1].partition(".")[0]] = result.instant
    expected = ordered((op, times[ts], before, after) for op, ts, before, after in theirs)
    assert ordered(change(row) for row in table.changes("earliest", cdc=True).to_arrow().to_pylist()) == expected
    logs = change_logs(tmp_path / "ours")
    assert logs
    stats = {
        path: size
        for _, commit in table.history()
        for p in commit.stats.values()
        for s in p
        for path, size in (s.cdc_stats or {}).items()
    }
    assert stats == {str(log.relative_to(tmp_path / "ours")): log.stat().st_size for log in logs}
    for log in logs:
        assert log.with_name(log.name[1:].split("_")[0]).name  # a file id in front
        (block,) = read_blocks(log.read_bytes(), log.name)
        assert (block.kind, block.version) == (BlockKind.CDC_DATA, 1)
        file_id, instant, token = (
            log.name[1:].split("_")[0],
            block.header.instant,
            log.name.split("_")[-1][: -len(".cdc")],
        )
        assert log.name == f".{file_id}_{instant}.log.1_{token}.cdc"
        assert (log.parent / f"{file_id}_{token}_{instant}.parquet").exists()
