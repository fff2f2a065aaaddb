"""The view for engines without Hudi: what it selects, and where it is refused. In servers: tests/services."""

import pyarrow as pa
import pytest

from hoodie.config.options import Options
from hoodie.config.sync import HiveSyncOptions, ManifestFormat, ManifestOptions
from hoodie.errors import SyncRefused
from hoodie.schema.schema import with_meta_fields
from hoodie.sync.hive_formats import plain_entries

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("ts", pa.int64())])


def entries(schema: pa.Schema, **options: str) -> list[tuple[str, str, str]]:
    hive = Options({f"hoodie.datasource.hive_sync.{key}": value for key, value in options.items()}).read(
        HiveSyncOptions
    )
    found = plain_entries("trips", "lake", "s3a://b/trips", schema, ["city"], {}, hive)
    return [(entry.name, entry.location, entry.query) for entry in found]


def test_the_view_selects_the_rows_of_listed_files_with_partition_columns_last() -> None:
    versions, listed, view = entries(with_meta_fields(SCHEMA), omit_metadata_fields="true")
    assert versions == ("trips_plain_versions", "s3a://b/trips", "")
    assert listed == ("trips_plain_manifest", "s3a://b/trips/.hoodie/manifest", "")
    assert view[2] == (
        "SELECT `id`, `ts`, `city` FROM `lake`.`trips_plain_versions` WHERE `_hoodie_file_name` IN "
        "(SELECT `file_name` FROM `lake`.`trips_plain_manifest`)"
    )


def test_a_table_whose_rows_do_not_name_their_file_has_no_view() -> None:
    with pytest.raises(
        SyncRefused, match=r"lake\.trips_plain: .*no column _hoodie_file_name.*hoodie.sync.manifest.view"
    ):
        entries(SCHEMA)


def test_the_view_asks_for_the_list_that_it_is_made_of() -> None:
    assert Options({"hoodie.sync.manifest.view": "true"}).read(ManifestOptions).chosen_formats == {ManifestFormat.CSV}
