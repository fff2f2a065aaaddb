"""The calls of those who come from Hudi, without a session: `hoodie.read`, `HoodieReadClient`, `HoodieWriteClient`."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InstantNotFound, InvalidInput, InvalidOption, SchemaMismatch, TableNotFound, WriteConflict
from support.tagging import assert_tagged

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def rows(low: int, high: int, version: int) -> pa.Table:
    numbers = range(low, high)
    return pa.table(
        {
            "id": [f"k{n:04}" for n in numbers],
            "p": [str(n % 3) for n in numbers],
            "ts": pa.array([version] * len(numbers), pa.int64()),
            "v": pa.array([n * version for n in numbers], pa.int64()),
        }
    )


def written(path: Path, kind: str = "COPY_ON_WRITE") -> hoodie.HoodieTable[hoodie.Rows]:
    """90 rows, 30 of them updated, 5 deleted."""
    table = hoodie.create_table(
        str(path / "t"), name="t", record_key="id", partition_by="p", ordering="ts", table_type=kind
    )
    table.bulk_insert(rows(0, 90, 1))
    table.upsert(rows(0, 30, 2))
    table.delete(rows(0, 5, 1))
    return table


def ids(found: hoodie.Rows) -> list[str]:
    return sorted(found.to_arrow().column("id").to_pylist())


def names(*numbers: int) -> list[str]:
    return [f"k{number:04}" for number in numbers]


@KINDS
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE"])
def test_a_read_client_knows_which_keys_a_table_holds(tmp_path: Path, kind: str, index: str) -> None:
    table = written(tmp_path, kind)
    client = hoodie.hudi.HoodieReadClient(table.path, {"hoodie.index.type": index})
    batch = pa.concat_tables([rows(0, 10, 7), rows(85, 95, 7)])

    new = client.filter_exists(batch)
    assert ids(new) == names(0, 1, 2, 3, 4, 90, 91, 92, 93, 94)
    assert new.schema == batch.schema  # its own columns and values, not the table's
    assert set(new.to_arrow().column("ts").to_pylist()) == {7}

    found = client.read(batch)
    assert ids(found.rows) == names(5, 6, 7, 8, 9, 85, 86, 87, 88, 89)
    assert found.rows.schema.names == table.snapshot(meta=True).schema.names
    assert client.read(batch, columns=["v", "id"]).rows.schema.names == ["v", "id"]
    assert found.stats.files_opened > 0

    tagged = client.tag_location(batch).to_arrow().to_pylist()
    assert_tagged(tagged, table.file_slices(), deleted_is_new=kind == "COPY_ON_WRITE")
    assert client.get_pending_compactions() == []


def test_keys_come_as_polars_or_as_rows_of_the_table_and_without_a_partition_by_a_global_index(tmp_path: Path) -> None:
    table = written(tmp_path)
    client = hoodie.hudi.HoodieReadClient(table.path)
    assert client.filter_exists(table.snapshot()).count() == 0
    assert ids(client.filter_exists(pl.DataFrame({"id": names(6, 95, 95), "p": ["0", "1", "1"]}))) == names(95, 95)
    keys = rows(88, 92, 1).select(["id"])
    with pytest.raises(SchemaMismatch, match=r"partition column 'p' is missing.*SIMPLE finds a key within"):
        client.filter_exists(keys)
    anywhere = hoodie.hudi.HoodieReadClient(table.path, {"hoodie.index.type": "GLOBAL_BLOOM"})
    assert ids(anywhere.filter_exists(keys)) == names(90, 91)
    tagged = anywhere.tag_location(keys).to_arrow().sort_by("id").to_pylist()
    assert [row["_hoodie_partition_path"] for row in tagged][:2] == ["1", "2"]
    with pytest.raises(SchemaMismatch, match="_hoodie_file_id"):
        anywhere.tag_location(anywhere.tag_location(keys))


@KINDS
def test_a_write_client_writes_in_steps(tmp_path: Path, kind: str) -> None:
    table = written(tmp_path, kind)
    client = hoodie.hudi.HoodieWriteClient(table.path, {"hoodie.auto.commit": False})
    before = ids(table.snapshot())
    instant = client.start_commit()
    result = client.upsert(rows(100, 103, 1), instant)
    assert ids(table.snapshot()) == before
    heard: list[str] = []
    with hoodie.on_commit(lambda done: heard.append(done.instant)):
        client.commit(instant, result, extra_metadata={"from": "here"})
    assert ids(table.snapshot()) == [*before, *names(100, 101, 102)]
    assert table.history()[0][1].extra["from"] == "here"
    assert heard == [instant]

    given_up = client.start_commit("delete")
    client.delete(rows(100, 103, 1), given_up)
    client.rollback(given_up)
    with pytest.raises(InstantNotFound):
        client.insert(rows(200, 201, 1), given_up)
    assert len(ids(table.snapshot())) == len(before) + 3


def test_a_write_client_plans_and_runs_compactions(tmp_path: Path) -> None:
    table = written(tmp_path, "MERGE_ON_READ")
    client = hoodie.hudi.HoodieWriteClient(table.path, {"hoodie.compact.inline.max.delta.commits": 1})
    instant = client.schedule_compaction()
    assert instant is not None
    assert [time for time, _ in hoodie.hudi.HoodieReadClient(table.path).get_pending_compactions()] == [instant]
    assert client.compact(instant).instant == instant
    assert len(ids(table.snapshot(optimized=True))) == 85
    client.rollback(instant)
    assert len(ids(table.snapshot())) == 85


@KINDS
def test_the_options_of_a_hudi_job_say_what_is_read(tmp_path: Path, kind: str) -> None:
    table = written(tmp_path, kind)
    loaded, updated, _ = (instant.requested for instant, _ in reversed(table.history()))
    assert len(ids(hoodie.hudi.read(table.path))) == 85
    assert len(ids(hoodie.hudi.read(table.path, {"as.of.instant": loaded}))) == 90
    optimized = hoodie.hudi.read(table.path, {"hoodie.datasource.query.type": "read_optimized"})
    assert optimized.count() == (85 if kind == "COPY_ON_WRITE" else 90)
    pull = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": loaded,
        "hoodie.datasource.read.end.instanttime": updated,
    }
    assert ids(hoodie.hudi.read(table.path, pull)) == names(*range(30))
    with pytest.raises(InvalidOption, match=r"needs hoodie\.datasource\.read\.begin\.instanttime"):
        hoodie.hudi.read(table.path, {"hoodie.datasource.query.type": "incremental"})


def test_what_is_given_in_the_wrong_place_is_named(tmp_path: Path) -> None:
    path = written(tmp_path).path
    for call in (hoodie.hudi.read, hoodie.hudi.HoodieReadClient, hoodie.hudi.HoodieWriteClient):
        call(path, options={})
        call(path=path)
        with pytest.raises(InvalidInput, match="spark=str: expected a SparkSession"):
            call(path, spark="spark")
        with pytest.raises(InvalidInput, match=rf"{call.__name__}\('{path}', spark=spark\)"):
            call(SimpleNamespace(createDataFrame=None), path)
        with pytest.raises(TableNotFound):
            call(tmp_path / "none")


_WITHOUT = """
import importlib.abc, sys

class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j"}:
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Without())
import hoodie, pyarrow as pa

rows = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
hoodie.hudi.write(rows, sys.argv[1], {"hoodie.datasource.write.recordkey.field": "id"})
client = hoodie.hudi.HoodieWriteClient(sys.argv[1])
client.upsert(rows.slice(2), client.start_commit())
assert hoodie.hudi.HoodieReadClient(sys.argv[1]).filter_exists(rows).count() == 0
assert hoodie.hudi.read(sys.argv[1]).count() == 3
"""


def test_none_of_them_needs_pyspark(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _WITHOUT, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


OCC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


@KINDS
def test_a_write_client_goes_on_when_anothers_overwrite_that_it_began_beside_is_rolled_back(
    tmp_path: Path, kind: str
) -> None:
    table = written(tmp_path, kind)
    ours, other = (hoodie.hudi.HoodieWriteClient(table.path, OCC) for _ in range(2))
    overwrite = other.start_commit("insert_overwrite")
    instant = ours.start_commit()
    other.rollback(overwrite)
    assert ours.upsert(rows(5, 8, 3), instant).updated == 3
    assert len(table.snapshot().to_arrow()) == 85


def test_a_write_client_whose_rows_were_rolled_back_says_how_to_go_on(tmp_path: Path) -> None:
    table = written(tmp_path)
    client = hoodie.hudi.HoodieWriteClient(table.path, OCC)
    instant = client.start_commit()
    newest = table.history()[0][0].requested
    (completed,) = (tmp_path / "t" / ".hoodie").glob(f"{newest}.commit")
    completed.rename(tmp_path / "elsewhere")  # as a rollback by a writer that took this one for dead
    for _ in range(2):
        with pytest.raises(WriteConflict, match=f"made on rows of {newest}") as problem:
            client.upsert(rows(5, 8, 3), instant)
        assert problem.value.__notes__ == [
            f"Give the instant up with rollback({instant!r}), and take a new one with start_commit()."
        ]
    client.rollback(instant)
    assert client.upsert(rows(5, 8, 3), client.start_commit()).updated == 3


def test_a_write_client_goes_on_when_commits_that_it_began_on_are_archived(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.insert_overwrite(rows(0, 90, 3))
    for _ in range(3):
        table.upsert(rows(0, 3, 4))
    client = hoodie.hudi.HoodieWriteClient(table.path, OCC)
    instant = client.start_commit()
    few = {"hoodie.clean.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    table.clean(options=few)
    assert any(done.action == "replacecommit" for done in table.archive(options=few).instants)
    assert client.upsert(rows(5, 8, 5), instant).updated == 3
    assert len(table.snapshot().to_arrow()) == 90


def test_a_client_keeps_no_instant_that_is_over(tmp_path: Path) -> None:
    table = written(tmp_path)
    client = hoodie.hudi.HoodieWriteClient(table.path)
    for version in range(3):
        client.upsert(rows(0, 3, version), client.start_commit())
    assert client._begun == {}
    held = hoodie.hudi.HoodieWriteClient(table.path, {"hoodie.auto.commit": False})
    instant = held.start_commit()
    result = held.upsert(rows(0, 3, 9), instant)
    assert list(held._begun) == [instant]
    held.commit(instant, result)
    assert held._begun == {}
    held.rollback(held.start_commit())
    assert held._begun == {}
    held.start_commit()
    later = held.start_commit()  # rolls the one before back
    assert list(held._begun) == [later]
