"""Writes to Merge-on-Read tables, driven without Spark: which files they leave, and the rows that readers then see."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.commit import transaction
from hoodie.config.write import WriteOperation
from hoodie.errors import UnsupportedTable
from hoodie.formats.timeline.commit_json import decode_commit
from hoodie.formats.timeline.plans import encode_compaction_plan
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import Operation, WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, State
from hoodie.model.plans import CompactionOperation, CompactionPlan
from hoodie.plan.write import TaskKind, WriteTask
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import table_keygen
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import create_requested
from hoodie.writing.batch.memory import MemoryBatch
from hoodie.writing.finish import finish
from hoodie.writing.planning import EXECUTORS, TaskResults
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.tasks.run import run_task
from hoodie.writing.write import Write, check, start, writable_state
from support.keyed_rows import keyed
from support.nightly import covering
from support.oracles import read_hudi_rs, read_hudi_rs_optimized
from support.own_indexes import EXACT
from support.trips import TRIPS

OPTIONS = {
    **TRIPS,
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.spark.driver.threads": "1",
}
LATEST, ORDERED = "OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload"
NO_SMALL_FILES = {"hoodie.parquet.small.file.limit": "0"}
#: Blocks of a few rows, files of a few blocks.
TINY = {"hoodie.logfile.data.block.max.size": "300", "hoodie.logfile.max.size": "2500"}
PARQUET = {"hoodie.logfile.data.block.format": "parquet"}

Row = tuple[str, int, str]  # city, ts, note
Rows = Mapping[str, Row | tuple[str, int, str, bool]]


def batch(rows: Rows) -> pa.Table:
    return pa.table(
        {
            "id": list(rows),
            "city": [row[0] for row in rows.values()],
            "ts": pa.array([row[1] for row in rows.values()], pa.int64()),
            "note": [row[2] for row in rows.values()],
            "_hoodie_is_deleted": pa.array([len(row) > 3 for row in rows.values()]),
        }
    )


def keys(rows: Rows) -> pa.Table:
    return batch(rows).select(["id", "city"])


def made(storage: Storage | None = None, **options: str) -> ArrowTable:
    return ArrowTable.create(storage or MemoryStorage(), {**OPTIONS, **options})


def payload(name: str) -> dict[str, str]:
    return {"hoodie.datasource.write.payload.class": name}


def rows_of(found: pa.Table) -> dict[str, Row]:
    rows = {row["id"]: (row["city"], row["ts"], row["note"]) for row in found.to_pylist()}
    assert len(rows) == found.num_rows, "a key occurs twice"
    return rows


def logs_of(result: WriteResult) -> list[str]:
    return [path for path in result.files if ".log." in path]


# --- which files ---

FIRST: Rows = {"a": ("oslo", 5, "a5"), "b": ("oslo", 5, "b5"), "c": ("rome", 5, "c5")}


def test_inserts_make_base_files_in_a_delta_commit():
    table = made()
    result = table.upsert(batch(FIRST))
    assert (result.inserted, result.updated, logs_of(result)) == (3, 0, [])
    assert [(i.requested, i.action) for i in table.state().timeline.instants] == [(result.instant, Action.DELTA_COMMIT)]
    stats = result.stats
    assert [(stat.prev_commit, stat.log_version, stat.base_file) for stat in stats] == [("null", None, None)] * 2


def test_updates_append_to_the_slice_and_leave_base_files_alone():
    table = made()
    first = table.upsert(batch(FIRST))
    second = table.upsert(batch({"a": ("oslo", 6, "a6"), "c": ("rome", 6, "c6")}))
    third = table.upsert(batch({"b": ("oslo", 7, "b7")}))
    assert (second.inserted, second.updated) == (0, 2)
    assert len(logs_of(second)) == len(second.files) == 2
    (stat,) = third.stats
    slices = {slice_.group: slice_ for slice_ in table.slices()}
    logs = slices[FileGroupId("oslo", stat.file_id)].logs
    assert [log.version for log in logs] == [1, 2]
    assert {log.base_instant for log in logs} == {first.instant}
    assert set(stat.log_files) == {log.name for log in logs}
    assert rows_of(table.snapshot()) == {"a": ("oslo", 6, "a6"), "b": ("oslo", 7, "b7"), "c": ("rome", 6, "c6")}


def test_the_inflight_instant_tells_which_file_groups_are_appended_to():
    table = made()
    first = table.upsert(batch(FIRST))
    second = table.upsert(batch({"a": ("oslo", 6, "a6"), "x": ("bern", 6, "x6")}))
    profile = decode_commit(table.storage.read(f".hoodie/{second.instant}.deltacommit.inflight"), "inflight")
    assert profile.operation is Operation.UPSERT
    updated = [stat for part in profile.stats.values() for stat in part if stat.file_id]
    assert [(stat.prev_commit, stat.num_updates) for stat in updated] == [(first.instant, 1)]
    assert [stat.num_inserts for stat in profile.stats["bern"]] == [1]


def test_a_small_base_file_without_logs_is_rewritten_for_inserts_with_its_updates():
    table = made()
    first = table.upsert(batch(FIRST))
    result = table.upsert(batch({"a": ("oslo", 6, "a6"), "x": ("oslo", 6, "x6"), "c": ("rome", 6, "c6")}))
    by_partition = {stat.partition: stat for stat in result.stats}
    assert by_partition["oslo"].log_version is None
    assert by_partition["oslo"].prev_commit == first.instant
    assert (by_partition["oslo"].num_inserts, by_partition["oslo"].num_updates) == (1, 1)
    assert by_partition["rome"].log_version == 1
    assert [i.action for i in table.state().timeline.commits] == [Action.DELTA_COMMIT] * 2
    assert rows_of(table.snapshot())["b"] == ("oslo", 5, "b5")


def test_a_base_file_with_logs_takes_no_inserts():
    table = made()
    table.upsert(batch(FIRST))
    table.upsert(batch({"a": ("oslo", 6, "a6")}))
    result = table.upsert(batch({"x": ("oslo", 6, "x6"), "b": ("oslo", 6, "b6")}))
    assert sorted((stat.num_inserts, stat.num_updates) for stat in result.stats) == [(0, 1), (1, 0)]
    assert len({slice_.group for slice_ in table.slices() if slice_.group.partition == "oslo"}) == 2


@pytest.mark.parametrize("most", [1, 2])
def test_so_many_of_the_smallest_base_files_take_inserts_as_the_limit_says(most: int):
    table = made(**NO_SMALL_FILES)
    for size in (300, 10, 200, 100):  # groups of so many rows
        table.insert(batch({f"{size}-{n}": ("oslo", 1, f"note {n}") for n in range(size)}))
    sizes = sorted((slice_.base.size, slice_.group.file_id) for slice_ in table.slices() if slice_.base)
    limit = {
        "hoodie.parquet.small.file.limit": "100000000",
        "hoodie.parquet.max.file.size": str(sizes[0][0] + 5 * 1024),
    }
    limit["hoodie.merge.small.file.group.candidates.limit"] = str(most)
    result = table.upsert(batch({f"new-{n}": ("oslo", 2, "") for n in range(12)}), options=limit)
    rewritten = {stat.file_id for stat in result.stats if stat.prev_commit != "null"}
    room = [file_id for size, file_id in sizes[:most] if size < sizes[0][0] + 4 * 1024]
    assert rewritten == set(room)
    assert result.inserted == 12


def test_bulk_insert_and_insert_write_base_files():
    table = made(**NO_SMALL_FILES)
    table.upsert(batch(FIRST))
    for result in (table.bulk_insert(batch({"x": ("oslo", 1, "")})), table.insert(batch({"y": ("oslo", 1, "")}))):
        assert [path.endswith(".parquet") for path in result.files] == [True]
        assert table.state().timeline.commits[-1].action is Action.DELTA_COMMIT


def test_an_overwrite_replaces_groups_with_logs_by_base_files_in_a_replace_commit():
    table = made()
    table.upsert(batch(FIRST))
    table.upsert(batch({"a": ("oslo", 6, "a6")}))
    result = table.insert_overwrite(batch({"x": ("oslo", 7, "x7")}))
    assert table.state().timeline.commits[-1].action is Action.REPLACE_COMMIT
    assert logs_of(result) == []
    assert rows_of(table.snapshot()) == {"x": ("oslo", 7, "x7"), "c": FIRST["c"]}
    table.upsert(batch({"c": ("rome", 8, "c8")}))
    table.delete_partitions(["rome"])
    assert rows_of(table.snapshot()) == {"x": ("oslo", 7, "x7")}
    table.insert_overwrite_table(batch({"y": ("bern", 1, "y")}))
    assert rows_of(table.snapshot()) == {"y": ("bern", 1, "y")}


def test_a_created_table_says_how_hudi_is_to_merge():
    properties = made(**payload(ORDERED)).state().config.properties
    assert properties["hoodie.table.type"] == "MERGE_ON_READ"
    assert properties["hoodie.compaction.payload.class"] == f"org.apache.hudi.common.model.{ORDERED}"
    assert properties["hoodie.compaction.record.merger.strategy"] == "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"


# --- inserts to logs: what an index that finds keys there allows ---


def test_inserts_go_to_logs_where_the_index_finds_keys_there():
    table = made(**EXACT)
    first = table.upsert(batch(FIRST))
    assert len(logs_of(first)) == len(first.files) == 2
    assert (first.inserted, first.updated) == (3, 0)
    assert {stat.prev_commit for stat in first.stats} == {first.instant}
    second = table.insert(batch({"d": ("oslo", 5, "d5")}))  # the group has room: its log grows
    (stat,) = second.stats
    assert (stat.log_version, stat.prev_commit, stat.num_inserts) == (2, first.instant, 1)
    assert rows_of(table.snapshot()) == {**FIRST, "d": ("oslo", 5, "d5")}
    full = table.insert(batch({"e": ("oslo", 5, "e5")}), options={"hoodie.parquet.max.file.size": "1000"})
    assert [stat.log_version for stat in full.stats] == [1]


def test_loads_and_overwrites_write_base_files_whatever_the_index_sees():
    table = made(**EXACT)
    for result in (
        table.bulk_insert(batch(FIRST)),
        table.insert_overwrite(batch(FIRST)),
        table.insert_overwrite_table(batch(FIRST)),
    ):
        assert logs_of(result) == []


# --- which rows ---


@dataclass(frozen=True)
class Model:
    """What a table holds, by the words of the format: base rows, and what the logs say of their keys since."""

    ordered: bool  # stored rows with a greater ordering value stay
    base: Mapping[str, Row] = field(default_factory=dict)
    log: Mapping[str, tuple[Row | None, int]] = field(default_factory=dict)  # None: deleted; ordering value

    def inserted(self, rows: Rows) -> Model:
        return replace(self, base={**self.base, **rows})

    def logged(self, rows: Rows) -> Model:
        log, base = dict(self.log), dict(self.base)
        for key, row in rows.items():
            city, ts, note = row[:3]
            old = log.get(key)
            if old is not None and old[0] is None and len(row) == 3:
                base.pop(key, None)  # what a log deleted stays deleted
            if len(row) > 3:
                if old is None or old[0] is None or old[1] <= ts:
                    log[key] = (None, ts)
            elif old is None or old[0] is None or old[1] <= ts:
                log[key] = ((city, ts, note), ts)
        return replace(self, log=log, base=base)

    def deleted(self, names: Sequence[str]) -> Model:
        return replace(self, log={**self.log, **dict.fromkeys(names, (None, 0))})

    def rows(self) -> dict[str, Row]:
        found = dict(self.base)
        for key, (row, ts) in self.log.items():
            if row is None:
                found.pop(key, None)
            elif not self.ordered or key not in found or ts >= found[key][1]:
                found[key] = row
        return found


STEPS: Sequence[tuple[str, Rows]] = (
    ("update", {"a": ("oslo", 6, "a6"), "b": ("oslo", 4, "late"), "c": ("rome", 7, "", True)}),
    ("update", {"a": ("oslo", 5, "late in the log"), "c": ("rome", 8, "again"), "d": ("oslo", 3, "", True)}),
    ("delete", {"a": ("oslo", 0, ""), "e": ("rome", 0, "")}),
    ("update", {"a": ("oslo", 1, "revived"), "c": ("rome", 7, "", True), "e": ("rome", 9, "revived")}),
    ("update", {"b": ("oslo", 9, "", True), "e": ("rome", 9, "tie"), "d": ("oslo", 2, "revived")}),
)


@pytest.mark.parametrize(
    ("index", "options", "chosen"),
    covering(["SIMPLE", "BLOOM"], {"avro": {}, "parquet": PARQUET, "tiny": TINY}, [LATEST, ORDERED], pairs=True),
)
def test_rows_are_what_the_rules_say_after_each_step(chosen: str, options: Mapping[str, str], index: str):
    table = made(**payload(chosen), **NO_SMALL_FILES, **options, **{"hoodie.index.type": index})
    first: Rows = {
        **FIRST,
        "d": ("oslo", 5, "d5"),
        "e": ("rome", 5, "e5"),
        **{f"k{n}": ("oslo", n, "") for n in range(20)},
    }
    table.upsert(batch(first))
    model = Model(chosen == ORDERED).inserted(first)
    for what, rows in STEPS:
        if what == "delete":
            table.delete(keys(rows))
            model = model.deleted(list(rows))
        else:
            table.upsert(batch(rows))
            model = model.logged(rows)
        assert rows_of(table.snapshot()) == model.rows()
    many: Rows = {f"k{n}": ("oslo", 100 + n, "changed " * n) for n in range(20)}
    result = table.upsert(batch(many))
    assert rows_of(table.snapshot()) == model.logged(many).rows()
    assert len(result.files) > 1 if options is TINY else len(result.files) == 1


@pytest.mark.parametrize(
    ("options", "chosen"), covering({"avro": {}, "parquet": PARQUET, "tiny": TINY}, [LATEST, ORDERED])
)
def test_hudi_rs_reads_the_same_rows_where_ordering_values_grow(
    tmp_path: Path, chosen: str, options: Mapping[str, str]
):
    # Of late data it takes another view: for it OverwriteWithLatest is commit-time ordering also among log records,
    # and a delete's ordering value counts against base rows.
    table = made(LocalStorage(tmp_path), **payload(chosen), **options)
    steps: Sequence[tuple[str, Rows]] = (
        ("update", {**FIRST, **{f"k{n}": ("oslo", n, "") for n in range(20)}}),
        ("update", {"a": ("oslo", 6, "a6"), "c": ("rome", 7, "", True)}),
        ("update", {"a": ("oslo", 7, "a7"), "c": ("rome", 8, "revived"), "x": ("oslo", 7, "new")}),
        ("delete", {"a": ("oslo", 0, ""), "x": ("oslo", 0, "")}),
        ("update", {"a": ("oslo", 9, "revived"), "x": ("oslo", 9, "", True), "y": ("bern", 9, "new")}),
        ("update", {f"k{n}": ("oslo", 100 + n, "changed " * n) for n in range(20)}),
    )
    expected: dict[str, Row] = {}
    base: dict[str, Row] = {}
    for what, rows in steps:
        result = table.delete(keys(rows)) if what == "delete" else table.upsert(batch(rows))
        for key, row in rows.items():
            if what == "delete" or len(row) > 3:
                expected.pop(key, None)
            else:
                expected[key] = (row[0], row[1], row[2])
        if any(path.endswith(".parquet") for path in result.files):
            base = _base_rows(table)
        assert rows_of(table.snapshot()) == rows_of(read_hudi_rs(tmp_path)) == expected
        assert rows_of(read_hudi_rs_optimized(tmp_path)) == base


def _base_rows(table: ArrowTable) -> dict[str, Row]:
    files = [slice_.base.path for slice_ in table.slices() if slice_.base]
    read = [pq.read_table(pa.BufferReader(table.storage.read(path)), partitioning=None) for path in files]
    return rows_of(pa.concat_tables(read, promote_options="default"))


def test_rows_of_one_key_in_a_batch_are_combined_before_they_reach_the_log():
    table = made(**NO_SMALL_FILES)
    table.upsert(batch(FIRST))
    twice = pa.concat_tables([batch({"a": ("oslo", 9, "a9")}), batch({"a": ("oslo", 8, "a8")})])
    assert table.upsert(twice).updated == 1
    assert rows_of(table.snapshot())["a"] == ("oslo", 9, "a9")


def test_deletes_of_keys_that_are_not_there_write_nothing():
    table = made()
    table.upsert(batch(FIRST))
    assert table.upsert(batch({"nobody": ("oslo", 9, "", True)})).files == ()
    assert table.delete(keys({"nobody": ("oslo", 9, "")})).files == ()


def test_a_column_added_by_an_update_is_null_in_older_rows(tmp_path: Path):
    table = made(LocalStorage(tmp_path), **NO_SMALL_FILES)
    table.upsert(batch(FIRST))
    table.upsert(batch({"b": ("oslo", 6, "b6")}))
    wider = batch({"a": ("oslo", 6, "a6"), "x": ("bern", 6, "x6")}).append_column("km", pa.array([7.5, None]))
    table.upsert(wider)
    expected = {"a": 7.5, "b": None, "c": None, "x": None}
    assert {row["id"]: row["km"] for row in table.snapshot().to_pylist()} == expected
    assert {row["id"]: row["km"] for row in read_hudi_rs(tmp_path).to_pylist()} == expected
    table.upsert(batch({"a": ("oslo", 7, "a7")}), {"hoodie.write.missing.columns": "null"})
    assert {row["id"]: row["km"] for row in table.snapshot().to_pylist()} == {**expected, "a": None}


# --- slices that others prepare ---


def schedule_compaction(table: ArrowTable) -> str:
    """A requested compaction of all slices that have logs."""
    state = table.state()
    instant = str(int(state.timeline.newest) + 1)
    operations = tuple(
        CompactionOperation(
            group=slice_.group,
            base_instant=slice_.base_instant,
            base_file=slice_.base.name if slice_.base else "",
            log_files=tuple(log.name for log in slice_.logs),
        )
        for slice_ in table.slices()
        if slice_.logs
    )
    plan = encode_compaction_plan(CompactionPlan(operations=operations))
    create_requested(state.storage, instant, Action.COMPACTION, plan, layout=LAYOUT_1)
    return instant


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
def test_while_a_compaction_is_pending_updates_go_to_logs_at_its_instant_and_find_their_keys(index: str):
    table = made(**{"hoodie.index.type": index})
    table.upsert(batch(FIRST))
    table.upsert(batch({"a": ("oslo", 6, "a6")}))
    pending = schedule_compaction(table)
    result = table.upsert(batch({"b": ("oslo", 7, "b7"), "c": ("rome", 7, "c7"), "x": ("oslo", 7, "x7")}))
    by_key = {(stat.partition, stat.num_updates): stat for stat in result.stats}
    appended = by_key["oslo", 1]
    assert (appended.prev_commit, appended.log_version, appended.base_file) == (pending, 1, "")
    assert by_key["oslo", 0].prev_commit == "null"  # no insert goes to a group under compaction
    assert by_key["rome", 1].prev_commit != pending
    expected = {"a": ("oslo", 6, "a6"), "b": ("oslo", 7, "b7"), "c": ("rome", 7, "c7"), "x": ("oslo", 7, "x7")}
    assert rows_of(table.snapshot()) == expected
    table.delete(keys({"a": ("oslo", 0, "")}))
    assert rows_of(table.snapshot()) == {key: row for key, row in expected.items() if key != "a"}


def test_groups_whose_keys_an_index_cannot_see_are_not_written_with_it():
    table = made()
    table.upsert(batch(FIRST), options=EXACT)
    before = table.storage.snapshot()
    for write in (table.upsert, lambda rows: table.delete(rows.select(["id", "city"]))):
        with pytest.raises(UnsupportedTable, match=r"1 file groups, such as .* have log files only.*index SIMPLE"):
            write(batch({"a": ("oslo", 9, "")}))
    assert {path for path in table.storage.snapshot() if not path.startswith(".hoodie/")} == {
        path for path in before if not path.startswith(".hoodie/")
    }
    table.upsert(batch({"x": ("bern", 9, "x9")}))  # a partition without such groups
    assert rows_of(table.snapshot()) == {**FIRST, "x": ("bern", 9, "x9")}


# --- attempts ---


@dataclass(frozen=True)
class Attempts:
    """A write of one task, planned, to be run as often as asked."""

    job: Write
    task: WriteTask
    rows: pa.Table

    @classmethod
    def of(cls, table: ArrowTable, rows: Rows) -> Attempts:
        settings = Settings.read(table.options)
        state = writable_state(table.storage, settings)
        given = batch(rows)
        job = start(check(state, WriteOperation.UPSERT, given.schema, settings))
        given = keyed(given, table_keygen(state))
        plan = MemoryBatch(given).locate(job, job.state.files({"oslo"})).planned.plan
        (task,) = plan.tasks
        assert task.kind is TaskKind.APPEND
        return cls(job.with_plan(plan), task, given)

    def run(self, token: str) -> list[WriteStat]:
        job = self.job
        return run_task(job.spec(), job.rule, job.operation_rules, self.task, self.rows, token)


def test_a_retried_task_leaves_nothing_that_a_reader_counts_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = made(LocalStorage(tmp_path), **NO_SMALL_FILES, **TINY)
    first: Rows = {f"k{n}": ("oslo", 1, "") for n in range(20)}
    table.upsert(batch(first))
    changes: Rows = {f"k{n}": ("oslo", 2, "changed") for n in range(20)}
    attempts = Attempts.of(table, changes)
    lost, won = attempts.run("0-0-0"), attempts.run("0-0-1")
    paths = [[stat.path for stat in stats] for stats in (lost, won)]
    assert len(paths[0]) == len(paths[1]) > 1
    assert not set(paths[0]) & set(paths[1])
    assert rows_of(table.snapshot()) == rows_of(read_hudi_rs(tmp_path)) == first  # nothing is published
    publish = transaction.complete

    def complete(*arguments: Any, **named: Any) -> object:  # the logs of both attempts would be read then
        assert [table.storage.exists(path) for path in paths[0]] == [False] * len(paths[0])
        return publish(*arguments, **named)

    monkeypatch.setattr(transaction, "complete", complete)
    finish(attempts.job, TaskResults(won, frozenset({"oslo"}), IndexStats(), EXECUTORS), Phases())
    assert [table.storage.exists(path) for path in paths[0]] == [False] * len(paths[0])
    assert [table.storage.exists(path) for path in paths[1]] == [True] * len(paths[1])
    assert rows_of(table.snapshot()) == rows_of(read_hudi_rs(tmp_path)) == changes
    assert not table.storage.list_tree(f".hoodie/.temp/{attempts.job.begun.time}")


def test_a_late_writer_of_another_instant_does_not_touch_published_files():
    # Both began when the slice had no logs: their versions and attempt numbers are the same.
    table = made(**NO_SMALL_FILES)
    table.upsert(batch(FIRST))
    dead = Attempts.of(table, {"a": ("oslo", 6, "dead")})
    published = table.upsert(batch({"a": ("oslo", 7, "a7")}))
    (live,) = published.stats
    before = table.storage.read(live.path or "")
    (late,) = dead.run("0-0-0")
    assert (late.log_version, live.log_version) == (1, 1)
    assert late.path != live.path
    assert table.storage.read(live.path or "") == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the timeline says that the late block's instant was rolled back
        assert rows_of(table.snapshot())["a"] == ("oslo", 7, "a7")


def test_every_published_log_file_is_named_by_its_commit():
    table = made(**NO_SMALL_FILES, **TINY)
    table.upsert(batch(FIRST))
    for number in range(3):
        table.upsert(batch({key: (row[0], 10 + number, "x" * 200) for key, row in FIRST.items()}))
    named = {
        stat.path
        for instant in table.state().timeline.commits
        for part in decode_commit(table.storage.read(f".hoodie/{instant.requested}.deltacommit"), "").stats.values()
        for stat in part
    }
    there = {path for path in table.storage.snapshot() if ".log." in path}
    assert there == {path for path in named if path and ".log." in path}
    assert all(i.state is State.COMPLETED for i in table.state().timeline.instants)
