# A batch that is taken back: savepoint, bad load, restore by CALL; a cleaner and archiver that are tuned.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.clean.automatic": "true",
    "hoodie.cleaner.commits.retained": "2",
    "hoodie.keep.min.commits": "3",
    "hoodie.keep.max.commits": "4",
    "hoodie.clean.async": "false",
    "hoodie.archive.automatic": "true",
}
schema = "id int, name string, ts int"


def write(data):
    spark.createDataFrame(data, schema).write.format("hudi").options(**options).mode("append").save(base)


for n in range(3):
    write([(n, "good", n)])
newest = spark.sql(f"CALL show_commits(path => '{base}', limit => 1)").first()[0]
spark.sql(f"CALL create_savepoint(path => '{base}', commit_time => '{newest}')")
write([(0, "bad", 9)])
spark.sql(f"CALL rollback_to_savepoint(path => '{base}', instant_time => '{newest}')")
rows = sorted((r.id, r.name) for r in spark.read.format("hudi").load(base).collect())
expected = [(0, "good"), (1, "good"), (2, "good")]
