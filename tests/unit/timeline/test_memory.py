"""What is remembered of instants goes once they have left the timeline: a writer of months stays small."""

from pathlib import Path

from hoodie.config.table import from_properties
from hoodie.storage.local import LocalStorage
from hoodie.table.properties import create_properties
from hoodie.timeline.load import Memory, load_timeline
from hoodie.timeline.timeline import Timeline


def timeline_of(storage: LocalStorage) -> Timeline:
    return load_timeline(storage, from_properties({"hoodie.table.name": "t"}))


def commits(storage: LocalStorage, numbers: range) -> None:
    for number in numbers:
        (Path(storage.root) / ".hoodie" / f"2026010100{number:07}.commit").write_text("{}")


def test_instants_that_left_the_timeline_are_forgotten(tmp_path: Path) -> None:
    storage, other = LocalStorage(tmp_path / "t"), LocalStorage(tmp_path / "other")
    memory: Memory[str] = Memory(10_000_000)
    for each in (storage, other):
        create_properties(each, {"hoodie.table.name": "t"})
    commits(other, range(5))
    for instant in timeline_of(other).commits:
        memory.put(other, timeline_of(other), instant, "of another table")
    for start in range(0, 1000, 10):
        commits(storage, range(start, start + 10))
        for old in sorted((tmp_path / "t" / ".hoodie").glob("*.commit"))[:-20]:
            old.unlink()  # archived
        timeline = timeline_of(storage)
        for instant in timeline.commits:
            memory.put(storage, timeline, instant, instant.requested)
        assert len(memory) <= 5 + 20 + 64
    assert all(memory.get(storage, timeline, instant) == instant.requested for instant in timeline.commits)
    theirs = timeline_of(other)
    assert all(memory.get(other, theirs, instant) == "of another table" for instant in theirs.commits)
