"""Which queries a commit has to pass, by the options of Hudi's pre-commit validators."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import read_options
from hoodie.config.validators import Check, Validation, ValidatorOptions, validations
from hoodie.errors import InvalidOption

NAMES = "hoodie.precommit.validators"
PACKAGE = "org.apache.hudi.client.validator."


def test_each_class_has_its_queries() -> None:
    options = {
        NAMES: f"{PACKAGE}SqlQueryEqualityPreCommitValidator, SqlQuerySingleResultPreCommitValidator",
        f"{NAMES}.equality.sql.queries": "select count(*) from <TABLE_NAME>; select max(ts) from <TABLE_NAME>",
        f"{NAMES}.single.value.sql.queries": "select count(*) from <TABLE_NAME> where id = '#'#0",
        f"{NAMES}.inequality.sql.queries": "select 1",  # nobody asks for these
    }
    assert validations(read_options(ValidatorOptions, options)) == (
        Validation(Check.EQUAL, "select count(*) from <TABLE_NAME>"),
        Validation(Check.EQUAL, "select max(ts) from <TABLE_NAME>"),
        Validation(Check.SINGLE, "select count(*) from <TABLE_NAME> where id = '#'", "0"),
    )
    assert validations(ValidatorOptions()) == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({NAMES: "com.acme.OwnValidator"}, r"'com\.acme\.OwnValidator': that class cannot be run here"),
        ({NAMES: f"{PACKAGE}SqlQueryEqualityPreCommitValidator"}, r"needs queries: .*equality\.sql\.queries"),
        (
            {
                NAMES: "SqlQuerySingleResultPreCommitValidator",
                f"{NAMES}.single.value.sql.queries": "select count(*) from <TABLE_NAME>",
            },
            "expected query#value",
        ),
        (
            {
                NAMES: "SqlQueryEqualityPreCommitValidator",
                f"{NAMES}.equality.sql.queries": "select 1",
            },
            "write with a session",
        ),
    ],
)
def test_what_cannot_be_checked_is_written_by_no_call(tmp_path, options, problem) -> None:  # type: ignore[no-untyped-def]
    rows = pa.table({"id": ["a"], "ts": [1]})
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", ordering="ts")
    table.upsert(rows)
    for unsupported in ("error", "warn"):
        given = {**options, "hoodie.compat.unsupported": unsupported}
        for call in (
            lambda given=given: table.upsert(rows, options=given),
            lambda given=given: table.delete(rows, options=given),
            lambda given=given: table.delete_partitions([""], options=given),
            lambda given=given: hoodie.hudi.write(rows, str(tmp_path / "t"), given),
        ):
            with pytest.raises(InvalidOption, match=problem):
                call()
    assert len(table.history()) == 1
