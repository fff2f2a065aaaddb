"""Spread writes on a real cluster survive what happens there: lost executors, dying workers, attempts done twice."""

import json
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.model.instant import Action, State
from hoodie.storage import storage_for
from hoodie.table.state import load_state
from support.oracles import assert_same_rows, read_hudi_rs

pytestmark = pytest.mark.timeout(500)
COLUMNS = ["id", "p", "ts", "v"]
OF_A_WRITE = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"]
Row = tuple[str, str, int, int]


def row(number: int, version: int) -> Row:
    return (f"k{number}", str(number % 4), version, number * version)


def upserted() -> list[Row]:
    return [row(n, 1) for n in range(1800)] + [row(n, 2) for n in range(1800, 3000)]


def bulk_inserted() -> list[Row]:
    return [row(n, 3) for n in range(3000, 3600)]


def holds(path: Path, expected: list[Row]) -> None:
    """Each row is there exactly once, for this library and for hudi-rs."""
    for reader, found in {
        "without Spark": hoodie.open_table(str(path)).snapshot(columns=COLUMNS).to_arrow(),
        "hudi-rs": read_hudi_rs(path, COLUMNS),
    }.items():
        assert sorted(tuple(r.values()) for r in found.to_pylist()) == sorted(expected), reader


def holds_published_files_only(path: Path) -> None:
    """What lies in the table is what commits name: nothing of lost attempts, nothing staged, no markers."""
    state = load_state(storage_for(str(path)))
    assert [i for i in state.timeline.instants if i.state is not State.COMPLETED] == []
    published = {stat.path for commit in state.commits() for part in commit.stats.values() for stat in part}
    files = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    data = {file for file in files if not file.startswith(".hoodie/")}
    assert data == published | {f"{p}/.hoodie_partition_metadata" for p in range(4)}
    assert {file for file in files if file.startswith(".hoodie/.temp")} == set()


def result(path: Path) -> dict[str, Any]:
    return dict(json.loads((path / "result.json").read_text()))


def holds_all(path: Path, scenario: str) -> None:
    """What the scenarios of an upsert both ways and a bulk insert must leave."""
    spread = ["executors", 600, 600]
    assert result(path)[scenario] == {"staged": spread, "shuffled": spread, "bulk": ["executors", 600, 0]}
    holds(path / scenario / "staged", upserted())
    holds(path / scenario / "shuffled", upserted() + bulk_inserted())
    for way in ("staged", "shuffled"):
        holds_published_files_only(path / scenario / way)


@pytest.mark.nightly  # test_spread_routes compares the same ways in one process, test_ship writes on a cluster
def test_writes_by_executors_give_the_table_that_the_driver_gives(cluster, tmp_path):
    cluster.run("history", tmp_path)
    routes = result(tmp_path)
    near = routes.pop("driver")
    assert [route for route, *_ in near] == ["driver"] * 3
    for found in routes.values():
        assert found == [["executors", *counts] for _, *counts in near]
    expected = hoodie.open_table(str(tmp_path / "driver")).snapshot(meta=True).to_arrow()
    assert expected.num_rows == 3600 - len(range(0, 3600, 7))
    for way in ("staged", "shuffled"):
        assert_same_rows(
            hoodie.open_table(str(tmp_path / way)).snapshot(meta=True).to_arrow(), expected, ignore=OF_A_WRITE
        )
        assert_same_rows(read_hudi_rs(tmp_path / way), expected, ignore=OF_A_WRITE)
        holds_published_files_only(tmp_path / way)


@pytest.mark.nightly
def test_a_lost_executor_or_python_worker_costs_no_row_and_leaves_no_file(cluster, tmp_path):
    killed: dict[str, int] = {}

    def watch() -> None:
        for waiting in (tmp_path / "killed" / "signals").glob("*/waiting"):
            if waiting.parent.name not in killed:
                killed[waiting.parent.name] = cluster.kill_executor_of(int(waiting.read_text()))

    cluster.run("lost", tmp_path, watch)
    assert set(killed) == {"staged", "shuffled", "bulk"}
    assert len(set(killed.values())) == 3
    holds_all(tmp_path, "killed")
    holds_all(tmp_path, "exits")


@pytest.mark.nightly
def test_of_two_attempts_one_is_published_and_the_other_leaves_nothing(cluster, tmp_path):
    cluster.run("twice", tmp_path)
    assert len(list((tmp_path / "finish" / "signals").glob("*/other"))) == 3
    assert len(list((tmp_path / "late" / "signals").glob("*/ended"))) == 3
    holds_all(tmp_path, "finish")
    holds_all(tmp_path, "late")


@pytest.mark.nightly
def test_a_task_that_always_fails_fails_the_write_and_nothing_else(cluster, tmp_path):
    cluster.run("fails", tmp_path)
    found = result(tmp_path)
    for way in ("staged", "shuffled"):
        assert found[way] == ["InvalidInput", "a task that nobody can do"]
        assert found[f"{way} before"] == [2400, 2400]
        holds(tmp_path / way, upserted())
        holds_published_files_only(tmp_path / way)
        timeline = load_state(storage_for(str(tmp_path / way))).timeline
        assert [i.action for i in timeline.instants] == [Action.COMMIT, Action.ROLLBACK, Action.COMMIT]
