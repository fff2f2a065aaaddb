"""Every kind of table that is written, synced to a real metastore and walked by the rules of Presto, Trino and Hive.

The reader of support.engine_reader is written from docs/format/engines.md; its rows and splits are compared with reads
of the library.
"""

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie.recovery.rollback import rollback
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.sync.hive import sync_table
from hoodie.sync.metastore import connect, struct_columns
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.engine_reader import (
    CatalogEntry,
    base_path_by_metafile,
    check_files,
    parquet_types,
    rows,
    rows_of_listed_files,
    splits,
    splits_of_old_trino,
)
from support.nightly import by_day
from support.trips import table_options

HIVE = "hoodie.datasource.hive_sync."
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
STYLE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
TWO = {"hoodie.datasource.write.partitionpath.field": "city,day"}
NONE = {"hoodie.datasource.write.partitionpath.field": ""}
SMALL = {"hoodie.parquet.small.file.limit": "0"}
_NUMBERS = count(int(time.time() * 1000))


def batch(*keys: str, city: str | None = "oslo", day: int = 1, ts: int = 1, **columns: pa.Array) -> pa.Table:
    size = len(keys)
    return pa.table(
        {
            "id": list(keys),
            "city": pa.array([city] * size, pa.string()),
            "day": pa.array([day] * size, pa.int32()),
            "ts": pa.array([ts] * size, pa.int64()),
            "price": pa.array([ts / 2] * size, pa.float64()),
            **columns,
        }
    )


def two_cities(table: ArrowTable) -> None:
    table.upsert(pa.concat_tables([batch("a", "b", "c"), batch("d", "e", city="rome", day=2)]))


def upserts(table: ArrowTable) -> None:
    two_cities(table)
    table.upsert(batch("a", ts=2), SMALL)
    table.upsert(batch("f", city="bern"), SMALL)
    table.delete(batch("b"))


def overwrites(table: ArrowTable) -> None:
    two_cities(table)
    table.insert_overwrite(batch("x", ts=9))
    table.insert_overwrite(batch("y", city="rome", day=2, ts=9))


def deleted_partition(table: ArrowTable) -> None:
    two_cities(table)
    first = next(iter({slice_.group.partition for slice_ in table.slices()}))
    table.delete_partitions([first])


def evolved(table: ArrowTable) -> None:
    two_cities(table)
    table.upsert(batch("n", city="bern", note=pa.array(["x"])), SMALL)


def null_partition(table: ArrowTable) -> None:
    two_cities(table)
    table.upsert(batch("n", city=None))


def cleaned_and_archived(table: ArrowTable) -> None:
    two_cities(table)
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.cleaner.commits.retained": "1"}
    for ts in range(2, 9):
        table.upsert(batch("a", ts=ts), {**few, **SMALL})


def rolled_back(table: ArrowTable) -> None:
    two_cities(table)
    table.upsert(batch("a", ts=5), SMALL)
    rollback(table.storage, Settings.of({}))


def strange_names(table: ArrowTable) -> None:
    two_cities(table)
    table.upsert(batch("s", city="são paulo: a/b"))


def with_logs(table: ArrowTable) -> None:
    two_cities(table)
    table.upsert(batch("a", ts=2))
    table.upsert(batch("d", city="rome", day=2, ts=3))
    table.delete(batch("c"))


def compaction_planned(table: ArrowTable) -> None:
    with_logs(table)
    assert schedule_compaction(table.storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"}))
    table.upsert(batch("a", ts=4))


def compacted(table: ArrowTable) -> None:
    compaction_planned(table)
    compact(table.storage, Settings.of({}))


def compacted_whole(table: ArrowTable) -> None:
    with_logs(table)
    assert schedule_compaction(table.storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"}))
    compact(table.storage, Settings.of({}))


#: Name -> the table's settings and what is done to it.
KINDS: dict[str, tuple[dict[str, str], Callable[[ArrowTable], None]]] = {
    "cow": ({}, upserts),
    "cow hive style": (STYLE, upserts),
    "cow two columns": (TWO, upserts),
    "cow two columns hive style": ({**TWO, **STYLE}, upserts),
    "cow url-encoded": ({**STYLE, **ENCODED}, strange_names),
    "cow unpartitioned": (NONE, upserts),
    "cow overwrites": ({}, overwrites),
    "cow deleted partition": (STYLE, deleted_partition),
    "cow evolved": ({}, evolved),
    "cow null partition": (STYLE, null_partition),
    "cow cleaned and archived": ({}, cleaned_and_archived),
    "cow rolled back": ({}, rolled_back),
    "mor": (MOR, two_cities),
    "mor with logs": (MOR, with_logs),
    "mor unpartitioned with logs": ({**MOR, **NONE}, with_logs),
    "mor hive style": ({**MOR, **STYLE, **TWO}, with_logs),
    "mor compaction planned": (MOR, compaction_planned),
    "mor compacted": (MOR, compacted),
    "mor compacted whole": (MOR, compacted_whole),
    "mor overwrites": (MOR, overwrites),
    "mor evolved": (MOR, evolved),
}


def entries_of(table: ArrowTable, uri: str) -> dict[str, CatalogEntry]:
    """The entries that a sync makes, as an engine reads them from the metastore."""
    database = f"conf{next(_NUMBERS)}"
    given = {f"{HIVE}metastore.uris": uri, f"{HIVE}database": database, "hoodie.sync.manifest.view": "true"}
    done = sync_table(table.storage, Settings.of(given))
    found = {}
    with connect([uri], 60) as metastore:
        for name in (entry.name.partition(".")[2] for entry in done.entries):
            entry = metastore.table(database, name)
            if entry.viewExpandedText:
                continue
            names = metastore.partition_names(database, name)
            parts = metastore.partitions(database, name, names, 100)
            found[name] = CatalogEntry(
                entry.sd.inputFormat,
                entry.sd.location,
                struct_columns(entry.sd.cols),
                struct_columns(entry.partitionKeys),
                {tuple(part.values): part.sd.location for part in parts},
                entry.parameters,
            )
    return found


def comparable(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(sorted(row.items())) for row in found), key=repr)


def expected(table: pa.Table) -> list[tuple[Any, ...]]:
    return comparable([{name.lower(): value for name, value in row.items()} for row in table.to_pylist()])


#: The others differ from these in one thing that has tests without a metastore: the paths, or what became of files.
BY_DAY = (
    "cow", "cow two columns hive style", "cow overwrites", "cow null partition", "mor with logs",
    "mor compaction planned",
)  # fmt: skip


@pytest.mark.parametrize("kind", by_day(KINDS, BY_DAY.__contains__))
def test_an_engine_that_follows_the_rules_reads_what_the_library_reads(
    kind: str, tmp_path: Path, metastore_uri: str
) -> None:
    settings, fill = KINDS[kind]
    storage = LocalStorage(str(tmp_path / "t"))
    base = table_options("t", "id", partition="city", ordering="ts")
    table = ArrowTable.create(storage, {**base, **settings})
    fill(table)
    entries = entries_of(table, metastore_uri)
    optimized = expected(table.read_optimized())
    versions, listed = entries.pop("t_plain_versions"), entries.pop("t_plain_manifest")
    assert comparable(rows_of_listed_files(versions, listed)) == optimized
    slices = {
        (s.group.partition, s.group.file_id, s.base.path if s.base else None, tuple(log.path for log in s.logs))
        for s in table.slices()
    }
    for name, entry in entries.items():
        check_files(entry)
        found = splits(entry)
        parquet_types(entry, found)
        assert comparable(rows(entry, splits_of_old_trino(entry))) == optimized, name
        if "realtime" not in entry.input_format:
            assert comparable(rows(entry, found)) == optimized, name
            continue
        assert {
            (
                partition_of(entry, split.values),
                split.file_id,
                below(split.base, storage.root),
                tuple(below(log, storage.root) for log in split.logs),
            )
            for split in found
        } == slices
        if not any(split.logs for split in found):
            assert comparable(rows(entry, found)) == expected(table.snapshot())


def partition_of(entry: CatalogEntry, values: tuple[str, ...]) -> str:
    location = entry.partitions[values] if entry.keys else entry.location
    root = base_path_by_metafile(location)
    return below(location.removeprefix("file:").removeprefix("//"), root) or ""


def below(path: str | None, root: str) -> str | None:
    return None if path is None else path.removeprefix(root).lstrip("/")
