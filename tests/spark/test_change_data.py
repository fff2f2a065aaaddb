"""Change data with a Spark session."""

import pytest

import hoodie
from hoodie.writing.batch import stage
from support.change_data import image

BEGIN = "hoodie.datasource.read.begin.instanttime"
QUERY = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
}


@pytest.mark.nightly
def test_executors_log_what_they_write(spark, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    hoodie.spark.sql(
        spark,
        f"CREATE TABLE cdc_trips (id STRING, n BIGINT) USING hudi LOCATION '{path}' TBLPROPERTIES (primaryKey = 'id', "
        "'hoodie.table.cdc.enabled' = 'true', 'hoodie.table.cdc.supplemental.logging.mode' = 'data_before')",
    )
    table = hoodie.open_table(path, spark=spark)
    first = table.upsert(spark.createDataFrame([("a", 1), ("b", 1)], "id string, n long"))
    for exchange, number in (("STAGED", 2), ("SHUFFLE", 3)):
        if exchange == "SHUFFLE":  # as if the batch were too large for each task to read its partition's rows
            monkeypatch.setattr(stage, "LARGEST_PARTITION", 0)
        rows = spark.createDataFrame([("a", number), (exchange, number)], "id string, n long")
        result = table.upsert(rows, options={"hoodie.spark.driver.max.batch.bytes": "0"})
        assert result.route == "executors"
    hoodie.spark.sql(
        spark, f"MERGE INTO hudi.`{path}` t USING (SELECT 'a' id) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    hoodie.spark.sql(spark, f"UPDATE hudi.`{path}` SET n = 8 WHERE id = 'b'")
    options = ", ".join(f"`{key}` '{value}'" for key, value in {**QUERY, BEGIN: first.instant}.items())
    hoodie.register(spark)
    try:
        spark.sql(f"CREATE TEMPORARY VIEW cdc_changes USING hudi OPTIONS (path '{path}', {options})")
        found = spark.sql("SELECT op, before, after FROM cdc_changes").collect()
    finally:
        hoodie.spark.unregister(spark)
    structs = table.changes(first.instant, cdc=True, options={"hoodie.read.cdc.images": "struct"})
    assert [row.n for row in structs.where("op = 'd'").select("before.n").collect()] == [3]
    told = [(row.op, image(row.before), image(row.after)) for row in found]
    assert sorted(told, key=repr) == sorted(
        [
            ("d", (("id", "a"), ("n", 3)), None),
            ("i", None, (("id", "SHUFFLE"), ("n", 3))),
            ("i", None, (("id", "STAGED"), ("n", 2))),
            ("u", (("id", "a"), ("n", 1)), (("id", "a"), ("n", 2))),
            ("u", (("id", "a"), ("n", 2)), (("id", "a"), ("n", 3))),
            ("u", (("id", "b"), ("n", 1)), (("id", "b"), ("n", 8))),
        ],
        key=repr,
    )
