# insert_overwrite of a day, insert_overwrite_table, delete_partition.
options = {
    "hoodie.table.name": name,
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "dt",
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
schema = "id int, ts int, dt string"


def write(operation, data, **more):
    spark.createDataFrame(data, schema).write.format("hudi").options(**options, **more).option(
        "hoodie.datasource.write.operation", operation
    ).mode("append").save(base)


def ids():
    return sorted(r.id for r in spark.read.format("hudi").load(base).collect())


write("upsert", [(1, 1, "d1"), (2, 1, "d1"), (3, 1, "d2"), (4, 1, "d3")])
write("insert_overwrite", [(5, 1, "d1")])
rows = [ids()]
write("delete_partition", [], **{"hoodie.datasource.write.partitions.to.delete": "dt=d2"})
rows.append(ids())
write("delete_partition", [(0, 0, "d3"), (1, 0, "d3")])
rows.append(ids())
write("insert_overwrite_table", [(6, 1, "d9")])
rows.append(ids())
expected = [[3, 4, 5], [4, 5], [5], [6]]
