# Options of a job that shares its table with others.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.client.num_retries": "10",
    "hoodie.write.lock.wait_time_ms": "60000",
}
schema = "id int, name string, ts int"
for batch in ([(1, "a", 1)], [(2, "b", 1)], [(1, "aa", 2)]):
    spark.createDataFrame(batch, schema).write.format("hudi").options(**options).mode("append").save(base)
local = {**options, "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}
spark.createDataFrame([(3, "c", 1)], schema).write.format("hudi").options(**local).mode("append").save(base)
rows = sorted((r.id, r.name) for r in spark.read.format("hudi").load(base).collect())
expected = [(1, "aa"), (2, "b"), (3, "c")]
