"""The same updates, deletes and merges on twin tables, one with a session and one without: the rows stay the same."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from support.expressions import rows
from support.nightly import nightly, scaled
from support.statements import Statements, keyed_rows

Source = Callable[[pa.Table], Any]
COLUMNS = ["i", "l", "x", "p", "s", "b", "d", "t"]


def _rows(random: Random, keys: list[int]) -> pa.Table:
    table = rows(random, len(keys)).select(COLUMNS)
    cities = pa.array([f"c{key % 3}" for key in keys])
    return table.add_column(0, "id", pa.array(keys, pa.int64())).add_column(1, "city", cities)


STEPS: list[Callable[[HoodieTable[Any], Any], Any]] = [
    lambda t, s: t.update(
        {"l": "nvl(i, 0) + 1L", "s": "upper(s) || '!'"}, "x > 1 or p in (1.25, null) or s ilike 'a%'"
    ),
    lambda t, s: (
        t.merge(s, "target.id = source.id and target.city = source.city")
        .when_matched_delete(condition="source.b")
        .when_matched_update(
            {"p": "coalesce(target.p, 0) + 0.05", "x": "greatest(source.x, target.x)", "d": "source.d + 7"}
        )
        .when_not_matched_insert_all(condition="source.i is null or source.i > 0")
        .execute()
    ),
    lambda t, s: t.delete(where="d < date '2000-01-01' - 7 and not coalesce(b, false)"),
    lambda t, s: t.merge(s).when_matched_update_all(condition="source.x > 1").when_not_matched_insert_all().execute(),
    lambda t, s: (
        t.merge(s.select(["id", "city", "x"]), "source.x = target.x and target.id < source.id and source.id % 10 = 3")
        .when_matched_update({"s": "cast(source.x as string)"})
        .when_not_matched_by_source_update({"i": "if(target.b, 1, 2)"}, condition="target.t > '2000-01-01'")
        .execute()
    ),
    lambda t, s: t.update({"t": "t + interval 1 month", "b": "not b"}, "year(t) = 2024"),
    lambda t, s: t.merge(s.select(["id", "city"])).when_matched_delete().execute(),
]


#: By day an update and a merge that updates, deletes and inserts.
@pytest.mark.parametrize(
    ("table_type", "steps"),
    [nightly("COPY_ON_WRITE", STEPS), nightly("MERGE_ON_READ", STEPS), ("MERGE_ON_READ", STEPS[:2])],
)
def test_rows_stay_the_same_as_on_a_table_with_spark(
    spark: SparkSession, tmp_path: Path, table_type: str, steps: list[Any]
):
    random = Random(5)
    settings: dict[str, Any] = {"name": "t", "record_key": "id", "partition_by": "city", "table_type": table_type}
    twins: list[tuple[HoodieTable[Any], Source]] = [
        (hoodie.create_table(str(tmp_path / "spark"), spark=spark, **settings), spark.createDataFrame),
        (hoodie.create_table(str(tmp_path / "own"), **settings), lambda source: source),
    ]
    first = _rows(random, list(range(40)))
    for table, _ in twins:
        table.upsert(first)
    for number, step in enumerate(steps):
        source = _rows(random, sorted(random.sample(range(60), 20)))
        results = [step(table, made(source)) for table, made in twins]
        assert len({(r.inserted, r.updated, r.deleted) for r in results}) == 1, number
        theirs, own = (
            hoodie.open_table(table.path).snapshot(columns=["id", "city", *COLUMNS]).to_arrow().sort_by("id")
            for table, _ in twins
        )
        assert repr(own.to_pylist()) == repr(theirs.to_pylist()), number
    assert own.num_rows


def _executed(table: HoodieTable[Any], statement: tuple[Any, ...], source: Any, frames: Any) -> Any:
    name, *arguments = statement
    if name == "update":
        return table.update(*arguments, frames=frames)
    if name == "delete":
        return table.delete(where=arguments[0], frames=frames)
    pairs, clauses = arguments
    merge = table.merge(source, pairs, frames=frames)
    for clause, *values, condition in clauses:
        merge = getattr(merge, clause)(*values, condition=condition)
    return merge.execute()


#: What frames without Spark come as.
FORMS: list[Source] = [
    lambda rows: rows,
    lambda rows: rows.to_reader(),
    lambda rows: pl.DataFrame(rows),
    lambda rows: duckdb.from_arrow(rows),
]


@pytest.mark.parametrize("seed", range(scaled(2, 30)))
def test_random_statements_do_the_same_with_and_without_spark(spark: SparkSession, tmp_path: Path, seed: int):
    random = Random(seed)
    settings: dict[str, Any] = {
        "record_key": random.choice(["id", ["id", "city"]]),
        "partition_by": random.choice([None, "city"]),
        "table_type": random.choice(["COPY_ON_WRITE", "MERGE_ON_READ"]),
        "options": {"hoodie.write.table.version": random.choice([6, 8, 9])},
    }
    theirs = hoodie.create_table(str(tmp_path / "spark"), spark=spark, **settings)
    own = hoodie.create_table(str(tmp_path / "own"), **settings)
    first = keyed_rows(random, range(40))
    for table in (theirs, own):
        hoodie.open_table(table.path).upsert(first)
    statements = Statements(random)
    for _ in range(5):
        statement = statements.any()
        source = keyed_rows(random, sorted(random.sample(range(60), 20)))
        frame = keyed_rows(random, range(0, 60, 7))
        spark.createDataFrame(frame).createOrReplaceTempView("f")
        form = random.choice(FORMS)
        runs: list[tuple[HoodieTable[Any], Any, Any]] = [
            (theirs, spark.createDataFrame(source), None),
            (own, form(source), {"f": form(frame)}),
        ]
        results: list[Any] = []
        for table, brought, frames in runs:
            try:
                result = _executed(table, statement, brought, frames)
                results.append((result.inserted, result.updated, result.deleted))
            except Exception as error:  # of two kinds: Spark's own, where it evaluates
                results.append(f"refused: {error}")
        refused = [str(result).startswith("refused") for result in results]
        assert results[0] == results[1] or all(refused), (statement, results)
        stored = [hoodie.open_table(table.path).to_arrow().sort_by("id").to_pylist() for table in (theirs, own)]
        assert repr(stored[0]) == repr(stored[1]), statement
