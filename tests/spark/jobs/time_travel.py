# Reads as of instants in all forms that jobs use.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}
schema, instants = "id int, ts int", []
for n in (1, 2, 3):
    spark.createDataFrame([(n, n)], schema).write.format("hudi").options(**options).mode("append").save(base)
    instants.append(spark.read.format("hudi").load(base).agg({"_hoodie_commit_time": "max"}).first()[0])
t = instants[1]
forms = [t, f"{t[:4]}-{t[4:6]}-{t[6:8]} {t[8:10]}:{t[10:12]}:{t[12:14]}.{t[14:]}"]
rows = [spark.read.format("hudi").option("as.of.instant", form).load(base).count() for form in forms]
rows.append(spark.read.format("hudi").option("as.of.instant", "2099-01-01").load(base).count())
expected = [2, 2, 3]
