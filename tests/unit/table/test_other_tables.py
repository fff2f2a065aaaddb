"""A folder that holds something else is not made a table of, and the home folder is found."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import TableMismatch


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (["x.parquet"], "Parquet files"),
        (["city=oslo/day=1/x.parquet"], "Parquet files"),
        (["_delta_log/0.json", "x.parquet"], "a Delta table"),
        (["data/city=oslo/x.parquet", "metadata/v1.metadata.json"], "an Iceberg table"),
        (["metadata/v1.metadata.json"], "an Iceberg table"),
    ],
)
def test_a_folder_with_other_data_is_refused(files: list[str], kind: str, tmp_path: Path) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(b"PAR1")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TableMismatch, match=f"holds {kind}, and is no Hudi table"):
        hoodie.create_table(tmp_path, name="t", record_key="id")
    with pytest.raises(TableMismatch):
        hoodie.hudi.write(pa.table({"id": [1]}), str(tmp_path), {"hoodie.datasource.write.recordkey.field": "id"})
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_with_other_files_and_a_table_are_no_such_thing(tmp_path: Path) -> None:
    (tmp_path / "readme").write_text("trips")
    table = hoodie.create_table(tmp_path, name="t", record_key="id")
    table.upsert(pa.table({"id": [1]}))
    again = hoodie.create_table(tmp_path, name="t", record_key="id")
    assert again.snapshot().to_arrow().num_rows == 1


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    hoodie.create_table("~/trips", name="t", record_key="id")
    assert (tmp_path / "trips" / ".hoodie").is_dir()
    assert hoodie.open_table("~/trips").path == str(tmp_path / "trips")
    assert not (tmp_path / "~").exists()
