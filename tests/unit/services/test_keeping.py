"""How much history a table keeps is said once, when it is created."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.config.services import CleanPolicy, clean_options, kept_options, policy_text
from hoodie.errors import InvalidInput, TableMismatch
from hoodie.table.state import load_state


def rows(note: str) -> pa.Table:
    return pa.table({"id": ["a"], "note": [note]})


def versions(table: hoodie.HoodieTable[hoodie.Rows]) -> int:
    return len(list(Path(table.path).rglob("*.parquet")))


@pytest.mark.parametrize(
    ("keep", "policy", "commits", "hours"),
    [
        ("30 days", "KEEP_LATEST_BY_HOURS", 10, 720),
        ("1 day", "KEEP_LATEST_BY_HOURS", 10, 24),
        ("48hours", "KEEP_LATEST_BY_HOURS", 10, 48),
        ("2 Weeks", "KEEP_LATEST_BY_HOURS", 10, 336),
        ("20 commits", "KEEP_LATEST_COMMITS", 20, 24),
        (5, "KEEP_LATEST_COMMITS", 5, 24),
        (None, "KEEP_LATEST_COMMITS", 10, 24),
    ],
)
def test_how_much_is_kept_is_a_cleaning_policy(keep: str | int | None, policy: str, commits: int, hours: int) -> None:
    how = clean_options(Options(), kept_options(keep))
    assert (how.policy, how.commits, how.hours) == (CleanPolicy(policy), commits, hours)


@pytest.mark.parametrize("keep", ["", "30", "30 months", "0 days", 0, -1, True, "forever", 1.5, dt.timedelta(days=3)])
def test_what_is_no_length_of_history_is_refused(keep: str | int, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match='expected such as "30 days"'):
        hoodie.create_table(tmp_path, name="t", record_key="id", keep=keep)
    assert list(tmp_path.iterdir()) == []


def test_a_table_keeps_what_it_was_created_with_for_all_its_writers(tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "t", name="t", record_key="id", keep=2)
    for number in range(6):
        hoodie.open_table(tmp_path / "t").upsert(rows(str(number)))
    assert versions(hoodie.open_table(tmp_path / "t")) == 3  # what reads as of the latest two commits and now need
    first = load_state(hoodie.open_table(tmp_path / "t").storage).timeline.commits[0].requested
    with pytest.raises(InvalidInput, match=r"cleaning removed .* keeps the latest 2 commits"):
        hoodie.open_table(tmp_path / "t").as_of(first).to_arrow()
    table = hoodie.create_table(tmp_path / "days", name="t", record_key="id", keep="30 days")
    for number in range(14):
        table.upsert(rows(str(number)))
    assert versions(table) == 14
    assert policy_text(load_state(table.storage).config.properties) == "the latest 30 days"


def test_a_writer_that_names_a_policy_goes_by_that(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", keep="30 days")
    for number in range(5):
        table.upsert(rows(str(number)), options={"hoodie.clean.commits.retained": 1})
    assert versions(table) == 2


def test_a_table_that_keeps_something_else_is_not_taken_for_it(tmp_path: Path) -> None:
    hoodie.create_table(tmp_path, name="t", record_key="id", keep="30 days")
    hoodie.create_table(tmp_path, name="t", record_key="id")
    with pytest.raises(TableMismatch, match=r"hoodie\.cleaner\.hours\.retained is '720' in the table, not '48'"):
        hoodie.create_table(tmp_path, name="t", record_key="id", keep="48 hours")
