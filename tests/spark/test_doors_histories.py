"""Random histories through all the doors, calls, builder, SQL, data source and views: the table is a dict of rows."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import hoodie
from hoodie.api.table import HoodieTable
from support.trips import table_options

COLUMNS = "id string, qty long, ts long"
OPTIONS = table_options("t", "id", ordering="ts")

Rows = dict[str, int]


class Doors:
    """A table, what it should hold, and every way to change it. A step gets keys with quantities."""

    def __init__(self, spark: SparkSession, path: str, kind: str) -> None:
        self.spark, self.path, self.rows, self.now = spark, path, {"a": 1}, 0
        self.table: HoodieTable[DataFrame] = hoodie.create_table(
            path, spark=spark, name="t", record_key="id", ordering="ts", table_type=kind
        )
        self.table.upsert(self.frame(self.rows))

    def frame(self, rows: Rows) -> DataFrame:
        self.now += 1
        return self.spark.createDataFrame([(key, value, self.now) for key, value in rows.items()], COLUMNS)

    def upsert(self, rows: Rows) -> None:
        self.table.upsert(self.frame(rows))
        self.rows |= rows

    def delete(self, rows: Rows) -> None:
        self.table.delete(self.frame(rows))
        self._without(rows)

    def save(self, rows: Rows) -> None:
        self.frame(rows).write.format("hudi").options(**OPTIONS).mode("append").save(self.path)
        self.rows |= rows

    def save_deletes(self, rows: Rows) -> None:
        options = {**OPTIONS, "hoodie.datasource.write.operation": "delete"}
        self.frame(rows).write.format("hudi").options(**options).mode("append").save(self.path)
        self._without(rows)

    def merge(self, rows: Rows) -> None:
        """Those of even quantity are deleted, others updated; new ones are inserted."""
        builder = self.table.merge(self.frame(rows)).when_matched_delete(condition="source.qty % 2 = 0")
        builder.when_matched_update_all().when_not_matched_insert_all().execute()
        self._merged(rows)

    def merge_in_sql(self, rows: Rows) -> None:
        self.frame(rows).createOrReplaceTempView("source_rows")
        hoodie.spark.sql(
            self.spark,
            f"MERGE INTO hudi.`{self.path}` t USING source_rows s ON t.id = s.id WHEN MATCHED AND s.qty % 2 = 0 "
            "THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        )
        self._merged(rows)

    def update(self, rows: Rows) -> None:
        low = min(rows.values())
        self.table.update({"qty": "qty + 1"}, f"qty > {low}")
        self.rows = {key: value + (value > low) for key, value in self.rows.items()}

    def update_in_sql(self, rows: Rows) -> None:
        low = min(rows.values())
        hoodie.spark.sql(self.spark, f"UPDATE hudi.`{self.path}` SET qty = qty * 2 WHERE qty <= {low}")
        self.rows = {key: value * (1 + (value <= low)) for key, value in self.rows.items()}

    def delete_where(self, rows: Rows) -> None:
        low = min(rows.values())
        self.table.delete(where=f"qty = {low}")
        self.rows = {key: value for key, value in self.rows.items() if value != low}

    def delete_in_sql(self, rows: Rows) -> None:
        key = min(rows)
        hoodie.spark.sql(self.spark, f"DELETE FROM hudi.`{self.path}` WHERE id = '{key}'")
        self._without({key: 0})

    def insert_in_sql(self, rows: Rows) -> None:
        self._insert(
            rows, lambda values: hoodie.spark.sql(self.spark, f"INSERT INTO hudi.`{self.path}` VALUES {values}")
        )

    def insert_into_view(self, rows: Rows) -> None:
        self.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW door USING hudi OPTIONS (path '{self.path}')")
        self._insert(rows, lambda values: self.spark.sql(f"INSERT INTO door (id, qty, ts) VALUES {values}"))

    def compact(self, rows: Rows) -> None:
        if self.table.info().table_type == "MERGE_ON_READ":
            self.table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
            self.table.compact()

    def _insert(self, rows: Rows, insert: Callable[[str], object]) -> None:
        new = {key: value for key, value in rows.items() if key not in self.rows}
        if new:
            self.now += 1
            insert(", ".join(f"('{key}', {value}, {self.now})" for key, value in new.items()))
            self.rows |= new

    def _without(self, rows: Rows) -> None:
        self.rows = {key: value for key, value in self.rows.items() if key not in rows}

    def _merged(self, rows: Rows) -> None:
        gone = {key for key, value in rows.items() if key in self.rows and value % 2 == 0}
        self.rows = {key: value for key, value in {**self.rows, **rows}.items() if key not in gone}

    def readings(self) -> Iterator[Rows]:
        """What each door says that the table holds."""
        self.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW door USING hudi OPTIONS (path '{self.path}')")
        for frame in (
            self.table.snapshot(),
            self.spark.read.format("hudi").load(self.path),
            hoodie.spark.sql(self.spark, f"SELECT * FROM hudi.`{self.path}`"),
            self.spark.table("door"),
        ):
            found = [(row.id, row.qty) for row in frame.select("id", "qty").collect()]
            assert len(found) == len(dict(found))
            yield dict(found)


CHANGES = [name for name, member in vars(Doors).items() if callable(member) and not name.startswith("_")]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(sorted(set(CHANGES) - {"frame", "readings"})),
        st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), min_size=1, max_size=4),
    ),
    min_size=4,
    max_size=8,
)
_numbers = itertools.count()


@pytest.mark.nightly
@settings(max_examples=12)
@given(STEPS, st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_each_door_makes_and_shows_the_same_table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Rows]], kind: str
) -> None:
    hoodie.register(spark)
    try:
        doors = Doors(spark, str(Path(tmp_path_factory.mktemp("doors")) / f"t{next(_numbers)}"), kind)
        for name, rows in steps:
            getattr(doors, name)(rows)
            plain = hoodie.open_table(doors.path).snapshot(columns=["id", "qty"]).to_arrow().to_pylist()
            assert {row["id"]: row["qty"] for row in plain} == doors.rows, name
        for found in doors.readings():
            assert found == doors.rows
    finally:
        hoodie.spark.unregister(spark)
