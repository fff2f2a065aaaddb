"""`hoodie.properties` as a value, and which tables are read and written."""

import pytest

from hoodie.config.table import (
    TableConfig,
    TableType,
    TimelineZone,
    from_properties,
    require_readable,
    require_writable,
)
from hoodie.errors import CorruptFile, UnsupportedTable

OVERWRITE = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
V6 = {
    "hoodie.table.name": "trips",
    "hoodie.table.version": "6",
    "hoodie.timeline.layout.version": "1",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.recordkey.fields": "id, region",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.precombine.field": "ts",
    "hoodie.compaction.payload.class": OVERWRITE,
}


def config(**more):
    changed = {f"hoodie.{key.replace('_', '.')}": value for key, value in more.items()}
    return from_properties({key: value for key, value in (V6 | changed).items() if value is not None}, "p")


def test_settings_are_typed():
    found = config(table_timeline_timezone="UTC", populate_meta_fields="false", table_metadata_partitions="files,b")
    assert (found.name, found.version, found.layout, found.type) == ("trips", 6, 1, TableType.MERGE_ON_READ)
    assert (found.record_key, found.partition_by, found.ordering) == (("id", "region"), ("city",), ("ts",))
    assert (found.timezone, found.meta_fields, found.merge_on_read) == (TimelineZone.UTC, False, True)
    assert found.metadata_partitions == ("files", "b")
    assert found.properties["hoodie.table.name"] == "trips"


def test_absent_settings_have_the_defaults_of_the_format():
    found = from_properties({"hoodie.table.name": "t"}, "p")
    expected = TableConfig(name="t", layout=1, properties={"hoodie.table.name": "t"})
    assert found == expected
    assert (found.version, found.type, found.meta_fields, found.hive_style) == (0, TableType.COPY_ON_WRITE, True, False)
    assert (found.timezone, found.database, found.ordering) == (TimelineZone.LOCAL, "", ())
    assert (found.timeline_folder, found.history_folder) == (".hoodie", ".hoodie/archived")


def test_version_nine_names_ordering_fields_and_key_generator_type():
    found = config(
        table_version="9",
        timeline_layout_version="2",
        table_ordering_fields="a,b",
        table_keygenerator_type="SIMPLE",
        timeline_path="timeline",
        timeline_history_path="old",
    )
    assert (found.ordering, found.key_generator) == (("a", "b"), "SIMPLE")
    assert (found.timeline_folder, found.history_folder) == (".hoodie/timeline", ".hoodie/timeline/old")


def test_old_tables_without_a_layout_have_the_first():
    assert config(table_version="3", timeline_layout_version=None).layout == 1


@pytest.mark.parametrize(
    "more",
    [
        {"table_name": None},
        {"table_name": ""},
        {"table_version": "six"},
        {"table_type": "COPY"},
        {"populate_meta_fields": "perhaps"},
        {"archivelog_folder": "../elsewhere"},
        {"timeline_path": "/tmp"},
    ],
)
def test_a_malformed_setting_is_corrupt(more):
    with pytest.raises(CorruptFile, match=r"^p: "):
        config(**more)


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"table_version": "10", "timeline_layout_version": "2"}, "version 10"),
        ({"table_version": "-1"}, "version -1"),
        ({"table_base_file_format": "HFILE"}, "HFILE"),
        ({"table_base_file_format": "ORC"}, "ORC"),
        ({"table_version": "8"}, "layout 1"),
        ({"timeline_layout_version": "2"}, "layout 2"),
        ({"timeline_layout_version": "3"}, "layout 3"),
    ],
)
def test_what_may_mean_something_else_is_not_guessed(more, word):
    with pytest.raises(UnsupportedTable, match=word):
        config(**more)


@pytest.mark.parametrize("version", ["0", "3", "4", "5", "6"])
def test_versions_up_to_six_are_read(version):
    require_readable(config(table_version=version))


@pytest.mark.parametrize("version", ["8", "9"])
def test_versions_eight_and_nine_are_read(version):
    require_readable(config(table_version=version, timeline_layout_version="2"))


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"table_version": "7"}, "upgrade"),
        ({"datasource_write_drop_partition_columns": "true"}, "partition columns"),
    ],
)
def test_tables_that_are_not_read(more, word):
    with pytest.raises(UnsupportedTable, match=word):
        require_readable(config(**more))


def test_a_plain_table_of_version_six_is_written():
    require_writable(config(), {OVERWRITE})
    require_writable(config(compaction_payload_class=None), {OVERWRITE})
    require_writable(config(table_metadata_partitions="files", table_metadata_partitions_inflight="x"), {OVERWRITE})


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"table_version": "5"}, "0.15"),
        ({"table_downgraded_from": "9"}, "its downgrade from version 9 stopped"),
        (
            {"table_cdc_enabled": "true", "table_cdc_supplemental_logging_mode": "ALL"},
            "hoodie.table.cdc.supplemental.logging.mode='ALL': expected one of OP_KEY_ONLY, DATA_BEFORE",
        ),
        ({"populate_meta_fields": "false"}, "hoodie.populate.meta.fields"),
        ({"compaction_payload_class": "com.acme.Mine"}, "com.acme.Mine"),
        ({"datasource_write_drop_partition_columns": "true"}, "partition columns"),
    ],
)
def test_tables_that_are_not_written_say_why(more, word):
    with pytest.raises(UnsupportedTable, match=word):
        require_writable(config(**more), {OVERWRITE})
