# The DataFrame quick start of 0.5: org.apache.hudi, globs, the old names of query types, a payload that deletes.
def trips(*rows):
    return spark.createDataFrame(rows, "uuid string, ts double, rider string, fare double, partitionpath string")


options = {
    "hoodie.insert.shuffle.parallelism": "2",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.delete.shuffle.parallelism": "2",
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "partitionpath",
    "hoodie.datasource.write.table.name": name,
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.precombine.field": "ts",
}
a, b = "americas/brazil/sao_paulo", "asia/india/chennai"
df = trips(("1", 0.0, "r-1", 10.0, a), ("2", 0.0, "r-1", 30.0, a), ("3", 0.0, "r-1", 50.0, b))
df.write.format("org.apache.hudi").options(**options).mode("overwrite").save(base)
spark.read.format("org.apache.hudi").load(base + "/*/*/*/*").createOrReplaceTempView("hudi_ro_table")
spark.sql("select fare, rider, ts from hudi_ro_table where fare > 20.0").collect()
upsert = {**options, "hoodie.datasource.write.operation": "upsert"}
trips(("1", 1.0, "r-2", 11.0, a)).write.format("org.apache.hudi").options(**upsert).mode("append").save(base)
roView = spark.read.format("org.apache.hudi").load(base + "/*/*/*/*")
roView.createOrReplaceTempView("hudi_ro_table")
commits = [
    r[0]
    for r in spark.sql("select distinct(_hoodie_commit_time) as commitTime from hudi_ro_table order by commitTime")
    .limit(50)
    .collect()
]
incremental = (
    spark.read.format("org.apache.hudi")
    .options(
        **{
            "hoodie.datasource.view.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": commits[0],
        }
    )
    .load(base)
)
point = (
    spark.read.format("org.apache.hudi")
    .options(
        **{
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": "000",
            "hoodie.datasource.read.end.instanttime": commits[0],
        }
    )
    .load(base)
)
changed, then = [r.uuid for r in incremental.collect()], sorted(r.rider for r in point.collect())
gone = {**upsert, "hoodie.datasource.write.payload.class": "org.apache.hudi.EmptyHoodieRecordPayload"}
roView.filter("uuid = '3'").drop(*[c for c in roView.columns if c.startswith("_hoodie")]).write.format(
    "org.apache.hudi"
).options(**gone).mode("append").save(base)
rows = [changed, then, sorted((r.uuid, r.fare) for r in spark.read.format("hudi").load(base + "/*/*/*/*").collect())]
expected = [["1"], ["r-1", "r-1", "r-1"], [("1", 11.0), ("2", 30.0)]]
