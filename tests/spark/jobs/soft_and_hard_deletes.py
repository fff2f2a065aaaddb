# Soft deletes (all but keys null), hard deletes by operation, and by the column _hoodie_is_deleted.
from pyspark.sql.functions import lit

options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
schema = "id int, name string, ts int, p string, _hoodie_is_deleted boolean"
spark.createDataFrame([(n, f"n{n}", 1, "x", False) for n in range(1, 5)], schema).write.format("hudi").options(
    **options
).mode("overwrite").save(base)
spark.createDataFrame([(1, "n1", 2, "x", True)], schema).write.format("hudi").options(**options).mode("append").save(
    base
)
spark.read.format("hudi").load(base).where("id = 2").select("id", "p", "ts").write.format("hudi").options(
    **options
).option("hoodie.datasource.write.operation", "delete").mode("append").save(base)
soft = spark.read.format("hudi").load(base).where("id = 3")
soft = soft.drop(*[c for c in soft.columns if c.startswith("_hoodie_") and c != "_hoodie_is_deleted"]).withColumn(
    "name", lit(None).cast("string")
)
soft.write.format("hudi").options(**options).mode("append").save(base)
rows = sorted((r.id, r.name or "") for r in spark.read.format("hudi").load(base).collect())
expected = [(3, ""), (4, "n4")]
