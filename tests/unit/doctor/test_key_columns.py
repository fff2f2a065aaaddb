"""Key and partition columns that hoodie.properties names and the table does not have."""

import pyarrow as pa
import pytest

from hoodie.doctor.examine import Fault, Finding, Severity, examine
from hoodie.table.properties import PROPERTIES
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.real_tables import files_of
from support.trips import TRIPS

STRUCT = pa.struct([("city", pa.string())])


def renamed(storage: MemoryStorage, setting: str, name: str) -> tuple[Finding, ...]:
    """The findings once another column has that role."""
    lines = storage.read(PROPERTIES).decode().splitlines()
    changed = [f"{setting}={name}" if line.startswith(f"{setting}=") else line for line in lines]
    assert changed != lines
    storage.write(PROPERTIES, "".join(f"{line}\n" for line in changed).encode())
    return examine(storage, grace=0)


def trips(kind: str = "COPY_ON_WRITE", **options: str) -> MemoryStorage:
    storage = MemoryStorage()
    table = ArrowTable.create(storage, {**TRIPS, "hoodie.datasource.write.table.type": kind, **options})
    rows = pa.table({"id": ["a", "b"], "city": ["x", "y"], "ts": [1, 1]})
    table.upsert(rows.append_column("at", pa.array([{"city": "x"}, {"city": "y"}], STRUCT)))
    assert examine(storage, grace=0) == ()
    return storage


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_record_key_that_is_no_column_is_found(kind):
    (finding,) = renamed(trips(kind), "hoodie.table.recordkey.fields", "idx")
    assert (finding.severity, finding.fault, finding.where) == (Severity.WARNING, Fault.COLUMN, PROPERTIES)
    assert finding.problem.startswith("record key column 'idx' is missing (there is 'id'); the columns are id, city")
    assert "whose values _hoodie_record_key holds, into hoodie.table.recordkey.fields" in finding.advice
    assert finding.remedy is None


def test_a_partition_column_that_is_none_keeps_hudi_from_reading():
    (finding,) = renamed(trips(), "hoodie.table.partition.fields", "town")
    assert (finding.severity, finding.fault) == (Severity.ERROR, Fault.COLUMN)
    assert "partition column 'town' is missing" in finding.problem
    assert "_hoodie_partition_path" in finding.advice


def test_the_advice_makes_the_table_healthy():
    storage = trips()
    assert renamed(storage, "hoodie.table.recordkey.fields", "idx")
    assert renamed(storage, "hoodie.table.recordkey.fields", "id") == ()


def test_fields_of_structs_are_columns_and_names_in_another_case_are_none():
    assert [f.fault for f in renamed(trips(), "hoodie.table.recordkey.fields", "ID")] == [Fault.COLUMN]
    assert renamed(trips(), "hoodie.table.partition.fields", "at.city") == ()
    assert [f.fault for f in renamed(trips(), "hoodie.table.partition.fields", "at.town")] == [Fault.COLUMN]


def test_without_stored_keys_rows_are_not_compared():
    storage = MemoryStorage(files_of("hudi-0.15/cow_no_meta_fields"))
    assert examine(storage, grace=0) == ()
    (finding,) = renamed(storage, "hoodie.table.recordkey.fields", "nothing")
    assert finding.fault is Fault.COLUMN
    assert "_hoodie_record_key" not in finding.advice


def test_names_alone_tell_too():
    storage = trips()
    assert renamed(storage, "hoodie.table.recordkey.fields", "idx") == examine(storage, grace=0, rows=False)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_that_lost_its_record_key_is_found_by_its_keys(kind):
    """An upsert would insert each row a second time, with a key of its own."""
    storage = trips(kind)
    lines = storage.read(PROPERTIES).decode().splitlines(keepends=True)
    storage.write(PROPERTIES, "".join(line for line in lines if "recordkey" not in line).encode())
    (finding,) = examine(storage, grace=0)
    assert (finding.severity, finding.fault, finding.where) == (Severity.WARNING, Fault.COLUMN, PROPERTIES)
    assert "names no record key, and the keys of the rows are of columns, such as 'a'" in finding.problem


def test_a_table_without_a_record_key_lost_none():
    storage = MemoryStorage()
    options = {name: value for name, value in TRIPS.items() if "recordkey" not in name and "precombine" not in name}
    ArrowTable.create(storage, options).upsert(pa.table({"id": ["a"], "city": ["x"], "ts": [1]}))
    assert examine(storage, grace=0) == ()


def test_a_table_that_lost_its_partition_columns_is_found():
    storage = trips()
    lines = storage.read(PROPERTIES).decode().splitlines(keepends=True)
    storage.write(PROPERTIES, "".join(line for line in lines if "partition.fields" not in line).encode())
    (finding,) = examine(storage, grace=0)
    assert (finding.severity, finding.fault, finding.where) == (Severity.WARNING, Fault.COLUMN, PROPERTIES)
    assert "into hoodie.table.partition.fields of that file" in finding.advice
