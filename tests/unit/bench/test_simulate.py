"""Plans of large batches on paper, and the table of many file groups, at sizes that take a second."""

import re
from pathlib import Path

import numpy as np
import pytest

from bench.simulate.large_batches import LIMIT, Case, IndexName, Keys, Outcome, Sizes, simulate, spread
from bench.simulate.many_groups import CALLS, Shape, make, measure_here
from bench.simulate.page import batches_table, picture, replace_part, size
from hoodie.doctor.examine import examine
from hoodie.storage.local import LocalStorage
from support.nightly import covering


@pytest.mark.parametrize("keys", Keys)
def test_rows_are_spread_without_loss_and_the_newest_place_has_most(keys):
    rows = spread(1000, 30, keys)
    assert rows.sum() == 1000
    assert rows.min() >= 0
    assert rows[-1] == rows.max() or np.ptp(rows) <= 1


@pytest.mark.parametrize(("index", "keys"), covering(IndexName, Keys))
def test_no_shuffle_block_comes_near_the_limit_whatever_the_source(index, keys):
    for bytes_ in (1e10, 5e12):
        outcome = simulate(Case(bytes_, 100, 10, keys, index, Sizes(sources=1)))
        assert outcome.largest_block < LIMIT / 2
        assert outcome.spark_tasks <= outcome.tasks
        if index is not IndexName.BUCKET:  # which puts all rows of its keys into a bucket, and says so
            assert outcome.largest_partition < LIMIT / 2


def test_random_keys_are_joined_where_ranges_leave_too_many_pairs():
    assert simulate(Case(1e12, 10_000, 1, Keys.UNIFORM, IndexName.BLOOM)).look_up == "join"
    assert simulate(Case(1e12, 10_000, 1, Keys.RECENT, IndexName.BLOOM)).look_up == "filter"
    assert simulate(Case(1e9, 100, 1, Keys.UNIFORM, IndexName.RECORD_INDEX)).look_up == "key"


def test_the_driver_is_told_of_few_pieces_however_many_partitions_there_are():
    outcome = simulate(Case(5e12, 1000, 1000, Keys.UNIFORM, IndexName.BLOOM))
    assert outcome.pieces < 100_000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    make(folder, Shape(groups=240, partitions=12, touched=(2, 3)))
    return folder


@pytest.mark.parametrize("number", range(len(CALLS)), ids=[call.name for call in CALLS])
def test_each_call_answers_on_a_table_of_sparse_files(table, number, monkeypatch):
    monkeypatch.setattr("bench.simulate.many_groups.UPSERTED", (10, 12))
    answer = measure_here(table, number)["answer"]
    expected = {
        "open": 60,
        "plan a snapshot of 10 partitions": 200,
        "plan a snapshot of the table": 240,
    }
    assert answer == expected.get(CALLS[number].name, answer)
    assert answer >= (100 if "upsert" in CALLS[number].name else 0)


def test_a_call_about_few_partitions_lists_no_other(table):
    few, whole = (
        next(number for number, call in enumerate(CALLS) if call.name == name)
        for name in ("plan a snapshot of 10 partitions", "plan an upsert of 10 partitions")
    )
    assert measure_here(table, few)["requests"] <= 10 + 60 + 4
    assert measure_here(table, whole)["requests"] <= 10 + 60 + 10


def test_the_doctor_finds_the_made_up_compactions_and_nothing_else(table):
    assert {finding.where.rpartition(".")[2] for finding in examine(LocalStorage(table), rows=False)} <= {"requested"}


def test_a_part_of_the_page_is_replaced_between_its_marks():
    page = "a\n<!-- one -->\nold\nold\n<!-- end -->\nb\n<!-- two -->\nstays\n<!-- end -->\n"
    assert replace_part(page, "one", "new") == page.replace("old\nold", "new")
    with pytest.raises(ValueError, match="three"):
        replace_part(page, "three", "")


def test_the_table_and_the_picture_show_each_case():
    done = Outcome("shuffle", 10, 5, 7, 900, 123_000_000, "filter", 1.0, 3, 0, 10, 1, 0.5, 2_000_000)
    case = Case(5e12, 100, 1, Keys.SKEWED, IndexName.BLOOM)
    assert "| 5 TB | 100 | 1 | skewed | BLOOM, filter |" in batches_table([(case, done)])
    assert len(re.findall(r"<title>5 TB: (123|2) MB</title>", picture([(case, done)]))) == 2
    assert [size(count) for count in (999, 1e3, 1.5e9, 5e12)] == ["999 B", "1 kB", "1.5 GB", "5 TB"]
