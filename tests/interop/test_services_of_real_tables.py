"""Cleaning and archiving decide as Hudi did: the real tables' plans and archive files, step by step."""

import io
import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hoodie.config.services import ArchiveOptions, CleanOptions
from hoodie.formats.avro.container import write_one
from hoodie.formats.log.blocks import read_blocks
from hoodie.formats.timeline.archive_log import decode_entries, encode_entries, entry_schema
from hoodie.formats.timeline.services import (
    CLEAN_METADATA,
    CLEAN_PLAN,
    decode_clean_metadata,
    decode_clean_plan,
    decode_savepoint,
)
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.files import parse_data_file
from hoodie.model.instant import COMMITS, Action, Instant, State
from hoodie.model.plans import CleanMetadata, CleanPlan
from hoodie.plan.archive import Cleaning, instants_to_archive
from hoodie.plan.clean import earliest_retained, files_to_delete, scope_of, superseding
from hoodie.reading.snapshot import read_table
from hoodie.services.archive import archive, history
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import join, split
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.archive import ArchivedEntry, archive_files, archived_entries, read_archive_file
from hoodie.timeline.timeline import Timeline
from hoodie.view.load import build_view
from support.oracles import assert_same_rows, expected_rows, fixture_facts, read_hudi_rs
from support.trips import TRIPS

FixtureTable = Callable[[str], Path]
ARCHIVED = ("cow_archived", "v6_mor_with_services")


def state_of(path: Path) -> TableState:
    return load_state(LocalStorage(path))


def content(entry: ArchivedEntry) -> CleanMetadata | CleanPlan:
    """A clean or its plan out of the archive, read by the codec of the active timeline."""
    assert entry.record is not None
    if entry.instant.state is State.COMPLETED:
        return decode_clean_metadata(write_one(CLEAN_METADATA.document, entry.record), entry.path)
    return decode_clean_plan(write_one(CLEAN_PLAN.document, entry.record), entry.path)


class Past:
    """A real table's instants from its beginning: those of its archive, then those of its timeline."""

    def __init__(self, path: Path) -> None:
        self.state = state = state_of(path)
        self.commits: dict[Instant, CommitMetadata] = dict(reversed(history(state, archived=True)))
        self.cleans: dict[Instant, CleanMetadata] = {}
        self.plans: dict[str, CleanPlan] = {}
        for entry in archived_entries(state.storage, state.config):
            if entry.instant.action is Action.CLEAN:
                found = content(entry)
                if isinstance(found, CleanMetadata):
                    self.cleans[entry.instant] = found
                else:
                    self.plans[entry.instant.requested] = found
        for instant in state.timeline.completed({Action.CLEAN}):
            path_, plan = state.timeline.path(instant), state.timeline.path(replace(instant, state=State.REQUESTED))
            self.cleans[instant] = decode_clean_metadata(state.storage.read(path_), path_)
            self.plans[instant.requested] = decode_clean_plan(state.storage.read(plan), plan)
        self.savepoints = {
            instant: decode_savepoint(state.storage.read(state.timeline.path(instant)), "savepoint")
            for instant in state.timeline.completed({Action.SAVEPOINT})
        }

    def before(self, instant: str, without: Iterable[Instant] = ()) -> Timeline:
        """The active timeline at an instant."""
        past = {i for i in (*self.commits, *self.cleans, *self.savepoints) if i.requested < instant} - set(without)
        return Timeline(tuple(sorted(past)))

    def files_before(self, instant: str) -> list[str]:
        """Paths of the data files there were at an instant: what commits wrote and cleans did not delete."""
        written = [
            stat.path
            for commit, metadata in self.commits.items()
            if commit.requested < instant
            for stats in metadata.stats.values()
            for stat in stats
        ]
        gone = {
            join(partition, name)
            for done, metadata in self.cleans.items()
            if done.requested < instant
            for partition, part in metadata.partitions.items()
            for name in part.deleted
        }
        return [path for path in written if path is not None and path not in gone]


@pytest.mark.parametrize(("name", "retained"), [("cow_archived", 2), ("cow_savepoint", 1), ("v6_mor_with_services", 5)])
def test_a_clean_deletes_what_hudi_deleted(name: str, retained: int, fixture_table: FixtureTable) -> None:
    past = Past(fixture_table(name))
    options = CleanOptions(commits=retained)
    assert past.cleans
    for instant in sorted(past.cleans):
        plan, timeline = past.plans[instant.requested], past.before(instant.requested)
        earliest = earliest_retained(timeline, options, instant.requested)
        assert plan.earliest == (earliest.requested, earliest.action, "COMPLETED")
        assert plan.last_completed == timeline.newest_commit
        files = [parse_data_file(*split(path), 1) for path in past.files_before(instant.requested)]
        replaces = [(i, m) for i, m in past.commits.items() if m.replaced and i.requested < instant.requested]
        view = build_view(timeline, [file for file in files if file is not None], replaces)
        saved = {join(p, n) for s in past.savepoints.values() for p, names in s.files.items() for n in names}
        made = files_to_delete(view, options, earliest, saved=saved)
        assert made == {partition: tuple(sorted(names)) for partition, names in plan.files.items()}


def test_a_clean_looks_where_hudis_found_something(fixture_table: FixtureTable) -> None:
    past = Past(fixture_table("cow_archived"))
    options, last = CleanOptions(commits=2), None
    for instant in sorted(past.cleans):
        timeline = past.before(instant.requested)
        earliest = earliest_retained(timeline, options, instant.requested)
        scope = scope_of(timeline, options, earliest, last, (), all_active=True)
        assert scope.commits is not None
        assert len(scope.commits) <= 2
        where = set().union(*(superseding(past.commits[commit]) for commit in scope.commits))
        assert where == set(past.plans[instant.requested].files)
        last = past.cleans[instant]


def test_the_archive_gets_what_hudi_archived(fixture_table: FixtureTable) -> None:
    """Run again, write by write: what leaves the timeline, and when, is what Hudi's archive files hold."""
    past = Past(fixture_table("cow_archived"))
    state = past.state
    options, cleans = ArchiveOptions(min_commits=4, max_commits=5), CleanOptions(commits=2)
    runs = [
        {entry.instant for entry in read_archive_file(state.storage, path) if entry.instant.state is State.COMPLETED}
        for path in reversed(archive_files(state.storage, state.config).values())
    ]
    writes, made = sorted(past.commits), []
    gone: set[Instant] = set()
    for upcoming in [*writes[1:], Instant("9" * 17, Action.COMMIT, State.COMPLETED)]:
        timeline = past.before(upcoming.requested, gone)  # with the clean that came after the commit
        earliest = earliest_retained(timeline, cleans, upcoming.requested)
        done = timeline.completed({Action.CLEAN})
        cleaning = Cleaning(earliest.requested if earliest else "", past.cleans[done[-1]] if done else None)
        chosen = instants_to_archive(timeline, options, cleaning)
        if chosen:
            made.append(set(chosen))
        gone |= set(chosen)
    assert made == runs
    assert [i for i in state.timeline.instants if i.action in COMMITS] == [i for i in writes if i not in gone]


@pytest.mark.parametrize("name", ARCHIVED)
def test_the_archive_of_a_real_table_is_read_back(name: str, fixture_table: FixtureTable) -> None:
    state = state_of(fixture_table(name))
    told = history(state, archived=True)
    active = history(state)
    assert told[: len(active)] == active
    assert len(told) > len(active)
    times = [instant.requested for instant, _ in told]
    assert times == sorted(set(times), reverse=True)
    if name == "cow_archived":
        steps = [step["instant"] for step in fixture_facts(name)["steps"]]
        assert times == steps[::-1]
    for _, metadata in told:
        assert metadata.schema
        assert metadata.stats
        assert "ROLLING_STAT" not in metadata.extra
    by_operation = {metadata.operation: metadata for _, metadata in told}
    if name == "v6_mor_with_services":
        assert by_operation[Operation.COMPACT].compacted
        assert any(by_operation[Operation.CLUSTER].replaced.values())


def records(data: bytes, writer: Any, reader: Any) -> list[Any]:
    """The entries of an archive file as a reader of another schema has them."""
    found = []
    for block in read_blocks(data, "archive"):
        content, at = bytes(block.content), 8
        version, count = struct.unpack(">ii", content[:8])
        assert version == 3
        for _ in range(count):
            (length,) = struct.unpack(">i", content[at : at + 4])
            body = io.BytesIO(content[at + 4 : at + 4 + length])
            found.append(fastavro.schemaless_reader(body, writer, reader))
            at += 4 + length
        assert at == len(content)
    return found


@pytest.mark.parametrize("name", ARCHIVED)
def test_entries_are_written_as_hudi_reads_them(name: str, fixture_table: FixtureTable) -> None:
    """Ours, resolved by the schema of a real archive file as Hudi resolves it, are the real entries."""
    state = state_of(fixture_table(name))
    seen = 0
    for path in archive_files(state.storage, state.config).values():
        data = state.storage.read(path)
        real_schema = fastavro.parse_schema(json.loads(next(iter(read_blocks(data, path))).header.schema or ""))
        ours_schema = fastavro.parse_schema(json.loads(entry_schema()))

        written = encode_entries(list(decode_entries(data, path)), 10)
        assert records(written, ours_schema, real_schema) == records(data, real_schema, real_schema)
        blocks = list(read_blocks(written, path))
        assert all([key for key, _ in block.header.entries] == [2] and not block.footer.entries for block in blocks)
        seen += len(blocks)
    assert seen >= len(archive_files(state.storage, state.config))


SHORT = {
    "hoodie.cleaner.commits.retained": "1",
    "hoodie.keep.min.commits": "1",
    "hoodie.keep.max.commits": "2",
    "hoodie.compact.inline.max.delta.commits": "1",
    "hoodie.cleaner.incremental.mode": "false",
}


@pytest.mark.parametrize(
    "name",
    [
        "cow_upserts_delete",
        "cow_clustering",
        "cow_insert_overwrite",
        "cow_archived",
        "cow_savepoint",
        "mor_compacted",
        "mor_pending_compaction",
        "mor_rolled_back",
        "v6_mor_with_services",
    ],
)
def test_real_tables_read_the_same_after_services(name: str, fixture_table: FixtureTable) -> None:
    path = fixture_table(name)
    storage = LocalStorage(path)
    before, in_hudi_rs = read_table(load_state(storage)), read_hudi_rs(path)
    told = len(history(load_state(storage), archived=True))
    options = {**SHORT, "hoodie.metadata.enable": "false"}  # one of them has a metadata table
    cleaned = clean(storage, Settings.of(options))
    archived = archive(storage, Settings.of(options))
    assert_same_rows(read_table(load_state(storage)), before)
    assert_same_rows(before, expected_rows(name))
    assert_same_rows(read_hudi_rs(path), in_hudi_rs)  # it leaves out logs of a pending compaction, before and after
    assert len(history(load_state(storage), archived=True)) == told
    if name not in ("cow_savepoint", "mor_pending_compaction", "mor_rolled_back"):  # there everything is needed
        assert cleaned.files or archived.instants, "nothing was tested"


def test_hudi_rs_reads_a_table_that_is_cleaned_and_archived_all_along(tmp_path: Path) -> None:
    for table_type in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        path = tmp_path / table_type
        table = ArrowTable.create(LocalStorage(path), {**TABLE, "hoodie.datasource.write.table.type": table_type})
        rows: dict[str, tuple[str, int]] = {}
        for number in range(14):
            city, keys = f"city{number % 3}", [f"k{number % 5}", f"n{number}"]
            if number == 6:
                rows = {key: row for key, row in rows.items() if row[0] != city}
                table.insert_overwrite(batch(keys, city, number))
            elif number == 9:
                table.delete_partitions([city])
                rows, keys = {key: row for key, row in rows.items() if row[0] != city}, []
            else:
                table.upsert(batch(keys, city, number))
            rows |= {f"{city}/{key}": (city, number) for key in keys}
            if table_type == "MERGE_ON_READ" and number % 4 == 3:
                schedule_compaction(table.storage, Settings.read(table.options))
                compact(table.storage, Settings.read(table.options))
            ours = table.snapshot()
            found = {f"{row['city']}/{row['id']}": (row["city"], row["ts"]) for row in ours.to_pylist()}
            assert found == rows
            if number % 3 == 2 or number > 11:
                assert_same_rows(read_hudi_rs(path), ours)
        state = table.state()
        assert len(state.timeline.commits) <= 6 < len(history(state, archived=True))
        assert len(state.timeline.completed({Action.CLEAN})) <= 4


TABLE = {
    **TRIPS,
    "hoodie.spark.driver.threads": "1",
    **SHORT,
    "hoodie.cleaner.incremental.mode": "true",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
}


def batch(keys: list[str], city: str, ts: int) -> pa.Table:
    return pa.table({"id": keys, "city": [city] * len(keys), "ts": pa.array([ts] * len(keys), pa.int64())})
