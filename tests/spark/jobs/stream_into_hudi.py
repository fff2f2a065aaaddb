# writeStream.format("hudi") into a Merge-on-Read table, and a stream that reads it.
schema = "id int, name string, ts int"
spark.createDataFrame([(1, "a", 1), (2, "b", 1), (1, "aa", 2)], schema).coalesce(1).write.json(base + "_in")
hudi = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.streaming.ignore.failed.batch": "false",
    "hoodie.compact.inline": "false",
    "hoodie.datasource.compaction.async.enable": "false",
}
spark.readStream.schema(schema).json(base + "_in").writeStream.format("hudi").options(**hudi).outputMode(
    "append"
).option("checkpointLocation", base + "_checkpoint").trigger(once=True).option("path", base).start().awaitTermination()
spark.readStream.format("hudi").load(base).writeStream.format("parquet").option(
    "checkpointLocation", base + "_checkpoint_out"
).trigger(availableNow=True).start(base + "_out").awaitTermination()
rows = [
    sorted((r.id, r.name) for r in spark.read.format("hudi").load(base).collect()),
    spark.read.parquet(base + "_out").count(),
]
expected = [[(1, "aa"), (2, "b")], 2]
