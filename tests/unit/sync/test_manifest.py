"""Manifests: which files they name after each kind of commit, what a refresh costs, and whatever dies in between."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.config.options import Options
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.model.instant import Action
from hoodie.recovery.rollback import rollback
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.sync.manifest import CSV_NAMES, CSV_URIS, STATE_FILE, symlink_path, write_manifests
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested, to_inflight
from support.instants import next_time
from support.nightly import each_call
from support.trips import TRIPS, WRITES, rows

BOTH = Options({"hoodie.sync.manifest": "symlink,csv"})
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def made(storage: Storage, **options: str) -> ArrowTable:
    given = {key.replace("__", "."): value for key, value in options.items()}
    ArrowTable.create(storage, {**TRIPS, **given})
    return ArrowTable(storage, WRITES)


def lines(storage: Storage, path: str) -> list[str]:
    return storage.read(path).decode().splitlines()


def symlinks(storage: Storage) -> dict[str, list[str]]:
    folders = storage.list_tree(".hoodie/symlink-manifest")
    named = [folder.removeprefix(".hoodie/symlink-manifest").removeprefix("/") for folder in folders]
    return {name: lines(storage, symlink_path(name)) for name in named}


def relative(storage: Storage, uris: list[str]) -> list[str]:
    base = f"file://{storage.root}" if storage.root.startswith("/") else storage.root
    assert all(uri.startswith(f"{base}/") for uri in uris)
    return [uri.removeprefix(f"{base}/") for uri in uris]


def listed(storage: Storage) -> list[str]:
    """What all manifests name, after seeing that they agree."""
    paths = sorted(relative(storage, [uri for uris in symlinks(storage).values() for uri in uris]))
    assert relative(storage, lines(storage, CSV_URIS)) == paths
    assert lines(storage, CSV_NAMES) == [path.rpartition("/")[2] for path in paths]
    return paths


def newest(table: ArrowTable) -> list[str]:
    return sorted(slice_.base.path for slice_ in table.slices() if slice_.base)


def refreshed(table: ArrowTable, **how: Any) -> list[str]:
    write_manifests(table.storage, Settings.read(BOTH), **how)
    assert listed(table.storage) == newest(table)
    return listed(table.storage)


# --- what they name ---


def test_manifests_name_the_newest_base_file_of_each_group_after_each_kind_of_commit() -> None:
    table = made(MemoryStorage())
    assert refreshed(table) == []
    table.upsert(rows("a", "b"))
    first = refreshed(table)
    table.upsert(rows("c", city="rome"))
    table.upsert(rows("a", ts=2))
    assert len(refreshed(table)) == 2
    assert set(first).isdisjoint(listed(table.storage))
    table.insert_overwrite(rows("z", city="rome"))
    refreshed(table)
    table.delete(rows("a", "b"))
    refreshed(table)
    table.insert_overwrite_table(rows("y", city="bern"))
    assert len(refreshed(table)) == 1
    assert write_manifests(table.storage, Settings.read(BOTH), whole=True).whole
    refreshed(table)


def test_of_a_merge_on_read_table_they_name_what_a_read_optimized_read_sees() -> None:
    table = made(MemoryStorage(), **MOR)
    table.upsert(rows("a"))
    base = refreshed(table)
    table.upsert(rows("a", ts=2))
    assert refreshed(table) == base
    schedule_compaction(table.storage, Settings.of({"hoodie.compact.inline.max.delta.commits": "1"}))
    assert refreshed(table) == base
    table.upsert(rows("a", ts=3))
    assert refreshed(table) == base
    compact(table.storage, Settings.of(WRITES))
    assert refreshed(table) != base


def test_the_lines_of_a_local_table_are_readable_files_with_the_rows_of_a_read(tmp_path: Path) -> None:
    table = made(LocalStorage(str(tmp_path / "t")), hoodie__datasource__write__hive_style_partitioning="true")
    table.upsert(rows("a", "b"))
    table.upsert(rows("a", ts=7))
    write_manifests(table.storage, Settings.read(BOTH))
    (uris,) = symlinks(table.storage).values()
    read = pa.concat_tables(pq.ParquetFile(uri.removeprefix("file://")).read() for uri in uris)
    expected = table.snapshot()
    assert sorted(zip(*read.select(["id", "ts"]).to_pydict().values(), strict=True)) == sorted(
        zip(*expected.select(["id", "ts"]).to_pydict().values(), strict=True)
    )
    assert symlinks(table.storage).keys() == {"city=oslo"}


def test_an_unpartitioned_table_has_one_symlink_manifest() -> None:
    table = made(MemoryStorage(), hoodie__datasource__write__partitionpath__field="")
    table.upsert(rows("a"))
    refreshed(table)
    assert symlinks(table.storage).keys() == {""}


def test_a_commit_that_is_not_finished_is_in_no_manifest() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    before = refreshed(table)
    requested = create_requested(table.storage, next_time(table.storage), Action.COMMIT, b"", layout=LAYOUT_1)
    to_inflight(table.storage, requested, b"", layout=LAYOUT_1)
    group = table.slices()[0].group
    table.storage.write(f"oslo/{group.file_id}_0-0-0_{requested.requested}.parquet", b"half")
    assert refreshed(table) == before
    assert refreshed(table, whole=True) == before


def test_a_rolled_back_commit_leaves_the_manifests() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    before = refreshed(table)
    table.upsert(rows("a", ts=2))
    assert refreshed(table) != before
    rollback(table.storage, Settings.of(WRITES))
    assert refreshed(table) == before


def test_the_engines_path_of_the_table_is_put_in_place_of_its_own() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    options = Options({**BOTH, "hoodie.datasource.meta.sync.base.path": "s3a://bucket/trips/"})
    write_manifests(table.storage, Settings.read(options))
    assert all(line.startswith("s3a://bucket/trips/oslo/") for line in lines(table.storage, CSV_URIS))
    result = write_manifests(table.storage, Settings.read(BOTH))
    assert result.whole
    assert listed(table.storage) == newest(table)


def test_an_empty_table_gets_empty_lists_instead_of_keeping_old_ones() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    refreshed(table)
    table.delete_partitions(["oslo"])
    assert refreshed(table) == []
    assert symlinks(table.storage) == {"oslo": []}


# --- with cleaning ---


def test_the_manifest_of_a_partition_goes_when_cleaning_removes_the_partition() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    table.upsert(rows("c", city="rome"))
    table.delete_partitions(["oslo"])
    refreshed(table)
    for number in range(3):
        table.upsert(rows("c", city="rome", ts=number))
    done = table.clean({"hoodie.cleaner.commits.retained": "1"})
    assert done.partitions == ("oslo",)
    write_manifests(table.storage, Settings.read(BOTH), removed=done.partitions)
    assert symlinks(table.storage).keys() == {"rome"}
    assert listed(table.storage) == newest(table)


def test_a_removed_partition_with_rows_again_keeps_its_manifest() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    refreshed(table)
    assert refreshed(table, removed=["oslo"]) == newest(table)
    assert symlinks(table.storage).keys() == {"oslo"}


def test_no_manifest_names_a_file_that_cleaning_has_deleted() -> None:
    table = made(MemoryStorage())
    for number in range(6):
        table.upsert(rows("a", ts=number))
        write_manifests(table.storage, Settings.read(BOTH))
        table.clean({"hoodie.cleaner.commits.retained": "1"})
        assert all(table.storage.exists(path) for path in listed(table.storage))


# --- cost ---


@pytest.mark.parametrize("partitions", [3, 40])
def test_a_refresh_looks_at_the_partitions_of_new_commits_alone(partitions: int) -> None:
    storage = CountingStorage(MemoryStorage())
    table = made(storage)
    table.upsert(pa.concat_tables(rows(f"k{number}", city=f"c{number}") for number in range(partitions)))
    write_manifests(storage, Settings.read(BOTH))
    result = table.upsert(rows("k1", city="c1", ts=2))
    storage.reset()
    done = write_manifests(storage, Settings.read(BOTH), state=result.after)
    assert done.partitions == ("c1",)
    assert storage.count("list") + storage.count("list_tree") == 1
    assert storage.count("write") == 4  # its manifest, the two lists, what was done
    assert storage.count("read") == 3  # what was done, the list, the commit


def test_a_refresh_without_new_commits_reads_one_file() -> None:
    storage = CountingStorage(MemoryStorage())
    table = made(storage)
    result = table.upsert(rows("a"))
    write_manifests(storage, Settings.read(BOTH))
    storage.reset()
    assert write_manifests(storage, Settings.read(BOTH), state=result.after or load_state(storage)).partitions == ()
    assert storage.count("write") == 0
    assert storage.count("list_tree") == 0


# --- interruptions ---


@pytest.mark.parametrize("whole", [False, True])
def test_a_refresh_that_dies_anywhere_leaves_old_or_new_files_and_the_next_one_finishes(whole: bool) -> None:
    for writes in each_call():
        table = made(MemoryStorage())
        table.upsert(pa.concat_tables([rows("a"), rows("b", city="rome")]))
        old = set(refreshed(table))
        table.upsert(pa.concat_tables([rows("a", ts=2), rows("b", city="rome", ts=2)]))
        new = set(newest(table))
        dying = CrashAfter(table.storage, writes)
        try:
            write_manifests(dying, Settings.read(BOTH), whole=whole)
        except Crash:
            for uris in symlinks(table.storage).values():
                assert len(uris) == 1
                assert set(relative(table.storage, uris)) <= old | new
            assert set(relative(table.storage, lines(table.storage, CSV_URIS))) in (old, new)
            refreshed(table)
        else:
            assert writes >= 5
            return


class ReadsBetween(WrappedStorage):
    """Notes which list a reader has after each change."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.seen: list[tuple[str, ...]] = []

    def mutate(self, name: str, path: str, call: Any) -> Any:
        done = call()
        self.seen.append(tuple(relative(self.inner, lines(self.inner, CSV_URIS))))
        return done


def test_a_reader_in_the_middle_of_a_refresh_sees_the_old_list_or_the_new_one() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    old = tuple(refreshed(table))
    table.upsert(rows("a", ts=2))
    watching = ReadsBetween(table.storage)
    write_manifests(watching, Settings.read(BOTH))
    assert set(watching.seen) == {old, tuple(newest(table))}


@pytest.mark.parametrize("damage", [b"", b"{", b'{"formats": 1}', b"[]"])
def test_a_record_that_cannot_be_read_makes_the_refresh_look_at_all_partitions(damage: bytes) -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    refreshed(table)
    table.storage.write(STATE_FILE, damage)
    assert write_manifests(table.storage, Settings.read(BOTH)).whole
    refreshed(table)


def test_a_list_that_was_deleted_is_made_anew_as_a_whole() -> None:
    table = made(MemoryStorage())
    table.upsert(pa.concat_tables([rows("a"), rows("b", city="rome")]))
    refreshed(table)
    table.storage.delete(CSV_URIS)
    table.upsert(rows("a", ts=2))
    refreshed(table)


def test_another_choice_of_formats_looks_at_all_partitions() -> None:
    table = made(MemoryStorage())
    table.upsert(pa.concat_tables([rows("a"), rows("b", city="rome")]))
    assert write_manifests(table.storage, Settings.of({}), formats=["symlink"]).formats == ("symlink",)
    assert not table.storage.exists(CSV_URIS)
    table.upsert(rows("a", ts=2))
    assert write_manifests(table.storage, Settings.read(BOTH)).whole
    refreshed(table)


def test_commits_that_came_and_were_archived_unseen_make_it_look_at_all_partitions() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    refreshed(table)
    options: Mapping[str, str] = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
    few = {**options, "hoodie.cleaner.commits.retained": "1"}
    for number in range(12):
        table.upsert(rows(f"k{number}", city=f"c{number}"), few)
    assert write_manifests(table.storage, Settings.read(BOTH)).whole
    refreshed(table)


# --- bad input ---


def test_an_unknown_format_is_refused() -> None:
    table = made(MemoryStorage())
    with pytest.raises(InvalidOption, match=r"hoodie.sync.manifest='parquet': expected symlink, csv or both"):
        write_manifests(table.storage, Settings.of({}), formats=["parquet"])
    with pytest.raises(InvalidOption, match=r"hoodie.sync.manifest='avro'"):
        table.upsert(rows("a"), {"hoodie.sync.manifest": "avro"})


def test_a_partition_with_a_line_break_in_its_path_is_refused_before_anything_is_written() -> None:
    table = made(MemoryStorage())
    table.upsert(rows("a"))
    before = refreshed(table)
    table.upsert(rows("b", city="new\nyork"))
    with pytest.raises(InvalidInput, match="line break"):
        write_manifests(table.storage, Settings.read(BOTH))
    assert listed(table.storage) == before
