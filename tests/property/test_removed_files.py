"""Files and metafiles of tables removed: a read has the right rows or fails, never fewer in silence; and no write after
it doubles a key."""

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.config.read import MissingFileOptions, ReadSettings
from hoodie.doctor.examine import Fault, Severity, examine
from hoodie.doctor.repair import repair
from hoodie.errors import DamagedLog, HoodieError, MetafileMissing, MissingFile, MissingFileIgnored, ServiceFailed
from hoodie.reading.snapshot import read_table
from hoodie.recovery.rollback import rollback
from hoodie.services.archive import archive
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import split
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import scaled
from support.real_tables import NAMES, files_of, right_rows
from support.trips import TRIPS

OPTIONS = {
    **TRIPS,
    "hoodie.spark.driver.threads": "1",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
CITIES, KEYS = ("x", "y"), "abcd"
#: With the version of the format.
INDEXES = st.builds(
    lambda index, version: {**index, "hoodie.write.table.version": version},
    st.sampled_from(
        [
            {"hoodie.index.type": "SIMPLE"},
            {"hoodie.index.type": "BLOOM"},
            {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
        ]
    ),
    st.sampled_from(["6", "8", "9"]),
)
KINDS = st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"])
ROWS = st.dictionaries(st.tuples(st.sampled_from(KEYS), st.sampled_from(CITIES)), st.just(0), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), ROWS),
        st.tuples(st.just("upsert"), ROWS),
        st.tuples(st.just("delete"), ROWS),
        st.tuples(st.just("overwrite"), st.sampled_from(CITIES)),
        st.tuples(st.just("drop"), st.sampled_from(CITIES)),
        st.tuples(st.sampled_from(["compact", "plan", "clean", "archive", "rollback"]), st.none()),
    ),
    min_size=1,
    max_size=8,
)
FEW = settings(max_examples=scaled(5, 50))
Rows = dict[tuple[str, str], int]


def batch(keys: Collection[tuple[str, str]], ts: int) -> pa.Table:
    ids, cities = zip(*keys, strict=True)
    return pa.table({"id": list(ids), "city": list(cities), "ts": pa.array([ts] * len(keys), pa.int64())})


def step(table: ArrowTable, number: int, what: str, about: object) -> None:
    """One step of a history; those that the table has no room for are refused."""
    storage = table.storage
    with suppress(HoodieError):
        match what:
            case "upsert":
                table.upsert(batch(about, number))  # type: ignore[arg-type]
            case "delete":
                table.delete(batch(about, number))  # type: ignore[arg-type]
            case "overwrite":
                table.insert_overwrite(batch([("a", str(about))], number))
            case "drop":
                table.delete_partitions([str(about)])
            case "plan":
                schedule_compaction(
                    storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
                )
            case "compact":
                schedule_compaction(
                    storage, Settings.of({**table.options, "hoodie.compact.inline.max.delta.commits": "1"})
                )
                compact(storage, Settings.read(table.options))
            case "clean":
                clean(storage, Settings.of({**table.options, "hoodie.cleaner.commits.retained": "1"}))
            case "archive":
                clean(storage, Settings.of({**table.options, "hoodie.cleaner.commits.retained": "1"}))
                archive(
                    storage,
                    Settings.of({**table.options, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}),
                )
            case _:
                rollback(storage, Settings.read(table.options))


def rows(table: ArrowTable) -> Rows | None:
    """What a snapshot reader sees, each key once; None: a typed error."""
    try:
        found = table.snapshot()
    except HoodieError:
        return None
    if not found.num_rows:
        return {}
    keys = list(zip(found.column("id").to_pylist(), found.column("city").to_pylist(), strict=True))
    assert len(keys) == len(set(keys)), "a key occurs twice"
    return dict(zip(keys, found.column("ts").to_pylist(), strict=True))


def is_data(path: str) -> bool:
    return not path.startswith(".hoodie/") and not split(path)[1].startswith(".hoodie_partition")


def is_removable(path: str) -> bool:
    return not path.startswith(".hoodie/")


@contextmanager
def known_warnings_ignored() -> Iterator[None]:
    with warnings.catch_warnings():
        for known in (DamagedLog, MetafileMissing, ServiceFailed):
            warnings.simplefilter("ignore", known)
        yield


def after_steps(kind: str, index: dict[str, str], steps: Collection[tuple[str, Any]]) -> ArrowTable:
    """A new table that has gone through the steps."""
    table = ArrowTable.create(MemoryStorage(), {**OPTIONS, **index, "hoodie.datasource.write.table.type": kind})
    for number, (what, about) in enumerate(steps):
        step(table, number, what, about)
    return table


@given(KINDS, INDEXES, STEPS, ROWS, st.data())
def test_a_table_with_files_removed_has_its_rows_or_fails(kind, index, steps, more, data):
    with known_warnings_ignored():
        table = after_steps(kind, index, steps)
        right = rows(table)
        assert right is not None  # no false alarm
        paths = table.storage.snapshot()  # type: ignore[attr-defined]
        archived = any("archived" in path or "/history/" in path for path in paths)
        paths = sorted(filter(is_removable, table.storage.snapshot()))  # type: ignore[attr-defined]
        if not paths:
            return
        gone = data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3, unique=True))
        kept = {path: table.storage.read(path) for path in gone}
        for path in gone:
            table.storage.delete(path)
        seen = rows(table)
        # Of commits that were archived nothing says which files they published.
        assert archived or seen is None or seen == right
        if not any(map(is_data, gone)):
            assert archived or seen == right
        before = {path for path in table.storage.snapshot() if is_removable(path)}  # type: ignore[attr-defined]
        try:
            table.upsert(batch(more, 100))
            written = True
        except MissingFile:
            written = False
            after = {path for path in table.storage.snapshot() if is_removable(path)}  # type: ignore[attr-defined]
            assert before == after
        if archived:
            return
        for path, content in kept.items():  # from a copy
            if not table.storage.exists(path):
                table.storage.write(path, content)
        assert rows(table) == ({**right, **dict.fromkeys(more, 100)} if written else right)


@given(KINDS, INDEXES, STEPS, st.data())
@FEW
def test_a_repair_restores_metafiles(kind, index, steps, data):
    with known_warnings_ignored():
        table = after_steps(kind, index, steps)
        right = rows(table)
        paths = [path for path in table.storage.snapshot() if is_removable(path) and not is_data(path)]  # type: ignore[attr-defined]
        if any("archived" in path for path in table.storage.snapshot()) or not paths:  # type: ignore[attr-defined]
            return
        for path in data.draw(st.sets(st.sampled_from(sorted(paths)), min_size=1)):
            table.storage.delete(path)
        repair(table.storage, dry_run=False, grace=0)
        assert rows(table) == right
        warnings.simplefilter("error", MetafileMissing)
        assert rows(table) == right


@given(st.sampled_from(NAMES), st.data())
@FEW
def test_a_real_table_with_a_file_removed_has_its_rows_or_fails(name, data):
    files = files_of(name)
    path = data.draw(st.sampled_from(sorted(filter(is_removable, files))))
    storage = MemoryStorage({each: content for each, content in files.items() if each != path})
    with warnings.catch_warnings():
        for known in (DamagedLog, MetafileMissing):
            warnings.simplefilter("ignore", known)
        try:
            found = read_table(load_state(storage))
        except (HoodieError, FileNotFoundError):  # the latter where the metadata table still lists it
            assert is_data(path)
            found_faults = {finding.where for finding in examine(storage, rows=False, grace=0)}
            assert path in found_faults
            warnings.simplefilter("ignore", MissingFileIgnored)
            read_table(load_state(storage), settings=ReadSettings(missing=MissingFileOptions(ignore=True)))
            return
        assert found.num_rows == right_rows(name).num_rows or "archived" in name
        assert found.sort_by("_hoodie_record_key").equals(right_rows(name).sort_by("_hoodie_record_key")) or (
            "archived" in name
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_real_table_that_lost_a_completed_file_has_its_rows_or_fails_where_the_doctor_knows(name):
    folder = load_state(MemoryStorage(files_of(name))).timeline.folder
    with known_warnings_ignored():
        for path in files_of(name):
            if split(path)[0] != folder or not path.endswith("commit"):
                continue
            storage = MemoryStorage({each: content for each, content in files_of(name).items() if each != path})
            lost = [finding for finding in examine(storage, rows=False, grace=0) if finding.fault is Fault.HOLLOW]
            if any(finding.severity is Severity.ERROR for finding in lost):
                with suppress(MissingFile):
                    assert read_table(load_state(storage)).equals(right_rows(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_real_table_misses_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetafileMissing)
        assert read_table(load_state(MemoryStorage(files_of(name)))).equals(right_rows(name))
