# TimestampBasedKeyGenerator: seconds since 1970 as folders of days.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "at",
    "hoodie.datasource.write.partitionpath.field": "at",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}
spark.createDataFrame([(1, 1704067200000), (2, 1704153600000)], "id int, at long").write.format("hudi").options(
    **options
).mode("append").save(base)
spark.createDataFrame([(2, 1704153600001)], "id int, at long").write.format("hudi").options(**options).mode(
    "append"
).save(base)
rows = sorted((r.id, r._hoodie_partition_path) for r in spark.read.format("hudi").load(base).collect())
expected = [(1, "2024/01/01"), (2, "2024/01/02")]
