"""What Spark's text of a catalog entry says of it; the text is Spark 4.3's of entries that a sync made."""

from dataclasses import replace

import pytest

from hoodie.errors import UnsupportedTable
from hoodie.spark.catalog import CatalogTable, checked, parse_entry

SYNCED = """Catalog: spark_catalog
Database: city
Table: trips_ro
Created By: Spark 2.2 or prior
Type: EXTERNAL
Provider: hudi
Table Properties: [last_commit_time_sync=20261122103406929]
Location: file:/data/my trips
Serde Library: org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe
InputFormat: org.apache.hudi.hadoop.HoodieParquetInputFormat
OutputFormat: org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat
Storage Properties: [a=b, hoodie.query.as.ro.table=true]
Partition Columns: [`city`]
Schema: root
 |-- Location: string (nullable = true)
"""
INPUT = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


def test_a_synced_entry_has_a_path_and_a_way_to_be_read() -> None:
    entry = parse_entry(SYNCED, "city.trips_ro")
    assert replace(entry, properties={}, details={}) == CatalogTable(
        "city.trips_ro", "hudi", "file:/data/my trips", INPUT, read_optimized=True
    )
    assert checked(entry) is entry
    assert not parse_entry(SYNCED.replace("table=true", "table=false"), "city.trips").read_optimized
    assert not parse_entry(SYNCED.replace(", hoodie.query.as.ro.table=true", ""), "city.trips").read_optimized


def test_an_entry_without_the_properties_of_a_data_source_is_refused() -> None:
    entry = parse_entry(SYNCED.replace("Provider: hudi", "Provider: hive"), "city.bare")
    assert entry.ours
    with pytest.raises(UnsupportedTable, match=r"city\.bare .*all file versions.*table\.sync\(\).*file:/data/my trips"):
        checked(entry)


def test_an_entry_without_a_path_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match=r"provider hudi has no path\. table\.sync\(\)"):
        checked(parse_entry(SYNCED.replace("Location: file:/data/my trips\n", ""), "city.trips"))


def test_an_entry_whose_comment_says_another_path_is_refused() -> None:
    with pytest.raises(UnsupportedTable, match="says its Location twice"):
        parse_entry(SYNCED.replace("Type:", "Comment: x\nLocation: /elsewhere\nType:"), "city.trips")


@pytest.mark.parametrize("provider", ["parquet", "hive", "delta"])
def test_a_table_of_another_format_is_not_ours(provider: str) -> None:
    text = SYNCED.replace("Provider: hudi", f"Provider: {provider}").replace(INPUT, "org.apache.hadoop.Other")
    assert not parse_entry(text, "city.orders").ours
    assert not parse_entry("Type: VIEW\nSchema: root\n", "city.seen").ours


def test_properties_are_those_that_somebody_gave_the_entry() -> None:
    said = "[a=b, c=d=e, hoodie.x=1, 2, option.type=mor, owner=me, provider=hudi, spark.sql.y=z]"
    entry = parse_entry(SYNCED.replace("[last_commit_time_sync=20261122103406929]", said), "city.trips")
    assert entry.properties == {"a": "b", "c": "d=e", "hoodie.x": "1, 2"}
    assert entry.details["Type"] == "EXTERNAL"
