# A notebook: views of a table that keep up, SHOW TABLES, caching, joins with plain frames, toPandas.
spark.sql(f"CREATE TABLE {name} (id INT, v INT) USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{base}'")
spark.sql(f"INSERT INTO {name} VALUES (1, 1), (2, 2)")
spark.sql(f"CREATE OR REPLACE VIEW {name}_view AS SELECT id, v * 10 AS v FROM {name}")
spark.sql(f"INSERT INTO {name} VALUES (3, 3)")
other = spark.createDataFrame([(1, "one"), (3, "three")], "id int, word string")
joined = spark.table(name).join(other, "id").orderBy("id").toPandas()["word"].tolist()
listed = name in [r.tableName for r in spark.sql("SHOW TABLES").collect()]
rows = [joined, listed, sorted(r.v for r in spark.sql(f"SELECT * FROM {name}_view").collect())]
expected = [["one", "three"], True, [10, 20, 30]]
