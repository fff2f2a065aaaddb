"""A small Merge-on-Read table that tests compact."""

from collections.abc import Mapping

import pyarrow as pa

from hoodie.services.compaction.job import CompactionJob, begin_compaction
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.trips import TRIPS

OPTIONS = {
    **TRIPS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.spark.driver.threads": "1",
}
NOW = {"hoodie.compact.inline.max.delta.commits": "1"}
#: The writer compacts nothing by itself.
BY_HAND = {"hoodie.compact.inline": "false"}
Rows = Mapping[str, tuple[str, int, str]]

FIRST: Rows = {"a": ("oslo", 1, "first"), "b": ("oslo", 1, "first"), "c": ("rome", 1, "first"), "d": ("bern", 1, "f")}
SECOND: Rows = {"b": ("oslo", 2, "second"), "c": ("rome", 2, "second")}
LATER: Rows = {"a": ("oslo", 3, "later"), "c": ("rome", 3, "later"), "e": ("bern", 3, "later")}

AFTER_SECOND = {"a": "first", "b": "second", "c": "second", "d": "f"}
AFTER_LATER = {"a": "later", "b": "second", "c": "later", "d": "f", "e": "later"}


def batch(rows: Rows) -> pa.Table:
    columns = [list(column) for column in zip(*rows.values(), strict=True)]
    return pa.table({"id": list(rows), "city": columns[0], "ts": pa.array(columns[1], pa.int64()), "note": columns[2]})


def keys(**cities: str) -> pa.Table:
    """Keys to delete, by id."""
    return pa.table({"id": list(cities), "city": list(cities.values()), "ts": pa.array([9] * len(cities), pa.int64())})


def opened(storage: Storage, options: Mapping[str, str] = BY_HAND) -> ArrowTable:
    of_writes = {key: value for key, value in OPTIONS.items() if "driver" in key or "limit" in key}
    return ArrowTable(storage, {**of_writes, **options})


def fill(storage: Storage) -> ArrowTable:
    """Three slices; those of oslo and rome have a log, with an update each, and oslo's a deleted row."""
    ArrowTable.create(storage, OPTIONS)
    table = opened(storage)
    table.upsert(batch({**FIRST, "x": ("oslo", 1, "deleted")}))
    table.upsert(batch(SECOND))
    table.delete(keys(x="oslo"))
    return table


def schedule(storage: Storage, **options: str) -> str:
    made = schedule_compaction(storage, Settings.of({**NOW, **options}))
    assert made is not None
    return made


def notes(storage: Storage) -> dict[str, str]:
    """What a snapshot reader sees, by key. No key is there twice."""
    return notes_of(opened(storage).snapshot())


def notes_of(rows: pa.Table) -> dict[str, str]:
    found = rows.column("id").to_pylist()
    assert len(set(found)) == len(found), f"keys occur twice: {found}"
    return dict(zip(found, rows.column("note").to_pylist(), strict=True))


def claims_end(storage: Storage) -> None:
    """As time goes by after their holders died."""
    storage.delete_tree(".hoodie/.locks")


def begun(storage: Storage, instant: str) -> CompactionJob:
    """A plan that is being run."""
    job = begin_compaction(storage, Settings.of({}), instant)
    assert job is not None
    return job
