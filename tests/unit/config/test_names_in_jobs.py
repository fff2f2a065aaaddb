"""Names as jobs have them: options that nobody knows, classes by earlier packages, several names of one thing."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.datasource import check_options
from hoodie.config.table import key_generator_name, payload_name
from hoodie.errors import InvalidOption, OptionIgnored, UnknownOptions
from hoodie.formats.java.properties import parse_properties

ROWS = pa.table({"id": [1, 2], "p": ["a", "b"], "ts": [1, 1]})
KEY = {"hoodie.datasource.write.recordkey.field": "id"}
PAYLOAD = "hoodie.datasource.write.payload.class"
EMPTY = "EmptyHoodieRecordPayload"


def properties(path: Path) -> dict[str, str]:
    return parse_properties((path / ".hoodie" / "hoodie.properties").read_bytes(), "")


def test_names_that_are_like_none_of_hudis_are_named_in_one_warning() -> None:
    given = {
        "schema.registry.url": "http://x",
        "my.own": "1",
        "hoodie.acme.owner": "me",
        "hoodie.cleaner.hours.retained": 5,
    }
    with pytest.warns(UnknownOptions) as caught:
        assert set(check_options(given)) == {"hoodie.cleaner.hours.retained"}
    (warning,) = caught
    assert str(warning.message).startswith(
        "unknown options, which have no effect: hoodie.acme.owner, my.own, schema.registry.url."
    )


def test_a_misspelt_name_is_refused_whatever_else_is_unknown() -> None:
    given = {"my.own": "1", "hoodie.datasource.write.recordkey.feild": "id"}
    with pytest.raises(InvalidOption, match=r"recordkey\.feild'.* Did you mean"):
        check_options(given)


@pytest.mark.parametrize("package", ["", "com.uber.hoodie.", "org.apache.hudi.", "org.apache.hudi.keygen."])
def test_key_generators_have_the_packages_of_every_release(tmp_path: Path, package: str) -> None:
    options = {
        **KEY,
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.datasource.write.keygenerator.class": f"{package}ComplexKeyGenerator",
    }
    for _ in range(2):
        hoodie.hudi.write(ROWS, tmp_path, options)
    assert properties(tmp_path)["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.ComplexKeyGenerator"


@pytest.mark.parametrize(
    "name",
    [
        "AWSDmsAvroPayload",
        "org.apache.hudi.payload.AWSDmsAvroPayload",
        "org.apache.hudi.AWSDmsAvroPayload",
        "com.uber.hoodie.AWSDmsAvroPayload",
        "org.apache.hudi.common.model.AWSDmsAvroPayload",
    ],
)
def test_payloads_have_the_packages_of_every_release(tmp_path: Path, name: str) -> None:
    rows = ROWS.append_column("Op", pa.array(["I", "D"]))
    for _ in range(2):
        hoodie.hudi.write(rows, tmp_path, {**KEY, PAYLOAD: name})
    assert hoodie.open_table(tmp_path).snapshot().to_arrow()["id"].to_pylist() == [1]
    held = properties(tmp_path)["hoodie.compaction.payload.class"]
    assert held == "org.apache.hudi.common.model.AWSDmsAvroPayload"


def test_classes_of_other_packages_keep_their_names() -> None:
    for name in ("com.acme.Payload", "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload"):
        assert payload_name(name) == key_generator_name(name) == name


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("package", ["", "com.uber.hoodie.", "org.apache.hudi.", "org.apache.hudi.common.model."])
def test_the_empty_payload_deletes_the_rows_of_its_write(tmp_path: Path, table_type: str, package: str) -> None:
    options = {
        **KEY,
        "hoodie.datasource.write.table.type": table_type,
        PAYLOAD: "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
    }
    hoodie.hudi.write(ROWS, tmp_path, options)
    deletes = {**options, PAYLOAD: f"{package}{EMPTY}"}
    result = hoodie.hudi.write(ROWS.slice(0, 1), tmp_path, deletes)
    assert result.deleted == 1
    assert hoodie.open_table(tmp_path).snapshot().to_arrow()["id"].to_pylist() == [2]
    hoodie.open_table(tmp_path).upsert(ROWS, options={PAYLOAD: f"{package}{EMPTY}"})
    assert hoodie.open_table(tmp_path).snapshot().to_arrow().num_rows == 0
    with pytest.raises(InvalidOption, match="take the operation upsert or delete"):
        hoodie.hudi.write(ROWS, tmp_path, {**deletes, "hoodie.datasource.write.operation": "insert"})
    hoodie.hudi.write(ROWS, tmp_path, options)
    assert hoodie.open_table(tmp_path).snapshot().to_arrow().num_rows == 2


def test_the_name_of_the_table_goes_before_the_one_of_older_releases(tmp_path: Path) -> None:
    names = {"hoodie.table.name": "trips", "hoodie.datasource.write.table.name": "other"}
    for _ in range(2):
        hoodie.hudi.write(ROWS, tmp_path, {**KEY, **names})
    assert properties(tmp_path)["hoodie.table.name"] == "trips"
    hoodie.hudi.write(ROWS, tmp_path / "old", {**KEY, "hoodie.datasource.write.table.name": "other"})
    assert properties(tmp_path / "old")["hoodie.table.name"] == "other"


@pytest.mark.parametrize(
    "asked",
    [
        {"hoodie.datasource.hive_sync.mode": "jdbc"},
        {"hoodie.datasource.hive_sync.mode": "hiveql"},
        {"hoodie.datasource.hive_sync.mode": "glue"},
        {"hoodie.datasource.hive_sync.use_jdbc": "true"},
        {"hoodie.meta.sync.client.tool.class": "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"},
    ],
)
def test_a_sync_by_another_mode_can_be_left_out(tmp_path: Path, asked: dict[str, str]) -> None:
    options = {**KEY, "hoodie.datasource.hive_sync.enable": "true", **asked}
    with pytest.raises(InvalidOption, match=r"hoodie.compat.unsupported=warn writes without a sync"):
        hoodie.hudi.write(ROWS, tmp_path, options)
    assert not any(tmp_path.iterdir())
    with pytest.warns(OptionIgnored, match="The write is followed by no sync"):
        hoodie.hudi.write(ROWS, tmp_path, {**options, "hoodie.compat.unsupported": "warn"})
    assert hoodie.open_table(tmp_path).snapshot().to_arrow().num_rows == 2


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudis_merger_of_spark_rows_is_the_rule_by_ordering_value(tmp_path: Path, table_type: str) -> None:
    options = {
        **KEY,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.record.merger.impls": "org.apache.hudi.HoodieSparkRecordMerger",
    }
    later = pa.table({"id": [1, 2], "p": ["new", "new"], "ts": [2, 0]})
    hoodie.hudi.write(ROWS, tmp_path, options)
    hoodie.hudi.write(later, tmp_path, options)
    assert sorted(hoodie.open_table(tmp_path).snapshot().to_arrow()["p"].to_pylist()) == ["b", "new"]
