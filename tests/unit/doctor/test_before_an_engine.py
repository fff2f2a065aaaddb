"""What `examine` says of a healthy table before another engine is let in."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import doctor as command
from hoodie.doctor.engines import ENGINES
from hoodie.errors import InvalidInput
from hoodie.storage.local import LocalStorage
from support.compacting import fill, schedule
from support.lake import Terminal, unpacked


def _findings(path: Path, engine: str) -> list[tuple[str, str]]:
    return [(f.fault.value, f.where) for f in hoodie.open_table(str(path)).check(engine=engine)]


def test_a_pending_compaction_is_named_before_hudi_1(tmp_path):
    storage = LocalStorage(tmp_path / "t")
    fill(storage)
    assert "pending compaction" not in dict(_findings(tmp_path / "t", "hudi-1.x"))
    instant = schedule(storage)
    where = dict(_findings(tmp_path / "t", "hudi-1.x"))["pending compaction"]
    assert where.startswith(f".hoodie/{instant}.compaction.")
    assert "pending compaction" not in dict(_findings(tmp_path / "t", ""))


def test_a_table_without_a_payload_class_changes_its_rule_under_hudi_1(tmp_path, monkeypatch):
    path = tmp_path / "t"
    hoodie.create_table(str(path), name="t", record_key="id", ordering="ts").upsert(pa.table({"id": ["a"], "ts": [1]}))
    assert _findings(path, "hudi-1.x") == []
    file = path / ".hoodie" / "hoodie.properties"
    lines = [line for line in file.read_bytes().splitlines() if b"payload.class" not in line]
    file.write_bytes(b"\n".join(lines) + b"\n")
    assert _findings(path, "hudi-1.x") == [("payload class", ".hoodie/hoodie.properties")]


def test_a_payload_class_that_hudi_1_1_lacks_is_named(tmp_path):
    path = tmp_path / "t"
    payload = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.FirstValueAvroPayload"}
    hoodie.create_table(str(path), name="t", record_key="id", ordering="ts", options=payload)
    assert _findings(path, "hudi-1.x") == [("payload class", ".hoodie/hoodie.properties")]
    assert _findings(path, "presto") == _findings(path, "") == []
    merged = tmp_path / "m"
    hoodie.create_table(
        str(merged), name="m", record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=payload
    )
    assert ("payload class", ".hoodie/hoodie.properties") in _findings(merged, "presto")


def test_hudis_own_archive_stands_in_nobodys_way(tmp_path):
    path = unpacked("cow_archived", tmp_path)
    assert list((path / ".hoodie" / "archived").iterdir())
    assert "archive that Hudi 1.x refuses" not in dict(_findings(path, "hudi-1.x"))


def test_logs_and_several_partition_columns_are_named_before_those_that_read_them_otherwise(tmp_path, capsys):
    path = tmp_path / "t"
    options = {"table_type": "MERGE_ON_READ", "partition_by": ["city", "day"]}
    table = hoodie.create_table(str(path), name="t", record_key="id", **options)
    rows = pa.table({"id": ["a"], "city": ["oslo"], "day": [1]})
    table.upsert(rows)
    assert _findings(path, "trino") == []
    table.upsert(rows)
    assert _findings(path, "trino") == [("not read alike", "")]
    assert _findings(path, "presto") == [("not read alike", ""), ("not read alike", "")]
    out = Terminal(capsys)("doctor", path, "--for", "trino", status=1)
    assert "Compact first" in out[0]


def test_files_that_hive_reads_with_native_libraries_alone_are_named(tmp_path):
    rows = pa.table({"id": ["a"]})
    for codec, findings in (("zstd", ["not read alike"]), ("snappy", [])):
        path = tmp_path / codec
        hoodie.create_table(str(path), name="t", record_key="id").upsert(
            rows, options={"hoodie.parquet.compression.codec": codec}
        )
        assert [fault for fault, _ in _findings(path, "hive")] == findings


def test_an_engine_that_is_not_known_is_refused(tmp_path):
    hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id")
    with pytest.raises(InvalidInput, match=r"'hudi': expected one of hive, hudi-1\.x"):
        hoodie.open_table(str(tmp_path / "t")).check(engine="hudi")
    assert tuple(ENGINES) == command.ENGINES
