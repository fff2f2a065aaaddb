# A Glue job: options in two dicts, hive sync off by its flag, the connector's own keys.
common = {
    "className": "org.apache.hudi",
    "hoodie.datasource.hive_sync.use_jdbc": "false",
    "hoodie.datasource.write.precombine.field": "update_ts",
    "hoodie.datasource.write.recordkey.field": "pk",
    "hoodie.table.name": name,
    "hoodie.consistency.check.enabled": "true",
    "hoodie.datasource.hive_sync.database": "default",
    "hoodie.datasource.hive_sync.table": name,
    "hoodie.datasource.hive_sync.enable": "false",
}
partitioned = {
    "hoodie.datasource.write.partitionpath.field": "year,month",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.hive_sync.partition_extractor_class": "org.apache.hudi.hive.MultiPartKeysValueExtractor",
    "hoodie.datasource.hive_sync.partition_fields": "year,month",
}
initial = {"hoodie.bulkinsert.shuffle.parallelism": 3, "hoodie.datasource.write.operation": "bulk_insert"}
later = {
    "hoodie.upsert.shuffle.parallelism": 3,
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.cleaner.policy": "KEEP_LATEST_COMMITS",
    "hoodie.cleaner.commits.retained": 10,
}
schema = "pk int, amount int, update_ts timestamp, year int, month int"
from datetime import datetime

spark.createDataFrame(
    [(1, 10, datetime(2024, 1, 5), 2024, 1), (2, 20, datetime(2024, 2, 5), 2024, 2)], schema
).write.format("org.apache.hudi").options(**{**common, **partitioned, **initial}).mode("Overwrite").save(base)
spark.createDataFrame(
    [(1, 11, datetime(2024, 1, 6), 2024, 1), (3, 30, datetime(2024, 2, 6), 2024, 2)], schema
).write.format("org.apache.hudi").options(**{**common, **partitioned, **later}).mode("Append").save(base)
rows = sorted(
    (r.pk, r.amount, r._hoodie_partition_path) for r in spark.read.format("org.apache.hudi").load(base).collect()
)
expected = [(1, 11, "year=2024/month=1"), (2, 20, "year=2024/month=2"), (3, 30, "year=2024/month=2")]
