"""Change data of real tables is what Hudi's own query gave when they were made."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HistoryGone, InvalidInput, UnsupportedTable
from hoodie.reading.changes.data import change_data_batches
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from support.change_data import NAMES, change, ordered, ranges, unpack
from support.nightly import by_day
from support.oracles import expected_rows, fixture_facts

Unpack = Callable[[str], Path]
#: By day one of each type for what is beside the change data itself.
SOME = by_day(NAMES, ("cdc_cow_data_before", "cdc_mor_op_key_only").__contains__)


def read(path: Path, begin: str, end: str | None = None, **options: object) -> list[tuple[object, ...]]:
    rows = hoodie.open_table(path, options=options).changes(begin, end, cdc=True).to_arrow()
    return ordered(change(row) for row in rows.to_pylist())


@pytest.mark.parametrize("name", NAMES)
def test_change_data_is_what_hudi_gives(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    noted = ranges(name, path)
    assert len(noted) > 10
    for range_ in noted:
        assert read(path, range_.begin, range_.end) == range_.changes
        assert read(path, range_.begin, range_.end, **{"hoodie.read.cdc.images": "struct"}) == range_.changes


def test_images_of_logs_are_the_text_that_hudi_gives(fixture_table: Unpack) -> None:
    path, theirs = fixture_table("cow_cdc"), expected_rows("cow_cdc", "cdc_after_first_commit").to_pylist()
    first = fixture_facts("cow_cdc")["steps"][0]["instant"]
    ours = hoodie.open_table(path).changes(first, cdc=True).to_arrow().to_pylist()
    given = [{name: None if value == "null" else value for name, value in row.items()} for row in theirs]
    assert sorted(map(str, ours)) == sorted(map(str, given))


@pytest.mark.parametrize("name", SOME)
def test_images_from_file_slices_are_those_of_the_logs(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    state = load_state(LocalStorage(path))
    for range_ in ranges(name, path):
        plan = plan_change_data(state, range_.begin, range_.end)
        assert any(step.cdc for steps in plan_change_data(state, "earliest").groups for step in steps)
        without = tuple(tuple(replace(step, cdc=()) for step in steps) for steps in plan.groups)
        rows = pa.Table.from_batches(change_data_batches(replace(plan, groups=without)), plan.reader.schema)
        assert ordered(change(row) for row in rows.to_pylist()) == range_.changes


@pytest.mark.parametrize("name", SOME)
def test_change_logs_do_not_show_in_other_reads(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    table = hoodie.open_table(str(path))
    snapshot = table.snapshot().to_arrow()
    assert snapshot.num_rows == 21
    assert table.changes("earliest").count() == 21
    logs = [log for slice_ in table.file_slices() for log in slice_.logs]
    assert not any(log.cdc for log in logs)


def test_a_table_without_change_data_is_refused_unless_it_is_to_be_computed(fixture_table: Unpack) -> None:
    path = fixture_table("cow_upserts_delete")
    with pytest.raises(UnsupportedTable, match=r"hoodie\.read\.cdc\.infer=true"):
        read(path, "earliest")
    inferred = read(path, "earliest", **{"hoodie.read.cdc.infer": "true"})
    rows: dict[object, object] = {}
    for op, _, before, after in sorted(inferred, key=lambda found: (found[1], found[0])):
        key = dict(before or after)["id"]
        assert rows.get(key) == before
        if op == "d":
            del rows[key]
        else:
            rows[key] = after
    snapshot = hoodie.open_table(path).snapshot().to_arrow()
    assert len(rows) == snapshot.num_rows
    assert sorted(rows) == sorted(snapshot.column("id").to_pylist())


def test_columns_and_filters_are_over_the_changes(tmp_path: Path) -> None:
    table = hoodie.open_table(str(unpack("cdc_cow_data_before_after", tmp_path)))
    gone = table.changes("earliest", cdc=True, columns=["before"], filters=[("op", "=", "d")]).to_arrow()
    assert gone.column_names == ["before"]
    assert gone.num_rows == 7
    assert all(json.loads(text)["part"] == "p2" for text in gone.column("before").to_pylist())
    with pytest.raises(InvalidInput, match="no column 'id'"):
        table.changes("earliest", cdc=True, columns=["id"])


def test_files_that_are_gone_are_an_error_that_says_where_to_begin(tmp_path: Path) -> None:
    path = unpack("cdc_cow_data_before", tmp_path)
    commits = sorted(found.name.partition(".")[0] for found in (path / ".hoodie").glob("2026*commit"))
    for pattern, kept in ((f"*/*_{commits[1]}.parquet", 1), (f"*/.*_{commits[1]}.log.*.cdc", 1)):
        copy = tmp_path / f"without-{len(pattern)}"
        shutil.copytree(path, copy)
        for file in copy.glob(pattern):
            file.unlink()
        with pytest.raises(HistoryGone) as told:
            read(copy, "earliest")
        assert told.value.earliest == commits[kept]
        assert read(copy, commits[4]) == read(path, commits[4])


def test_a_range_back_into_the_archive_names_the_images_that_are_gone(fixture_table: Unpack) -> None:
    with pytest.raises(HistoryGone, match="files with their images are gone"):
        read(fixture_table("cow_archived"), "earliest", **{"hoodie.read.cdc.infer": "true"})
