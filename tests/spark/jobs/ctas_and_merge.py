# CREATE TABLE AS SELECT from Parquet, then MERGE with deletes.
spark.createDataFrame(
    [(1, "a", 5, "n"), (2, "b", 6, "n"), (3, "c", 7, "s")], "id int, name string, ts int, region string"
).write.parquet(base + "_files")
spark.sql(f"""
CREATE TABLE {name} USING hudi TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts', type = 'cow')
PARTITIONED BY (region) LOCATION '{base}' AS SELECT * FROM parquet.`{base}_files`
""")
spark.createDataFrame(
    [(1, "aa", 8, "n", False), (2, None, 8, "n", True), (4, "d", 8, "s", False)],
    "id int, name string, ts int, region string, gone boolean",
).createOrReplaceTempView("changes_of_day")
spark.sql(f"""
MERGE INTO {name} AS t USING changes_of_day AS s ON t.id = s.id
WHEN MATCHED AND s.gone THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.name, ts = s.ts
WHEN NOT MATCHED AND NOT s.gone THEN INSERT (id, name, ts, region) VALUES (s.id, s.name, s.ts, s.region)
""")
rows = sorted(tuple(r) for r in spark.sql(f"SELECT id, name, region FROM {name}").collect())
expected = [(1, "aa", "n"), (3, "c", "s"), (4, "d", "s")]
