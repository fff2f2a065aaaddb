"""Synced tables queried through servers: Spark's Thrift Server by HiveServer2's protocol, and real Hive 1.2.

Both have no jar of Hudi. They read the view that a sync registers for such engines, and Spark by the names of Hudi's
own entries through this library.
"""

import time
from collections.abc import Collection, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.storage.local import LocalStorage
from hoodie.sync.hive import sync_table
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.hive12 import hive_12
from support.spark_hive import SparkOnHive, running_spark_on_hive
from support.trips import table_options

pytestmark = pytest.mark.nightly

HIVE = "hoodie.datasource.hive_sync."
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
#: Hive 1.2 has no zstd.
WRITES = {"hoodie.parquet.compression.codec": "gzip", "hoodie.parquet.small.file.limit": "0"}
KINDS: dict[str, dict[str, str]] = {
    "cow": {},
    "styled": {
        "hoodie.datasource.write.partitionpath.field": "city,day",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    },
    "flat": {"hoodie.datasource.write.partitionpath.field": ""},
    "mor": MOR,
}
COLUMNS = ("id", "city", "day", "ts", "price")


def rows(*keys: str, city: str, ts: int) -> pa.Table:
    count = len(keys)
    return pa.table(
        {
            "id": list(keys),
            "city": [city] * count,
            "day": pa.array([ts % 3] * count, pa.int32()),
            "ts": pa.array([ts] * count, pa.int64()),
            "price": pa.array([ts / 4] * count, pa.float64()),
        }
    )


class Lake:
    """Tables of each kind with several versions of files, in one database of the metastore."""

    def __init__(self, folder: Path, uri: str) -> None:
        self.database = f"lake{int(time.time() * 1000)}"
        self.tables: dict[str, ArrowTable] = {}
        self.uri = uri
        for name, settings in KINDS.items():
            storage = LocalStorage(str(folder / name))
            base = table_options(name, "id", partition="city", ordering="ts")
            ArrowTable.create(storage, {**base, **settings})
            table = self.tables[name] = ArrowTable(storage, WRITES)
            table.upsert(pa.concat_tables([rows("a", "b", "c", city="oslo", ts=3), rows("d", "e", city="rome", ts=6)]))
            table.upsert(rows("a", "b", city="oslo", ts=9))
            table.delete(rows("d", city="rome", ts=6))
            table.upsert(rows("f", city="new york", ts=12))
            self.sync(name)

    def sync(self, name: str, **options: str) -> None:
        given = {f"{HIVE}metastore.uris": self.uri, f"{HIVE}database": self.database, f"{HIVE}table": name}
        more = {f"{HIVE}{key}": value for key, value in options.items()}
        view = {"hoodie.sync.manifest.view": "true"}
        sync_table(self.tables[name].storage, Settings.of({**given, **view, **more}))

    def expected(self, name: str) -> list[list[str]]:
        """What the view has: the latest rows, or those of the newest base files."""
        table = self.tables[name]
        read = table.read_optimized() if "type" in str(KINDS[name]) else table.snapshot()
        return sorted([str(row[column]) for column in COLUMNS] for row in read.to_pylist())

    def sums(self, name: str) -> list[list[str]]:
        by_city: dict[str, list[float]] = {}
        for _, city, _, _, price in self.expected(name):
            by_city.setdefault(city, []).append(float(price))
        return sorted([city, str(len(found)), str(sum(found))] for city, found in by_city.items())

    def queries(self, kinds: Collection[str] = KINDS.keys()) -> list[str]:
        """For each kind: all rows, and counts and sums by city."""
        found = []
        for name in kinds:
            table = f"{self.database}.{name}_plain"
            found.append(f"SELECT {', '.join(COLUMNS)} FROM {table}")
            found.append(f"SELECT city, count(*), sum(price) FROM {table} GROUP BY city")
        return found

    def check(self, answers: list[list[list[str]]], kinds: Collection[str] = KINDS.keys()) -> None:
        assert len(answers) == 2 * len(kinds)
        for place, name in enumerate(kinds):
            assert sorted(answers[2 * place]) == self.expected(name), name
            assert sorted(answers[2 * place + 1]) == self.sums(name), name


@pytest.fixture(scope="module")
def lake(metastore_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("lake"), metastore_uri)


@pytest.fixture(scope="module")
def spark_on_hive(metastore_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkOnHive]:
    with running_spark_on_hive(tmp_path_factory.mktemp("spark"), metastore_uri) as running:
        yield running


def test_a_client_of_hiveserver2_reads_the_rows_of_the_view_from_sparks_thrift_server(
    lake: Lake, spark_on_hive: SparkOnHive, tmp_path: Path
) -> None:
    lake.check(spark_on_hive.beeline(*lake.queries(), folder=tmp_path))
    lake.tables["cow"].upsert(rows("b", city="oslo", ts=15))
    lake.sync("cow")
    lake.check(spark_on_hive.beeline(*lake.queries(), folder=tmp_path))


def test_real_hive_reads_the_rows_of_the_view(lake: Lake, tmp_path: Path) -> None:
    # The job fails on an unpartitioned table: its list is below its folder, and Hive 1.2 takes it for one of the files.
    partitioned = [name for name in KINDS if name != "flat"]
    lake.check(hive_12(tmp_path, lake.uri, lake.queries(partitioned)), partitioned)


def test_a_spark_without_the_jar_fails_on_the_entries_of_hudi_and_the_library_reads_them(
    lake: Lake, spark_on_hive: SparkOnHive
) -> None:
    entry = f"{lake.database}.mor"
    failed = spark_on_hive.ask(f"spark.sql('SELECT * FROM {entry}').collect()")
    assert "DATA_SOURCE_NOT_FOUND" in failed["problem"]
    asked = f"sorted(hoodie.spark.sql(spark, 'SELECT {', '.join(COLUMNS)} FROM {{}}').collect())"
    snapshot = sorted([row[column] for column in COLUMNS] for row in lake.tables["mor"].snapshot().to_pylist())
    optimized = sorted([row[column] for column in COLUMNS] for row in lake.tables["mor"].read_optimized().to_pylist())
    assert snapshot != optimized
    assert spark_on_hive.ask(asked.format(entry)) == snapshot
    assert spark_on_hive.ask(asked.format(f"{entry}_rt")) == snapshot
    assert spark_on_hive.ask(asked.format(f"{entry}_ro")) == optimized
    for name, table in lake.tables.items():
        opened = f"hoodie.open_table('{lake.database}.{name}', spark=spark)"
        assert spark_on_hive.ask(f"{opened}.path") == table.storage.root
        assert spark_on_hive.ask(f"{opened}.snapshot().count()") == len(table.snapshot())


def test_entries_that_spark_would_misread_are_refused_by_name(lake: Lake, spark_on_hive: SparkOnHive) -> None:
    lake.sync("cow", sync_as_datasource="false", table="bare")
    bare = f"{lake.database}.bare"
    assert spark_on_hive.ask(f"spark.table('{bare}').count()") > len(lake.tables["cow"].snapshot())  # all versions
    for call in (f"open_table('{bare}', spark=spark)", f"spark.sql(spark, 'SELECT * FROM {bare}')"):
        refused = spark_on_hive.ask(f"hoodie.{call}")
        assert refused["error"] == "UnsupportedTable"
        assert "all file versions" in refused["problem"]


def test_a_table_that_sync_registers_opens_by_its_name(lake: Lake, spark_on_hive: SparkOnHive) -> None:
    options = {f"{HIVE}metastore.uris": lake.uri, f"{HIVE}database": lake.database, f"{HIVE}table": "named"}
    path = lake.tables["styled"].storage.root
    assert (
        spark_on_hive.ask(f"str(hoodie.open_table({path!r}, spark=spark).sync(options={options!r}).changed)") == "True"
    )
    assert spark_on_hive.ask(f"hoodie.open_table('{lake.database}.named', spark=spark).path") == path
    drop = f"hoodie.spark.sql(spark, 'DROP TABLE {lake.database}.named').count()"
    assert "DATA_SOURCE_NOT_FOUND" in spark_on_hive.ask(drop)["problem"]
    spark_on_hive.ask("hoodie.register(spark)")
    assert spark_on_hive.ask(drop) == 0
    assert spark_on_hive.ask(f"hoodie.open_table('{lake.database}.named', spark=spark)")["error"] == "TableNotFound"
    assert spark_on_hive.ask(f"hoodie.open_table({path!r}, spark=spark).count()") == len(
        lake.tables["styled"].snapshot()
    )


def test_a_view_of_spark_serves_logs_to_clients_of_hiveserver2(
    lake: Lake, spark_on_hive: SparkOnHive, tmp_path: Path
) -> None:
    table = lake.tables["mor"]
    spark_on_hive.ask("hoodie.register(spark)")
    made = f"CREATE GLOBAL TEMPORARY VIEW trips USING hudi OPTIONS (path '{table.storage.root}')"
    assert spark_on_hive.ask(f"hoodie.spark.sql(spark, {made!r}).count()") == 0
    (answer,) = spark_on_hive.beeline(f"SELECT {', '.join(COLUMNS)} FROM global_temp.trips", folder=tmp_path)
    assert sorted(answer) == sorted([str(row[column]) for column in COLUMNS] for row in table.snapshot().to_pylist())
