"""Engines beside each other: parts, tables of figures and the rows that are expected, without an engine."""

import inspect
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.run import parse
from bench.spark_peers.engines import ENGINES, USUAL
from bench.spark_peers.page import fifths, page
from bench.spark_peers.parts import COLUMNS, PARTS
from bench.spark_peers.rows import Rows, same
from bench.spark_peers.run import Outcome, add, read
from bench.spark_peers.tables import TABLES


def test_each_engine_has_each_call_of_the_parts():
    calls = {step.call for part in PARTS.values() for step in part.steps}
    for engine in ENGINES.values():
        kind = TABLES[engine.kind]
        assert not inspect.isabstract(kind)
        assert calls <= set(dir(kind))


def test_names_of_steps_are_not_used_twice():
    names = [step.name for part in PARTS.values() for step in part.steps]
    assert len(names) == len(set(names))


def test_parts_and_engines_are_chosen_by_name(capsys):
    options = parse(["--cases", "spark-peers", "--parts", "tiny,logs", "--engines", "hoodie,delta"])
    assert (options.parts, options.engines) == (("tiny", "logs"), ("hoodie", "delta"))
    assert parse(["--cases", "spark-peers"]).engines == USUAL
    assert "spark-peers" not in parse([]).cases
    with pytest.raises(SystemExit):
        parse(["--cases", "spark-peers", "--parts", "tiny,huge"])
    assert "huge: not one of bulk, spread" in capsys.readouterr().err


def outcome(step: str, engine: str, **told) -> Outcome:
    return Outcome(step, engine, "4.3.0" if engine == "hoodie" else "3.5.9", **told)


def test_the_page_has_ratios_of_ours_to_others_bytes_and_commits():
    commits = ((0.5, 0.2),) * 20 + ((9.0, 9.0),) * 60 + ((1.5, 0.3),) * 20
    text = page(
        1000,
        [
            outcome("upsert of `tiny`", "hoodie", calls=((1.0, 2.0),), written=3_000_000),
            outcome("upsert of `tiny`", "delta", calls=((3.0, 8.0),), written=1_500_000),
            outcome("upsert of `tiny`", "plain", calls=((3.0, 5.0),), problem="rows differ: [1], not [2]"),
            outcome("first count", "hoodie", calls=((1.0, 0.5),)),
            outcome("first count", "delta", problem="Error: no such table"),
            outcome("commits of ten rows", "hoodie", calls=commits, written=10),
        ],
    )
    assert "| upsert of `tiny` | rows differ | 2.00 s | 0.25 |" in text
    assert "| first count |  | 0.50 s | failed |" in text
    assert "| upsert of `tiny` | rows differ | 3.0 | 1.5 |" in text
    assert "| Hoodie | 0.20 | 0.30 | 0.50 | 1.50 | 1.50 |" in text
    assert "plain Spark: rows differ: [1], not [2]" in text
    assert "Error: no such table" in text
    assert "Hoodie on Spark 4.3.0" in text
    assert "scan" not in text


def test_what_was_measured_again_takes_the_place_of_what_was_measured_before(tmp_path):
    file = tmp_path / "results.jsonl"
    add([outcome("upsert of `tiny`", "hoodie", problem="no space"), outcome("bulk load", "hoodie")], file)
    add([outcome("upsert of `tiny`", "hoodie", calls=((1.0, 2.0),))], file)
    add([outcome("upsert of `tiny`", "hoodie", calls=((1.0, 3.0),), number=1)], file)
    outcomes = read(file)
    assert [(one.step, one.number, one.cpu) for one in outcomes] == [
        ("upsert of `tiny`", 0, 2.0),
        ("bulk load", 0, 0),
        ("upsert of `tiny`", 1, 3.0),
    ]
    text = page(1000, outcomes)
    assert "1,000 rows, 2 rounds" in text
    assert "| upsert of `tiny` | 2.50 s |" in text
    assert text.endswith("The rows of each engine were DuckDB's after each step.")


def test_fifths_are_medians_of_the_ends():
    assert fifths([*range(100)]) == (9.5, 89.5)
    assert fifths([3.0]) == (3.0, 3.0)


def test_sums_of_doubles_may_differ_in_their_last_digits():
    assert same([3, 100.0000000001], [3, 100.0])
    assert not same([3, 100.1], [3, 100.0])
    assert not same([3], [3, 100.0])


KINDS = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
}


def put(folder: Path, rows: dict[str, int], op: str = "") -> None:
    """Orders by key, of a version each that all their numbers have."""
    folder.mkdir()
    columns = {
        name: pa.array([f"{key}" if name == "order_id" else str(version) for key, version in rows.items()])
        if kind == "string"
        else pa.array(list(rows.values())).cast(KINDS[kind])
        for name, kind in COLUMNS.items()
    }
    if op:
        columns["op"] = pa.array(list(op))
    pq.write_table(pa.table(columns), folder / "part-0.parquet")


def test_expected_rows_follow_the_steps(tmp_path):
    pytest.importorskip("duckdb")
    put(tmp_path / "orders", {"a": 1, "b": 1, "c": 1})
    put(tmp_path / "changes", {"b": 2, "d": 2})
    put(tmp_path / "gone", {"a": 9})
    # deletes one, updates one, inserts one; an update of no row and an insert of one that is there do nothing
    put(tmp_path / "merge", {"b": 7, "c": 7, "e": 7, "x": 7, "d": 7}, "DUIUI")
    rows = Rows(tmp_path)
    rows.bulk("orders")
    assert rows.answer("count") == [3]
    assert rows.digest() == rows.digest(tmp_path / "orders")
    rows.upsert("changes")
    assert rows.answer("count") == [4]
    assert rows.answer("sum")[1] == 1 + 1 + 2 + 2
    rows.delete("gone")
    rows.merge("merge")
    assert rows.answer("count") == [3]  # c, d, e
    assert rows.answer("sum")[1:] == [7 + 2 + 7, 7 + 2 + 7, 7]
    assert rows.answer("changes", "changes") == [2, 4.0]
    assert rows.days("changes") == ["2"]
    assert rows.digest() != rows.digest(tmp_path / "orders")
