"""How many storage calls whole operations make, by operation, each for a reason: a table of 12 commits, five rows.

A call that is not listed here is one that an operation does not need. Where a file is read, or a folder listed, more
than once in one operation, the reason says what could have happened in between.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from hoodie.commit.batch_ids import NEWEST
from hoodie.config.table import from_properties
from hoodie.services import clean
from hoodie.storage import local
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.testing.storage import CountingStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import COMMITS, load_timeline
from hoodie.view.published import COMPLETE, PUBLISHED
from support.trips import table_options

T = TypeVar("T")

OPTIONS = {
    **table_options("t", "id", partition="p", ordering="ts"),
    "hoodie.spark.driver.threads": "1",
    "hoodie.compact.inline": "false",
}
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]

#: What the paths of a table are, in the words of the tables below.
WHAT = (
    (r"\.hoodie/hoodie\.properties", "properties"),
    (r"\.hoodie", "timeline"),
    (r"\.hoodie/archived", "archive"),
    (r"\.hoodie/\d+\.(delta)?commit", "commit"),
    (r"\.hoodie/\d+\.((delta)?commit\.)?(requested|inflight)", "pending write"),
    (r"\.hoodie/\d+\.clean\.(requested|inflight)", "pending clean"),
    (r"\.hoodie/\d+\.clean", "clean"),
    (r"\.hoodie/\.temp/.*", "markers"),
    (r"|a", "partition"),
    (r"a/.*\.parquet", "base file"),
    (r"a/\..*\.log\..*", "log file"),
)

Calls = Mapping[tuple[str, str], int]


class CountingByWhat(CountingStorage):
    """Counts by what the paths are, too."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.by_what: Counter[tuple[str, str]] = Counter()
        self.paths: Counter[tuple[str, str]] = Counter()

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        what = next((what for form, what in WHAT if re.fullmatch(form, path)), path)
        self.by_what[name, what] += 1
        self.paths[name, path] += 1
        return super().observe(name, path, call)


def rows(keys: range, ts: int) -> pa.Table:
    return pa.table({"id": [f"k{n}" for n in keys], "p": ["a"] * len(keys), "ts": [ts] * len(keys)})


@dataclass
class Measured:
    """A table of 12 commits on local disk, and what operations on it ask of the storage."""

    path: Path
    options: dict[str, str]

    def cold(self, run: Callable[[ArrowTable], Any]) -> CountingByWhat:
        """The calls in a process that has not seen the table."""
        COMMITS.forget()
        PUBLISHED.forget()
        COMPLETE.forget()
        NEWEST.forget()
        clean.CLEANS.forget()
        return self.warm(run)

    def warm(self, run: Callable[[ArrowTable], Any]) -> CountingByWhat:
        """The calls in a process that has seen all its commits."""
        storage = CountingByWhat(LocalStorage(self.path))
        run(ArrowTable(storage, self.options))
        assert storage.count() == storage.by_what.total()
        return storage


def made(path: Path, kind: str, **options: str) -> Measured:
    given = {**OPTIONS, "hoodie.datasource.write.table.type": kind, **options}
    table = ArrowTable.create(LocalStorage(path), given)
    table.insert(rows(range(100), 0))
    for ts in range(1, 12):
        table.upsert(rows(range(5), ts))
    assert len(table.state().timeline.commits) == 12
    return Measured(path, given)


def five_rows(table: ArrowTable) -> None:
    assert table.upsert(rows(range(5), 20)).updated == 5


#: A write itself, whatever it writes, when its process has seen the commits.
WRITE: dict[tuple[str, str], int] = {
    # The settings when the write is checked; once more before it is published, as another process may have changed
    # them (a metadata table, an upgrade), which this commit must not contradict.
    ("read", "properties"): 2,
    # The timeline when the write is checked; before it is published (conflicts, a rollback of this write); after it,
    # as without a lock another writer may have published at the same moment. And before it is inflight: whether it is
    # still requested, as another writer may have rolled it back while it looked keys up, and whether another action has
    # the same time.
    ("list", "timeline"): 4,
    # Requested, then inflight. The commit is the third step, and what makes the write visible.
    ("create_new", "pending write"): 2,
    ("create_new", "commit"): 1,
    # What the write builds on; also tells whether files are missing, and whether the partition has its metafile.
    ("list", "partition"): 1,
    # A file has its marker before it is there, so that a rollback finds it. Nobody looks for those that are left over:
    # on driver threads a task has one attempt.
    ("create_new", "markers"): 1,
    ("delete_tree", "markers"): 1,
}

#: The base file is opened to look the keys up (footer and keys), and for the rewrite (all columns); the new one is a
#: stream, counted when it is opened and when it is closed.
REWRITE = {("open_input", "base file"): 2, ("open_output", "base file"): 1, ("close_output", "base file"): 1}

#: The keys are looked up in the base file; the rows go to a new log file.
APPEND = {("open_input", "base file"): 1, ("open_output", "log file"): 1, ("close_output", "log file"): 1}

#: The cleaning after a commit, when it finds a file to remove. It works on the timeline and the settings that the write
#: saw last.
CLEAN = {
    # What the last clean did: it was made by the write before this one, which has not read it back.
    ("read", "clean"): 1,
    # The partition has a new file since the write listed it.
    ("list", "partition"): 1,
    ("create_new", "pending clean"): 2,
    # Whether it is still inflight: another process may have carried it out at the same time.
    ("exists", "pending clean"): 1,
    # Once the plan is on the timeline: savepoints that were made meanwhile keep their files.
    ("list", "timeline"): 1,
    ("delete", "base file"): 1,
    ("create_new", "clean"): 1,
}


def together(*parts: Calls) -> Counter[tuple[str, str]]:
    total: Counter[tuple[str, str]] = Counter()
    for part in parts:
        total.update(part)
    return total


COSTS: list[tuple[str, str, Callable[[ArrowTable], Any], Calls]] = [
    ("COPY_ON_WRITE", "upsert", five_rows, together(WRITE, REWRITE, CLEAN)),
    ("COPY_ON_WRITE", "delete", lambda table: table.delete(rows(range(7, 9), 20)), together(WRITE, REWRITE, CLEAN)),
    # Before the first clean the archive is looked for: commits there may have replaced files.
    ("MERGE_ON_READ", "upsert", five_rows, together(WRITE, APPEND, {("list", "archive"): 1})),
    (
        "MERGE_ON_READ",
        "delete",
        lambda table: table.delete(rows(range(7, 9), 20)),
        together(WRITE, APPEND, {("list", "archive"): 1}),
    ),
]


@pytest.mark.parametrize(("kind", "name", "run", "expected"), COSTS, ids=[f"{kind}-{name}" for kind, name, *_ in COSTS])
def test_a_write_of_a_few_rows_makes_these_calls(kind, name, run, expected, tmp_path):
    table = made(tmp_path, kind)
    assert table.warm(run).by_what == expected


@pytest.mark.parametrize(("kind", "name", "run", "expected"), COSTS, ids=[f"{kind}-{name}" for kind, name, *_ in COSTS])
def test_a_write_in_a_new_process_reads_each_commit_once_more(kind, name, run, expected, tmp_path):
    table = made(tmp_path, kind)
    # Whether a file is missing that a commit on the active timeline names: all of them say.
    assert table.cold(run).by_what == together(expected, {("read", "commit"): 12})


def test_the_five_row_upsert_makes_24_calls_and_36_in_a_new_process(tmp_path):
    table = made(tmp_path, "COPY_ON_WRITE")
    assert table.warm(five_rows).count() == 24
    table = made(tmp_path / "other", "COPY_ON_WRITE")
    assert table.cold(five_rows).count() == 36


@pytest.mark.parametrize(("kind", "files", "total"), [("COPY_ON_WRITE", REWRITE, 16), ("MERGE_ON_READ", APPEND, 15)])
def test_without_services_a_five_row_upsert_makes_the_calls_of_a_write(kind, files, total, tmp_path):
    table = made(tmp_path, kind, **{"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"})
    assert table.warm(five_rows).by_what == together(WRITE, files)
    assert together(WRITE, files).total() == total


def test_with_a_lock_the_table_is_looked_at_under_it(tmp_path):
    locked = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }
    calls = made(tmp_path, "COPY_ON_WRITE", **locked).warm(five_rows)
    # When the write is checked, when it takes its instant under the lock, and before it is published, under the lock.
    assert calls.by_what["read", "properties"] == 3
    assert calls.by_what["list", "timeline"] == 4  # and before it is inflight
    # The newest commit: its writer did not list the timeline after it, and so could not tell how its file is known.
    assert calls.by_what["read", "commit"] == 1


READS: list[tuple[str, str, Callable[[ArrowTable], Any], Calls, Calls]] = [
    (
        "COPY_ON_WRITE",
        "snapshot",
        lambda table: table.snapshot(),
        {
            ("read", "properties"): 1,
            ("list", "timeline"): 1,
            ("list_tree", "partition"): 1,
            ("open_input", "base file"): 1,
        },
        {("read", "commit"): 12},
    ),
    (
        "MERGE_ON_READ",
        "snapshot",
        lambda table: table.snapshot(),
        {
            ("read", "properties"): 1,
            ("list", "timeline"): 1,
            ("list_tree", "partition"): 1,
            ("open_input", "base file"): 1,
            ("read", "log file"): 11,
        },
        {("read", "commit"): 12},
    ),
    (
        "COPY_ON_WRITE",
        "changes of the last two commits",
        lambda table: table.changes(table.state().timeline.commits[-3].requested),
        {
            ("read", "properties"): 2,  # one of them for the test to name the instant
            ("list", "timeline"): 2,
            ("list", "partition"): 1,
            ("open_input", "base file"): 1,
        },
        {("read", "commit"): 2},
    ),
    (
        "MERGE_ON_READ",
        "changes of the last two commits",
        lambda table: table.changes(table.state().timeline.commits[-3].requested),
        {
            ("read", "properties"): 2,
            ("list", "timeline"): 2,
            ("list", "partition"): 1,
            ("read", "log file"): 11,
        },
        {("read", "commit"): 2},
    ),
]


@pytest.mark.parametrize(
    ("kind", "name", "run", "expected", "commits"), READS, ids=[f"{kind}-{name}" for kind, name, *_ in READS]
)
def test_a_read_makes_these_calls_and_reads_each_commit_once(kind, name, run, expected, commits, tmp_path):
    table = made(tmp_path, kind)
    assert table.cold(run).by_what == together(expected, commits)
    assert table.warm(run).by_what == Counter(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_is_read_twice_in_one_call_but_the_settings_before_a_commit(kind, tmp_path):
    table = made(tmp_path, kind)
    for run in (five_rows, lambda table: table.delete(rows(range(7, 9), 20)), lambda table: table.snapshot()):
        calls = table.cold(run)
        twice = {path for (method, path), n in calls.paths.items() if method == "read" and n > 1}
        assert twice <= {".hoodie/hoodie.properties"}


# --- what is remembered, and what is not ---


def test_a_commit_that_is_another_one_under_the_same_name_is_read_again(tmp_path):
    table = made(tmp_path, "COPY_ON_WRITE")
    inner = LocalStorage(tmp_path)
    state = ArrowTable(inner, table.options).state()
    newest = state.timeline.commits[-1]
    assert "note" not in next(state.commits()).extra
    path = state.timeline.path(newest)
    inner.write(path, inner.read(path).replace(b'"extraMetadata":{', b'"extraMetadata":{"note":"x",', 1))
    assert next(state.reload().commits()).extra["note"] == "x"


def test_what_is_remembered_has_an_end(tmp_path, monkeypatch):
    table = made(tmp_path, "COPY_ON_WRITE")
    state = ArrowTable(LocalStorage(tmp_path), table.options).state()
    sizes = [state.timeline.stamps[instant][0] for instant in state.timeline.commits]
    COMMITS.forget()
    monkeypatch.setattr(COMMITS, "_most", sum(sizes[:3]))
    list(state.commits())
    known = [instant for instant in state.timeline.commits if COMMITS.get(state.storage, state.timeline, instant)]
    assert known == list(state.timeline.commits[:3])  # read newest first: the oldest were read last


def test_a_second_look_asks_for_what_has_changed_only(tmp_path, monkeypatch):
    table = made(tmp_path, "MERGE_ON_READ")
    state = ArrowTable(LocalStorage(tmp_path), table.options).state()
    asked: list[str] = []
    entry = local._entry
    monkeypatch.setattr(local, "_entry", lambda folder, name: (asked.append(name), entry(folder, name))[1])
    again = state.look_again()
    assert not [name for name in asked if name.endswith("commit")]
    assert again.timeline == state.timeline == state.reload().timeline
    assert again.timeline.stamps == state.timeline.stamps
    assert again.timeline.files == state.timeline.files
    newest = state.timeline.commits[-1]
    (tmp_path / state.timeline.path(newest)).unlink()
    assert again.look_again().timeline == again.reload().timeline
    assert newest not in again.look_again().timeline.stamps


def test_an_instant_that_may_be_completed_twice_is_asked_for_again(tmp_path):
    names = ("1.commit.requested", "1.inflight", "1.commit", "2.compaction.requested", "2.commit")
    (tmp_path / ".hoodie").mkdir()
    for name in names:
        (tmp_path / ".hoodie" / name).write_text("{}")
    config = from_properties({"hoodie.table.name": "t", "hoodie.table.type": "MERGE_ON_READ"})
    before = load_timeline(LocalStorage(tmp_path), config)
    for name in ("1.commit", "2.commit"):
        (tmp_path / ".hoodie" / name).write_text('{"longer": 1}')
    sizes = {
        i.requested: size
        for i, (size, _) in load_timeline(LocalStorage(tmp_path), config, before=before).stamps.items()
    }
    assert sizes == {"1": 2, "2": 13}
