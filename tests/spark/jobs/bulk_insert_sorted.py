# A first load by bulk insert, sorted, then upserts with Bloom filters.
load = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.bulkinsert.sort.mode": "PARTITION_SORT",
    "hoodie.datasource.write.row.writer.enable": "true",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.combine.before.insert": "false",
}
df = spark.range(200).selectExpr("id", "id % 4 as part", "0 as ts", "cast(id as string) as name")
df.write.format("hudi").options(**load).mode("overwrite").save(base)
upsert = {
    **load,
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.index.type": "BLOOM",
    "hoodie.bloom.index.prune.by.ranges": "true",
    "hoodie.bloom.index.bucketized.checking": "true",
}
df.where("id < 10").selectExpr("id", "part", "1 as ts", "'new' as name").write.format("hudi").options(**upsert).mode(
    "append"
).save(base)
read = spark.read.format("hudi").load(base)
rows = [read.count(), read.where("name = 'new'").count(), read.where("part = 3").count()]
expected = [200, 10, 50]
