"""Merge-on-Read tables through Spark, near and spread: the rows that three readers see after each write."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from hoodie import HoodieTable, create_table, open_table
from hoodie.errors import InvalidOption
from hoodie.formats.timeline.commit_json import decode_commit
from hoodie.hudi import HoodieWriteClient
from hoodie.model.instant import Action
from hoodie.spark.write import batch
from support.nightly import by_day, nightly
from support.oracles import read_hudi_rs, read_hudi_rs_optimized

ROUTES = {"driver": {}, "executors": {"hoodie.spark.driver.max.batch.bytes": "0"}}
BLOCKS = {
    "avro": {},
    "parquet": {"hoodie.logfile.data.block.format": "parquet"},
    "tiny": {"hoodie.logfile.data.block.max.size": "700", "hoodie.logfile.max.size": "4000"},
}
COLUMNS = "id string, city string, ts bigint, note string, _hoodie_is_deleted boolean"
Rows = Mapping[str, tuple[str, int, str]]


def made(spark: SparkSession, path: Path, **options: str) -> HoodieTable:
    return create_table(
        str(path),
        spark=spark,
        name="trips",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type="MERGE_ON_READ",
        options=options,
    )


def frame(spark: SparkSession, rows: Rows, deleted: Sequence[str] = ()) -> DataFrame:
    found = [(key, *row, key in deleted) for key, row in rows.items()]
    return spark.createDataFrame(found, COLUMNS)


def as_dict(rows: Sequence[Mapping[str, Any] | Row]) -> dict[str, tuple[str, int, str]]:
    found = {row["id"]: (row["city"], row["ts"], row["note"]) for row in rows}
    assert len(found) == len(rows), "a key occurs twice"
    return found


def snapshots(table: HoodieTable) -> list[dict[str, tuple[str, int, str]]]:
    """The rows by Spark, by Arrow, by hudi-rs."""
    return [
        as_dict(table.snapshot().collect()),
        as_dict(open_table(table.path).snapshot(meta=True).to_arrow().to_pylist()),
        as_dict(read_hudi_rs(table.path).to_pylist()),
    ]


CITIES = ("oslo", "rome", "bern")


@pytest.mark.nightly  # beside test_histories_on_spark
@pytest.mark.parametrize(
    ("route", "block"),
    by_day(itertools.product(ROUTES, BLOCKS), ("executors", "parquet").__eq__),
)
def test_a_history_of_writes_is_what_a_dict_of_rows_holds(
    spark: SparkSession, tmp_path: Path, route: str, block: str
) -> None:
    table = made(spark, tmp_path, **ROUTES[route], **BLOCKS[block])
    model: dict[str, tuple[str, int, str]] = {f"k{n:02d}": (CITIES[n % 3], n, "first") for n in range(60)}
    base = dict(model)
    assert table.bulk_insert(frame(spark, model)).inserted == 60

    changes = {key: (row[0], 100 + row[1], "changed" * 20) for key, row in list(model.items())[:40]}
    gone = [f"k{n:02d}" for n in (1, 5, 9)]
    result = table.upsert(frame(spark, changes, gone))
    assert (result.route, result.inserted, result.updated, result.deleted) == (route, 0, 37, 3)
    assert all(".log." in path for path in result.files)
    rolled_over = len(result.files) > len({stat.file_id for stat in result.stats})
    assert rolled_over == (block == "tiny")
    model = {**model, **changes}
    model = {key: row for key, row in model.items() if key not in gone}
    assert snapshots(table) == [model] * 3
    optimized = [table.snapshot(optimized=True).collect(), read_hudi_rs_optimized(table.path).to_pylist()]
    assert [as_dict(rows) for rows in optimized] == [base] * 2

    keys = {"k01": ("rome", 0, ""), "k02": ("bern", 0, ""), "nobody": ("oslo", 0, "")}
    result = table.delete(frame(spark, keys).select("id", "city"))
    assert (result.updated, result.deleted) == (0, 2)  # k01 is in its base file still
    del model["k02"]
    assert snapshots(table) == [model] * 3

    changes = {
        "k01": ("rome", 300, "again"),
        "k02": ("bern", 300, "again"),
        "new": ("oslo", 300, "new"),
        "far": ("pisa", 300, "new"),
    }
    result = table.upsert(frame(spark, changes))
    assert (result.inserted, result.updated) == (2, 2)
    model |= changes
    assert snapshots(table) == [model] * 3
    assert {instant.action for instant, _ in table.history()} == {Action.DELTA_COMMIT}


@pytest.mark.nightly
@pytest.mark.parametrize("route", by_day(ROUTES, lambda route: route == "executors"))
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        # The log's later record wins over the base row, and among the log's records the greater ordering value.
        nightly("OverwriteWithLatestAvroPayload", {"a": (9, "nine"), "b": (3, "late")}),
        ("DefaultHoodieRecordPayload", {"a": (9, "nine"), "b": (5, "first")}),
    ],
)
def test_late_rows_are_taken_as_the_payload_class_says(
    spark: SparkSession, tmp_path: Path, route: str, payload: str, expected: Mapping[str, tuple[int, str]]
) -> None:
    table = made(spark, tmp_path, **ROUTES[route], **{"hoodie.datasource.write.payload.class": payload})
    table.upsert(frame(spark, {"a": ("oslo", 5, "first"), "b": ("oslo", 5, "first")}))
    table.upsert(frame(spark, {"a": ("oslo", 9, "nine"), "b": ("oslo", 3, "late")}))
    table.upsert(frame(spark, {"a": ("oslo", 7, "seven")}))
    for rows in (table.snapshot().collect(), open_table(table.path).snapshot(meta=True).to_arrow().to_pylist()):
        assert {key: row[1:] for key, row in as_dict(rows).items()} == expected


@pytest.mark.nightly
@pytest.mark.parametrize("route", by_day(ROUTES, lambda route: route == "executors"))
def test_a_new_column_is_null_in_older_rows_of_base_files_and_logs(
    spark: SparkSession, tmp_path: Path, route: str
) -> None:
    table = made(spark, tmp_path, **ROUTES[route])
    table.upsert(frame(spark, {"a": ("oslo", 1, "first"), "b": ("oslo", 1, "first"), "c": ("oslo", 1, "first")}))
    table.upsert(frame(spark, {"b": ("oslo", 2, "second")}))
    table.upsert(frame(spark, {"c": ("oslo", 3, "third")}).withColumn("km", F.lit(7.5)))
    for rows in (
        table.snapshot().collect(),
        open_table(table.path).snapshot(meta=True).to_arrow().to_pylist(),
        read_hudi_rs(table.path).to_pylist(),
    ):
        assert {row["id"]: row["km"] for row in rows} == {"a": None, "b": None, "c": 7.5}


def test_explain_shows_what_is_appended_and_reads_nothing_but_keys(spark: SparkSession, tmp_path: Path) -> None:
    table = made(spark, tmp_path, **{"hoodie.parquet.small.file.limit": "0"})
    table.upsert(frame(spark, {"a": ("oslo", 1, "first")}))
    plan = table.explain_upsert(frame(spark, {"a": ("oslo", 2, ""), "b": ("oslo", 2, "")}))
    assert plan.plan.bytes_read == 0
    assert "append " in str(plan)
    assert "new file group" in str(plan)


def test_the_client_takes_a_delta_commit_and_publishes_it(spark: SparkSession, tmp_path: Path) -> None:
    table = made(spark, tmp_path)
    table.upsert(frame(spark, {"a": ("oslo", 1, "first")}))
    client = HoodieWriteClient(str(tmp_path), {"hoodie.auto.commit": "false"}, spark=spark)
    instant = client.start_commit()
    result = client.upsert(frame(spark, {"a": ("oslo", 2, "second")}), instant)
    assert as_dict(table.snapshot().collect()) == {"a": ("oslo", 1, "first")}
    client.commit(instant, result, extra_metadata={"job": "nightly"})
    client.commit(instant, result)  # an answer that got lost: asked again
    assert snapshots(table) == [{"a": ("oslo", 2, "second")}] * 3
    metadata = decode_commit((tmp_path / ".hoodie" / f"{instant}.deltacommit").read_bytes(), "commit")
    assert metadata.extra["job"] == "nightly"


@pytest.mark.nightly  # beside test_spread_routes
def test_rows_that_are_shuffled_to_their_tasks_are_appended_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "reads_stay_few", lambda pieces, readers: False)
    table = made(spark, tmp_path, **ROUTES["executors"])
    model = {f"k{n:02d}": (CITIES[n % 3], n, "first") for n in range(60)}
    table.upsert(frame(spark, model))
    changes = {**{key: (row[0], 100, "changed") for key, row in model.items()}, "new": ("oslo", 100, "new")}
    result = table.upsert(frame(spark, changes, ["k07"]), options={"hoodie.parquet.small.file.limit": "0"})
    assert (result.inserted, result.updated, result.deleted) == (1, 59, 1)
    del changes["k07"]
    assert snapshots(table) == [changes] * 3


MERGER = """
import pyarrow.compute as pc


class Longest:
    def merge(self, older, newer):
        longer = pc.greater_equal(pc.utf8_length(newer["note"]), pc.utf8_length(older["note"]))
        at = newer.schema.get_field_index("note")
        return newer.set_column(at, newer.schema.field(at), pc.if_else(longer, newer["note"], older["note"]))
"""


@pytest.mark.parametrize("table_type", [nightly("COPY_ON_WRITE"), "MERGE_ON_READ"])
@pytest.mark.parametrize("route", by_day(ROUTES, lambda route: route == "executors"))
def test_a_merger_of_the_users_own_decides_on_executors_and_in_reads(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str, table_type: str
) -> None:
    module = tmp_path / f"longest_{route}_{table_type.lower()}.py"
    module.write_text(MERGER)
    monkeypatch.syspath_prepend(tmp_path)
    spark.sparkContext.addPyFile(str(module))  # as a user brings code to the workers
    option = {"hoodie.datasource.write.record.merger.impls": f"{module.stem}:Longest"}
    table = create_table(
        str(tmp_path / "table"),
        spark=spark,
        name="notes",
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
        options={**option, **ROUTES[route]},
    )
    table.upsert(frame(spark, {"a": ("oslo", 1, "a longer one"), "b": ("oslo", 1, "b")}))
    for ts, note in ((2, "short"), (3, "and now one that is longer"), (4, "")):
        table.upsert(frame(spark, {"a": ("oslo", ts, note)}))
    expected = {"a": ("oslo", 4, "and now one that is longer"), "b": ("oslo", 1, "b")}
    assert as_dict(table.snapshot().collect()) == expected
    assert as_dict(open_table(table.path, options=option).snapshot(meta=True).to_arrow().to_pylist()) == expected
    with pytest.raises(InvalidOption, match="Code is loaded only when the caller names it"):
        open_table(table.path, spark=spark).upsert(frame(spark, {"a": ("oslo", 9, "")}))
