# A dimension of type 2: the current row is closed, a new one is added, in one upsert.
from pyspark.sql import functions as F

options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "customer_id,valid_from",
    "hoodie.datasource.write.precombine.field": "updated_at",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
}
first = spark.createDataFrame([(1, "oslo"), (2, "rome")], "customer_id int, city string").selectExpr(
    "customer_id",
    "city",
    "date'2024-01-01' valid_from",
    "cast(null as date) valid_to",
    "true is_current",
    "1 updated_at",
)
first.write.format("hudi").options(**options).mode("overwrite").save(base)
updates = spark.createDataFrame([(1, "bern"), (3, "kyiv")], "customer_id int, city string")
current = spark.read.format("hudi").load(base).where("is_current").select(*first.columns)
changed = current.alias("c").join(updates.alias("u"), "customer_id").where("c.city <> u.city")
closed = changed.selectExpr(
    "customer_id", "c.city", "valid_from", "date'2024-06-01' valid_to", "false is_current", "2 updated_at"
)
opened = updates.selectExpr(
    "customer_id",
    "city",
    "date'2024-06-01' valid_from",
    "cast(null as date) valid_to",
    "true is_current",
    "2 updated_at",
)
closed.unionByName(opened).write.format("hudi").options(**options).mode("append").save(base)
rows = sorted((r.customer_id, r.city, r.is_current) for r in spark.read.format("hudi").load(base).collect())
expected = [(1, "bern", True), (1, "oslo", False), (2, "rome", True), (3, "kyiv", True)]
