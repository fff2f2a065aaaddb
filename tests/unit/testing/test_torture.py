"""What `make torture` is made of: ledgers that catch each kind of loss, counted soaks, a storm in short form."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.storage.local import LocalStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.nightly import nightly
from support.oracles import read_hudi_rs
from torture.actor import COPY_ON_WRITE_9, WITH_METADATA_TABLE
from torture.ledger import Account, Ledger, batch, problems, read_ledgers
from torture.plot import chart
from torture.soak import MEASURES, soak
from torture.storm import storm

# --- ledgers ---


def rows(*numbers: int) -> pa.Table:
    """The table after these batches of one writer."""
    found = pa.concat_tables([batch("w", number) for number in numbers]).to_pylist()
    return pa.Table.from_pylist(list({row["id"]: row for row in found}.values()), batch("w", 1).schema)


def accounts(begun: int, acknowledged: int) -> dict[str, Account]:
    return {"w": Account("w", begun, acknowledged)}


def test_batches_that_were_acknowledged_and_are_there_are_right():
    assert problems(rows(1, 2), accounts(2, 2), accounts(2, 2)) == []


def test_a_batch_without_an_answer_may_be_there_or_not():
    for there in (rows(1), rows(1, 2)):
        assert problems(there, accounts(1, 1), accounts(2, 1)) == []


def test_each_kind_of_loss_is_told():
    whole, known = rows(1, 2), accounts(2, 2)
    lost = whole.filter(pa.array([not name.startswith("w-1-") for name in whole["id"].to_pylist()]))
    assert "batch 1 of w was acknowledged, and 0 of 6 rows are there" in problems(lost, known, known)
    half = whole.slice(3)
    assert "batch 1 of w was acknowledged, and 3 of 6 rows are there" in problems(half, known, known)
    in_part = pa.concat_tables([rows(1), batch("w", 2).slice(0, 2)])
    assert "batch 2 of w is there in part: 2 of 6 rows" in problems(in_part, accounts(1, 1), accounts(2, 1))
    twice = pa.concat_tables([whole, whole.slice(0, 1)])
    assert problems(twice, known, known) == [f"{whole['id'][0]} occurs 2 times"]
    stale = pa.concat_tables([rows(1), batch("w", 2).slice(0, 6)])
    assert "w-counter-p0 is [('p0', 1)], and batch 2 is there" in problems(stale, known, known)
    assert problems(rows(1, 2, 3), known, known)[-1] == "w-3-5 was never sent"


def test_a_ledger_survives_a_line_cut_short(tmp_path):
    ledger = Ledger(tmp_path / "w.ledger")
    for word, number in (("begun", 1), ("acknowledged", 1), ("begun", 2), ("failed", 2)):
        ledger.note(word, number)
    with (tmp_path / "w.ledger").open("a") as file:
        file.write("acknowledged 2")
    assert read_ledgers(tmp_path) == {"w": Account("w", begun=2, acknowledged=1, failed=1)}


# --- the storm ---


@pytest.mark.nightly  # make torture has a longer one
@pytest.mark.parametrize(
    "options", [{}, WITH_METADATA_TABLE, COPY_ON_WRITE_9], ids=["plain", "metadata table", "copy on write"]
)
def test_a_storm_of_killed_processes_loses_nothing(tmp_path, options):
    toll = storm(10, tmp_path, seed=1, oracle=read_hudi_rs, options=options)
    assert toll.wrong == []
    assert toll.kills > 3
    assert toll.acknowledged > 0
    assert "| rows lost, doubled or in part | 0 |" in toll.report()
    if options is WITH_METADATA_TABLE:
        partitions = load_state(LocalStorage(tmp_path / "table")).config.metadata_partitions
        assert partitions == ("bloom_filters", "column_stats", "files", "record_index")


# --- the soak ---

#: Cleaning and archiving at work after a dozen commits.
SMALL = {"hoodie.cleaner.commits.retained": "3", "hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "7"}


@pytest.mark.parametrize("table_type", [nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
def test_a_commit_costs_the_same_calls_however_many_came_before(table_type):
    run = soak(60, 30, MemoryStorage(), table_type, SMALL)
    assert run.wrong == ()
    for name in ("listings a commit", "calls to storage a commit", "files in .hoodie"):
        assert run.growth(MEASURES[name]) <= 1.1, (name, run.report())
    assert max(commit.files for commit in run.commits) < 120
    assert max(commit.lists for commit in run.commits) < 60


def test_a_soak_without_archiving_is_found_to_grow():
    run = soak(30, 10, MemoryStorage(), "COPY_ON_WRITE", {"hoodie.archive.automatic": "false"})
    assert run.growth(MEASURES["files in .hoodie"]) > 1.3


def test_a_chart_is_well_formed(tmp_path):
    path = Path(tmp_path, "c.svg")
    path.write_text(chart({"a < b": [1.0, 2.5, 0.0], "nothing": [0, 0]}, "commits"))
    root = ElementTree.parse(path).getroot()
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2
