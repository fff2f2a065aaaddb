"""Pre-commit validators: queries on the rows that a commit would make visible."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hoodie
from hoodie.errors import ValidationFailed
from support.nightly import nightly

NAMES = "hoodie.precommit.validators"
COUNT = "select count(*) from <TABLE_NAME>"
EQUAL = {NAMES: "SqlQueryEqualityPreCommitValidator", f"{NAMES}.equality.sql.queries": COUNT}
UNEQUAL = {NAMES: "SqlQueryInequalityPreCommitValidator", f"{NAMES}.inequality.sql.queries": COUNT}
SINGLE = {
    NAMES: "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    f"{NAMES}.single.value.sql.queries": "select max(v) from <TABLE_NAME>#2.0; select count(*) from <TABLE_NAME>#2",
}


@pytest.mark.parametrize(
    ("kind", "every"), [nightly("COPY_ON_WRITE", True), nightly("MERGE_ON_READ", True), ("MERGE_ON_READ", False)]
)
def test_a_commit_that_does_not_pass_a_query_is_rolled_back(
    spark: SparkSession, tmp_path: Path, kind: str, every: bool
) -> None:
    table = hoodie.create_table(
        tmp_path / "t", spark=spark, name="t", record_key="id", ordering="ts", table_type=kind,
        options={"hoodie.cleaner.policy.failed.writes": "EAGER"},
    )  # fmt: skip

    def rows(*found: tuple[str, int, float]):  # type: ignore[no-untyped-def]
        return spark.createDataFrame(found, "id string, ts long, v double")

    def seen() -> list[tuple[object, ...]]:
        found = table.snapshot()
        return sorted(map(tuple, found.select("id", "ts", "v").collect())) if "id" in found.columns else []

    def fails(options: dict[str, str], *found: tuple[str, int, float]) -> str:
        before = seen()
        with pytest.raises(ValidationFailed) as failed:
            table.upsert(rows(*found), options=options)
        assert seen() == before
        return str(failed.value)

    assert "[(0,)]" in fails(EQUAL, ("a", 1, 1.0), ("b", 1, 1.0))  # a table without rows, before
    table.upsert(rows(("a", 1, 1.0), ("b", 1, 1.0)), options=UNEQUAL)
    table.upsert(rows(("a", 2, 2.0)), options=EQUAL)
    text = fails(EQUAL, ("c", 2, 2.0))
    assert f"{COUNT!r}: expected the result of before, [(2,)], and the commit would give [(3,)]" in text
    assert "both are [(2,)]" in fails(UNEQUAL, ("a", 3, 2.0))
    table.upsert(rows(("b", 3, 2.0)), options=SINGLE)
    text = fails(SINGLE, ("b", 4, 200.0))
    assert "expected the value 2.0, and the commit would give [(200.0,)]" in text
    if not every:
        return
    assert "the query failed: [" in fails({**EQUAL, f"{NAMES}.equality.sql.queries": "select x from <TABLE_NAME>"})
    with pytest.raises(ValidationFailed):
        table.delete(rows(("a", 9, 0.0)).select("id"), options=EQUAL)
    with pytest.raises(ValidationFailed):
        table.delete_partitions([""], options=EQUAL)
    for key, value in EQUAL.items():
        hoodie.spark.sql(spark, f"SET {key}={value}")
    try:
        with pytest.raises(ValidationFailed):
            hoodie.spark.sql(spark, f"DELETE FROM hudi.`{table.path}` WHERE id = 'a'")
    finally:
        for key in EQUAL:
            spark.conf.unset(key)
    wider = rows(("a", 9, 2.0)).selectExpr("*", "1 AS n")
    options = {**EQUAL, f"{NAMES}.equality.sql.queries": "select count(n) from <TABLE_NAME>"}
    with pytest.raises(ValidationFailed, match=r"\[\(0,\)\].*\[\(1,\)\]"):
        table.upsert(wider, options=options)
    assert seen() == [("a", 2, 2.0), ("b", 3, 2.0)]
