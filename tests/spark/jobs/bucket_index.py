# A bucket index on a Merge-on-Read table.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "4",
    "hoodie.storage.layout.type": "BUCKET",
    "hoodie.storage.layout.partitioner.class": "org.apache.hudi.table.action.commit.SparkBucketIndexPartitioner",
}
spark.range(40).selectExpr("id", "0 ts", "'old' name").write.format("hudi").options(**options).mode("append").save(base)
spark.range(5).selectExpr("id", "1 ts", "'new' name").write.format("hudi").options(**options).mode("append").save(base)
rows = [tuple(r) for r in spark.read.format("hudi").load(base).groupBy("name").count().orderBy("name").collect()]
expected = [("new", 5), ("old", 35)]
