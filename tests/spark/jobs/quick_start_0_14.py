# The SQL quick start of 0.14: a table without a key, UPDATE, MERGE, DELETE, time travel, changes.
spark.sql(f"""
CREATE TABLE {name} (ts BIGINT, uuid STRING, rider STRING, driver STRING, fare DOUBLE, city STRING)
USING HUDI PARTITIONED BY (city) LOCATION '{base}'
""")
spark.sql(f"""
INSERT INTO {name} VALUES
(1695159649087, '334e26e9', 'rider-A', 'driver-K', 19.10, 'san_francisco'),
(1695091554788, 'e96c4396', 'rider-C', 'driver-M', 27.70, 'san_francisco'),
(1695516137016, 'e3cf430c', 'rider-F', 'driver-P', 34.15, 'sao_paulo'),
(1695115999911, 'c8abbe79', 'rider-J', 'driver-T', 17.85, 'chennai')
""")
first = spark.sql(f"SELECT max(_hoodie_commit_time) FROM {name}").first()[0]
spark.sql(f"UPDATE {name} SET fare = 25.0 WHERE rider = 'rider-J'")
spark.sql("CREATE OR REPLACE TEMP VIEW fare_adjustment AS SELECT * FROM VALUES ('334e26e9', 10.9) AS v(uuid, fare)")
spark.sql(f"""
MERGE INTO {name} AS target USING fare_adjustment AS source ON target.uuid = source.uuid
WHEN MATCHED THEN UPDATE SET target.fare = target.fare + source.fare
""")
spark.sql(f"DELETE FROM {name} WHERE uuid = 'e3cf430c'")
then = [r[0] for r in spark.sql(f"SELECT fare FROM {name} TIMESTAMP AS OF '{first}' WHERE rider = 'rider-J'").collect()]
changes = sorted(
    r[0] for r in spark.sql(f"SELECT rider FROM hudi_table_changes('{name}', 'latest_state', '{first}')").collect()
)
rows = [then, changes, sorted((r[0], r[1]) for r in spark.sql(f"SELECT rider, round(fare, 2) FROM {name}").collect())]
expected = [[17.85], ["rider-A", "rider-J"], [("rider-A", 30.0), ("rider-C", 27.7), ("rider-J", 25.0)]]
