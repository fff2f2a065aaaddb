"""Files that column statistics of the metadata table rule out are not opened, and no row is lost by it."""

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.config.metadata import MetadataOptions
from hoodie.config.read import DEFAULT_READ, MergerOptions, ReadSettings
from hoodie.errors import MetadataTableIgnored
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.read import read_records
from hoodie.reading import column_statistics
from hoodie.reading.filters.predicate import Test
from hoodie.reading.filters.selection import kept_rows, read_filter
from hoodie.reading.pruning import PruneReason
from hoodie.reading.snapshot import read_scan, read_table
from hoodie.reading.stream import with_columns
from hoodie.storage import WrappedStorage
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.metadata_tables import ALL, METADATA, metadata_of, table_files
from support.nightly import by_day
from support.scans import plan_scan

#: The newest of the third partition of mdt_cow.
FILE = next(path for path in table_files("mdt_cow") if path.startswith("p3/") and "20261122021814939" in path)[3:]
OFF = ReadSettings(metadata=MetadataOptions(enable=False))


class Opened(WrappedStorage):
    """Notes the data files that are opened."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(MemoryStorage(files))
        self.paths: set[str] = set()

    def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if name in ("open_input", "read", "read_range") and not path.startswith(".hoodie"):
            self.paths.add(path)
        return call()


def test_files_that_cannot_hold_the_rows_are_not_opened() -> None:
    """Of three partitions, one has such a file."""
    filters = [("_hoodie_file_name", "=", FILE)]
    counts = {}
    for how in (DEFAULT_READ, OFF):
        storage = Opened(table_files("mdt_cow"))
        scan = plan_scan(load_state(storage), filters=filters, settings=how)
        storage.paths.clear()  # planning may look at labels of timestamps
        rows = read_scan(scan)
        counts[how is OFF] = len(storage.paths)
        assert set(rows.column("part").to_pylist()) == {"p3"}
    assert counts == {False: 1, True: 3}


def test_the_plan_tells_what_statistics_left_out() -> None:
    state = load_state(MemoryStorage(table_files("mdt_cow")))
    scan = plan_scan(state, filters=f"_hoodie_file_name = '{FILE}'")
    assert scan.listed
    assert len(scan.slices) == 1
    (left,) = [part for part in scan.pruned if part.reason is PruneReason.STATISTICS]
    assert left.files == 2
    assert "files listed by the metadata table" in str(scan)
    assert "2 files" in str(scan)
    assert "of file slices that column statistics rule out" in str(scan)
    off = plan_scan(state, filters=f"_hoodie_file_name = '{FILE}'", settings=OFF)
    assert not off.listed
    assert not off.ruled_out
    assert len(off.slices) == 3


def test_files_that_a_query_engine_s_filter_rules_out_are_not_opened() -> None:
    """It asks once the scan is planned: DuckDB and Polars do."""
    counts = {}
    for how in (DEFAULT_READ, OFF):
        storage = Opened(table_files("mdt_cow"))
        scan = with_columns(
            plan_scan(load_state(storage), settings=how), ["id"], ((Test("_hoodie_file_name", "=", FILE),),)
        )
        storage.paths.clear()
        assert read_scan(scan).num_rows
        counts[how is OFF] = (len(storage.paths), len(scan.ruled_out))
    assert counts == {False: (1, 2), True: (3, 0)}


def filters_of(column: pa.Field, values: list[Any]) -> list[Any]:
    some = [value for value in values if value is not None]
    found: list[Any] = []
    for value in sorted(set(some), key=str)[:2]:
        found += [[(column.name, op, value)] for op in ("=", "!=", "<", "<=", ">", ">=")]
        found.append([(column.name, "in", [value])])
    return found


@pytest.mark.parametrize("name", by_day(ALL, lambda name: "nested_types" not in name))
def test_slices_that_are_ruled_out_hold_no_row_that_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column of a plain type, compared with values that it has."""
    state = load_state(MemoryStorage(table_files(name)))
    rows, slices = read_table(state, settings=OFF), plan_scan(state, settings=OFF).slices
    table = metadata_of(state)
    if MetadataPartition.COLUMN_STATS in table.ready:
        records = read_records(table, MetadataPartition.COLUMN_STATS)
        monkeypatch.setattr(column_statistics, "column_statistics", lambda *_, **__: records)
    groups = pc.list_element(pc.split_pattern(rows.column("_hoodie_file_name"), "_", max_splits=1), 0)
    compared, ruled_out = 0, 0
    for field in rows.schema:
        plain = pa.types.is_primitive(field.type) or pa.types.is_string(field.type) or pa.types.is_decimal(field.type)
        if not plain or pa.types.is_time(field.type):
            continue
        for filters in filters_of(field, rows.column(field.name).to_pylist()):
            rule = read_filter(filters, rows.schema)
            kept = column_statistics.slices_with_statistics(table, slices, rule.tests, rows.schema, merged=True)
            ids = {slice_.group.file_id for slice_ in slices} - {slice_.group.file_id for slice_ in kept}
            ruled_out += len(ids)
            passing = kept_rows(rows.append_column("_group", groups), rule.expression).column("_group")
            assert ids.isdisjoint(passing.to_pylist()), filters
            compared += 1
    assert compared > 20
    if name in ("mdt_cow", "hudi-0.15/cow_metadata_table"):
        assert ruled_out > 10


def test_a_slice_with_logs_is_left_out_only_if_all_of_its_files_are() -> None:
    state = load_state(MemoryStorage(table_files("mdt_mor_1group")))
    rows = read_table(state, settings=OFF)
    for key in rows.column("_hoodie_record_key").to_pylist():
        found = read_table(state, ["id"], [("_hoodie_record_key", "=", key)])
        assert found.column("id").to_pylist() == [key]


def test_a_merger_of_ones_own_may_make_other_values() -> None:
    state = load_state(MemoryStorage(table_files("hudi-tables/v6_mor_logical_types_metadata_table")))
    how = ReadSettings(mergers=MergerOptions(mergers=("package.module:Merger",)))
    scan = plan_scan(state, kind="read_optimized", filters=[("_hoodie_record_key", "=", "none")], settings=how)
    assert all(not slice_.logs for slice_ in scan.slices)


def test_damaged_statistics_leave_nothing_out() -> None:
    files = {
        path: data[:-9] if f"{METADATA}column_stats/col-stats" in path else data
        for path, data in table_files("mdt_cow").items()
    }
    with pytest.warns(MetadataTableIgnored, match="no HFile"):
        scan = plan_scan(load_state(MemoryStorage(files)), filters=[("ts", "=", 5)])
    assert scan.listed
    assert not scan.ruled_out
    assert len(scan.slices) == 3


def test_statistics_are_used_only_where_the_properties_name_them() -> None:
    """A partition that is being built, or was dropped, is none to trust."""
    files = dict(table_files("mdt_cow"))
    path = ".hoodie/hoodie.properties"
    lines = [
        line for line in files[path].splitlines() if b"checksum" not in line and b"metadata.partitions" not in line
    ]
    files[path] = b"\n".join([*lines, b"hoodie.table.metadata.partitions=files", b""])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scan = plan_scan(load_state(MemoryStorage(files)), filters=[("_hoodie_file_name", "=", FILE)])
    assert scan.listed
    assert len(scan.slices) == 3


def test_nulls_are_looked_for_where_there_are_some() -> None:
    state = load_state(MemoryStorage(table_files("mdt_cow")))
    scan = plan_scan(state, filters="name is null")
    assert not scan.slices
    assert len(plan_scan(state, filters="name is not null").slices) == 3
