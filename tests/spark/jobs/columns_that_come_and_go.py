# Batches with a new column, and with one less, reconciled.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.reconcile.schema": "true",
    "hoodie.schema.on.read.enable": "true",
}


def write(data, schema):
    spark.createDataFrame(data, schema).write.format("hudi").options(**options).mode("append").save(base)


write([(1, "a", 1)], "id int, name string, ts int")
write([(2, "b", 1, 5)], "id int, name string, ts int, score int")
write([(1, "aa", 2)], "id int, name string, ts int")
rows = sorted((r.id, r.name, r.score or 0) for r in spark.read.format("hudi").load(base).collect())
expected = [(1, "aa", 0), (2, "b", 5)]
