"""`table.metadata()`: the rows of each partition of the metadata table."""

import zipfile
from pathlib import Path

import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import InvalidInput, MetadataTableIgnored, UnsupportedTable
from support.metadata_tables import FOLDER, METADATA, table_files

NEWEST = "20261122021825272"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for name, data in table_files("mdt_cow").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def test_each_partition_is_shown_as_rows(path: Path) -> None:
    table = hoodie.open_table(str(path))
    files = table.metadata().to_arrow()
    assert files.schema.names == ["partition", "file", "size"]
    for row in files.to_pylist():
        assert (path / row["partition"] / row["file"]).stat().st_size == row["size"]
    assert len(files) == len(list(path.glob("p*/*.parquet")))

    stats = table.metadata("column_stats").to_arrow().to_pylist()
    file = files.column("file")[0].as_py()
    (ts,) = [row for row in stats if row["file"] == file and row["column"] == "ts"]
    assert ts["partition"] == files.column("partition")[0].as_py()
    assert int(ts["min"]) <= int(ts["max"])
    assert len(stats) == 10 * len(files)

    filters = table.metadata("bloom_filters").to_arrow()
    assert sorted(filters.column("file").to_pylist()) == sorted(files.column("file").to_pylist())
    assert set(filters.column("type").to_pylist()) == {"DYNAMIC_V0"}

    entries = table.metadata("record_index").to_arrow().to_pylist()
    rows = table.snapshot(columns=["_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name"]).to_arrow()
    places = {
        (r["_hoodie_record_key"], r["_hoodie_partition_path"], r["_hoodie_file_name"][:38]) for r in rows.to_pylist()
    }
    assert {(entry["record_key"], entry["partition"], entry["file_id"]) for entry in entries} == places


def test_statistics_of_partitions_are_shown_as_hudi_wrote_them(tmp_path: Path) -> None:
    with zipfile.ZipFile(FOLDER / "v9_mor_statistics.zip") as archive:
        archive.extractall(tmp_path)
    table = hoodie.open_table(tmp_path / "v9_mor_statistics")
    stats = table.metadata("partition_stats").to_arrow().to_pylist()
    rows = table.snapshot(meta=True).to_arrow()
    assert {row["partition"] for row in stats} == set(rows["_hoodie_partition_path"].to_pylist())
    keys = {row["partition"]: (row["min"], row["max"]) for row in stats if row["column"] == "_hoodie_record_key"}
    for partition, (least, greatest) in keys.items():
        ids = rows.filter(pc.equal(rows["_hoodie_partition_path"], partition))["_hoodie_record_key"].to_pylist()
        assert least <= min(ids)
        assert max(ids) <= greatest


def test_what_is_not_there_is_said(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    table = hoodie.open_table(str(path))
    with pytest.raises(InvalidInput, match=r"expected one of files, column_stats, .*record_index"):
        table.metadata("file_list")
    with pytest.raises(InvalidInput, match="has no partition_stats: it has bloom_filters, column_stats, files, record"):
        table.metadata("partition_stats")
    properties = path / ".hoodie/hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if "checksum" not in line and "metadata." not in line]
    properties.write_text("\n".join([*lines, "hoodie.table.metadata.partitions=files", ""]))
    with pytest.raises(InvalidInput, match="has no record_index: it has files"):
        table.metadata("record_index")
    properties.write_text("\n".join([*lines, ""]))
    with pytest.raises(UnsupportedTable, match="has no metadata table"):
        table.metadata()


def test_one_that_is_out_of_date_shows_what_it_has_and_warns(path: Path) -> None:
    (path / METADATA / ".hoodie" / f"{NEWEST}.deltacommit").unlink()
    with pytest.warns(MetadataTableIgnored, match="behind"):
        rows = hoodie.open_table(str(path)).metadata().to_arrow()
    assert not any(NEWEST in name for name in rows.column("file").to_pylist())
