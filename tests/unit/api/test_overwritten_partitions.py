"""An overwrite of partitions that are named, whether rows come into them or not."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
import hoodie.writing.run
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.errors import InvalidInput, WriteConflict

TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def made(path: Path, table_type: str = "COPY_ON_WRITE") -> HoodieTable[Rows]:
    table = hoodie.create_table(path, name="t", record_key="id", partition_by="city", table_type=table_type)
    table.upsert(batch((1, "oslo"), (2, "rome"), (3, "bern")))
    table.upsert(batch((2, "rome")))
    return table


def batch(*rows: tuple[int, str]) -> pa.Table:
    return pa.table(
        {"id": pa.array([row[0] for row in rows], pa.int64()), "city": pa.array([row[1] for row in rows], pa.string())}
    )


def ids(table: HoodieTable[Rows]) -> list[int]:
    found = table.snapshot(columns=["id"]).to_arrow().column("id").to_pylist()
    return sorted(found)


@TYPES
def test_named_partitions_go_with_those_of_the_rows_in_one_commit(tmp_path: Path, table_type: str) -> None:
    table = made(tmp_path / "t", table_type)
    before = len(table.history())
    assert table.insert_overwrite(batch((9, "oslo")), partitions=["rome", "nowhere"]).inserted == 1
    assert ids(table) == [3, 9]
    table.insert_overwrite(batch(), partitions=["bern"])
    assert ids(table) == [9]
    assert len(table.history()) == before + 2
    assert not table.check()


def test_they_go_too_when_the_write_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path / "t")
    start, tried = hoodie.writing.run.start, []

    def busy(*of: Any) -> Any:
        tried.append(of)
        if len(tried) == 1:
            raise WriteConflict("another writer was faster")
        return start(*of)

    monkeypatch.setattr(hoodie.writing.run, "start", busy)
    options = {"hoodie.write.num.retries.on.conflict.failures": "1"}
    table.insert_overwrite(batch((9, "oslo")), partitions=["rome"], options=options)
    assert len(tried) == 2
    assert ids(table) == [3, 9]


def test_a_text_is_no_list_of_partitions(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="partitions='rome': expected partition paths in a list"):
        made(tmp_path / "t").insert_overwrite(batch((9, "oslo")), partitions="rome")
