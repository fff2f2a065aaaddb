"""Inserts and upserts that leave out the rows whose key a table has."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidOption, WriteConflict

KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "",
}
DROP = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
POLICY = "hoodie.datasource.insert.dup.policy"
OPERATION = "hoodie.datasource.write.operation"


def rows(*found: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [key for key, _ in found], "ts": pa.array([ts for _, ts in found], pa.int64())})


def content(path: str) -> list[tuple[str, int]]:
    found = hoodie.open_table(path).snapshot(columns=["id", "ts"]).to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["ts"].to_pylist(), strict=True))


FIRST = rows(("a", 1), ("b", 1))
LATER = rows(("a", 2), ("c", 2), ("d", 2), ("d", 3))
#: What Hudi 0.15 has of FIRST and LATER, on both types.
DROPPED = [("a", 1), ("b", 1), ("c", 2), ("d", 3)]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def options(request: pytest.FixtureRequest) -> dict[str, str]:
    return {**KEYS, "hoodie.datasource.write.table.type": request.param}


@pytest.mark.parametrize("operation", ["insert", "upsert"])
def test_rows_whose_key_is_there_are_left_out_as_in_hudi(
    tmp_path: Path, options: dict[str, str], operation: str
) -> None:
    path = str(tmp_path / "t")
    hoodie.hudi.write(FIRST, path, {**options, **DROP, OPERATION: operation})  # of a new table's rows none is there
    done = hoodie.hudi.write(LATER, path, {**options, **DROP, OPERATION: operation})
    assert done.inserted == 2
    assert content(path) == DROPPED
    assert [metadata.operation for _, metadata in hoodie.open_table(path).history()] == ["INSERT", "INSERT"]


def test_an_insert_drops_or_refuses_duplicates_by_the_policy_or_looks_at_none(
    tmp_path: Path, options: dict[str, str]
) -> None:
    path = str(tmp_path / "t")
    hoodie.hudi.write(FIRST, path, options)
    table = hoodie.open_table(path)
    table.insert(LATER, options={POLICY: "drop"})
    assert content(path) == DROPPED
    with pytest.raises(Exception, match="have keys that t has already"):
        table.insert(rows(("a", 5)), options={POLICY: "fail"})
    table.upsert(rows(("a", 5)), options={POLICY: "drop"})  # the policy is one of inserts
    table.insert(rows(("b", 5)), options={POLICY: "none"})
    assert content(path) == [("a", 5), ("b", 1), ("b", 5), *DROPPED[2:]]


def test_a_key_that_a_log_deleted_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    options = {**KEYS, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    hoodie.hudi.write(FIRST, path, options)
    hoodie.open_table(path).delete(rows(("a", 1)))
    hoodie.hudi.write(LATER, path, {**options, **DROP, OPERATION: "insert"})
    assert content(path) == [("a", 2), *DROPPED[1:]]


def test_a_client_leaves_rows_out_and_a_bulk_insert_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    hoodie.hudi.write(FIRST, path, KEYS)
    client = hoodie.hudi.HoodieWriteClient(path, DROP)
    client.insert(LATER, client.start_commit())
    assert content(path) == DROPPED
    with pytest.raises(InvalidOption, match="bulk_insert looks no key up"):
        hoodie.hudi.write(LATER, path, {**KEYS, **DROP, OPERATION: "bulk_insert"})
    assert content(path) == DROPPED


def test_a_key_that_another_writer_brings_meanwhile_is_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    hoodie.hudi.write(FIRST, path, KEYS)
    from hoodie.api import table_writes

    look_up, calls = table_writes.new_rows, 0

    def meanwhile(*given: Any) -> Any:
        nonlocal calls
        found = look_up(*given)
        calls += 1
        if calls == 1:
            hoodie.open_table(path).upsert(rows(("c", 9)))
        return found

    monkeypatch.setattr(table_writes, "new_rows", meanwhile)
    once = {**DROP, "hoodie.write.num.retries.on.conflict.failures": "0"}
    with pytest.raises(WriteConflict):
        hoodie.open_table(path).insert(LATER, options=once)
    hoodie.open_table(path).insert(LATER, options=DROP)
    assert content(path) == [("a", 1), ("b", 1), ("c", 9), ("d", 3)]
    calls = 0
    again = {**DROP, "hoodie.write.num.retries.on.conflict.failures": "1"}
    hoodie.open_table(path).insert(rows(("c", 1), ("e", 1)), options=again)
    assert calls == 2
    assert content(path)[-1] == ("e", 1)
