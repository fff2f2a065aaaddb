# CustomKeyGenerator: several keys, a plain and a time partition.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id,kind",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "country:simple,at:timestamp",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
    "hoodie.deltastreamer.keygen.timebased.timestamp.type": "DATE_STRING",
    "hoodie.deltastreamer.keygen.timebased.input.dateformat": "yyyy-MM-dd",
    "hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyyMM",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
schema = "id int, kind string, ts int, country string, at string"
spark.createDataFrame([(1, "a", 1, "no", "2024-01-31"), (1, "b", 1, "it", "2024-02-01")], schema).write.format(
    "hudi"
).options(**options).mode("append").save(base)
spark.createDataFrame([(1, "a", 2, "no", "2024-01-31")], schema).write.format("hudi").options(**options).mode(
    "append"
).save(base)
rows = sorted(
    (r._hoodie_record_key, r._hoodie_partition_path, r.ts) for r in spark.read.format("hudi").load(base).collect()
)
expected = [("id:1,kind:a", "country=no/at=202401", 2), ("id:1,kind:b", "country=it/at=202402", 1)]
