# Hudi's quick start for PySpark: insert, query, update, delete, time travel, incremental query.
from pyspark.sql.functions import col

columns = ["ts", "uuid", "rider", "driver", "fare", "city"]
data = [
    (1695159649087, "334e26e9-8355-45cc-97c6-c31daf0df330", "rider-A", "driver-K", 19.10, "san_francisco"),
    (1695091554788, "e96c4396-3fad-413a-a942-4cb36106d721", "rider-C", "driver-M", 27.70, "san_francisco"),
    (1695046462179, "9909a8b1-2d15-4d3d-8ec9-efc48c536a00", "rider-D", "driver-L", 33.90, "san_francisco"),
    (1695516137016, "e3cf430c-889d-4015-bc98-59bdce1e530c", "rider-F", "driver-P", 34.15, "sao_paulo"),
    (1695115999911, "c8abbe79-8d89-47ea-b4ce-4d224bae5bfa", "rider-J", "driver-T", 17.85, "chennai"),
]
inserts = spark.createDataFrame(data).toDF(*columns)

hudi_options = {
    "hoodie.table.name": tableName,
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.table.name": tableName,
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.upsert.shuffle.parallelism": 2,
    "hoodie.insert.shuffle.parallelism": 2,
}

inserts.write.format("hudi").options(**hudi_options).mode("overwrite").save(basePath)

tripsDF = spark.read.format("hudi").load(basePath)
tripsDF.createOrReplaceTempView("trips_table")

spark.sql("SELECT uuid, fare, ts, rider, driver, city FROM  trips_table WHERE fare > 20.0").show()
spark.sql(
    "SELECT _hoodie_commit_time, _hoodie_record_key, _hoodie_partition_path, rider, driver, fare FROM  trips_table"
).show()

updatesDf = spark.read.format("hudi").load(basePath).filter("rider == 'rider-D'").withColumn("fare", col("fare") * 10)
updatesDf.write.format("hudi").options(**hudi_options).mode("append").save(basePath)

deletesDF = spark.read.format("hudi").load(basePath).filter("rider == 'rider-F'")
hudi_hard_delete_options = {**hudi_options, "hoodie.datasource.write.operation": "delete"}
deletesDF.write.format("hudi").options(**hudi_hard_delete_options).mode("append").save(basePath)

spark.read.format("hudi").load(basePath).createOrReplaceTempView("trips_table")
commits = list(
    map(
        lambda row: row[0],
        spark.sql("SELECT DISTINCT(_hoodie_commit_time) AS commitTime FROM  trips_table ORDER BY commitTime")
        .limit(50)
        .collect(),
    )
)
beginTime = commits[len(commits) - 2]

spark.read.format("hudi").option("as.of.instant", beginTime).load(basePath).show()

incremental_read_options = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.read.begin.instanttime": beginTime,
}
tripsIncrementalDF = spark.read.format("hudi").options(**incremental_read_options).load(basePath)
tripsIncrementalDF.createOrReplaceTempView("trips_incremental")
spark.sql(
    "SELECT `_hoodie_commit_time`, fare, rider, driver, uuid, ts FROM  trips_incremental WHERE fare > 20.0"
).show()
