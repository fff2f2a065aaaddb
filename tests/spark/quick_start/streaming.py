# Hudi's guide to streaming writes for PySpark: a stream of a table's changes into another table.
streamingTableName = "hudi_trips_cow_streaming"
baseStreamingPath = basePath + "_streaming"
checkpointLocation = basePath + "_checkpoints"

hudi_streaming_options = {
    "hoodie.table.name": streamingTableName,
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.table.name": streamingTableName,
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.insert.shuffle.parallelism": 2,
}

# create streaming df
df = spark.readStream.format("hudi").load(basePath)

# write stream to new hudi table
df.writeStream.format("hudi").options(**hudi_streaming_options).outputMode("append").option(
    "path", baseStreamingPath
).option("checkpointLocation", checkpointLocation).trigger(once=True).start()
