"""Columns of few values stay encoded while a base file is rewritten, and the new file has the rows, and no more."""

import math
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.formats.parquet.base_footer import read_footer
from hoodie.model.meta import FILE_NAME
from hoodie.writing.tasks import base_file

ROWS = 2_000


def orders(first: int, count: int, city: str | None = None) -> pa.Table:
    ids = range(first, first + count)
    cities = [city or ("oslo", "rome", None, "a city that goes")[i % 4] for i in ids]
    return pa.table({"id": [f"{i:06}" for i in ids], "city": cities, "amount": [float(i) for i in ids]})


def newest(table: hoodie.HoodieTable, path: Path) -> Path:
    (slice_,) = table.file_slices()
    assert slice_.base is not None
    return path / slice_.base.path


def test_a_rewritten_file_has_the_rows_and_no_deleted_text(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "orders", record_key="id")
    table.upsert(orders(0, ROWS))
    table.upsert(orders(0, 3, "bern"))
    table.delete(where="city = 'a city that goes'")
    table.upsert(orders(ROWS, 5, "wien"))
    assert table.count(filters="city = 'bern'") == 3
    assert table.count(filters="city = 'wien'") == 5
    assert table.count(filters="city is null") == ROWS // 4 - 1
    file = newest(table, tmp_path / "orders")
    city = pq.ParquetFile(file, read_dictionary=["city"]).read().column("city").combine_chunks()
    assert sorted(city.dictionary.to_pylist()) == ["bern", "oslo", "rome", "wien"]
    footer = pq.ParquetFile(file).metadata.row_group(0)
    (statistics,) = (
        footer.column(i).statistics for i in range(footer.num_columns) if footer.column(i).path_in_schema == "city"
    )
    assert (statistics.min, statistics.max, statistics.null_count) == ("bern", "wien", ROWS // 4 - 1)
    assert set(pq.read_table(file, columns=[FILE_NAME]).column(0).to_pylist()) == {file.name}


def test_a_column_that_comes_to_have_many_values_is_written_out(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "orders", record_key="id")
    table.upsert(orders(0, 400, "oslo"))
    named = orders(0, 400).set_column(1, "city", pa.array([f"city {i}" for i in range(400)]))
    table.upsert(named)
    assert sorted(table.to_arrow().column("city").to_pylist()) == sorted(f"city {i}" for i in range(400))
    group = pq.ParquetFile(newest(table, tmp_path / "orders")).metadata.row_group(0)
    chunks = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert not chunks["city"].has_dictionary_page


def test_several_row_groups_of_several_batches_hold_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie.writing.tasks.run.BATCH_ROWS", 300)
    table = hoodie.create_table(tmp_path / "orders", record_key="id", options={"hoodie.parquet.block.size": 40_000})
    table.upsert(orders(0, ROWS))
    table.upsert(orders(ROWS - 10, 20, "bern"))
    expected = orders(0, ROWS).to_pylist()[: ROWS - 10] + orders(ROWS - 10, 20, "bern").to_pylist()
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"]) == expected
    assert pq.ParquetFile(newest(table, tmp_path / "orders")).metadata.num_row_groups > 1


def test_a_filter_that_grew_with_its_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key is tested against all rows of a filter: a file that began small would have dozens."""
    monkeypatch.setattr(base_file, "MIN_SIZED_ENTRIES", 10)
    table = hoodie.create_table(tmp_path / "orders", record_key="id")
    for first in range(0, 800, 20):
        table.upsert(orders(first, 20))
    file = newest(table, tmp_path / "orders")
    with file.open("rb") as source:
        bloom = read_footer(source, file.name).bloom(file.name)
    assert bloom is not None
    assert len(bloom.rows) <= 5
    assert table.upsert(orders(0, 800, "bern")).updated == 800


def test_a_filter_with_far_too_few_bits_for_what_comes_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_file, "MIN_SIZED_ENTRIES", 10)
    table = hoodie.create_table(tmp_path / "orders", record_key="id")
    for first, count in ((0, 20), (20, 30), (50, 400)):
        table.upsert(orders(first, count))
        file = newest(table, tmp_path / "orders")
        with file.open("rb") as source:
            bloom = read_footer(source, file.name).bloom(file.name)
        assert bloom is not None
        # 50 keys are no reason to leave the filter of 20, which grows; 450 are.
        assert (bloom.entries, len(bloom.rows)) == {0: (20, 1), 20: (20, 3), 50: (450, 1)}[first]


def test_a_delete_takes_the_filter_over_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hoodie.create_table(tmp_path / "orders", record_key="id")
    table.upsert(orders(0, 50))

    def filter_text() -> str:
        with newest(table, tmp_path / "orders").open("rb") as file:
            return read_footer(file, "f").bloom_text

    before = filter_text()
    monkeypatch.setattr(base_file, "add_keys", None)
    assert table.delete(where="amount < 10").deleted == 10
    assert filter_text() == before


def test_a_write_of_one_file_starts_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = hoodie.create_table(tmp_path / "orders", record_key="id")
    table.upsert(orders(0, 10))
    started: list[str] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    assert table.upsert(orders(5, 10)).updated == 5
    assert not [name for name in started if name.startswith("hoodie")]


@pytest.mark.parametrize(
    "payload",
    [
        "PartialUpdateAvroPayload",
        "DefaultHoodieRecordPayload",
        "OverwriteWithLatestAvroPayload",
        "OverwriteNonDefaultsWithLatestAvroPayload",
    ],
)
def test_every_rule_makes_of_encoded_columns_what_it_makes_of_plain_ones(tmp_path: Path, payload: str) -> None:
    """A table that logs change data is rewritten with its text written out, since the log shows the rows."""
    made = []
    for cdc in ("false", "true"):
        options = {
            "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}",
            "hoodie.table.cdc.enabled": cdc,
        }
        table = hoodie.create_table(tmp_path / cdc, record_key=["id", "city"], ordering="amount", options=options)
        named = orders(0, 800).append_column("note", pa.array(["new", None, "old", None] * 200))
        named = named.set_column(1, "city", pa.array(["oslo", "rome"] * 400))
        table.upsert(named)
        late = named.slice(100, 300).set_column(3, "note", pa.array([None, "late"] * 150))
        assert table.upsert(late).updated == 300
        table.delete(where="note = 'old'")
        made.append(table.to_arrow().sort_by("id"))
    assert made[0] == made[1]
    assert {"late", "new"} < set(made[0].column("note").to_pylist())


def test_columns_have_bounds_and_an_index_and_floating_ones_only_without_nan(tmp_path: Path) -> None:
    """NaN is in no statistics of Parquet: bounds would leave out its rows. Without them Hudi leaves out all others."""
    table = hoodie.create_table(tmp_path, record_key="id")

    def indexed() -> dict[str, bool]:
        (group,) = (pq.read_metadata(newest(table, tmp_path)).row_group(n) for n in range(1))
        columns = [group.column(number) for number in range(group.num_columns)]
        assert all(column.has_column_index is (column.statistics is not None) for column in columns)
        return {column.path_in_schema: column.has_column_index for column in columns}

    table.upsert(orders(0, ROWS))
    assert set(indexed().values()) == {True}
    table.upsert(orders(0, 1).set_column(2, "amount", pa.array([math.nan])))
    assert [name for name, known in indexed().items() if not known] == ["amount"]
    table.upsert(orders(0, 1))
    assert set(indexed().values()) == {True}
