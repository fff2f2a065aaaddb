"""Writers that begin, wait, are published or fail in any order, beside compactions: the table holds what a dict of
versions does, before a compaction and after it, and each commit's changes lead from the rows before it to those after.

The dict knows no files, but when each write began and was completed, and when compactions were planned: a slice has the
versions that were completed before its compaction was planned, in the order in which their writes began.
"""

import json
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hoodie.config.read import ChangeDataOptions, ReadSettings
from hoodie.config.write import WriteOperation
from hoodie.reading.changes.data import change_data_batches
from hoodie.reading.changes.data_plan import plan_change_data
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from support.nightly import scaled
from support.non_blocking import BY_COMMIT, Waiting, begun, due, rows, table

#: ts of a key; None: it is deleted.
Batch = dict[str, int | None]
Rows = dict[str, tuple[int, str]]  # key -> ts, note, which is the instant of its write

BATCHES = st.dictionaries(st.sampled_from("aab"), st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=2)
DELETED = st.sets(st.sampled_from("ab"), min_size=1, max_size=2).map(lambda keys: dict.fromkeys(keys))


@dataclass
class Version:
    began: str
    completed: str
    batch: Batch
    note: str


@dataclass(frozen=True)
class Rule:
    """Which of two versions stays, the later one second."""

    by_commit: bool

    def wins(self, old: int, new: int) -> bool:
        return self.by_commit or new >= old

    def folded(self, versions: list[Version], key: str) -> tuple[int, str] | str | None:
        """What the logs of a slice say of a key: a row, "deleted", or nothing."""
        said: tuple[int, str] | str | None = None
        for version in (version for version in versions if key in version.batch):
            ts = version.batch[key]
            if ts is None:
                said = "deleted"
            elif not isinstance(said, tuple) or self.wins(said[0], ts):
                said = ts, version.note
        return said

    def merged(self, base: Rows, versions: list[Version]) -> Rows:
        """Base rows with the logs beside them."""
        after = dict(base)
        for key in {key for version in versions for key in version.batch}:
            said = self.folded(versions, key)
            if said == "deleted":
                after.pop(key, None)
            elif isinstance(said, tuple) and (key not in base or self.wins(base[key][0], said[0])):
                after[key] = said
        return after


class NonBlocking(RuleBasedStateMachine):
    options: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.rule = Rule(self.options == BY_COMMIT)
        self.table: ArrowTable = table(options=self.options)
        self.waiting: list[tuple[Waiting, Batch, str]] = []
        self.versions: list[Version] = []
        self.compacted: list[str] = []  # instants of compactions that are done
        self.planned = ""
        self.count = 0

    # --- what happens ---

    @precondition(lambda self: len(self.waiting) < 3)
    @rule(batch=BATCHES | BATCHES | DELETED)
    def begin(self, batch: Batch) -> None:
        self.count += 1
        note, keys = str(self.count), list(batch)
        written = rows(*keys, note=note)
        if None in batch.values():
            waiting = begun(self.table, written.select(["id", "city"]), WriteOperation.DELETE)
            # Where the bucket is not there yet, there is nothing to delete: as in Hudi.
            batch = batch if any(version.batch for version in self.versions) else {}
        else:
            at = written.schema.get_field_index("ts")
            waiting = begun(self.table, written.set_column(at, "ts", pa.array(list(batch.values()), pa.int64())))
        self.waiting.append((waiting, batch, note))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def publish(self, data: st.DataObject) -> None:
        before = self.now()
        waiting, batch, note = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        waiting.publish()
        (done,) = [i for i in self.table.state().timeline.commits if i.requested == waiting.instant]
        seen = max((version.completed for version in self.versions), default="earliest")
        self.versions.append(Version(done.requested, done.completed, batch, note))
        pulled = {row["id"]: row["note"] for row in self.table.changes(seen).to_pylist()}
        assert pulled == {key: note for key, ts in batch.items() if ts is not None}
        assert replayed(before, self.table, seen) == self.now()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        waiting, _, _ = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        waiting.fail()

    @precondition(lambda self: not self.planned)
    @rule()
    def plan(self) -> None:
        self.planned = schedule_compaction(self.table.storage, Settings.read(due(self.table))) or ""

    @precondition(lambda self: self.planned)
    @rule()
    def compact(self) -> None:
        before = self.now()
        compact(self.table.storage, Settings.read(due(self.table)))
        self.compacted.append(self.planned)
        self.planned = ""
        if not any(
            None in version.batch.values() for version in self.versions
        ):  # a deleted key's row comes back freely
            assert self.now() == before

    # --- what must hold ---

    def now(self) -> Rows:
        """The rows by the dict."""
        slices: list[list[Version]] = [[] for _ in range(len(self.compacted) + 1)]
        for version in self.versions:
            slices[sum(version.completed > plan for plan in self.compacted)].append(version)
        state: Rows = {}
        for versions in slices:
            # Those that were completed after a compaction was planned come last, as they will once it is done.
            late = {version.note for version in versions if self.planned and version.completed > self.planned}
            state = self.rule.merged(state, sorted(versions, key=lambda each: (each.note in late, each.began)))
        return state

    @invariant()
    def the_table_holds_what_the_dict_does(self) -> None:
        found = self.table.snapshot().to_pylist()
        assert len({row["id"] for row in found}) == len(found), "a key occurs twice"
        assert {row["id"]: (row["ts"], row["note"]) for row in found} == self.now()
        assert len(self.table.slices()) <= 1


def replayed(before: Rows, there: ArrowTable, since: str) -> Rows:
    """Rows with the change data since a time on top."""
    plan = plan_change_data(there.state(), since, settings=ReadSettings(change_data=ChangeDataOptions(infer=True)))
    after = dict(before)
    for batch in change_data_batches(plan):
        for change in batch.to_pylist():
            image = json.loads(change["after"] or change["before"])
            if change["op"] == "d":
                del after[image["id"]]
            else:
                assert (change["op"] == "u") == (image["id"] in after)
                after[image["id"]] = (image["ts"], image["note"])
    return after


class NonBlockingByCommit(NonBlocking):
    options = BY_COMMIT


SETTINGS = settings(max_examples=scaled(4, 15), stateful_step_count=10, report_multiple_bugs=False)


class TestByOrdering(NonBlocking.TestCase):  # type: ignore[misc, valid-type, name-defined]
    settings = SETTINGS


class TestByCommit(NonBlockingByCommit.TestCase):  # type: ignore[misc, valid-type, name-defined]
    settings = SETTINGS
