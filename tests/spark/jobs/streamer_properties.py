# The properties of a Hudi Streamer job, given to a write of the data source.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.deltastreamer.source.dfs.root": "/data/in",
    "hoodie.deltastreamer.schemaprovider.source.schema.file": "/schemas/in.avsc",
    "hoodie.streamer.source.kafka.topic": "events",
    "auto.offset.reset": "earliest",
    "bootstrap.servers": "broker:9092",
    "schema.registry.url": "http://registry:8081",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
spark.createDataFrame([(1, "2024-01-01", 1)], "id int, dt string, ts int").write.format("hudi").options(**options).mode(
    "append"
).save(base)
rows = [r._hoodie_partition_path for r in spark.read.format("hudi").load(base).collect()]
expected = ["dt=2024-01-01"]
