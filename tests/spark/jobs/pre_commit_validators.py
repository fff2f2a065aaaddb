# A validator that stops a batch which would leave a negative amount.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "SELECT count(*) FROM <TABLE_NAME> WHERE amount < 0#0",
}
schema = "id int, amount int, ts int"
spark.createDataFrame([(1, 5, 1)], schema).write.format("hudi").options(**options).mode("append").save(base)
stopped = False
try:
    spark.createDataFrame([(2, -5, 1)], schema).write.format("hudi").options(**options).mode("append").save(base)
except Exception as problem:
    stopped = type(problem).__name__ != "InvalidOption"
rows = [stopped, [r.id for r in spark.read.format("hudi").load(base).collect()]]
expected = [True, [1]]
