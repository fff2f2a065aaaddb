# PartialUpdateAvroPayload: nulls leave the stored value.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
}
schema = "id int, name string, qty int, ts int"
for batch in ([(1, "a", 1, 1)], [(1, None, 5, 2)], [(1, "c", None, 3)]):
    spark.createDataFrame(batch, schema).write.format("hudi").options(**options).mode("append").save(base)
rows = [(r.name, r.qty) for r in spark.read.format("hudi").load(base).collect()]
expected = [("c", 5)]
