"""One table of orders in each of the engines. This runs in the engine's own process, under PySpark 3.5 or ours."""

import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from bench.spark_peers.parts import COLUMNS, FILTER, SCAN, SET

_NAMES = ", ".join(COLUMNS)
_DDL = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_ON = "t.order_id = s.order_id and t.ds = s.ds"
_UPSERT = "when matched then update set * when not matched then insert *"


class Table(ABC):
    """What is asked of each engine. Subclasses say how; `logs`: of the kind that does not rewrite files.

    `days` are the partitions of the changes where these are not in all, as somebody who loads a day knows them.
    """

    settings: ClassVar[Mapping[str, str]] = {}
    format = ""
    name: str
    path: Path
    logs: bool

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        own = {name: value.replace("WAREHOUSE", str(folder)) for name, value in self.settings.items()}
        self.spark = self.start({**settings, **own})
        self.spark.sparkContext.setLogLevel("ERROR")

    def start(self, settings: Mapping[str, str]) -> SparkSession:
        builder = SparkSession.builder.master("local[2]").appName("spark-peers")
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    def at(self, name: str, logs: bool) -> str:
        """From here on the table of that name; its path."""
        self.name, self.path, self.logs = name, self.folder / "db" / name, logs
        return str(self.path)

    def keep(self, name: str) -> None:
        """A copy of the table, for `again`."""
        shutil.copytree(self.path, self.folder / "kept" / name)

    def again(self, name: str) -> None:
        """The table as the copy has it."""
        self.drop()
        shutil.copytree(self.folder / "kept" / name, self.path)

    def drop(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def load(self, source: str) -> DataFrame:
        return self.spark.read.schema(_DDL).parquet(source)

    def load_merge(self, source: str) -> DataFrame:
        """With the column `op`: I, U or D."""
        return self.spark.read.schema(_DDL + ", op string").parquet(source)

    # --- writes ---

    @abstractmethod
    def bulk(self, source: str) -> None: ...

    @abstractmethod
    def upsert(self, source: str, days: Sequence[str]) -> None: ...

    @abstractmethod
    def delete(self, source: str, days: Sequence[str]) -> None: ...

    @abstractmethod
    def merge(self, source: str, days: Sequence[str]) -> None: ...

    @abstractmethod
    def compact(self) -> None: ...

    # --- reads ---

    def read(self) -> DataFrame:
        return self.spark.read.format(self.format).load(str(self.path))

    def count(self) -> list[Any]:
        return [self.read().count()]

    def filter(self) -> list[Any]:
        return [len(self.read().where(FILTER).select("order_id", "price").collect())]

    def sum(self) -> list[Any]:
        rows = self.read().groupBy("status").agg({"price": "sum", "quantity": "sum", "ts": "max"}).collect()
        prices, quantities = sum(row["sum(price)"] for row in rows), sum(row["sum(quantity)"] for row in rows)
        return [len(rows), prices, quantities, max(row["max(ts)"] for row in rows)]

    def scan(self) -> list[Any]:
        return list(self.read().selectExpr(*SCAN).first() or ())

    def export(self, into: str) -> None:
        self.read().select(*COLUMNS).write.mode("overwrite").parquet(into)

    # --- changes ---

    def mark(self) -> Any:
        """The last commit. Later ones are those that `changes` reads; what they have to keep for it is asked for."""
        return None

    @abstractmethod
    def changes(self, since: Any) -> list[Any]: ...


def _total(rows: DataFrame) -> list[Any]:
    return list(rows.selectExpr("count(*)", "sum(price)").first() or ())


def _in(days: Sequence[str]) -> str:
    return f" and t.ds in ({', '.join(map(repr, days))})" if days else ""


class Plain(Table):
    """Parquet files: a join, and all is written again."""

    def _write(self, rows: DataFrame, path: Path) -> None:
        rows.repartition("ds").write.partitionBy("ds").parquet(str(path))

    def _swap(self, rows: DataFrame) -> None:
        new = self.path.with_name(self.name + ".new")
        self._write(rows.select(*COLUMNS), new)
        self.drop()
        new.rename(self.path)

    def bulk(self, source: str) -> None:
        self._write(self.load(source), self.path)

    def upsert(self, source: str, days: Sequence[str]) -> None:
        changes = self.load(source)
        self._swap(self.read().join(changes, "order_id", "left_anti").select(*COLUMNS).unionAll(changes))

    def delete(self, source: str, days: Sequence[str]) -> None:
        self._swap(self.read().join(self.load(source), "order_id", "left_anti"))

    def merge(self, source: str, days: Sequence[str]) -> None:
        self.load_merge(source).createOrReplaceTempView("s")
        self.read().createOrReplaceTempView("t")
        new = {name: f"s.{name}" for name in SET}
        values = ", ".join(
            f"case when t.order_id is null then s.{name} when s.op = 'U' then {new.get(name, 't.' + name)}"
            f" else t.{name} end as {name}"
            for name in COLUMNS
        )
        stays = "case when t.order_id is null then s.op = 'I' else coalesce(s.op, '') <> 'D' end"
        self._swap(self.spark.sql(f"select {values} from t full join s on {_ON} where {stays}"))

    def compact(self) -> None:
        self._swap(self.read())

    def read(self) -> DataFrame:
        return self.load(str(self.path))

    def changes(self, since: Any) -> list[Any]:
        """It knows them by the time of the rows alone."""
        return _total(self.read().where("ts >= 1000000000000"))


class Sql(Table):
    """A table that Spark's MERGE knows by a name."""

    @abstractmethod
    def sql_name(self) -> str: ...

    def merge(self, source: str, days: Sequence[str]) -> None:
        self.load_merge(source).createOrReplaceTempView("s")
        updates = ", ".join(f"{name} = s.{name}" for name in SET)
        values = ", ".join(f"s.{name}" for name in COLUMNS)
        self.spark.sql(
            f"merge into {self.sql_name()} t using s on {_ON}{_in(days)} when matched and s.op = 'D' then delete"
            f" when matched and s.op = 'U' then update set {updates}"
            f" when not matched and s.op = 'I' then insert ({_NAMES}) values ({values})"
        ).collect()


class Merging(Sql):
    """All changes are a MERGE."""

    def _merge(self, source: str, days: Sequence[str], then: str) -> None:
        self.load(source).createOrReplaceTempView("s")
        self.spark.sql(f"merge into {self.sql_name()} t using s on {_ON}{_in(days)} {then}").collect()

    def upsert(self, source: str, days: Sequence[str]) -> None:
        self._merge(source, days, _UPSERT)

    def delete(self, source: str, days: Sequence[str]) -> None:
        self._merge(source, days, "when matched then delete")


class Delta(Merging):
    """Partitions in the condition of MERGE, few partitions of the log's state, deletion vectors for `logs`."""

    format = "delta"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }

    def sql_name(self) -> str:
        return f"delta.`{self.path}`"

    def bulk(self, source: str) -> None:
        vectors = f"'delta.enableDeletionVectors' = '{str(self.logs).lower()}'"
        self.spark.sql(
            f"create table {self.sql_name()} ({_DDL}) using delta partitioned by (ds) tblproperties ({vectors})"
        )
        self.load(source).write.format("delta").mode("append").save(str(self.path))

    def compact(self) -> None:
        self.spark.sql(f"optimize {self.sql_name()}").collect()

    def mark(self) -> Any:
        kept = "'delta.enableChangeDataFeed' = 'true'"
        self.spark.sql(f"alter table {self.sql_name()} set tblproperties ({kept})")
        return self.spark.sql(f"describe history {self.sql_name()} limit 1").collect()[0]["version"]

    def changes(self, since: Any) -> list[Any]:
        reader = self.spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", since + 1)
        return _total(reader.load(str(self.path)).where("_change_type in ('insert', 'update_postimage')"))


class Iceberg(Merging):
    """Partitions in the condition of MERGE, old metadata files go with each commit; copy-on-write, or delete files."""

    settings: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": "WAREHOUSE",
        "spark.sql.catalog.ice.cache-enabled": "false",  # the table is put back as it was between parts
    }

    def at(self, name: str, logs: bool) -> str:
        """Its metadata has absolute paths: a copy works where the table was loaded, and nowhere else."""
        return super().at(f"{name.partition('_')[0]}_{'logs' if logs else 'files'}", logs)

    def sql_name(self) -> str:
        return f"ice.db.{self.name}"

    def read(self) -> DataFrame:
        return self.spark.table(self.sql_name())

    def bulk(self, source: str) -> None:
        mode = "merge-on-read" if self.logs else "copy-on-write"
        properties = {f"write.{verb}.mode": mode for verb in ("merge", "update", "delete")} | {
            "format-version": "2",
            "write.parquet.compression-codec": "snappy",
            "write.metadata.delete-after-commit.enabled": "true",
        }
        kept = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.spark.sql(
            f"create table {self.sql_name()} ({_DDL}) using iceberg partitioned by (ds) tblproperties ({kept})"
        )
        self.load(source).writeTo(self.sql_name()).append()

    def compact(self) -> None:
        options = "map('delete-file-threshold', '1', 'min-input-files', '2')"
        self.spark.sql(
            f"call ice.system.rewrite_data_files(table => '{self.sql_name()}', options => {options})"
        ).collect()

    def mark(self) -> Any:
        newest = f"select snapshot_id from {self.sql_name()}.snapshots order by committed_at desc"
        return self.spark.sql(newest).collect()[0][0]

    def changes(self, since: Any) -> list[Any]:
        view = f"changelog_view => 'changed', options => map('start-snapshot-id', '{since}')"
        self.spark.sql(f"call ice.system.create_changelog_view(table => '{self.sql_name()}', {view})")
        return _total(self.spark.table("changed").where("_change_type = 'INSERT'"))


class Hudi(Sql):
    """The index SIMPLE, which its documentation names for keys without order; tasks as many as cores."""

    format = "hudi"
    settings: ClassVar[Mapping[str, str]] = {
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    }

    def _save(self, source: str, operation: str) -> None:
        stages = ("upsert.shuffle", "insert.shuffle", "bulkinsert.shuffle", "delete.shuffle", "simple.index")
        options = {f"hoodie.{stage}.parallelism": "2" for stage in stages} | {
            "hoodie.table.name": "orders",
            "hoodie.datasource.write.recordkey.field": "order_id",
            "hoodie.datasource.write.partitionpath.field": "ds",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.logs else "COPY_ON_WRITE",
            "hoodie.datasource.compaction.async.enable": "false",
            "hoodie.index.type": "SIMPLE",
            "hoodie.parquet.compression.codec": "snappy",
        }
        self.load(source).write.format("hudi").options(**options).mode("append").save(str(self.path))

    def bulk(self, source: str) -> None:
        self._save(source, "bulk_insert")

    def upsert(self, source: str, days: Sequence[str]) -> None:
        self._save(source, "upsert")

    def delete(self, source: str, days: Sequence[str]) -> None:
        self._save(source, "delete")

    def sql_name(self) -> str:
        self.spark.sql(f"create table if not exists {self.name} using hudi location '{self.path}'")
        return self.name

    def compact(self) -> None:
        for op in ("schedule", "run"):
            self.spark.sql(f"call run_compaction(op => '{op}', path => '{self.path}')").collect()

    def mark(self) -> Any:
        """The name of the newest commit; of tables whose files have it, the time when that was completed."""
        folder = self.path / ".hoodie"
        names = [file.name for place in (folder, folder / "timeline") for file in place.glob("*commit")]
        return max(re.split(r"[_.]", name)[-2] for name in names)

    def changes(self, since: Any) -> list[Any]:
        options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": since}
        return _total(self.spark.read.format("hudi").options(**options).load(str(self.path)))


class Hoodie(Table):
    """This library, as its pages show it. Compactions are asked for, as with the others, not part of a write."""

    _options: ClassVar[Mapping[str, object]] = {
        "hoodie.parquet.compression.codec": "snappy",
        "hoodie.compact.inline": False,
    }

    def start(self, settings: Mapping[str, str]) -> SparkSession:
        from hoodie.spark.session import local_session

        conf: dict[str, object] = {**settings}
        return local_session("spark-peers", cores=2, memory=str(conf.pop("spark.driver.memory")), **conf)

    def _open(self) -> Any:
        import hoodie

        return hoodie.open_table(str(self.path), spark=self.spark, options=self._options)

    def bulk(self, source: str) -> None:
        import hoodie

        hoodie.create_table(
            str(self.path),
            spark=self.spark,
            name="orders",
            record_key="order_id",
            partition_by="ds",
            ordering="ts",
            table_type="MERGE_ON_READ" if self.logs else "COPY_ON_WRITE",
            options=self._options,
        ).bulk_insert(self.load(source))

    def upsert(self, source: str, days: Sequence[str]) -> None:
        self._open().upsert(self.load(source))

    def delete(self, source: str, days: Sequence[str]) -> None:
        self._open().delete(self.load(source))

    def merge(self, source: str, days: Sequence[str]) -> None:
        changes = self.load_merge(source)
        merge = self._open().merge(changes, "target.order_id = source.order_id and target.ds = source.ds")
        merge = merge.when_matched_delete(condition="source.op = 'D'")
        merge = merge.when_matched_update({name: f"source.{name}" for name in SET}, condition="source.op = 'U'")
        values = {name: f"source.{name}" for name in COLUMNS}
        merge.when_not_matched_insert(values, condition="source.op = 'I'").execute()

    def compact(self) -> None:
        self._open().schedule_compaction()
        self._open().compact()

    def read(self) -> DataFrame:
        rows: DataFrame = self._open().snapshot()
        return rows

    def mark(self) -> Any:
        return str(max(instant.requested for instant, _ in self._open().history()))

    def changes(self, since: Any) -> list[Any]:
        return _total(self._open().changes(since))


TABLES = {kind.__name__: kind for kind in (Plain, Hoodie, Delta, Iceberg, Hudi)}
