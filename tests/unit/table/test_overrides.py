"""Options of a write add what a table leaves open, and change nothing that it says."""

from collections.abc import Mapping
from pathlib import Path

import pytest

import hoodie
from hoodie.errors import InvalidOption, TableMismatch
from hoodie.keygen.keygen import FieldKind, Kind
from hoodie.table.create import create, with_write_options
from hoodie.table.state import TableState, load_state, table_keygen
from hoodie.testing.storage import MemoryStorage

KEYGEN = "hoodie.datasource.write.keygenerator.class"
RECORD_KEY = "hoodie.datasource.write.recordkey.field"
PARTITION = "hoodie.datasource.write.partitionpath.field"
PAYLOAD = "hoodie.datasource.write.payload.class"
STORED_PAYLOAD = "hoodie.compaction.payload.class"
EVENT_TIME = "org.apache.hudi.common.model.DefaultHoodieRecordPayload"
CHECKSUM = "hoodie.table.checksum"
TIMES = "hoodie.keygen.timebased."


def table() -> TableState:
    """A table of ours, by id and city."""
    storage = MemoryStorage()
    create(storage, {"hoodie.table.name": "t", RECORD_KEY: "id", PARTITION: "city"})
    return load_state(storage)


def stored(properties: Mapping[str, str]) -> TableState:
    """A table with just these properties beside its name, as another writer may have left it."""
    lines = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        **properties,
    }
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    return load_state(MemoryStorage({".hoodie/hoodie.properties": text.encode()}))


OF_HUDI = {
    "hoodie.table.type": "COPY_ON_WRITE",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
}


def test_options_that_repeat_the_table_change_nothing() -> None:
    state = table()
    same = {
        "hoodie.table.name": "t",
        RECORD_KEY: "id",
        PARTITION: "city",
        KEYGEN: "org.apache.hudi.keygen.SimpleAvroKeyGenerator",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
        "hoodie.parquet.max.file.size": "1000",
    }
    assert table_keygen(with_write_options(state, same)) == table_keygen(state)
    assert with_write_options(state, {}).config == state.config


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (RECORD_KEY, "uuid", "'uuid' contradicts hoodie.table.recordkey.fields='id'"),
        (PARTITION, "country", "'country' contradicts hoodie.table.partition.fields='city'"),
        (KEYGEN, "org.apache.hudi.keygen.ComplexKeyGenerator", "ComplexKeyGenerator.* contradicts"),
        ("hoodie.datasource.write.hive_style_partitioning", "true", "hive_style_partitioning is False in the table"),
        ("hoodie.datasource.write.partitionpath.urlencode", "true", "urlencode is False in the table, not True"),
        ("hoodie.datasource.write.precombine.field", "ts", "precombine.field is '' in the table, not 'ts'"),
        ("hoodie.datasource.write.table.type", "MERGE_ON_READ", "not 'MERGE_ON_READ'"),
    ],
)
def test_an_option_that_differs_from_the_table_is_refused(key: str, value: str, told: str) -> None:
    with pytest.raises(TableMismatch, match=told):
        with_write_options(table(), {key: value})


def test_a_table_with_partitions_that_is_created_without_names_the_columns(tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "t", record_key="id", partition_by="city")
    with pytest.raises(TableMismatch, match=r"partition\.fields is 'city' in the table, not ''; "):
        hoodie.create_table(tmp_path / "t", record_key="id")


def test_a_partition_column_does_not_make_partitions_in_a_table_without() -> None:
    bare = stored({"hoodie.table.recordkey.fields": "id"})
    with pytest.raises(TableMismatch, match="the key generator is 'NON_PARTITION' in the table, not 'SIMPLE'"):
        with_write_options(bare, {PARTITION: "city"})
    # With its class named the option has no meaning, here as in Hudi.
    named = stored(
        {"hoodie.table.recordkey.fields": "id", "hoodie.table.keygenerator.class": "NonpartitionedKeyGenerator"}
    )
    assert table_keygen(with_write_options(named, {PARTITION: "city"})).partition_fields == ()


def test_a_malformed_option_is_no_mismatch() -> None:
    with pytest.raises(InvalidOption, match="expected true or false"):
        with_write_options(table(), {"hoodie.datasource.write.hive_style_partitioning": "maybe"})


def test_the_payload_class_of_a_copy_on_write_table_may_come_with_the_write() -> None:
    for given in (EVENT_TIME, "DefaultHoodieRecordPayload"):
        assert with_write_options(stored(OF_HUDI), {PAYLOAD: given}).config.properties[STORED_PAYLOAD] == EVENT_TIME
    assert STORED_PAYLOAD not in with_write_options(stored(OF_HUDI), {}).config.properties
    assert with_write_options(table(), {PAYLOAD: EVENT_TIME}).config.properties[STORED_PAYLOAD] == EVENT_TIME


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_payload_class_that_the_table_says_stays(kind: str) -> None:
    says = stored({**OF_HUDI, "hoodie.table.type": kind, STORED_PAYLOAD: EVENT_TIME})
    assert with_write_options(says, {PAYLOAD: "DefaultHoodieRecordPayload"}).config == says.config
    with pytest.raises(TableMismatch, match="payload"):
        with_write_options(says, {PAYLOAD: "OverwriteWithLatestAvroPayload"})


def test_a_merge_on_read_table_without_a_payload_class_has_the_default() -> None:
    with pytest.raises(TableMismatch, match="payload"):
        with_write_options(stored({**OF_HUDI, "hoodie.table.type": "MERGE_ON_READ"}), {PAYLOAD: EVENT_TIME})


def test_time_settings_come_with_the_write_where_the_table_lacks_them() -> None:
    class_name = "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
    says = {**OF_HUDI, "hoodie.table.keygenerator.class": class_name, TIMES + "output.dateformat": "yyyy/MM"}
    state = with_write_options(stored(says), {TIMES + "timestamp.type": "EPOCHMILLISECONDS"})
    times = table_keygen(state).timestamp
    assert (times.type, times.output_format) == ("EPOCHMILLISECONDS", "yyyy/MM")
    with pytest.raises(TableMismatch, match=r"output.dateformat is 'yyyy/MM' in the table, not 'yyyy'"):
        with_write_options(stored(says), {"hoodie.deltastreamer.keygen.timebased.output.dateformat": "yyyy"})


def test_the_types_of_custom_partition_columns_come_with_the_write() -> None:
    says = {**OF_HUDI, "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator"}
    keygen = table_keygen(with_write_options(stored(says), {PARTITION: "city:SIMPLE"}))
    assert (keygen.kind, [field.kind for field in keygen.partition_fields]) == (Kind.CUSTOM, [FieldKind.SIMPLE])
    with pytest.raises(TableMismatch, match="contradicts"):
        with_write_options(stored(says), {PARTITION: "country:SIMPLE"})


def test_a_table_with_a_key_generator_that_is_unknown_here_is_opened_without_options() -> None:
    state = stored({**OF_HUDI, "hoodie.table.keygenerator.class": "com.example.OwnKeyGenerator"})
    assert with_write_options(state, {}).config == state.config


TEXT_KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "at",
    "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled": "true",
}
NEW_YORK = {"hoodie.keygen.timebased.timezone": "America/New_York"}


def test_a_table_whose_keys_have_timestamps_as_text_stores_their_zone() -> None:
    first = create(MemoryStorage(), TEXT_KEYS)
    assert first.config.properties["hoodie.keygen.timebased.output.timezone"] == "UTC"
    named = create(MemoryStorage(), {**TEXT_KEYS, **NEW_YORK})
    assert named.config.properties["hoodie.keygen.timebased.timezone"] == "America/New_York"
    assert "hoodie.keygen.timebased.output.timezone" not in named.config.properties


@pytest.mark.parametrize("says", [True, False])
def test_a_write_that_names_another_zone_of_timestamps_in_keys_is_refused(says: bool) -> None:
    state = create(MemoryStorage(), TEXT_KEYS)
    if not says:  # as before the zone was stored
        state = stored({k: v for k, v in state.config.properties.items() if not k.startswith(TIMES) and k != CHECKSUM})
    assert ("hoodie.keygen.timebased.output.timezone" in state.config.properties) is says
    for key in ("hoodie.keygen.timebased.timezone", "hoodie.keygen.timebased.output.timezone"):
        with pytest.raises(TableMismatch, match=r"'UTC' in the table, not 'America/New_York'"):
            with_write_options(state, {key: "America/New_York"})
    assert table_keygen(with_write_options(state, {"hoodie.keygen.timebased.timezone": "UTC"})).zone == "UTC"
    flag = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"
    with pytest.raises(TableMismatch, match="timestamps as text, not as numbers"):
        with_write_options(state, {flag: "false"})


def test_the_zone_of_times_in_paths_is_left_to_the_settings_of_paths() -> None:
    times = {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.keygen.timebased.timestamp.type": "DATE_STRING",
        "hoodie.keygen.timebased.input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMddHH",
    }
    state = create(MemoryStorage(), {**TEXT_KEYS, **times})
    assert "hoodie.keygen.timebased.output.timezone" not in state.config.properties
    with pytest.raises(TableMismatch, match="the zone of timestamps in keys"):
        with_write_options(state, NEW_YORK)
