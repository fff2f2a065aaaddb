"""What follows a commit for other engines: manifests are there, and a metastore that is down fails no commit."""

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidOption, MetastoreUnavailable, ServiceFailed

DOWN = {"hoodie.datasource.hive_sync.metastore.uris": "thrift://127.0.0.1:1"}


def rows(*keys: str, city: str = "oslo", ts: int = 1) -> pa.Table:
    return pa.table({"id": keys, "city": [city] * len(keys), "ts": [ts] * len(keys)})


def made(folder: Path, **options: str) -> hoodie.HoodieTable:
    return hoodie.create_table(
        str(folder), name="trips", record_key="id", partition_by="city", ordering="ts", options=options
    )


def manifest(folder: Path, partition: str) -> list[str]:
    return (folder / ".hoodie/symlink-manifest" / partition / "manifest").read_text().splitlines()


def test_after_each_commit_the_manifests_name_what_a_read_reads(tmp_path: Path) -> None:
    few = {"hoodie.cleaner.commits.retained": "1", "hoodie.parquet.small.file.limit": "0"}
    table = made(tmp_path, **{"hoodie.sync.manifest": "symlink,csv"}, **few)
    table.upsert(rows("a"))
    table.upsert(rows("b", city="rome"))
    for ts in range(2, 5):
        table.upsert(rows("a", ts=ts))
    slices = [f"file://{tmp_path}/{slice_.base.path}" for slice_ in table.file_slices() if slice_.base]
    assert sorted([*manifest(tmp_path, "oslo"), *manifest(tmp_path, "rome")]) == sorted(slices)
    table.delete_partitions(["rome"])
    assert manifest(tmp_path, "rome") == []
    for ts in range(5, 8):
        table.upsert(rows("a", ts=ts))
    assert not (tmp_path / ".hoodie/symlink-manifest/rome/manifest").exists()  # cleaning has removed the partition


def test_a_metastore_that_is_down_leaves_the_commit_and_warns(tmp_path: Path) -> None:
    table = made(tmp_path)
    options = {**DOWN, "hoodie.datasource.meta.sync.enable": "true"}
    with pytest.warns(ServiceFailed, match=r"the sync to the metastore after it failed.*table\.sync\(\)"):
        table.upsert(rows("a"), options=options)
    assert table.snapshot().count() == 1
    with pytest.raises(MetastoreUnavailable, match=r"thrift://127\.0\.0\.1:1"):
        table.sync(options=DOWN)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ServiceFailed)
        table.upsert(rows("b"), options=DOWN)  # not asked for
    with pytest.raises(InvalidOption, match="only the mode hms is built"):
        table.upsert(rows("c"), options={**options, "hoodie.datasource.hive_sync.mode": "jdbc"})
    assert table.snapshot().count() == 2


def test_manifests_that_cannot_be_written_leave_the_commit_and_warn(tmp_path: Path) -> None:
    table = made(tmp_path, **{"hoodie.sync.manifest": "symlink"})
    (tmp_path / ".hoodie" / "symlink-manifest").write_text("in the way")
    with pytest.warns(ServiceFailed, match="writing the manifests after it failed"):
        table.upsert(rows("a"))
    assert table.snapshot().count() == 1
