# The DataFrame quick start of 0.15: no key at first, upserts by key, deletes of rows and of partitions, CDC.
data = [(1, "a", "rider-A", 19.1, "sf"), (2, "b", "rider-C", 27.7, "sf"), (3, "c", "rider-F", 34.15, "sp")]
inserts = spark.createDataFrame(data, "ts long, uuid string, rider string, fare double, city string")
inserts.write.format("hudi").options(
    **{
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.table.name": name + "_keyless",
    }
).mode("overwrite").save(base + "_keyless")
cdc = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.cdc.enabled": "true",
}
inserts.write.format("hudi").options(**cdc).mode("overwrite").save(base)
first = spark.read.format("hudi").load(base).selectExpr("max(_hoodie_commit_time)").first()[0]
adjusted = (
    spark.read.format("hudi")
    .load(base)
    .where("rider = 'rider-C'")
    .selectExpr("ts + 1 as ts", "uuid", "rider", "fare * 10 as fare", "city")
)
adjusted.write.format("hudi").options(**cdc).mode("append").save(base)
spark.read.format("hudi").load(base).filter("rider = 'rider-F'").write.format("hudi").option(
    "hoodie.datasource.write.operation", "delete"
).options(**cdc).mode("append").save(base)
changes = (
    spark.read.format("hudi")
    .option("hoodie.datasource.query.incremental.format", "cdc")
    .option("hoodie.datasource.query.type", "incremental")
    .option("hoodie.datasource.read.begin.instanttime", first)
    .load(base)
)
rows = [
    spark.read.format("hudi").load(base + "_keyless").count(),
    sorted(r.op for r in changes.collect()),
    sorted((r.rider, r.fare) for r in spark.read.format("hudi").load(base).collect()),
]
expected = [3, ["d", "u"], [("rider-A", 19.1), ("rider-C", 277.0)]]
