"""Change data is turned on for a table that is there, or refused with what is in the way."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import TableMismatch, UnsupportedTable, WriteConflict
from hoodie.storage import storage_for
from hoodie.table.change_logging import log_change_data
from hoodie.table.properties import PROPERTIES, update_properties
from hoodie.table.settings import Writers
from hoodie.table.state import load_state

MODE = "hoodie.table.cdc.supplemental.logging.mode"


def table_at(path: Path) -> hoodie.HoodieTable:
    table = hoodie.create_table(path, name="t", record_key="id")
    table.upsert(pa.table({"id": ["a", "b"], "fare": [1.0, 2.0]}))
    return table


@pytest.mark.parametrize(("images", "stored"), [("", "DATA_BEFORE_AFTER"), ("op_key_only", "OP_KEY_ONLY")])
def test_writes_log_changes_once_it_is_on(tmp_path: Path, images: str, stored: str) -> None:
    table = table_at(tmp_path)
    first = table.history()[-1][0].requested
    log_change_data(table.storage, Writers(), images)
    log_change_data(table.storage, Writers())  # again: nothing to do
    assert load_state(table.storage).config.properties[MODE] == stored
    second = table.upsert(pa.table({"id": ["a"], "fare": [3.0]})).instant
    assert len(list(tmp_path.glob(".*.cdc"))) == 1
    rows = table.changes("earliest", cdc=True).to_arrow().to_pylist()
    assert [(row["op"], row["ts_ms"]) for row in rows] == [("i", first), ("i", first), ("u", second)]
    assert rows[2]["before"] == '{"id": "a", "fare": 1.0}'


def test_it_stays_off_while_a_write_is_under_way(tmp_path: Path) -> None:
    table = table_at(tmp_path)
    (tmp_path / ".hoodie" / "20240101000000000.commit.requested").touch()
    (tmp_path / ".hoodie" / "20240101000000000.inflight").touch()
    before = (tmp_path / PROPERTIES).read_bytes()
    with pytest.raises(WriteConflict, match="20240101000000000"):
        log_change_data(table.storage, Writers())
    assert (tmp_path / PROPERTIES).read_bytes() == before


def test_logs_of_a_table_have_one_mode_for_good(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", options={"hoodie.table.cdc.enabled": "true"})
    update_properties(table.storage, {"hoodie.table.cdc.enabled": "false"})
    with pytest.raises(TableMismatch, match="DATA_BEFORE_AFTER"):
        log_change_data(table.storage, Writers(), "OP_KEY_ONLY")
    with pytest.raises(UnsupportedTable, match="expected one of"):
        log_change_data(table.storage, Writers(), "EVERYTHING")
    assert not load_state(storage_for(str(tmp_path))).config.cdc
    log_change_data(table.storage, Writers())
    assert load_state(table.storage).config.cdc
