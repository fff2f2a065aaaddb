# Change files of AWS DMS, with the column Op: I, U and D.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "dms_ts",
    "hoodie.datasource.write.payload.class": "org.apache.hudi.payload.AWSDmsAvroPayload",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
}
schema = "Op string, id int, name string, dms_ts string"
full = spark.createDataFrame(
    [("I", 1, "a", "2024-01-01"), ("I", 2, "b", "2024-01-01"), ("I", 3, "c", "2024-01-01")], schema
)
full.write.format("hudi").options(**options).mode("overwrite").save(base)
changes = spark.createDataFrame(
    [("U", 1, "aa", "2024-01-02"), ("D", 2, "b", "2024-01-02"), ("I", 4, "d", "2024-01-02")], schema
)
changes.write.format("hudi").options(**options).mode("append").save(base)
rows = sorted((r.id, r.name) for r in spark.read.format("hudi").load(base).collect())
expected = [(1, "aa"), (3, "c"), (4, "d")]
