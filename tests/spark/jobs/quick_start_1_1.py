# The SQL quick start of 1.1: TBLPROPERTIES in its names, merge modes, partial updates, CALL and metadata queries.
spark.sql(f"""
CREATE TABLE {name} (ts BIGINT, uuid STRING, rider STRING, fare DOUBLE, city STRING) USING hudi
TBLPROPERTIES (type = 'mor', primaryKey = 'uuid', preCombineField = 'ts') PARTITIONED BY (city) LOCATION '{base}'
""")
spark.sql(f"INSERT INTO {name} VALUES (10, 'a', 'rider-A', 1.0, 'sf'), (10, 'b', 'rider-B', 2.0, 'sp')")
spark.sql(f"UPDATE {name} SET fare = 9.0, ts = 11 WHERE uuid = 'a'")
spark.sql(f"""
MERGE INTO {name} t USING (SELECT 'b' AS uuid, 12L AS ts, 'sp' AS city, 5.0D AS fare) s ON t.uuid = s.uuid
WHEN MATCHED THEN UPDATE SET t.fare = s.fare, t.ts = s.ts
""")
spark.sql(f"DELETE FROM {name} WHERE uuid = 'a'")
commits = spark.sql(f"CALL show_commits(table => '{name}', limit => 10)").count()
rows = [commits, [tuple(r) for r in spark.sql(f"SELECT uuid, rider, fare FROM {name}").collect()]]
expected = [4, [("b", "rider-B", 5.0)]]
