"""Tables synced to a real Hive metastore: each field of their entries, what each kind of change does, bad input.

The entries are read with calls of the metastore's own interface. Source: docs/format/engines.md 1 to 5.
"""

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidOption, MetastoreUnavailable, ServiceFailed, SyncRefused
from hoodie.recovery.rollback import rollback
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.sync.hive import SyncResult, sync_table
from hoodie.sync.metastore import Metastore, connect, interface, struct_columns
from hoodie.table.properties import update_properties
from hoodie.table.settings import Settings
from hoodie.testing.storage import CountingStorage
from hoodie.testing.tables import ArrowTable
from support.metastore import Metastore as MetastoreServer
from support.servers import running
from support.trips import TRIPS

HIVE = "hoodie.datasource.hive_sync."
META = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"]
META.append("_hoodie_file_name")
PLAIN = "org.apache.hudi.hadoop.HoodieParquetInputFormat"
REALTIME = "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
_NUMBERS = count(int(time.time() * 1000))


def rows(*keys: str, city: str = "oslo", ts: int = 1, **columns: pa.Array) -> pa.Table:
    size = len(keys)
    found = {"id": list(keys), "city": [city] * size, "ts": pa.array([ts] * size, pa.int64()), **columns}
    return pa.table(found)


class Synced:
    """A table in a database of its own."""

    def __init__(self, folder: Path, uri: str, options: Mapping[str, str]) -> None:
        self.storage: Storage = CountingStorage(LocalStorage(str(folder / "trips")))
        self.database = f"db{next(_NUMBERS)}"
        self.uri = uri
        ArrowTable.create(
            self.storage,
            {
                **TRIPS,
                **options,
            },
        )
        self.table = ArrowTable(self.storage, {"hoodie.parquet.small.file.limit": "0"})
        self.options = {f"{HIVE}metastore.uris": uri, f"{HIVE}database": self.database}

    def sync(self, whole: bool = False, **options: str) -> SyncResult:
        given = {key.replace("__", "."): value for key, value in options.items()}
        return sync_table(self.storage, Settings.of({**self.options, **given}), whole=whole)

    def hive(self, whole: bool = False, **options: str) -> SyncResult:
        """A sync with options of the Hive sync, without their prefix."""
        given = {f"{HIVE}{key.replace('__', '.')}": value for key, value in options.items()}
        return sync_table(self.storage, Settings.of({**self.options, **given}), whole=whole)

    def entry(self, name: str = "trips") -> Any:
        with connect([self.uri], 60) as metastore:
            return metastore.table(self.database, name)

    def partitions(self, name: str = "trips") -> dict[str, Any]:
        with connect([self.uri], 60) as metastore:
            names = metastore.partition_names(self.database, name)
            found = {tuple(p.values): p for p in metastore.partitions(self.database, name, names, 100)}
        return {"/".join(values): partition for values, partition in found.items()}

    def locations(self, name: str = "trips") -> dict[str, str]:
        root = f"{self.storage.root}/"
        found = {key: part.sd.location.partition(root)[2] for key, part in self.partitions(name).items()}
        assert all(found.values())
        return found


@pytest.fixture
def made(tmp_path: Path, metastore_uri: str) -> Any:
    def make(**options: str) -> Synced:
        given = {key.replace("__", "."): value for key, value in options.items()}
        return Synced(tmp_path, metastore_uri, given)

    return make


# --- the entry ---


def test_a_copy_on_write_entry_has_each_field_of_the_format(made: Any) -> None:
    synced = made()
    result = synced.table.upsert(rows("a"))
    done = synced.sync(hoodie__meta_sync__spark__version="4.0.0")
    assert [entry.name for entry in done.entries] == [f"{synced.database}.trips"]
    entry = synced.entry()
    assert (entry.dbName, entry.tableName, entry.tableType) == (synced.database, "trips", "EXTERNAL_TABLE")
    assert abs(entry.createTime - time.time()) < 600
    assert struct_columns(entry.sd.cols) == {**dict.fromkeys(META, "string"), "id": "string", "ts": "bigint"}
    assert list(struct_columns(entry.sd.cols))[:5] == META
    assert struct_columns(entry.partitionKeys) == {"city": "string"}
    assert {column.comment for column in [*entry.sd.cols, *entry.partitionKeys]} <= {"", None}
    assert entry.sd.location == f"file:{synced.storage.root}"
    assert entry.sd.inputFormat == PLAIN
    assert entry.sd.outputFormat == "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
    serde = entry.sd.serdeInfo
    assert serde.serializationLib == "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
    assert serde.parameters == {
        "serialization.format": "1",
        "path": f"file://{synced.storage.root}",
        "hoodie.query.as.ro.table": "false",
    }
    parameters = entry.parameters
    assert parameters["EXTERNAL"] == "TRUE"
    assert parameters["last_commit_time_sync"] == result.instant
    assert parameters["last_commit_completion_time_sync"] >= result.instant
    assert parameters["spark.sql.sources.provider"] == "hudi"
    assert parameters["spark.sql.create.version"] == "4.0.0"
    assert parameters["spark.sql.sources.schema.numPartCols"] == "1"
    assert parameters["spark.sql.sources.schema.partCol.0"] == "city"
    schema = json.loads(parameters["spark.sql.sources.schema.part.0"])
    assert [field["name"] for field in schema["fields"]] == [*META, "id", "ts", "city"]
    (partition,) = synced.partitions().values()
    assert partition.values == ["oslo"]
    assert partition.sd.location == f"file:{synced.storage.root}/oslo"
    assert struct_columns(partition.sd.cols) == struct_columns(entry.sd.cols)
    assert (partition.sd.inputFormat, partition.sd.outputFormat) == (entry.sd.inputFormat, entry.sd.outputFormat)
    with connect([synced.uri], 60) as metastore:
        database = metastore._call("get_database", synced.database)
    assert database.description == "automatically created by hoodie"


@pytest.mark.parametrize(
    ("options", "entries"),
    [
        ({}, {"trips_ro": (PLAIN, "true"), "trips_rt": (REALTIME, "false"), "trips": (REALTIME, "false")}),
        ({f"{HIVE}table.strategy": "RO"}, {"trips": (PLAIN, "true")}),
        ({f"{HIVE}table.strategy": "RT"}, {"trips": (REALTIME, "false")}),
        (
            {"hoodie.meta.sync.sync_snapshot_with_table_name": "false"},
            {"trips_ro": (PLAIN, "true"), "trips_rt": (REALTIME, "false")},
        ),
        (
            {"hoodie.meta.sync.sync_snapshot_with_table_name": "false", f"{HIVE}skip_ro_suffix": "true"},
            {"trips": (PLAIN, "true"), "trips_rt": (REALTIME, "false")},
        ),
    ],
)
def test_a_merge_on_read_table_has_an_entry_for_each_way_to_read_it(
    made: Any, options: dict[str, str], entries: dict[str, tuple[str, str]]
) -> None:
    synced = made(hoodie__datasource__write__table__type="MERGE_ON_READ")
    synced.table.upsert(rows("a"))
    synced.table.upsert(rows("a", ts=2))
    done = sync_table(synced.storage, Settings.of({**synced.options, **options}))
    assert [entry.name for entry in done.entries] == [f"{synced.database}.{name}" for name in entries]
    for name in ("trips", "trips_ro", "trips_rt"):
        entry = synced.entry(name)
        if name not in entries:
            assert entry is None
            continue
        assert (entry.sd.inputFormat, entry.sd.serdeInfo.parameters["hoodie.query.as.ro.table"]) == entries[name]
        assert synced.locations(name) == {"oslo": "oslo"}


def test_an_unpartitioned_table_has_no_partition_keys(made: Any) -> None:
    synced = made(hoodie__datasource__write__partitionpath__field="")
    synced.table.upsert(rows("a"))
    synced.sync()
    entry = synced.entry()
    assert not entry.partitionKeys
    assert "spark.sql.sources.schema.numPartCols" not in entry.parameters
    assert list(struct_columns(entry.sd.cols))[-3:] == ["id", "city", "ts"]
    assert synced.partitions() == {}
    synced.table.upsert(rows("b"))
    assert not synced.sync().changed
    assert synced.entry().parameters["last_commit_time_sync"] > entry.parameters["last_commit_time_sync"]


def test_several_hive_style_url_encoded_partition_columns(made: Any) -> None:
    synced = made(
        hoodie__datasource__write__partitionpath__field="city,ts",
        hoodie__datasource__write__hive_style_partitioning="true",
        hoodie__datasource__write__partitionpath__urlencode="true",
    )
    synced.table.upsert(rows("a", city="são/paulo: x"))
    synced.sync()
    assert struct_columns(synced.entry().partitionKeys) == {"city": "string", "ts": "bigint"}
    (partition,) = synced.partitions().values()
    assert partition.values == ["são/paulo: x", "1"]
    assert not synced.sync(whole=True).changed


def test_days_in_three_folders_are_one_value(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a", city="2024/3/1"))
    extractor = "org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor"
    synced.hive(partition_extractor_class=extractor)
    assert synced.locations() == {"2024-03-01": "2024/3/1"}


def test_types_and_options_of_the_entry(made: Any) -> None:
    synced = made()
    nested = pa.array([{"x": 1, "y": ["t"]}], pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]))
    more = {
        "at": pa.array([0], pa.timestamp("us", "UTC")),
        "price": pa.array([None], pa.decimal128(10, 2)),
        "tags": pa.array([[("k", 1.0)]], pa.map_(pa.string(), pa.float64())),
        "nested": nested,
        "day": pa.array([0], pa.date32()),
        "raw": pa.array([b"x"]),
    }
    synced.table.upsert(rows("a", **more))
    synced.hive(
        support_timestamp="true",
        omit_metadata_fields="true",
        create_managed_table="false",
        table_properties="owner.team=maps\nnote=a=b",
        serde_properties="k=v",
        schema_string_length_thresh="100",
    )
    entry = synced.entry()
    assert struct_columns(entry.sd.cols) == {
        "id": "string",
        "ts": "bigint",
        "at": "timestamp",
        "price": "decimal(10,2)",
        "tags": "map<string,double>",
        "nested": "struct<x:int,y:array<string>>",
        "day": "date",
        "raw": "binary",
    }
    assert (entry.parameters["owner.team"], entry.parameters["note"]) == ("maps", "a=b")
    assert entry.sd.serdeInfo.parameters["k"] == "v"
    number = int(entry.parameters["spark.sql.sources.schema.numParts"])
    parts = [entry.parameters[f"spark.sql.sources.schema.part.{part}"] for part in range(number)]
    assert number > 1
    assert {len(part) for part in parts[:-1]} == {100}
    assert [field["name"] for field in json.loads("".join(parts))["fields"]][-1] == "city"
    synced.hive(support_timestamp="true", omit_metadata_fields="true", schema_string_length_thresh="4000")
    assert "spark.sql.sources.schema.part.1" not in synced.entry().parameters


def test_columns_have_the_docs_of_the_tables_schema_as_comments_when_asked_for(made: Any) -> None:
    synced = made()
    fields = [
        {"name": "id", "type": ["null", "string"], "default": None, "doc": "number of the trip"},
        {"name": "city", "type": ["null", "string"], "default": None, "doc": "where it began"},
        {"name": "ts", "type": ["null", "long"], "default": None},
    ]
    schema = json.dumps({"type": "record", "name": "trips", "fields": fields})
    update_properties(synced.storage, {"hoodie.table.create.schema": schema})
    synced.sync()
    assert {column.comment or "" for column in synced.entry().sd.cols} == {""}
    assert synced.hive(sync_comment="true").entries[0].altered
    comments = {column.name: column.comment for column in synced.entry().sd.cols if column.comment}
    assert comments == {"id": "number of the trip"}  # partition columns have none in this mode, as in Hudi
    synced.table.upsert(rows("a"))
    synced.hive(sync_comment="true")
    assert {column.name: column.comment for column in synced.entry().sd.cols if column.comment} == comments
    assert not synced.hive(sync_comment="true").changed


def test_a_managed_table_is_made_when_asked_for(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    synced.hive(create_managed_table="true", sync_as_datasource="false", use_pre_apache_input_format="true")
    entry = synced.entry()
    assert entry.tableType == "MANAGED_TABLE"
    assert "EXTERNAL" not in entry.parameters
    assert "spark.sql.sources.provider" not in entry.parameters
    assert entry.sd.inputFormat == "com.uber.hoodie.hadoop.HoodieInputFormat"


def test_the_view_for_engines_without_hudi_and_what_it_is_a_view_of(made: Any) -> None:
    synced = made(hoodie__datasource__write__hive_style_partitioning="true")
    synced.table.upsert(pa.concat_tables([rows("a"), rows("b", city="rome")]))
    synced.table.upsert(rows("a", ts=2))
    view = {"hoodie__sync__manifest__view": "true"}
    done = synced.sync(**view)
    assert [entry.name.partition(".")[2] for entry in done.entries] == [
        *("trips", "trips_plain_versions", "trips_plain_manifest", "trips_plain")
    ]
    versions, listed, seen = (synced.entry(f"trips_plain{suffix}") for suffix in ("_versions", "_manifest", ""))
    assert versions.sd.inputFormat == "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
    assert (versions.tableType, versions.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert "spark.sql.sources.provider" not in versions.parameters  # Spark reads it as plain Parquet, and is to
    assert synced.locations("trips_plain_versions") == {"oslo": "city=oslo", "rome": "city=rome"}
    assert listed.sd.location == f"file:{synced.storage.root}/.hoodie/manifest"
    assert listed.sd.inputFormat == "org.apache.hadoop.mapred.TextInputFormat"
    assert struct_columns(listed.sd.cols) == {"file_name": "string"}
    assert (seen.tableType, seen.sd.location) == ("VIRTUAL_VIEW", None)
    assert list(struct_columns(seen.sd.cols)) == [*META, "id", "ts", "city"]
    assert seen.viewExpandedText.endswith(
        f"`id`, `ts`, `city` FROM `{synced.database}`.`trips_plain_versions` WHERE `_hoodie_file_name` IN "
        f"(SELECT `file_name` FROM `{synced.database}`.`trips_plain_manifest`)"
    )
    names = Path(synced.storage.root, ".hoodie/manifest/latest-snapshot.csv").read_text().splitlines()
    assert sorted(names) == sorted({row["_hoodie_file_name"] for row in synced.table.snapshot().to_pylist()})

    assert not synced.sync(**view).changed
    synced.table.upsert(rows("c", city="bern", note=pa.array(["x"])))
    done = synced.sync(**view)
    assert [(entry.altered, entry.added) for entry in done.entries] == [(True, 1), (True, 1), (False, 0), (True, 0)]
    assert list(struct_columns(synced.entry("trips_plain").sd.cols)) == [*META, "id", "ts", "note", "city"]


@pytest.mark.parametrize("name", ["trips_plain", "trips_plain_versions", "trips_plain_manifest"])
def test_what_somebody_else_has_by_a_name_of_the_view_is_left_alone(made: Any, name: str) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    synced.hive(table=name)
    there = synced.entry(name)
    with pytest.raises(SyncRefused, match=rf"{name}: the metastore has an entry of the kind EXTERNAL_TABLE"):
        synced.sync(hoodie__sync__manifest__view="true")
    assert synced.entry(name) == there
    assert synced.entry() is None


# --- changes ---


def test_a_second_sync_changes_nothing(made: Any) -> None:
    synced = made(hoodie__datasource__write__table__type="MERGE_ON_READ")
    synced.table.upsert(rows("a"))
    synced.sync()
    before = synced.entry()
    time.sleep(1.1)  # the metastore stamps changes with seconds
    for whole in (False, True):
        done = synced.sync(whole=whole)
        assert not done.changed
        assert not any(name.startswith(("alter", "add", "drop", "create")) for name in done.calls)
    assert synced.entry() == before
    assert before.parameters["transient_lastDdlTime"]


def test_partitions_come_and_go_with_commits_and_only_these_are_asked_for(made: Any) -> None:
    synced = made()
    synced.table.upsert(pa.concat_tables([rows("a"), rows("b", city="rome"), rows("c", city="bern")]))
    synced.sync()
    synced.table.upsert(rows("d", city="kyiv"))
    synced.table.delete_partitions(["rome"])
    done = synced.sync()
    assert [(entry.added, entry.dropped, entry.whole) for entry in done.entries] == [(1, 1, False)]
    assert synced.locations() == {city: city for city in ("oslo", "bern", "kyiv")}
    assert (Path(synced.storage.root) / "rome").is_dir()
    synced.table.upsert(rows("e", city="rome"))
    assert synced.sync().entries[0].added == 1
    assert not synced.sync(whole=True).changed
    synced.table.delete_partitions(["oslo"])
    assert synced.sync(whole=True).entries[0].dropped == 1
    assert not synced.sync(whole=True).changed


def test_what_was_changed_behind_the_back_of_the_sync_is_put_right_by_a_whole_one(made: Any) -> None:
    synced = made()
    synced.table.upsert(pa.concat_tables([rows("a"), rows("b", city="rome"), rows("c", city="bern")]))
    synced.sync()
    with connect([synced.uri], 60) as metastore:
        metastore.drop_partitions(synced.database, "trips", ["city=oslo"], 10)
        (rome,) = metastore.partitions(synced.database, "trips", ["city=rome"], 10)
        rome.sd.location = f"file:{synced.storage.root}/elsewhere"
        metastore.alter_partitions(synced.database, "trips", [rome], 10)
        rome.values, rome.sd.location = ["ghost"], f"file:{synced.storage.root}/ghost"
        metastore.add_partitions(synced.database, "trips", [rome], 10)
    assert not synced.sync().changed
    done = synced.sync(whole=True).entries[0]
    assert (done.added, done.moved, done.dropped) == (1, 1, 1)
    assert synced.locations() == {city: city for city in ("oslo", "rome", "bern")}


def test_a_column_that_comes_reaches_partitions_that_are_there(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    synced.sync()
    synced.table.upsert(rows("b", city="rome", note=pa.array(["x"])))
    done = synced.sync()
    assert done.entries[0].altered
    assert struct_columns(synced.entry().sd.cols)["note"] == "string"
    assert all(struct_columns(part.sd.cols)["note"] == "string" for part in synced.partitions().values())
    assert "note" in synced.entry().parameters["spark.sql.sources.schema.part.0"]


def test_a_column_may_grow_from_int_to_bigint(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a", n=pa.array([1], pa.int32())))
    synced.sync()
    assert struct_columns(synced.entry().sd.cols)["n"] == "int"
    synced.table.upsert(rows("a", n=pa.array([1], pa.int64())))
    synced.sync()
    assert struct_columns(synced.entry().sd.cols)["n"] == "bigint"


def test_when_the_last_synced_commit_is_gone_all_partitions_are_compared(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    synced.table.upsert(rows("b", city="rome"))
    synced.sync()
    rollback(synced.storage, Settings.of({}))
    done = synced.sync()
    assert done.entries[0].whole
    assert synced.entry().parameters["last_commit_time_sync"] == done.instant


def test_the_sync_may_record_commits_only_when_something_changed(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    first = synced.sync().instant
    synced.table.upsert(rows("a", ts=2))
    synced.sync(hoodie__datasource__meta_sync__condition__sync="true")
    assert synced.entry().parameters["last_commit_time_sync"] == first
    synced.table.upsert(rows("b", city="rome"))
    last = synced.sync(hoodie__datasource__meta_sync__condition__sync="true").instant
    assert synced.entry().parameters["last_commit_time_sync"] == last


@pytest.mark.parametrize("partitions", [5, 60, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_requests_and_listings_grow_with_the_change_and_not_with_the_table(made: Any, partitions: int) -> None:
    synced = made()
    synced.table.upsert(rows("k"))
    metafile = Path(synced.storage.root, "oslo", ".hoodie_partition_metadata").read_bytes()
    for number in range(1, partitions):  # what a sync sees of a partition
        folder = Path(synced.storage.root, f"c{number}")
        folder.mkdir()
        (folder / ".hoodie_partition_metadata").write_bytes(metafile)
    first = synced.sync()
    assert first.entries[0].added == partitions
    assert first.calls["add_partitions_req"] == -(-partitions // 1000)
    assert sum(first.calls.values()) < 10 + partitions // 1000
    synced.table.upsert(pa.concat_tables([rows("x", city="new1"), rows("y", city="new2")]))
    synced.storage.reset()
    done = synced.sync()
    assert done.entries[0].added == 2
    assert done.calls == {
        "set_ugi": 1,
        "get_table_req": 1,
        "get_partitions_by_names": 1,
        "get_database": 1,
        "add_partitions_req": 1,
        "alter_table_with_environment_context": 1,
    }
    assert synced.storage.count("list_tree") == 0
    assert synced.storage.count("list") == synced.storage.count("list", ".hoodie") <= 3


def test_partitions_go_in_batches(made: Any) -> None:
    synced = made()
    synced.table.upsert(pa.concat_tables(rows(f"k{n}", city=f"c{n}") for n in range(25)))
    assert synced.hive(batch_num="10").calls["add_partitions_req"] == 3
    assert len(synced.partitions()) == 25


# --- two at once ---


def test_syncs_at_once_leave_what_one_leaves(made: Any) -> None:
    synced = made(hoodie__datasource__write__table__type="MERGE_ON_READ")
    synced.table.upsert(pa.concat_tables(rows(f"k{n}", city=f"c{n}") for n in range(8)))
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: synced.sync(), range(4)))
    assert len({result.instant for result in done}) == 1
    for name in ("trips", "trips_ro", "trips_rt"):
        assert len(synced.locations(name)) == 8
    assert not synced.sync(whole=True).changed


def test_a_sync_that_dies_at_any_request_is_finished_by_the_next_one(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    through = Metastore._call
    synced = made()
    synced.table.upsert(pa.concat_tables([rows("a"), rows("b", city="rome")]))
    for number in range(2, 7):
        left = [number]

        def dying(self: Metastore, *values: Any, left: list[int] = left, **how: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Died
            return through(self, *values, **how)

        monkeypatch.setattr(Metastore, "_call", dying)
        with pytest.raises(Died):
            synced.sync()
        monkeypatch.setattr(Metastore, "_call", through)
        synced.sync()
        assert synced.locations() == {"oslo": "oslo", "rome": "rome"}
        assert not synced.sync(whole=True).changed
        with connect([synced.uri], 60) as metastore:
            metastore._call("drop_table", synced.database, "trips", False)


# --- bad input ---


def test_a_sync_that_is_refused_after_a_commit_leaves_the_commit_and_warns(tmp_path: Path, metastore_uri: str) -> None:
    options = {f"{HIVE}metastore.uris": metastore_uri, f"{HIVE}database": f"db{next(_NUMBERS)}"}
    enabled = {**options, "hoodie.datasource.meta.sync.enable": "true"}
    table = hoodie.create_table(tmp_path / "t", name="trips", record_key="id", partition_by="city")
    with pytest.warns(
        ServiceFailed, match=r"SyncRefused: partition 'oslo'.*partition_extractor_class.*table\.sync\(\)"
    ):
        table.upsert(
            rows("a"), options={**enabled, f"{HIVE}partition_extractor_class": "HiveStylePartitionValueExtractor"}
        )
    assert table.count() == 1
    table.upsert(rows("b", city="rome"), options=enabled)  # what was missed is made up for
    with connect([metastore_uri], 60) as metastore:
        assert metastore.partition_names(options[f"{HIVE}database"], "trips") == ["city=oslo", "city=rome"]


def test_a_metastore_that_is_down_is_named() -> None:
    from hoodie.testing.storage import MemoryStorage

    storage = MemoryStorage()
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    ArrowTable.create(storage, options).upsert(pa.table({"id": ["a"]}))
    uris = {f"{HIVE}metastore.uris": "thrift://127.0.0.1:1, thrift://127.0.0.1:2"}
    with pytest.raises(MetastoreUnavailable, match=r"127\.0\.0\.1:1.*127\.0\.0\.1:2.*sync again"):
        sync_table(storage, Settings.of(uris))


def test_the_next_address_is_taken_when_the_first_does_not_answer(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    done = synced.hive(metastore__uris=f"thrift://127.0.0.1:1,{synced.uri}")
    assert done.metastore == synced.uri


@pytest.mark.parametrize("uri", ["localhost:9083", "http://localhost:9083", "thrift://", "thrift://h:x", ""])
def test_a_malformed_address_is_refused(made: Any, uri: str) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    with pytest.raises(InvalidOption, match=r"thrift://host:9083"):
        synced.hive(metastore__uris=uri)


def test_a_missing_database_is_refused_when_it_is_not_to_be_made(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    with pytest.raises(SyncRefused, match=rf"database {synced.database}.*auto_create_database=true"):
        synced.hive(auto_create_database="false")


def changed_entry(synced: Synced, change: Any) -> Any:
    with connect([synced.uri], 60) as metastore:
        table = metastore.table(synced.database, "trips")
        metastore._call("drop_table", synced.database, "trips", False)
        change(table)
        assert metastore.create_table(table)
        return metastore.table(synced.database, "trips")


def elsewhere(table: Any) -> None:
    table.sd.location = f"{table.sd.location}_other"


def plain_parquet(table: Any) -> None:
    table.sd.inputFormat = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"


def view(table: Any) -> None:
    table.tableType = "VIRTUAL_VIEW"
    table.viewOriginalText = table.viewExpandedText = "select 1"


def other_keys(table: Any) -> None:
    table.partitionKeys = [interface().FieldSchema(name="land", type="string", comment="")]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (elsewhere, r"a table of that name at file:.*_other"),
        (plain_parquet, r"no entry of Hudi"),
        (view, r"a VIRTUAL_VIEW of that name"),
        (other_keys, r"partition columns in the metastore are \(land\), those of the table \(city\)"),
    ],
)
def test_something_else_of_that_name_is_refused_and_left_alone(made: Any, change: Any, problem: str) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    synced.sync()
    there = changed_entry(synced, change)
    with pytest.raises(SyncRefused, match=problem):
        synced.sync()
    assert synced.entry() == there


def _with_struct(names: str, *keys: str, city: str) -> pa.Table:
    kind = pa.struct([(name, pa.int32()) for name in names])
    return rows(*keys, city=city, s=pa.array([dict.fromkeys(names, 1)] * len(keys), kind))


def test_a_struct_that_grows_keeps_its_entry_and_its_new_partitions_are_registered(made: Any) -> None:
    """A metastore with its default settings takes no struct of other fields."""
    synced = made()
    synced.table.upsert(_with_struct("a", "a", city="oslo"))
    synced.sync()
    instant = synced.table.upsert(_with_struct("ab", "b", city="rome")).instant
    for _ in range(2):
        with pytest.raises(SyncRefused, match=r"trips: it refuses.*disallow\.incompatible\.col\.type\.changes=false"):
            synced.sync()
        assert set(synced.partitions()) == {"oslo", "rome"}
        assert struct_columns(synced.entry().sd.cols)["s"] == "struct<a:int>"
        assert synced.entry().parameters["last_commit_time_sync"] == instant
    always = {**synced.options, "hoodie.datasource.meta.sync.enable": "true"}
    with pytest.warns(ServiceFailed, match=r"disallow\.incompatible"):
        synced.table.upsert(_with_struct("ab", "c", city="bern"), options=always)
    assert set(synced.partitions()) == {"oslo", "rome", "bern"}


@pytest.mark.nightly
def test_a_metastore_that_allows_it_takes_the_struct_that_grew(tmp_path: Path) -> None:
    allows = {"hive.metastore.disallow.incompatible.col.type.changes": "false"}
    (tmp_path / "server").mkdir()
    with running(MetastoreServer(tmp_path / "server", settings=allows)) as server:
        synced = Synced(tmp_path, server.uri, {})
        synced.table.upsert(_with_struct("a", "a", city="oslo"))
        synced.sync()
        synced.table.upsert(_with_struct("ab", "b", city="rome"))
        synced.sync()
        assert struct_columns(synced.entry().sd.cols)["s"] == "struct<a:int,b:int>"
        columns = {struct_columns(partition.sd.cols)["s"] for partition in synced.partitions().values()}
        assert columns == {"struct<a:int,b:int>"}


def test_a_column_that_hive_cannot_follow_is_refused_before_anything_changes(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    synced.sync()

    def narrowed(table: Any) -> None:
        next(column for column in table.sd.cols if column.name == "ts").type = "date"

    there = changed_entry(synced, narrowed)
    synced.table.upsert(rows("b", city="rome"))
    with pytest.raises(SyncRefused, match=r"column ts: it is date in the metastore and bigint in the table"):
        synced.sync()
    assert synced.entry() == there
    assert synced.partitions() == {}


def test_partitions_that_do_not_fit_the_extractor_are_refused(made: Any) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    day = "SlashEncodedDayPartitionValueExtractor"
    with pytest.raises(SyncRefused, match=r"partition 'oslo': it is of another form .*city.*year/month/day"):
        synced.hive(partition_extractor_class=day)
    with pytest.raises(SyncRefused, match=r"gives 1 values for the partition columns \(city, ts\)"):
        synced.hive(partition_fields="city,ts")
    with pytest.raises(InvalidOption, match=r"MyExtractor: expected one of MultiPartKeysValueExtractor"):
        synced.hive(partition_extractor_class="com.example.MyExtractor")
    assert synced.entry() is None


@pytest.mark.parametrize(("what", "name"), [("table", "my-trips"), ("database", "a.b"), ("table", "trips;x")])
def test_names_that_hive_does_not_take_are_refused(made: Any, what: str, name: str) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    with pytest.raises(SyncRefused, match=rf"{what} '{name}'.*hoodie.datasource.hive_sync.{what}"):
        synced.hive(**{what: name})


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        (f"{HIVE}mode", "jdbc", "only the mode hms is built"),
        (f"{HIVE}mode", "hiveql", "only the mode hms is built"),
        (f"{HIVE}use_jdbc", "true", "only the mode hms is built"),
        (f"{HIVE}base_file_format", "ORC", "only PARQUET"),
        (f"{HIVE}skip_ro_suffix", "true", "set that to false"),
        (f"{HIVE}table_properties", "no equals sign", "is not key=value"),
        (f"{HIVE}batch_num", "0", "expected a whole number"),
        (
            "hoodie.meta.sync.client.tool.class",
            "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool",
            "only .*HiveSyncTool",
        ),
    ],
)
def test_options_that_cannot_be_carried_out_are_refused(made: Any, option: str, value: str, problem: str) -> None:
    synced = made()
    synced.table.upsert(rows("a"))
    with pytest.raises(InvalidOption, match=problem):
        sync_table(synced.storage, Settings.of({**synced.options, option: value}))


def test_a_table_without_columns_is_refused(made: Any) -> None:
    synced = made()
    with pytest.raises(SyncRefused, match="no columns yet"):
        synced.sync()
