"""What a process remembers of a listed timeline: it reads what is new, and tells what a new process would."""

import builtins
import gc
import os
import random
import re
import tracemalloc
from collections.abc import Set
from itertools import count, islice
from pathlib import Path

import pytest

from hoodie.config.table import TableConfig, from_properties
from hoodie.model.instant import Action, Instant
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Entry
from hoodie.storage.wrapped import WrappedStorage
from hoodie.timeline import load
from hoodie.timeline.load import LISTED, load_timeline
from hoodie.timeline.timeline import Timeline, parse_name

CONFIG: TableConfig = from_properties({"hoodie.table.name": "t", "hoodie.table.version": "6"})
STATES = (".commit.requested", ".inflight", ".commit"), (".clean.requested", ".clean.inflight", ".clean")
CLEANS = frozenset({Action.CLEAN})
COMPACTION = (".compaction.requested", ".compaction.inflight", ".commit")


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    (tmp_path / ".hoodie").mkdir()
    return LocalStorage(str(tmp_path))


def as_new_process(storage: LocalStorage, stamped: frozenset[Action] | None = None) -> Timeline:
    kept = dict(LISTED._values)
    LISTED.forget()
    timeline = load_timeline(storage, CONFIG, stamped=stamped)
    LISTED._values.update(kept)
    return timeline


def same(a: Timeline, b: Timeline) -> bool:
    fields = ("instants", "files", "stamps", "folders", "repeated", "folder", "layout", "commits", "commit_stamps")
    return all(getattr(a, name) == getattr(b, name) for name in fields) and a.pending() == b.pending()


@pytest.mark.parametrize("seed", range(20))
def test_a_timeline_is_that_of_a_new_process_whatever_happened_since_the_last_listing(
    storage: LocalStorage, seed: int
) -> None:
    chosen, folder = random.Random(seed), Path(storage.root, ".hoodie")
    before: Timeline | None = None
    for step in range(60):
        files = sorted(folder.iterdir())
        match chosen.randrange(6):
            case 0 if files:  # rolled back or archived
                chosen.choice(files).unlink()
            case 1 if files:  # completed once more, under the same name
                (folder / f"{3 * chosen.randrange(20):017}.commit").write_text("x" * chosen.randrange(9))
            case _:
                time = chosen.randrange(60)
                words = (*STATES, COMPACTION)[time % 3]
                for word in words[: chosen.randrange(1, 4)]:
                    (folder / f"{time:017}{word}").write_text("x" * step)
        if chosen.random() < 0.5:
            now = load_timeline(storage, CONFIG)
            assert same(now, as_new_process(storage))
            cleans = load_timeline(storage, CONFIG, stamped=CLEANS)
            assert same(cleans, as_new_process(storage, CLEANS))
            assert (cleans.instants, cleans.files) == (now.instants, now.files)
            before = now
        elif before is not None:  # within a call, which completed instants do not change
            now = load_timeline(storage, CONFIG, before=before)
            new = as_new_process(storage)
            assert (now.instants, now.files, now.commits) == (new.instants, new.files, new.commits)


def test_a_completed_file_that_was_replaced_is_seen(storage: LocalStorage) -> None:
    path = Path(storage.root, ".hoodie", "20260101000000000.commit")
    path.write_text("{}")
    first = load_timeline(storage, CONFIG)
    path.write_text("{ }")
    os.utime(path, ns=(10**18, 10**18))
    (stamp,) = load_timeline(storage, CONFIG).stamps.values()
    assert stamp == (3, 10**12) != next(iter(first.stamps.values()))


def test_sizes_are_asked_for_of_the_actions_that_are_read_again(storage: LocalStorage) -> None:
    folder, asked = Path(storage.root, ".hoodie"), list[str]()
    for number in range(8):
        for word in STATES[number % 2]:
            (folder / f"{number:017}{word}").touch()
    (folder / "archived").mkdir()

    class Asked(WrappedStorage):
        def list_some(
            self, folder: str, names: Set[str], pattern: re.Pattern[str]
        ) -> tuple[builtins.list[Entry], builtins.list[str]]:
            entries, others = self.inner.list_some(folder, names, pattern)
            asked.extend(entry.name for entry in entries)
            return entries, others

    few, every = load_timeline(Asked(storage), CONFIG, stamped=CLEANS), load_timeline(storage, CONFIG)
    assert sorted(asked) == [*(f"{number:017}.clean" for number in range(1, 8, 2)), "archived"]
    assert (few.instants, few.files, few.folders) == (every.instants, every.files, every.folders)
    assert {instant.action for instant in few.stamps} == CLEANS
    assert len(every.stamps) == 8


@pytest.mark.parametrize("instants", [3, 300])
def test_as_many_names_are_read_with_many_instants_as_with_few(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, instants: int
) -> None:
    folder, names = Path(storage.root, ".hoodie"), list[str]()
    for number in range(instants):
        for word in STATES[0]:
            (folder / f"{number:017}{word}").touch()
    load_timeline(storage, CONFIG)
    for word in STATES[0][:2]:
        (folder / f"{instants:017}{word}").touch()

    def read(name: str, layout: int, folder: str) -> Instant | None:
        names.append(name)
        return parse_name(name, layout, folder)

    monkeypatch.setattr(load, "parse_name", read)
    assert len(load_timeline(storage, CONFIG).instants) == instants + 1
    assert len(names) == 2


@pytest.mark.nightly
def test_what_is_remembered_of_names_does_not_grow_with_the_instants_that_were_archived(storage: LocalStorage) -> None:
    folder, numbers = Path(storage.root, ".hoodie"), count()

    def size_after(commits: int) -> int:
        for number in islice(numbers, commits):
            for word in STATES[0]:
                (folder / f"{number:017}{word}").touch()
                (folder / f"{number - 20:017}{word}").unlink(missing_ok=True)
            load_timeline(storage, CONFIG)
        gc.collect()
        ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, load.__file__[:-7] + "*")])
        return sum(trace.size for trace in ours.traces)

    tracemalloc.start()
    try:
        before = size_after(800)
        growth = size_after(1200) - before
    finally:
        tracemalloc.stop()
    assert growth < 200 * 1200
