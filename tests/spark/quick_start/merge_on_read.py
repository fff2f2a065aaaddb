# Hudi's guide to table types and SQL, in PySpark: a Merge-on-Read table, its two views, overwritten partitions.
hudi_options = {
    "hoodie.table.name": tableName,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
columns = ["ts", "uuid", "rider", "fare", "city"]
first = spark.createDataFrame(
    [(1, "a", "rider-A", 10.0, "oslo"), (1, "b", "rider-B", 20.0, "rome"), (1, "c", "rider-C", 30.0, "rome")], columns
)
first.write.format("org.apache.hudi").options(**hudi_options).mode("overwrite").save(basePath)

updates = spark.createDataFrame([(2, "a", "rider-A", 11.0, "oslo")], columns)
updates.write.format("org.apache.hudi").options(**hudi_options).mode("append").save(basePath)

optimized = spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized").load(basePath)
snapshot = spark.read.format("hudi").option("hoodie.datasource.query.type", "snapshot").load(basePath + "/*")
fares = [sorted(row.fare for row in df.collect()) for df in (optimized, snapshot)]

overwrites = spark.createDataFrame([(3, "d", "rider-D", 40.0, "rome")], columns)
overwrites.write.format("hudi").options(**hudi_options).option(
    "hoodie.datasource.write.operation", "insert_overwrite"
).mode("append").save(basePath)
