"""What the upgrade of a table by Hudi 1.x needs, and one that stopped half-way."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import hoodie
from hoodie.doctor.findings import Fault, Mend
from hoodie.doctor.repair import repair
from hoodie.errors import MetadataTableIgnored, UnsupportedTable
from hoodie.formats.log.blocks import read_blocks
from hoodie.formats.timeline import plans, services
from hoodie.formats.timeline.archive_log import entry_schema
from hoodie.formats.timeline.forms import Form
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash, CrashAfter, Dying
from hoodie.timeline.archive import archive_files
from support.oracles import fixture_names

FIXTURES = Path(__file__).parents[1] / "fixtures"
FORMS = [form for module in (plans, services) for form in vars(module).values() if isinstance(form, Form)]
SCHEMAS = {form.name: form.document for form in FORMS}


def plain(schema: Any) -> Any:
    """A schema without docs, and without defaults inside of types, where no reader looks."""
    if isinstance(schema, list):
        return [plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    return {k: plain(v) for k, v in schema.items() if k != "doc" and (k != "default" or "name" in schema)}


def test_schemas_of_the_timeline_are_those_of_real_files() -> None:
    seen = set()
    for name in fixture_names("hudi-0.15"):
        with zipfile.ZipFile(FIXTURES / "tables" / "hudi-0.15" / f"{name}.zip") as table:
            for path in table.namelist():
                data = table.read(path) if "/.hoodie/" in path and "/metadata/" not in path else b""
                if data.startswith(b"Obj\x01"):
                    schema = json.loads(fastavro.reader(io.BytesIO(data)).metadata["avro.schema"])
                    assert json.dumps(plain(SCHEMAS[schema["name"]])) == json.dumps(plain(schema)), path
                    seen.add(schema["name"])
                elif "/archived/.commits_" in path:
                    for block in read_blocks(data, path):
                        fields = plain(json.loads(block.header.schema or ""))["fields"]
                        ours = plain(json.loads(entry_schema()))["fields"]
                        assert ours == [field for field in fields if field["name"] != "hoodieCompactionMetadata"]
                        seen.add("archive")
    assert len(seen) > 6, seen


def upgraded(name: str, folder: Path) -> Path:
    """A table of Hoodie's after Hudi 1.2."""
    with zipfile.ZipFile(FIXTURES / "upgrades" / f"{name}_by_1.2.0.zip") as table:
        table.extractall(folder)
    (path,) = folder.iterdir()
    return path


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Its upgrade stopped half-way: the archive had no Java strings."""
    return upgraded("stopped_half_way", tmp_path)


def test_a_stopped_upgrade_is_refused_and_not_an_empty_table(stopped: Path) -> None:
    with pytest.raises(UnsupportedTable, match="stopped half-way"):
        hoodie.open_table(str(stopped))
    (finding,) = hoodie.HoodieTable(str(stopped)).check()
    assert (finding.fault, finding.remedy and finding.remedy.mend) == (Fault.UPGRADE, Mend.MOVE_BACK)


def test_a_metadata_table_is_not_behind_of_what_was_completed_when_it_was_built(tmp_path: Path) -> None:
    path = upgraded("pending_upgraded", tmp_path)
    with pytest.warns(MetadataTableIgnored, match="it lacks a/") as told:  # which is why it is not believed
        rows = hoodie.open_table(path).snapshot(meta=True).to_arrow()
    assert len(told) == 1
    assert dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True)) == {
        "k1": 20,
        "k2": 3,
        "k3": 0,
        "k4": 3,
        "k6": 2,
        "k9": 20,
    }


def test_a_repair_takes_a_stopped_upgrade_back(stopped: Path) -> None:
    storage = LocalStorage(str(stopped))
    before = set(stopped.rglob("*.commit"))
    repair(storage, dry_run=False)
    table = hoodie.open_table(str(stopped))
    assert len(table.history()) == len(before) > 0
    assert table.snapshot(meta=True).to_arrow().num_rows > 0
    assert hoodie.HoodieTable(str(stopped)).check() == ()
    for path in stopped.glob(".hoodie/*.commit"):
        assert json.loads(path.read_bytes())["partitionToWriteStats"]
    for archived in archive_files(storage, load_state(storage).config).values():
        assert b"avro.java.string" in storage.read(archived)
    table.upsert(table.snapshot())


def test_an_upgrade_finishes_one_of_hudi_that_stopped(stopped: Path) -> None:
    before = {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()}
    table = hoodie.HoodieTable(str(stopped))
    planned = table.upgrade(9, dry_run=True)
    assert {path: path.read_bytes() for path in stopped.rglob("*") if path.is_file()} == before
    assert planned.steps[0].startswith("move ")
    done = table.upgrade(9)
    assert done.steps[0] == planned.steps[0]
    rows = table.snapshot(columns=["id", "ts"]).to_arrow()
    expected = {"k1": 13, "k2": 1, "k3": 1, "k4": 1, "k5": 1}
    assert dict(zip(rows["id"].to_pylist(), rows["ts"].to_pylist(), strict=True)) == expected
    assert load_state(LocalStorage(stopped)).config.version == 9
    assert table.check() == ()


@pytest.mark.parametrize("dying", Dying)
def test_a_repair_that_dies_anywhere_is_finished_by_the_next_one(stopped: Path, dying: Dying) -> None:
    storage = LocalStorage(str(stopped))
    for calls in range(0, 400, 7):
        try:
            repair(CrashAfter(storage, calls, dying), dry_run=False)
            break
        except Crash:
            pass
    repair(storage, dry_run=False)
    assert hoodie.HoodieTable(str(stopped)).check() == ()
    assert hoodie.open_table(str(stopped)).snapshot(meta=True).to_arrow().num_rows > 0


def test_a_metadata_table_that_hides_logs_is_removed_by_a_repair(tmp_path: Path) -> None:
    """The table had a pending compaction when Hudi upgraded it: Hudi's own reads lack what was written behind it."""
    path = upgraded("pending_upgraded", tmp_path)
    (finding,) = hoodie.open_table(str(path)).check()
    assert (finding.fault, finding.where) == (Fault.UNLISTED, ".hoodie/metadata")
    assert "20261123122145940.log.1" in finding.problem
    rows = hoodie.open_table(str(path)).snapshot(meta=True).to_arrow()
    assert [remedy.mend for remedy in hoodie.open_table(str(path)).repair()] == [Mend.METADATA]
    assert not (path / ".hoodie" / "metadata").exists()
    assert b"metadata.partitions" not in (path / ".hoodie" / "hoodie.properties").read_bytes()
    table = hoodie.open_table(str(path))
    assert table.check() == ()
    assert table.snapshot(meta=True).to_arrow() == rows
    assert {row["id"]: row["ts"] for row in rows.to_pylist()} == {
        "k1": 20,
        "k2": 3,
        "k3": 0,
        "k4": 3,
        "k6": 2,
        "k9": 20,
    }


def test_change_logs_that_a_compaction_of_hudi_wrote_are_no_logs_that_it_lacks(tmp_path: Path) -> None:
    """Hudi 1.2 logs changes in a compaction whose file group had none in a log before: they have its instant."""
    options = {"hoodie.table.cdc.enabled": "true", "hoodie.metadata.enable": "true", "hoodie.write.table.version": "9"}
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=options, spark=None
    )
    for ts in (1, 2):
        table.upsert(pa.table({"id": ["k"], "ts": [ts]}))
    plan = table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    assert plan is not None
    table.compact()
    (base,) = (tmp_path / "t").glob(f"*_{plan}.parquet")
    file_id, token, _ = base.stem.split("_")
    (tmp_path / "t" / f".{file_id}_{plan}.log.1_{token}.cdc").write_bytes(b"#HUDI#")
    assert Fault.UNLISTED not in {finding.fault for finding in table.check()}


def test_a_log_with_the_instant_of_a_compaction_that_the_metadata_table_lists_is_no_finding(tmp_path: Path) -> None:
    """Hudi 1.2 keeps its metadata table through a downgrade and an upgrade, with the logs of version 6 in between."""
    path, options = tmp_path / "t", {"hoodie.metadata.enable": "true", "hoodie.write.table.version": "9"}
    table = hoodie.create_table(
        path, record_key="id", ordering="ts", table_type="MERGE_ON_READ", options=options, spark=None
    )
    for ts in (1, 2):
        table.upsert(pa.table({"id": ["k"], "ts": [ts]}))
    plan = table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": "1"})
    table.compact()
    (log,) = path.glob(".*.log.*")
    file_id, _, rest = log.name.partition("_")
    (path / f"{file_id}_{plan}.log{rest.partition('.log')[2]}").write_bytes(log.read_bytes())
    hoodie.open_table(str(path), options={"hoodie.metadata.enable": "false"}).upsert(pa.table({"id": ["k"], "ts": [3]}))
    hoodie.open_table(str(path), options=options).upsert(pa.table({"id": ["k"], "ts": [4]}))
    (first,) = (path / ".hoodie" / "metadata" / ".hoodie" / "timeline").glob("00000000000000000_*.deltacommit")
    first.rename(first.with_name("00000000000000000_20200101000000000.deltacommit"))
    assert Fault.UNLISTED not in {finding.fault for finding in hoodie.open_table(str(path)).check()}


def test_while_the_compaction_is_pending_no_repair_helps(tmp_path: Path) -> None:
    """Hudi takes the logs for those of a write that is not complete, with and without its metadata table."""
    path = upgraded("pending_upgraded", tmp_path)
    for file in (path / ".hoodie" / "timeline").glob("20261123122145940_*.commit"):
        file.unlink()
    for file in path.rglob("*_20261123122145940.parquet"):
        file.unlink()
    (finding,) = (f for f in hoodie.open_table(str(path)).check(rows=False) if f.fault is Fault.UNLISTED)
    assert finding.remedy is None
    assert "run_compaction" in finding.advice
    rows = hoodie.open_table(str(path)).snapshot(meta=True).to_arrow().to_pylist()
    assert {row["id"]: row["ts"] for row in rows} == {"k1": 20, "k2": 3, "k3": 0, "k4": 3, "k6": 2, "k9": 20}


def test_a_file_that_is_written_anew_leaves_no_checksum_of_the_old_one(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    for write in (storage.write, storage.create_new):
        (tmp_path / ".name.crc").write_bytes(b"of Hadoop")
        write("name", b"data")
        assert not (tmp_path / ".name.crc").exists()
        storage.delete("name")
