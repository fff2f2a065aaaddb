"""Tables of versions 8 and 9: what a new one says of itself, what options mean, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.config.datasource import check_options
from hoodie.config.table import from_properties, require_writable
from hoodie.errors import InvalidOption, SettingsMissing, TableMismatch, UnsupportedTable
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.model.table_version import VERSIONS, WRITTEN
from hoodie.storage.local import LocalStorage
from hoodie.table.create import create, table_properties, with_write_options
from hoodie.table.state import load_state
from hoodie.table.version_properties import as_version_6, merge_properties, upgraded
from hoodie.testing.storage import MemoryStorage
from support.trips import TRIPS

_VECTORS = Path(__file__).parents[2] / "vectors" / "v8-v9"
_MODEL = "org.apache.hudi.common.model"


def _merging() -> list[Any]:
    cases = json.loads((_VECTORS / "merge_config_at_create.json").read_text())["cases"]
    return [(case["input"], version, case[f"version_{version}"]) for case in cases for version in (8, 9)]


@pytest.mark.parametrize(("given", "version", "expected"), _merging())
def test_what_options_say_of_merging_becomes_what_hudi_stores(
    given: dict[str, str], version: int, expected: dict[str, str] | str
) -> None:
    words = {
        "mode": given["merge mode"] or "",
        "payload": given["payload class"] or "",
        "strategy": given["merge strategy id"] or "",
        "ordering": given["ordering fields"] or "",
    }
    if expected == "ERROR":
        with pytest.raises(InvalidOption):
            merge_properties(VERSIONS[version], **words)
    else:
        assert merge_properties(VERSIONS[version], **words) == expected


@pytest.mark.parametrize("number", [8, 9])
def test_a_new_table_has_the_properties_of_its_version(number: int) -> None:
    made = table_properties(check_options({**TRIPS, "hoodie.write.table.version": number}))
    version = {"hoodie.table.version": str(number), "hoodie.table.initial.version": str(number)}
    places = {
        "hoodie.timeline.layout.version": "2",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
        "hoodie.table.keygenerator.type": "SIMPLE",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    }
    assert made.items() >= (version | places).items()
    assert ("hoodie.table.format" in made) == (number == 9)
    ordering = {"hoodie.table.ordering.fields", "hoodie.table.precombine.field"} & made.keys()
    assert ordering == {"hoodie.table.ordering.fields" if number == 9 else "hoodie.table.precombine.field"}
    assert ("hoodie.compaction.payload.class" in made) == (number == 8)
    assert "hoodie.table.keygenerator.class" not in made
    assert from_properties(made).ordering == ("ts",)


@pytest.mark.parametrize("payload", ["DefaultHoodieRecordPayload", "OverwriteWithLatestAvroPayload"])
def test_version_9_names_the_payload_class_that_a_downgrade_by_hudi_gives_back(payload: str) -> None:
    settings = {**TRIPS, "hoodie.datasource.write.payload.class": f"{_MODEL}.{payload}"}
    made = {n: table_properties(check_options({**settings, "hoodie.write.table.version": n})) for n in (6, 8, 9)}
    tables = [made[9], *(upgraded({**made[6], **made[n]}, VERSIONS[9]) for n in (6, 8))]
    assert [table["hoodie.table.legacy.payload.class"] for table in tables] == [f"{_MODEL}.{payload}"] * 3


@pytest.mark.parametrize("number", [8, 9])
@pytest.mark.parametrize(
    "kept",
    [
        {"hoodie.table.ordering.fields": "ts"},
        {
            "hoodie.table.precombine.field": "ts",
            "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
            "hoodie.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        },
    ],
    ids=["made by 1.1", "downgraded by 1.0"],
)
def test_version_6_of_hudi_1_with_settings_of_later_versions_is_upgraded_as_any_other(
    number: int, kept: dict[str, str]
) -> None:
    made = table_properties(check_options(TRIPS))
    rest = {key: text for key, text in made.items() if key != "hoodie.table.precombine.field"}
    assert upgraded({**rest, **kept}, VERSIONS[number]) == upgraded(made, VERSIONS[number])


def test_a_table_gets_version_6_unless_another_is_named() -> None:
    made = table_properties(check_options(TRIPS))
    assert (made["hoodie.table.version"], made["hoodie.timeline.layout.version"]) == ("6", "1")
    assert "hoodie.record.merge.mode" not in made


def test_types_of_custom_partition_fields_stand_beside_their_names() -> None:
    options = {
        **TRIPS,
        "hoodie.datasource.write.partitionpath.field": "city:SIMPLE,day:TIMESTAMP",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.CustomKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    made = table_properties(check_options({**options, "hoodie.write.table.version": "8"}))
    assert made["hoodie.table.partition.fields"] == "city:SIMPLE,day:TIMESTAMP"
    assert as_version_6(made)["hoodie.table.partition.fields"] == "city,day"


@pytest.mark.parametrize("version", ["7", "10", "nine", ""])
def test_another_version_is_refused_with_those_that_there_are(version: str) -> None:
    with pytest.raises(InvalidOption, match="expected one of 6, 8, 9"):
        table_properties(check_options({**TRIPS, "hoodie.write.table.version": version}))


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize(
    "named",
    [
        {},
        {"hoodie.datasource.write.payload.class": f"{_MODEL}.DefaultHoodieRecordPayload"},
        {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"},
        {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"},
        {"hoodie.datasource.write.keygenerator.type": "SIMPLE"},
    ],
)
def test_options_that_say_the_same_in_words_of_version_6_fit_the_table(version: str, named: dict[str, str]) -> None:
    storage = MemoryStorage()
    create(storage, check_options({**TRIPS, "hoodie.write.table.version": version}))
    create(storage, check_options({**TRIPS, **named}))
    with_write_options(load_state(storage), check_options({**TRIPS, **named}))


@pytest.mark.parametrize("ordering", ["_event_seq", "_event_bin_file,_event_pos"])
def test_a_job_of_debezium_for_mysql_orders_a_table_of_version_9_by_the_position_or_its_parts(
    ordering: str, tmp_path: Path
) -> None:
    """As in versions 6 and 8 a job names `_event_seq`, and the table has the two columns that it is made of."""
    options = {
        **{"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"},
        **{"hoodie.datasource.write.precombine.field": ordering, "hoodie.write.table.version": "9"},
        "hoodie.datasource.write.payload.class": f"{_MODEL}.debezium.MySqlDebeziumAvroPayload",
        "hoodie.datasource.write.operation": "upsert",
    }
    for position in (9, 11, 10):
        row = {"id": "a", "_event_bin_file": "mysql-bin.000007", "_event_pos": position}
        more = {"_event_seq": f"000007.{position}", "_change_operation_type": "u"}
        hoodie.hudi.write(pa.Table.from_pylist([row | more]), str(tmp_path / "t"), options)
    assert load_state(LocalStorage(tmp_path / "t")).config.ordering == ("_event_bin_file", "_event_pos")
    assert hoodie.open_table(tmp_path / "t").to_arrow()["_event_pos"].to_pylist() == [11]


def test_options_fit_a_table_of_version_6_that_hudi_1_made() -> None:
    """It has the ordering columns and the key generator under their later names, and no merge mode."""
    storage = MemoryStorage()
    create(storage, check_options(TRIPS))
    text = storage.read(".hoodie/hoodie.properties").decode()
    for old, new in (("precombine.field", "ordering.fields"), ("keygenerator.class", "keygenerator.type")):
        text = text.replace(f"hoodie.table.{old}", f"hoodie.table.{new}")
    text = text.replace("org.apache.hudi.keygen.SimpleKeyGenerator", "SIMPLE")
    storage.write(".hoodie/hoodie.properties", text.encode())
    named = check_options(
        {**TRIPS, "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}
    )
    with_write_options(load_state(storage), named)
    create(storage, named)


@pytest.mark.parametrize("version", ["8", "9"])
def test_a_payload_class_that_the_table_has_not_is_refused(version: str) -> None:
    storage = MemoryStorage()
    create(storage, check_options({**TRIPS, "hoodie.write.table.version": version}))
    other = {"hoodie.datasource.write.payload.class": f"{_MODEL}.OverwriteWithLatestAvroPayload"}
    with pytest.raises(TableMismatch, match="OverwriteWithLatestAvroPayload"):
        with_write_options(load_state(storage), check_options({**TRIPS, **other}))


def test_a_table_is_not_made_anew_in_another_version() -> None:
    storage = MemoryStorage()
    create(storage, check_options(TRIPS))
    with pytest.raises(TableMismatch, match="version is '6' in the table, not '9'"):
        create(storage, check_options({**TRIPS, "hoodie.write.table.version": "9"}))


@pytest.mark.parametrize("number", range(10))
def test_only_what_is_known_whole_is_written(number: int) -> None:
    layout = "2" if number > 7 else "1"
    properties = {"hoodie.table.name": "t", "hoodie.table.version": str(number)}
    config = from_properties({**properties, "hoodie.timeline.layout.version": layout})
    if number in WRITTEN:
        require_writable(config, KNOWN_PAYLOADS)
        return
    with pytest.raises(UnsupportedTable, match="version 7 is a table amid" if number == 7 else "6, 8, 9 are written"):
        require_writable(config, KNOWN_PAYLOADS)


def test_version_9_has_several_ordering_columns_and_the_others_say_so() -> None:
    several = {**TRIPS, "hoodie.datasource.write.precombine.field": "ts, qty"}
    made = table_properties(check_options({**several, "hoodie.write.table.version": "9"}))
    assert from_properties(made).ordering == ("ts", "qty")
    assert made["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    require_writable(from_properties({**made, "hoodie.table.type": "MERGE_ON_READ"}), KNOWN_PAYLOADS)
    for number in (6, 8):
        with pytest.raises(InvalidOption, match=f"version {number} has one ordering column.*version=9"):
            table_properties(check_options({**several, "hoodie.write.table.version": number}))


@pytest.mark.parametrize(("version", "wrong"), [("6", "9"), ("8", "6"), ("9", "6")])
def test_a_table_that_lost_its_settings_is_made_again_in_its_own_version(
    version: str, wrong: str, tmp_path: Path
) -> None:
    def make(version: str) -> HoodieTable[Rows]:
        options = {"hoodie.write.table.version": version}
        return hoodie.create_table(tmp_path / "t", name="t", record_key="id", options=options)

    make(version).upsert(pa.table({"id": [1, 2]}))
    settings = tmp_path / "t/.hoodie/hoodie.properties"
    settings.unlink()
    with pytest.raises(SettingsMissing, match="8 or 9" if version != "6" else "with the name"):
        hoodie.open_table(tmp_path / "t")
    with pytest.raises(TableMismatch, match=f"version {wrong} does not look.*version={version}|=8 or 9"):
        make(wrong)
    assert not settings.exists()
    assert make(version).count() == 2
