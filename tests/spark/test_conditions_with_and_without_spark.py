"""The same updates, deletes and merges on twin tables, one with a session and one without: the rows stay the same."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from support.expressions import rows
from support.nightly import nightly

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
