"""What a table holds and costs, the same for the command line, reports and metrics."""

from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.facts.files import stats
from hoodie.facts.table import table_facts
from hoodie.table.settings import Settings
from hoodie.table.state import load_state


def test_a_compaction_writes_rows_and_changes_none(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", table_type="MERGE_ON_READ")
    rows = pa.table({"id": list(range(40)), "v": list(range(40))})
    table.upsert(rows)
    table.upsert(rows.slice(0, 10))
    table.compact(table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1}))
    measured = stats(table.storage, Settings.of({}))
    assert (measured.rows_changed, measured.rows_written) == (50, 90)
    assert measured.amplification == 1.8
    compaction = table_facts(load_state(table.storage), Settings.of({})).commits[-1]
    assert (compaction.operation, compaction.written, compaction.amplification) == ("COMPACT", 40, None)


def test_reports_and_stats_measure_the_same_files(tmp_path: Path) -> None:
    options = {"hoodie.table.cdc.enabled": "true"}
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", options=options)
    for value in range(3):
        table.upsert(pa.table({"id": [1, 2], "v": [value, value]}))
    measured, facts = stats(table.storage, Settings.of({})), table_facts(load_state(table.storage), Settings.of({}))
    files = [path for path in (tmp_path / "t").rglob("*") if path.is_file() and ".hoodie" not in path.parts]
    assert [path for path in files if ".cdc" in path.name]
    assert measured.older_bytes == facts.sizes.older_bytes
    data = [path for path in files if ".parquet" in path.name or ".log." in path.name]
    assert measured.base_bytes + measured.older_bytes == sum(
        path.stat().st_size for path in data if not path.name.endswith(".crc")
    )
