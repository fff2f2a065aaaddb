# A silver table that is filled with what changed in the bronze one since the last run.
def options(table):
    return {
        "hoodie.table.name": table,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
    }


def write(df, table):
    df.write.format("hudi").options(**options(table)).mode("append").save(f"{base}/{table}")


def pull(begin):
    df = (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", begin)
        .load(f"{base}/bronze")
    )
    checkpoint = df.agg({"_hoodie_commit_time": "max"}).first()[0] or begin
    write(
        df.drop(*[c for c in df.columns if c.startswith("_hoodie_")]).selectExpr("id", "upper(name) name", "ts"),
        "silver",
    )
    return checkpoint


schema = "id int, name string, ts int"
write(spark.createDataFrame([(1, "a", 1), (2, "b", 1)], schema), "bronze")
at = pull("0")
write(spark.createDataFrame([(2, "bb", 2), (3, "c", 2)], schema), "bronze")
again = pull(at)
last = (
    spark.read.format("hudi")
    .options(**{"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": again})
    .load(f"{base}/bronze")
    .count()
)
rows = [last, sorted((r.id, r.name) for r in spark.read.format("hudi").load(f"{base}/silver").collect())]
expected = [0, [(1, "A"), (2, "BB"), (3, "C")]]
