"""Options of jobs in the form that public Hudi jobs have, and what becomes of each here."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """One job's options for a write of rows with `id`, `name`, `city`, `qty` and `ts`.

    refused  options that the error has to name, all at once; () when the job runs as it is
    unknown  names among these that Hudi does not have
    about_rows  some of those refused decide about rows: no call goes on without them
    """

    name: str
    options: Mapping[str, object]
    mode: str = "append"
    refused: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    about_rows: bool = False


_BASE = {
    "hoodie.table.name": "stock",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
_PARTITIONED = {**_BASE, "hoodie.datasource.write.partitionpath.field": "city"}
_HIVE = {
    "hoodie.datasource.hive_sync.database": "default",
    "hoodie.datasource.hive_sync.table": "stock",
    "hoodie.datasource.hive_sync.partition_fields": "city",
    "hoodie.datasource.hive_sync.partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
    "hoodie.datasource.hive_sync.use_jdbc": "false",
    "hoodie.datasource.hive_sync.mode": "hms",
}

JOBS = [
    Job(
        "quick start",
        {
            **_PARTITIONED,
            "hoodie.datasource.write.table.name": "stock",
            "hoodie.datasource.write.operation": "upsert",
            "hoodie.upsert.shuffle.parallelism": 2,
            "hoodie.insert.shuffle.parallelism": 2,
        },
        mode="Overwrite",
    ),
    Job(
        "glue connector with sync off",
        {
            **_PARTITIONED,
            **_HIVE,
            "className": "org.apache.hudi",
            "path": "{path}",
            "connectionName": "hudi-connection",
            "hoodie.datasource.hive_sync.enable": "false",
            "hoodie.consistency.check.enabled": "true",
            "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
            "hoodie.cleaner.commits.retained": 10,
        },
    ),
    Job(
        "glue with sync and metrics on",
        {
            **_PARTITIONED,
            **_HIVE,
            "className": "org.apache.hudi",
            "hoodie.datasource.hive_sync.enable": "true",
            "hoodie.metrics.on": True,
            "hoodie.metrics.reporter.type": "CLOUDWATCH",
        },
        refused=("hoodie.metrics.on",),
    ),
    Job(
        "names without their beginning",
        {
            **_PARTITIONED,
            "hive_sync.enable": "true",
            "hive_sync.db": "default",
            "hive_sync.table": "stock",
            "hive_sync.partition_fields": "city",
        },
    ),
    Job(
        "bulk load with the row writer",
        {
            **_PARTITIONED,
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.datasource.write.row.writer.enable": "true",
            "hoodie.bulkinsert.shuffle.parallelism": "200",
            "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
            "hoodie.combine.before.insert": "true",
            "hoodie.parquet.compression.codec": "snappy",
            "hoodie.parquet.writelegacyformat.enabled": "false",
            "hoodie.parquet.outputtimestamptype": "TIMESTAMP_MICROS",
        },
    ),
    Job(
        "merge on read with inline compaction",
        {
            **_PARTITIONED,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.compact.inline": "true",
            "hoodie.compact.inline.max.delta.commits": "2",
            "hoodie.datasource.compaction.async.enable": "false",
            "hoodie.compaction.lazy.block.read": "true",
            "hoodie.memory.merge.fraction": "0.8",
            "hoodie.common.spillable.diskmap.type": "ROCKS_DB",
        },
    ),
    Job(
        "inline clustering",
        {
            **_PARTITIONED,
            "hoodie.clustering.inline": "true",
            "hoodie.clustering.inline.max.commits": "4",
            "hoodie.clustering.plan.strategy.target.file.max.bytes": "1073741824",
            "hoodie.clustering.plan.strategy.small.file.limit": "629145600",
            "hoodie.clustering.plan.strategy.sort.columns": "qty",
        },
        refused=("hoodie.clustering.inline",),
    ),
    Job(
        "async clustering and metadata indexes",
        {
            **_PARTITIONED,
            "hoodie.clustering.async.enabled": "true",
            "hoodie.clustering.async.max.commits": "2",
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.column.stats.column.list": "qty",
            "hoodie.metadata.index.bloom.filter.enable": "true",
            "hoodie.enable.data.skipping": "true",
        },
        refused=("hoodie.clustering.async.enabled",),
    ),
    Job(
        "a cleaner and archiver that are tuned",
        {
            **_BASE,
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.datasource.hive_sync.partition_extractor_class": "org.apache.hudi.hive.NonPartitionedExtractor",
            "hoodie.clean.automatic": "true",
            "hoodie.clean.async": "true",
            "hoodie.clean.commits.retained": "5",
            "hoodie.cleaner.parallelism": "200",
            "hoodie.keep.min.commits": "20",
            "hoodie.keep.max.commits": "30",
            "hoodie.archive.async": "true",
            "hoodie.archive.merge.enable": "true",
        },
    ),
    Job(
        "metrics to a push gateway",
        {
            **_BASE,
            "hoodie.metrics.on": "true",
            "hoodie.metrics.reporter.type": "PROMETHEUS_PUSHGATEWAY",
            "hoodie.metrics.pushgateway.host": "gateway",
            "hoodie.metrics.pushgateway.port": "9091",
        },
        refused=("hoodie.metrics.on",),
    ),
    Job(
        "change data capture",
        {
            **_PARTITIONED,
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE_AFTER",
        },
    ),
    Job(
        "a complex key with folders as Hive has them",
        {
            "hoodie.table.name": "stock",
            "hoodie.datasource.write.storage.type": "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": "id,name",
            "hoodie.datasource.write.partitionpath.field": "city,qty",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.embed.timeline.server": "false",
            "hoodie.write.markers.type": "DIRECT",
            "hoodie.filesystem.view.type": "EMBEDDED_KV_STORE",
        },
    ),
    Job(
        "release 1.x names",
        {
            "hoodie.table.name": "stock",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
            "hoodie.clean.failed.writes.policy": "LAZY",
            "hoodie.write.table.version": "6",
            "hoodie.write.auto.upgrade": "false",
            "hoodie.file.group.reader.enabled": "true",
        },
    ),
    Job(
        "release 1.x tables",
        {**_BASE, "hoodie.write.table.version": "8", "hoodie.metadata.record.index.enable": "true"},
    ),
    Job(
        "a record index",
        {**_BASE, "hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"},
    ),
    Job(
        "an index that is unknown here",
        {**_BASE, "hoodie.index.type": "INMEMORY"},
        refused=("hoodie.index.type",),
        about_rows=True,
    ),
    Job(
        "two writers with a lock in files",
        {
            **_PARTITIONED,
            "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
            "hoodie.cleaner.policy.failed.writes": "LAZY",
            "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
            "hoodie.write.lock.filesystem.expire": "10",
            "hoodie.write.concurrency.early.conflict.detection.enable": "true",
        },
    ),
    Job(
        "a schema that changes",
        {
            **_PARTITIONED,
            "hoodie.datasource.write.reconcile.schema": "true",
            "hoodie.avro.schema.validate": "true",
            "hoodie.write.set.null.for.missing.columns": "true",
            "hoodie.schema.on.read.enable": "true",
        },
    ),
    Job(
        "inserts without duplicates",
        {
            **_PARTITIONED,
            "hoodie.datasource.write.operation": "insert",
            "hoodie.datasource.write.insert.drop.duplicates": "true",
            "hoodie.datasource.insert.dup.policy": "drop",
        },
    ),
    Job(
        "a properties file of Hudi Streamer",
        {
            **_PARTITIONED,
            "hoodie.streamer.source.dfs.root": "s3://bucket/raw",
            "hoodie.deltastreamer.schemaprovider.source.schema.file": "s3://bucket/schema.avsc",
            "hoodie.deltastreamer.source.kafka.topic": "stock",
            "bootstrap.servers": "broker:9092",
            "auto.offset.reset": "earliest",
        },
    ),
    Job(
        "an old template of EMR",
        {
            **_PARTITIONED,
            "hoodie.table.version": "4",
            "hoodie.datasource.write.commitmeta.key.prefix": "_",
            "hoodie.datasource.write.insert.drop.duplicates": "false",
            "hoodie.datasource.hive_sync.enable": False,
            "hoodie.datasource.hive_sync.support_timestamp": "false",
            "hoodie.metrics.on": "false",
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.metrics.enable": "false",
            "hoodie.clustering.inline": "false",
            "hoodie.index.bloom.num_entries": 60000,
            "hoodie.bloom.index.use.caching": "true",
            "hoodie.copyonwrite.record.size.estimate": "256",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "mergeSchema": "true",
        },
    ),
    Job(
        "names that are misspelt",
        {
            **_BASE,
            "hoodie.cleaner.comits.retained": "5",
            "hoodie.datasource.hive_sync.db": "default",
            "hoodie.clustering.inlin": "true",
            "hoodie.metrics.on": "true",
        },
        refused=(
            "hoodie.cleaner.comits.retained",
            "hoodie.clustering.inlin",
            "hoodie.metrics.on",
        ),
        unknown=("hoodie.cleaner.comits.retained", "hoodie.clustering.inlin"),
    ),
    Job(
        "a table that is deleted from",
        {
            **_PARTITIONED,
            "hoodie.datasource.write.operation": "delete",
            "hoodie.delete.shuffle.parallelism": "2",
            "hoodie.combine.before.delete": "true",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
        },
    ),
]
