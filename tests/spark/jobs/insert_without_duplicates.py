# Logs that are inserted once, whatever comes again.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.insert.drop.duplicates": "true",
    "hoodie.combine.before.insert": "true",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}
schema = "id string, body string, ts int"
for batch in ([("a", "1", 1), ("a", "2", 2), ("b", "1", 1)], [("a", "9", 9), ("c", "1", 1)]):
    spark.createDataFrame(batch, schema).write.format("hudi").options(**options).mode("append").save(base)
rows = sorted((r.id, r.body) for r in spark.read.format("hudi").load(base).collect())
expected = [("a", "2"), ("b", "1"), ("c", "1")]
