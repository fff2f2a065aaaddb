"""Symbolic links in a table's folder that lead back, and copies of the table in it: rows show once."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.doctor.examine import Fault


@pytest.mark.parametrize("target", [".", "t", "t/oslo"])
def test_a_link_back_adds_no_rows(target: str, tmp_path: Path) -> None:
    options = {"hoodie.metadata.enable": "false"}  # folders are listed
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city", options=options)
    rows = pa.table({"id": ["a", "b"], "city": ["oslo", "bern"]})
    table.upsert(rows)
    (tmp_path / "t" / "link").symlink_to(tmp_path / target)
    assert table.snapshot().count() == 2
    assert not table.check(grace=0)
    table.upsert(rows)
    assert table.snapshot().count() == 2


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("copy", ["copy", "copy/of", "link"])
def test_a_copy_in_the_folder_of_a_table_adds_no_rows(copy: str, version: str, tmp_path: Path) -> None:
    options = {"hoodie.metadata.enable": "false", "hoodie.write.table.version": version}
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id", partition_by="city", options=options)
    rows = pa.table({"id": ["a", "b"], "city": ["oslo", "bern"]})
    table.upsert(rows)
    shutil.copytree(path, tmp_path / "outside")
    if copy == "link":
        (path / copy).symlink_to(tmp_path / "outside")
    else:
        shutil.copytree(tmp_path / "outside", path / copy)
    assert table.snapshot().count() == 2
    (finding,) = table.check(grace=0)
    assert (finding.fault, finding.where) == (Fault.MISPLACED, copy)
    assert table.upsert(rows).updated == 2
    assert table.snapshot().count() == 2
    assert hoodie.open_table(path / copy).snapshot().count() == 2


def test_partitions_of_a_table_around_another_one_stay_its_own(tmp_path: Path) -> None:
    """They lie as deep below its folder as their metafile says."""
    options = {"hoodie.metadata.enable": "false"}
    inner = hoodie.create_table(tmp_path / "t" / "north", record_key="id", partition_by="city", options=options)
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="area,city", options=options)
    table.upsert(pa.table({"id": ["a", "b"], "area": ["north", "south"], "city": ["oslo", "bern"]}))
    inner.upsert(pa.table({"id": ["c"], "city": ["rome"]}))
    assert sorted(table.to_arrow()["id"].to_pylist()) == ["a", "b"]
