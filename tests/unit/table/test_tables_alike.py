"""A table made like another one: it is told by the options that a write would name."""

import pyarrow as pa
import pytest

from hoodie.errors import InvalidOption
from hoodie.table.create import options_of, table_properties

TIMES = {
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM",
    "hoodie.keygen.timebased.timezone": "Europe/Berlin",
}
KEY, BY = "hoodie.datasource.write.recordkey.field", "hoodie.datasource.write.partitionpath.field"
CLASS = "hoodie.datasource.write.keygenerator.class"
ORDERING, PAYLOAD = "hoodie.datasource.write.precombine.field", "hoodie.datasource.write.payload.class"
TABLES = {
    "plain": {KEY: "id"},
    "without a key": {BY: "city"},
    "several columns": {KEY: "id,city", BY: "city,day", ORDERING: "at"},
    "late rows win": {KEY: "id", ORDERING: "at", PAYLOAD: "OverwriteWithLatestAvroPayload"},
    "partial updates": {KEY: "id", ORDERING: "at", PAYLOAD: "PartialUpdateAvroPayload"},
    "times": {KEY: "id", BY: "at", CLASS: "org.apache.hudi.keygen.TimestampBasedKeyGenerator", **TIMES},
    "of both kinds": {
        KEY: "id",
        BY: "city:SIMPLE,at:TIMESTAMP",
        CLASS: "org.apache.hudi.keygen.CustomKeyGenerator",
        **TIMES,
    },
    "pairs": {KEY: "id", BY: "city", CLASS: "org.apache.hudi.keygen.ComplexKeyGenerator"},
    "change logs and folders": {
        KEY: "id",
        BY: "city",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "OP_KEY_ONLY",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    },
}
MERGER = {"hoodie.datasource.write.record.merger.impls": f"{__name__}:Newest"}


class Newest:
    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        return newer


def made(options: dict[str, str], version: int = 6) -> dict[str, str]:
    return table_properties({"hoodie.table.name": "t", "hoodie.write.table.version": str(version), **options})


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("options", TABLES.values(), ids=TABLES)
def test_it_is_what_the_other_one_is(options: dict[str, str], version: int) -> None:
    table = made(options, version)
    assert made(options_of(table, {}), version) == table


@pytest.mark.parametrize("kind", ["times", "of both kinds", "several columns", "plain", "pairs"])
def test_partition_columns_of_its_own_are_those_that_it_has(kind: str) -> None:
    properties = made(options_of(made(TABLES[kind]), {BY: "name"}))
    assert properties["hoodie.table.partition.fields"] == "name"
    assert not TIMES.keys() & properties.keys()


@pytest.mark.parametrize("kind", ["plain", "pairs", "several columns", "times"])
def test_a_key_of_its_own_is_the_one_that_it_has(kind: str) -> None:
    other = made(TABLES[kind])
    key = "name" if kind == "times" else "name,day"
    properties = made(options_of(other, {KEY: key}))
    assert properties["hoodie.table.recordkey.fields"] == key
    assert properties.get("hoodie.table.partition.fields") == other.get("hoodie.table.partition.fields")


@pytest.mark.parametrize(
    "named", [{PAYLOAD: "OverwriteWithLatestAvroPayload"}, {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}]
)
@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_merge_rule_of_its_own_is_the_one_that_it_has(named: dict[str, str], version: int) -> None:
    both = {KEY: "id", ORDERING: "at"}
    assert made(options_of(made(both, version), named), version) == made({**both, **named}, version)


def test_a_class_of_the_users_own_is_named_again() -> None:
    table = made({KEY: "id", **MERGER})
    with pytest.raises(InvalidOption, match="if you trust it"):
        options_of(table, {})
    assert made(options_of(table, MERGER)) == table
