"""The partitions that delete_partition of Hudi's jobs removes."""

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput, PartitionsNotThere, SchemaMismatch
from hoodie.table.state import TableState

JOB = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "day,n"}
DELETE = {**JOB, "hoodie.datasource.write.operation": "delete_partition"}
ROWS = pa.table({"id": [1, 2, 3, 4], "day": ["d1", "d1", "d2", None], "n": [1, 2, 1, 1]})


def ids(path: Path) -> list[int]:
    return sorted(hoodie.open_table(path).snapshot().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("style", ["true", "false"])
def test_partitions_of_the_rows_go(tmp_path: Path, style: str) -> None:
    path, styled = tmp_path / "t", {"hoodie.datasource.write.hive_style_partitioning": style}
    hoodie.hudi.write(ROWS, path, {**JOB, **styled})
    hoodie.hudi.write(pa.table({"n": [1, 1, 1], "day": ["d1", None, "d1"]}), path, DELETE)
    assert ids(path) == [2, 3]
    named = {**DELETE, "hoodie.datasource.write.partitions.to.delete": "day=d1/n=2" if style == "true" else "d1/2"}
    hoodie.hudi.write(ROWS, path, named)
    assert ids(path) == [3]


def test_rows_that_name_no_partition_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hoodie.hudi.write(ROWS, path, JOB)
    with pytest.raises(SchemaMismatch, match="partition column 'n' is missing"):
        hoodie.hudi.write(ROWS.drop_columns("n"), path, DELETE)
    hoodie.hudi.write(ROWS, tmp_path / "flat", {"hoodie.datasource.write.recordkey.field": "id"})
    with pytest.raises(InvalidInput, match="no partition is named"):
        hoodie.hudi.write(ROWS, tmp_path / "flat", DELETE)
    assert ids(path) == [1, 2, 3, 4] == ids(tmp_path / "flat")


def test_a_star_stands_for_any_text_of_a_path(tmp_path: Path) -> None:
    path = tmp_path / "t"
    hoodie.hudi.write(ROWS, path, JOB)

    def delete(paths: str) -> None:
        hoodie.hudi.write(None, path, {**DELETE, "hoodie.datasource.write.partitions.to.delete": paths})

    with pytest.warns(PartitionsNotThere, match=r"x\*"):
        delete("d1/2,x*")
    assert ids(path) == [1, 3, 4]
    delete("d1/*,d2/1")
    assert ids(path) == [4]


def test_folders_are_listed_that_are_named_and_all_for_a_star_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    looked_into: list[Collection[str] | None] = []
    hoodie.hudi.write(ROWS, path, JOB)
    whole = TableState.groups

    def groups(state: TableState, partitions: Collection[str] | None = None) -> dict[str, list[str]]:
        looked_into.append(partitions)
        return whole(state, partitions)

    monkeypatch.setattr(TableState, "groups", groups)
    for paths, everywhere in (("d1/2", False), ("d1/*", True)):
        looked_into.clear()
        hoodie.hudi.write(None, path, {**DELETE, "hoodie.datasource.write.partitions.to.delete": paths})
        assert (None in looked_into) is everywhere


def test_partitions_that_are_not_there_are_passed_by_as_in_hudi(tmp_path: Path) -> None:
    """The real Hudi, 0.15.0 and 1.2.0, deletes the others, and nothing where there is none."""
    path, flat = tmp_path / "t", tmp_path / "flat"
    hoodie.hudi.write(ROWS, path, JOB)
    hoodie.hudi.write(ROWS, flat, {"hoodie.datasource.write.recordkey.field": "id"})
    nowhere = {**DELETE, "hoodie.datasource.write.partitions.to.delete": "d9/1"}
    for rows, where, options in ((None, path, nowhere), (None, flat, nowhere), (ROWS.slice(0, 0), path, DELETE)):
        with pytest.warns(PartitionsNotThere):
            assert hoodie.hudi.write(rows, where, options) is None
    assert ids(path) == [1, 2, 3, 4] == ids(flat)
    with pytest.warns(PartitionsNotThere, match="d9/1"):
        hoodie.hudi.write(pa.table({"day": ["d9", "d1"], "n": [1, 1]}), path, DELETE)
    assert ids(path) == [2, 3, 4]
