"""Merge-on-Read tables through Spark, near and spread: the rows that three readers see after each write."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from hoodie import HoodieTable, create_table, open_table
from hoodie.errors import InvalidOption
from hoodie.formats.timeline.commit_json import decode_commit
from hoodie.hudi import HoodieWriteClient
from support.nightly import by_day, nightly
from support.oracles import read_hudi_rs

ROUTES = {"driver": {}, "executors": {"hoodie.spark.driver.max.batch.bytes": "0"}}
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
