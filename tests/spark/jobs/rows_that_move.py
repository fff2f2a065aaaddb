# A global index: a row that comes in another partition moves.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.index.type": "GLOBAL_BLOOM",
    "hoodie.bloom.index.update.partition.path": "true",
}
schema = "id int, city string, ts int"
for batch in ([(1, "oslo", 1), (2, "rome", 1)], [(1, "bern", 2)]):
    spark.createDataFrame(batch, schema).write.format("hudi").options(**options).mode("append").save(base)
rows = sorted((r.id, r.city) for r in spark.read.format("hudi").load(base).collect())
expected = [(1, "bern"), (2, "rome")]
