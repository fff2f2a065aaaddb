"""A `pathlib.Path` goes where the text of a path goes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput

KEY = {"hoodie.datasource.write.recordkey.field": "id"}
ROWS = pa.table({"id": ["a"], "v": [1]})


def test_a_table_is_written_at_a_path(tmp_path: Path) -> None:
    hoodie.hudi.write(ROWS, tmp_path / "trips", KEY)
    hoodie.hudi.write(ROWS, path=tmp_path / "trips", options=KEY, mode="overwrite")
    assert hoodie.open_table(tmp_path / "trips").info().name == "trips"


@pytest.mark.parametrize(
    "call",
    [
        hoodie.open_table,
        hoodie.HoodieTable,
        hoodie.hudi.read,
        hoodie.hudi.HoodieReadClient,
        hoodie.hudi.HoodieWriteClient,
        lambda path: hoodie.open_table(path).changes("earliest").to_arrow(),
        lambda path: hoodie.create_table(path, name="trips", record_key="id", options={}),
    ],
)
def test_a_table_is_opened_at_a_path(call: Callable[[Path], Any], tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "trips", name="trips", record_key="id").upsert(ROWS)
    call(tmp_path / "trips")


def test_a_name_is_given_to_a_path() -> None:
    class Session:  # as Spark's sessions are
        class conf:
            set = staticmethod(lambda key, value: settings.update({key: value}))

        class catalog:
            currentCatalog = staticmethod(lambda: "spark_catalog")
            currentDatabase = staticmethod(lambda: "default")

    settings: dict[str, str] = {}
    hoodie.spark.register_table(Session(), "trips", Path("/data/trips"))  # type: ignore[arg-type]
    assert settings == {"spark.hoodie.catalog.trips": "/data/trips"}


@pytest.mark.parametrize(
    "call",
    [
        hoodie.open_table,
        hoodie.hudi.read,
        lambda path: hoodie.open_table(path / "below"),
        lambda path: hoodie.create_table(path, name="trips", record_key="id"),
        lambda path: hoodie.hudi.write(ROWS, path, KEY),
    ],
)
def test_a_file_is_told_from_a_folder_without_a_table(call: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "trips.parquet").write_bytes(b"PAR1")
    with pytest.raises(hoodie.errors.TableNotFound, match=r"trips\.parquet.*: a file, and a table is a folder"):
        call(tmp_path / "trips.parquet")


NO_UTF8 = b"\xff\xfe".decode("utf-8", "surrogateescape")


def test_a_path_that_is_no_unicode_makes_no_table(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the table's path is .*udcff.* take a name whose bytes are UTF-8"):
        hoodie.create_table(tmp_path / NO_UTF8, name="trips", record_key="id")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInput, match=r"hoodie\.table\.name is .*no Unicode text"):
        hoodie.create_table(tmp_path / "trips", name=NO_UTF8, record_key="id")
    with pytest.raises(InvalidInput, match="has a null character"):
        hoodie.open_table(f"{tmp_path}/a\0b")


def test_a_table_that_was_moved_to_such_a_path_is_read_and_not_written(tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "trips", name="trips", record_key="id").upsert(ROWS)
    table = hoodie.open_table((tmp_path / "trips").rename(tmp_path / NO_UTF8))
    assert table.to_arrow().to_pylist() == ROWS.to_pylist()
    with pytest.raises(InvalidInput, match="no Unicode text"):
        table.upsert(ROWS)
    assert len(table.history()) == 1


def test_a_file_named_as_the_folder_of_a_table_is_named(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / ".hoodie").write_bytes(b"")
    with pytest.raises(hoodie.errors.TableNotFound, match=r"t/\.hoodie: a file, and a table has a folder of that name"):
        hoodie.open_table(tmp_path / "t")
