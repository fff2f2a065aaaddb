"""Tables that Hudi bootstrapped from Parquet files in folders of their own: `tests/fixtures/bootstrap/make_tables.py`.

With FULL_RECORD the table has the rows. With METADATA_ONLY its first base files hold meta columns alone.
"""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import UnsupportedTable
from hoodie.facts.summary import summarize
from hoodie.storage.local import LocalStorage

TABLES = Path(__file__).parents[1] / "fixtures" / "bootstrap"
ROWS = json.loads((TABLES / "rows.json").read_text())


def unpack(name: str, path: Path) -> str:
    with zipfile.ZipFile(TABLES / f"{name}.zip") as archive:
        archive.extractall(path)
    return str(path)


def rows_of(path: str) -> list[list[object]]:
    rows = hoodie.open_table(path).snapshot().to_arrow().to_pylist()
    return sorted([row[name] for name in ("id", "city", "ts", "fare")] for row in rows)


@pytest.mark.parametrize("name", ["full_0.15.0_cow", "full_1.2.0_mor", "keys_cleaned_1.2.0_cow"])
def test_a_table_whose_base_files_all_have_their_rows_is_read_and_written(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path / "t")
    assert rows_of(path) == ROWS[name]
    assert summarize(LocalStorage(path)).cannot_read == ""

    table = hoodie.open_table(path)
    table.upsert(pa.table({"id": ["k2", "n2"], "ts": [9, 9], "fare": [0.5, 1.5], "city": ["oslo", "oslo"]}))
    others = [row for row in ROWS[name] if row[0] != "k2"]
    assert rows_of(path) == sorted([*others, ["k2", "oslo", 9, 0.5], ["n2", "oslo", 9, 1.5]])
    assert list(table.check()) == []


@pytest.mark.parametrize("name", ["keys_0.15.0_mor", "keys_1.2.0_cow", "keys_clustered_1.2.0_cow"])
def test_a_table_with_base_files_of_keys_alone_is_refused_and_the_way_out_is_named(name: str, tmp_path: Path) -> None:
    """Clustering alone leaves them for time travel; a clean by Hudi removes them: `keys_cleaned_1.2.0_cow`."""
    path = unpack(name, tmp_path / "t")
    message = r"/src.*run_clustering.*run_clean\(.*file_versions_retained => 1"
    rows = pa.table({"id": ["k2"], "ts": [9], "fare": [0.5], "city": ["oslo"]})
    calls: list[Callable[[], object]] = [
        lambda: rows_of(path),
        lambda: hoodie.open_table(path).changes("000").to_arrow(),
        lambda: hoodie.open_table(path).upsert(rows),
        lambda: hoodie.open_table(path).check(),
    ]
    for call in calls:
        with pytest.raises(UnsupportedTable, match=message):
            call()
    assert "run_clustering" in summarize(LocalStorage(path)).cannot_read
