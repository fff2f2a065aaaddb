"""Tables of versions 8 and 9, by Hudi 1.0.2, 1.1.1 and 1.2.0: every view has the rows that the same Hudi read."""

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.errors import HistoryGone, HoodieWarning, UnsupportedTable
from hoodie.model.commit import Operation
from hoodie.reading.scan import ScanKind
from hoodie.reading.snapshot import read_scan
from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.timeline.archive import archived_commits, newest_archived
from support.by_position import rows_by_position
from support.hudi_1_tables import Row, begin_of, facts, noted, noting, noting_changes, table_names, unpack, views
from support.nightly import by_day
from support.scans import plan_scan

#: Hudi 1.x falls back to the whole table by default where commits are archived, as it is now.
FULL_SCAN = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true"}

#: Hudi misreads a range whose logs hold some columns only, where it does not fail: the values are bytes of others. What
#: stands here is the row as the snapshot has it. In a range that is a log compaction no row changed: Hudi 1.1 has them.
MISREAD: dict[tuple[str, str], list[Row]] = {
    ("v9_mor_log_compaction", "incremental 20261125035309719 20261125035315377"): [],
    ("v8_mor_merge_into_partial", "incremental 20261123122000424 20261123122006169"): [
        {
            "_hoodie_commit_time": "20261123122001994",
            "_hoodie_record_key": "k1",
            "_hoodie_partition_path": "part=a",
            "id": "k1",
            "name": "renamed",
            "price": 99.0,
            "qty": 1,
            "ts": 3,
            "part": "a",
        }
    ],
    ("v9_mor_merge_twice", "incremental 20261125034528793 latest"): [
        {
            "_hoodie_commit_time": "20261125034533559",
            "_hoodie_record_key": "k4",
            "_hoodie_partition_path": "part=b",
            "id": "k4",
            "name": "four",
            "price": 0.0,
            "qty": 44,
            "ts": 4,
            "part": "b",
        }
    ],
}


#: By day half of the tables are read whole; of the others some in ranges from their beginning, and some of all by their
#: changes: views, ranges and changes share their code.
EVERY_OTHER, IN_RANGES, BY_CHANGES = table_names()[::2], table_names()[1::4], table_names()[3::3]


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Nothing of these tables is damaged or out of date."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", HoodieWarning)
        yield


def read(name: str, path: Path, view: str, options: dict[str, str] | None = None) -> list[Row]:
    """What this library reads of a noted view, as it is noted: in Arrow, and as Spark puts it together."""
    kind, *points = view.split()
    given: dict[str, Any] = {}
    if kind == "cdc":
        return noting_changes(hoodie.open_table(path).changes(begin_of(name, view), points[1], cdc=True).to_arrow())
    if kind == "incremental":
        given = {"kind": ScanKind.CHANGES, "begin": begin_of(name, view)}
        given["end"] = None if points[1] == "latest" else points[1]
    elif kind == "as_of":
        given = {"as_of": points[0]}
    elif kind == "read_optimized":
        given = {"kind": ScanKind.READ_OPTIMIZED}
    scan = plan_scan(load_state(LocalStorage(path)), settings=ReadSettings.read(Options(options or {})), **given)
    rows = noting(read_scan(scan))
    assert noting(rows_by_position(scan)) == rows
    return rows


@pytest.mark.parametrize("name", by_day(table_names(), EVERY_OTHER.__contains__))
def test_every_view_has_the_rows_that_hudi_read(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    for view in views(name):
        assert read(name, path, view, FULL_SCAN) == MISREAD.get((name, view), noted(name, view)), view


@pytest.mark.parametrize("name", by_day(table_names(), IN_RANGES.__contains__))
def test_a_range_from_the_beginning_is_the_table_as_of_its_end(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    completed = dict(instant.partition(".")[0].split("_") for instant in facts(name)["instants"])
    for view in (view for view in views(name) if view.startswith("as_of")):
        end = completed[view.split()[1]]
        with suppress(HistoryGone, UnsupportedTable):  # cleaned; without commit times
            assert read(name, path, f"incremental 000 {end}") == noted(name, view), view


def test_a_range_back_into_the_history_has_each_row_as_it_was_at_its_end(tmp_path: Path) -> None:
    path = unpack("v8_cow_archived", tmp_path)
    state = load_state(LocalStorage(path))
    first = state.timeline.first_commit
    view = "incremental 000 20261123124211851"
    rows = read("v8_cow_archived", path, view)
    assert min(row["_hoodie_commit_time"] for row in rows) < first
    changed_since = [row for row in rows if row not in noted("v8_cow_archived", view)]  # which Hudi leaves out
    assert len(rows) == len(noted("v8_cow_archived", "snapshot")) == 10
    assert sorted((row["_hoodie_record_key"], row["name"]) for row in changed_since) == [
        ("k1", "n12"),
        ("k4", "m3"),
        ("k5", "m4"),
    ]
    archived = facts("v8_cow_archived")["steps"][5]["instants"][0].partition("_")[0]
    since = noting(hoodie.open_table(path).changes(archived, meta=True).to_arrow())
    assert since == [row for row in noted("v8_cow_archived", "snapshot") if row["_hoodie_commit_time"] > archived]


def test_rows_of_a_log_compaction_that_begins_a_range_did_not_change_in_it(tmp_path: Path) -> None:
    """Since Hudi 1.1 they have its time. Behind another commit they count, as in Hudi 1.2."""
    table = hoodie.open_table(unpack("v9_mor_log_compaction", tmp_path))
    (_, newest), (write, _), (earlier, _) = table.history()[:3]
    assert newest.operation is Operation.LOG_COMPACT
    ranges = [table.changes(begin.completed, meta=True).to_arrow() for begin in (write, earlier)]
    assert [rows["_hoodie_record_key"].to_pylist() for rows in ranges] == [[], ["k1", "k2"]]


def test_logs_of_archived_commits_are_merged_now_and_as_of_then(tmp_path: Path) -> None:
    path = unpack("v9_mor_archived_no_compaction", tmp_path)
    state = load_state(LocalStorage(path))
    archived = sorted(instant.requested for instant, _ in archived_commits(state.storage, state.config))
    assert len(archived) == 5
    for number, instant in enumerate(archived, 1):
        rows = hoodie.open_table(path).snapshot(as_of=instant, filters="id = 'k1'", meta=True).to_arrow()
        assert rows.column("ts").to_pylist() == [number]


def test_files_of_the_history_that_name_the_newest_instant_first_are_read(tmp_path: Path) -> None:
    """As an upgrade by Hudi 1.0 leaves it."""
    path = unpack("v9_mor_archived_no_compaction", tmp_path)
    rows = noting(hoodie.open_table(path).snapshot(meta=True).to_arrow())
    history = Path(path) / ".hoodie/timeline/history"
    (file,) = (file for file in history.glob("*_1.parquet"))
    oldest, newest, _ = file.name.split("_")
    file.rename(history / f"{newest}_{oldest}_1.parquet")
    for manifest in history.glob("manifest_*"):
        manifest.write_text(manifest.read_text().replace(file.name, f"{newest}_{oldest}_1.parquet"))
    assert noting(hoodie.open_table(path).snapshot(meta=True).to_arrow()) == rows
    state = load_state(LocalStorage(path))
    assert newest_archived(state.storage, state.config, newest + "1") == newest


def plain(rows: pa.Table) -> Counter[str]:
    own = [name for name in rows.column_names if not name.startswith("_hoodie_") or name == "_hoodie_is_deleted"]
    return Counter(map(repr, rows.select(own).to_pylist()))


#: Change data cannot be computed without commit times, or without the files from the beginning.
WITHOUT_CHANGES = {"v8_cow_virtual_keys", "v8_cow_archived", "v9_mor_archived"}


@pytest.mark.parametrize("name", by_day(sorted(set(table_names()) - WITHOUT_CHANGES), BY_CHANGES.__contains__))
def test_computed_change_data_adds_up_to_the_snapshot(name: str, tmp_path: Path) -> None:
    path = unpack(name, tmp_path)
    options = {"hoodie.read.cdc.infer": "true", "hoodie.read.cdc.images": "struct"}
    rows: Counter[str] = Counter()
    for change in hoodie.open_table(path, options=options).changes("earliest", cdc=True).to_arrow().to_pylist():
        if change["before"] is not None:
            rows[repr(change["before"])] -= 1
        if change["after"] is not None:
            rows[repr(change["after"])] += 1
    assert Counter({row: count for row, count in rows.items() if count}) == plain(
        hoodie.open_table(path).snapshot(meta=True).to_arrow()
    )
