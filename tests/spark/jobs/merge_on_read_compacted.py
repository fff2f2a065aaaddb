# Merge-on-Read with inline compaction; both queries before and after.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "3",
    "hoodie.parquet.small.file.limit": "104857600",
    "hoodie.logfile.data.block.format": "parquet",
}
schema, seen = "id int, n int, ts int", []
for n in range(4):
    spark.createDataFrame([(1, n, n)], schema).write.format("hudi").options(**options).mode("append").save(base)
    seen.append(
        [
            spark.read.format("hudi").option("hoodie.datasource.query.type", kind).load(base).first().n
            for kind in ("snapshot", "read_optimized")
        ]
    )
rows = [[pair[0] for pair in seen], seen[1][1], seen[3][1] > 0]
expected = [[0, 1, 2, 3], 0, True]
