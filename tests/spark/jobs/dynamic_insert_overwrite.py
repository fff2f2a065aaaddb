# An ETL by SQL: SET, static and dynamic partitions, INSERT OVERWRITE, CALL.
spark.sql("SET hoodie.upsert.shuffle.parallelism = 2")
spark.sql(f"""
CREATE TABLE {name} (id INT, amount DECIMAL(10, 2), ts TIMESTAMP, dt DATE) USING hudi
TBLPROPERTIES (type = 'cow', primaryKey = 'id', preCombineField = 'ts') PARTITIONED BY (dt) LOCATION '{base}'
""")
spark.sql(f"INSERT INTO {name} SELECT 1, 1.50, timestamp'2024-01-01 10:00:00', date'2024-01-01'")
spark.sql(f"INSERT INTO {name} PARTITION (dt) SELECT 2, 2.50, timestamp'2024-01-02 10:00:00', date'2024-01-02'")
spark.sql("SET spark.sql.sources.partitionOverwriteMode = dynamic")
spark.sql(f"INSERT OVERWRITE TABLE {name} SELECT 3, 3.50, timestamp'2024-01-02 11:00:00', date'2024-01-02'")
spark.sql("RESET spark.sql.sources.partitionOverwriteMode")
spark.sql("RESET hoodie.upsert.shuffle.parallelism")
rows = sorted((r.id, str(r.amount), str(r.dt)) for r in spark.sql(f"SELECT * FROM {name}").collect())
expected = [(1, "1.50", "2024-01-01"), (3, "3.50", "2024-01-02")]
