# saveAsTable, spark.table, UPDATE by name, insertInto.
df = spark.createDataFrame([(1, "a", 1), (2, "b", 1)], "id int, name string, ts int")
df.write.format("hudi").option("path", base).option("hoodie.datasource.write.recordkey.field", "id").option(
    "hoodie.datasource.write.precombine.field", "ts"
).option("hoodie.table.name", name).mode("overwrite").saveAsTable(name)
spark.sql(f"UPDATE {name} SET name = 'bb' WHERE id = 2")
spark.createDataFrame([(3, "c", 1)], "id int, name string, ts int").write.insertInto(name)
rows = [spark.catalog.tableExists(name), sorted((r.id, r.name) for r in spark.table(name).collect())]
spark.sql(f"DROP TABLE {name}")
expected = [True, [(1, "a"), (2, "bb"), (3, "c")]]
