"""Tables with a history to undo, without Spark: what the tests of rollback, savepoint and restore share."""

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

import pytest

from hoodie.errors import HoodieError
from hoodie.formats.timeline.services import encode_clean_metadata, encode_clean_plan
from hoodie.model.files import parse_data_file
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage.protocol import Storage, join, split
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import Crash, CrashAfter, Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.timeline import LAYOUT_1
from hoodie.timeline.transition import complete, create_requested, to_inflight
from support.compacting import NOW, Rows, batch
from support.oracles import read_hudi_rs
from support.trips import TRIPS

COW = {**TRIPS, "hoodie.spark.driver.threads": "1"}
MOR = {**COW, "hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.parquet.small.file.limit": "0"}

FIRST: Rows = {"a": ("oslo", 1, "first"), "b": ("oslo", 1, "first"), "c": ("rome", 1, "first")}
SECOND: Rows = {"b": ("oslo", 2, "second"), "c": ("rome", 2, "second")}
THIRD: Rows = {"a": ("oslo", 3, "third"), "c": ("rome", 3, "third"), "d": ("bern", 3, "third")}
LATER: Rows = {"b": ("oslo", 9, "later"), "d": ("bern", 9, "later")}
Act = Callable[[Storage], object]


def opened(storage: Storage) -> ArrowTable:
    limit = {"hoodie.parquet.small.file.limit": "0"} if load_state(storage).config.merge_on_read else {}
    return ArrowTable(storage, {"hoodie.spark.driver.threads": "1", **limit})


def upsert(storage: Storage, rows: Rows) -> str:
    return opened(storage).upsert(batch(rows)).instant


def table(options: Mapping[str, str] = COW) -> MemoryStorage:
    storage = MemoryStorage()
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)
    upsert(storage, SECOND)
    return storage


def read(storage: Storage) -> Rows:
    found = opened(storage).snapshot().to_pylist()
    rows = {row["id"]: (row["city"], row["ts"], row["note"]) for row in found}
    assert len(rows) == len(found), "a key occurs twice"
    return rows


def read_rs(storage: MemoryStorage, folder: Path) -> Rows:
    for path, data in storage.snapshot().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return {row["id"]: (row["city"], row["ts"], row["note"]) for row in read_hudi_rs(folder).to_pylist()}


def newest(storage: Storage) -> Instant:
    return load_state(storage).timeline.commits[-1]


def compacted(storage: Storage) -> str:
    instant = schedule_compaction(storage, Settings.of(NOW))
    assert instant is not None
    compact(storage, Settings.of({}), instant)
    return instant


def cleaned(storage: MemoryStorage, paths: set[str], *, done: bool) -> None:
    """A cleaning that removed, or is to remove, files, by the policy that counts versions."""
    time, names = "20980101000000000", {split(path)[0]: (split(path)[1],) for path in sorted(paths)}
    plan = encode_clean_plan(CleanPlan(policy="KEEP_LATEST_FILE_VERSIONS", files=names), storage.root)
    begun = create_requested(storage, time, Action.CLEAN, plan, layout=LAYOUT_1)
    if done:
        parts = {p: CleanedPartition(policy="", planned=found, deleted=found) for p, found in names.items()}
        complete(
            storage,
            to_inflight(storage, begun, plan, layout=LAYOUT_1),
            encode_clean_metadata(CleanMetadata(start=time, partitions=parts)),
            layout=LAYOUT_1,
        )
        for path in paths:
            storage.delete(path)


def data_files(storage: Storage) -> set[str]:
    tree = storage.list_tree("", skip=(".hoodie",))
    return {join(f, e.name) for f, entries in tree.items() for e in entries if parse_data_file(f, e.name, 0)}


def dying(how: Dying, before: MemoryStorage, act: Act, *, first: int = 0, step: int = 1) -> list[MemoryStorage]:
    """The storage as left by the act dying at its first, second, … mutating call; the last one went through.

    first, step  to try some of the calls only
    """
    left = []
    for calls in count(first, step):
        storage = before.copy()
        left.append(storage)
        try:
            act(CrashAfter(storage, calls, how))
        except Crash:
            continue
        return left
    raise AssertionError


def dying_before_publishing(storage: MemoryStorage, act: Act) -> None:
    """Let an act that publishes an instant die right before it does, in this very storage."""
    for calls in range(len(dying(Dying.BEFORE, storage, act)), 0, -1):
        died = storage.copy()
        try:
            act(CrashAfter(died, calls - 1))
        except Crash:
            pending = load_state(died).timeline.pending({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
            if pending and pending[-1].state is State.INFLIGHT:
                storage.__setstate__(died.__getstate__())
                return
    raise AssertionError


def refused(storage: MemoryStorage, kind: type[HoodieError], match: str, act: Callable[[bool], object]) -> None:
    """`act(dry_run)` is refused, and changes nothing."""
    before = storage.snapshot()
    for dry_run in (True, False):
        with pytest.raises(kind, match=match):
            act(dry_run)
        assert storage.snapshot() == before


class Meanwhile(WrappedStorage):
    """Lets another process act right after the creation of a file whose name ends in a word."""

    def __init__(self, inner: Storage, word: str, act: Act) -> None:
        super().__init__(inner)
        self.word, self.act = word, act

    def create_new(self, path: str, data: bytes) -> None:
        super().create_new(path, data)
        if path.endswith(self.word):
            self.act(self.inner)


def as_clustering(storage: MemoryStorage, instant: str, plan: bytes = b"") -> None:
    """Give a completed overwrite the pending files of a clustering: from version 8 on they have their own name."""
    state = load_state(storage)
    for ending, content in (("requested", plan), ("inflight", b"")):
        name = f"{state.timeline.folder}/{instant}.replacecommit.{ending}"
        if state.layout.version.layout == 2:
            storage.delete(name)
            name = name.replace("replacecommit", "clustering")
        if state.layout.version.layout == 2 or ending == "requested":
            storage.write(name, content)
