# A stream of files whose batches are upserted by foreachBatch.
schema = "id int, name string, ts int"
for number, batch in enumerate([[(1, "a", 1), (2, "b", 1)], [(2, "bb", 2), (3, "c", 2)]]):
    spark.createDataFrame(batch, schema).coalesce(1).write.mode("append").json(base + "_in")

    def upsert(df, epoch):
        df.write.format("hudi").option("hoodie.table.name", name).option(
            "hoodie.datasource.write.recordkey.field", "id"
        ).option("hoodie.datasource.write.precombine.field", "ts").option(
            "hoodie.datasource.write.operation", "upsert"
        ).mode("append").save(base)

    query = (
        spark.readStream.schema(schema)
        .json(base + "_in")
        .writeStream.foreachBatch(upsert)
        .option("checkpointLocation", base + "_checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
rows = sorted((r.id, r.name) for r in spark.read.format("hudi").load(base).collect())
expected = [(1, "a"), (2, "bb"), (3, "c")]
