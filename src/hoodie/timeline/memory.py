"""What this process has read of completed instants, which do not change, and those that it completed last.

An instant's completed file is known by the table, the instant, its size and modification time: a compaction that was
rolled back is completed again under the same name. A storage in memory has no place of its own, and some storages keep
no modification times: nothing of them is remembered. A storage that lists late would hide what this process has just
completed from its next write, which would build on the state before: it is remembered until a listing has shown it.

The timelines that were listed last are remembered, too: the next listing of a table reads the names that are new.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from hoodie.model.instant import Action, Instant
from hoodie.storage.protocol import Entry, Storage, split
from hoodie.timeline.timeline import Timeline

K = TypeVar("K")
T = TypeVar("T")
_Key = tuple[str, Instant, int, int]


#: Tables of which something is remembered beside what instants hold.
_TABLES = 8
#: The place of a timeline, and the actions whose files were asked for.
_Place = tuple[str, str, frozenset[Action] | None]
#: Values that are added before those of instants that left the timeline are forgotten: that looks through all.
_PRUNED_EVERY = 64


class Memory(Generic[T]):
    """The newest used of what files of completed instants hold, up to a number of bytes of files. For all threads.

    What is no longer on a table's timeline, as it was archived or rolled back, is forgotten now and then: a process
    that writes for months stays as small as its timelines are.
    """

    def __init__(self, most: int) -> None:
        """most  bytes of the files whose content is remembered; the newest is, whatever its size"""
        self._most = most
        self._bytes = 0
        self._known: OrderedDict[_Key, T] = OrderedDict()
        self._added = 0
        self._turn = threading.Lock()

    def get(self, storage: Storage, timeline: Timeline, instant: Instant) -> T | None:
        """What the instant's file holds, if it is remembered."""
        key = _key(storage, timeline, instant)
        if key is None:
            return None
        with self._turn:
            value = self._known.get(key)
            if value is not None:
                self._known.move_to_end(key)
            return value

    def put(self, storage: Storage, timeline: Timeline, instant: Instant, value: T) -> None:
        """Remember what the instant's file holds, as the timeline has listed it."""
        key = _key(storage, timeline, instant)
        if key is None:
            return
        with self._turn:
            if key not in self._known:
                self._known[key] = value
                self._bytes += key[2]
                self._added += 1
                if self._added % _PRUNED_EVERY == 0:
                    self._prune(storage.root, timeline)
            while self._bytes > self._most and len(self._known) > 1:
                oldest, _ = self._known.popitem(last=False)
                self._bytes -= oldest[2]

    def get_or_read(self, storage: Storage, timeline: Timeline, instant: Instant, read: Callable[[], T]) -> T:
        """What the instant's file holds; `read` reads it, unless it is remembered. Raises as `read`."""
        value = self.get(storage, timeline, instant)
        if value is None:
            value = read()
            self.put(storage, timeline, instant, value)
        return value

    def __len__(self) -> int:
        with self._turn:
            return len(self._known)

    def _prune(self, root: str, timeline: Timeline) -> None:
        instants = timeline.stamps.keys()
        for key in [key for key in self._known if key[0] == root and key[1] not in instants]:
            del self._known[key]
            self._bytes -= key[2]

    def forget(self) -> None:
        """Forget everything."""
        with self._turn:
            self._known.clear()
            self._bytes = 0


class _OfTables(Generic[K, T]):
    """One value of each of a few tables. For all threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[K, T] = OrderedDict()
        self._turn = threading.Lock()

    def _get(self, key: K) -> T | None:
        with self._turn:
            return self._known.get(key)

    def _put(self, key: K, value: T) -> None:
        with self._turn:
            self._known[key] = value
            self._known.move_to_end(key)
            while len(self._known) > _TABLES:
                self._known.popitem(last=False)

    def forget(self) -> None:
        """Forget everything, as a new process."""
        with self._turn:
            self._known.clear()


class Grown(_OfTables[str, tuple[tuple[Instant, ...], tuple[tuple[int, int], ...], T]]):
    """What was made of all commits of a table, for as long as these are still on its timeline, with the same files:
    so it costs only the commits that have come since."""

    def get(self, storage: Storage, timeline: Timeline) -> tuple[int, T] | None:
        """The number of the oldest commits that something is remembered of, and what."""
        if (remembered := self._get(storage.root)) is None:
            return None
        commits, stamps, value = remembered
        count = len(commits)
        same = timeline.commits[:count] == commits and timeline.commit_stamps[:count] == stamps
        return (count, value) if same else None

    def put(self, storage: Storage, timeline: Timeline, value: T) -> None:
        """Remember what was made of all commits of a timeline."""
        stamps = timeline.commit_stamps
        if not storage.root.startswith("memory:") and all(mtime for _, mtime in stamps):
            self._put(storage.root, (timeline.commits, stamps, value))


def _key(storage: Storage, timeline: Timeline, instant: Instant) -> _Key | None:
    size, mtime = timeline.stamps.get(instant, (0, 0))
    if not mtime or storage.root.startswith("memory:"):
        return None
    return storage.root, instant, size, mtime


_MOST = 256  # not yet shown, of all tables

_unseen: OrderedDict[tuple[str, str], None] = OrderedDict()  # (root, path)
_turn = threading.Lock()


def just_completed(storage: Storage, path: str) -> None:
    """This process has created the completed file of an instant. Storages without a network list what they have:
    nothing of theirs needs to be remembered."""
    with _turn:
        _unseen[storage.root, path] = None
        while len(_unseen) > _MOST:
            _unseen.popitem(last=False)


def unlisted(storage: Storage, folder: str, names: Collection[str]) -> list[str]:
    """Paths that this process completed, that are there, and that a listing of the timeline's folder lacks: another
    thread completed them since, or the storage lists late. No call, unless the listing lacks some.
    """
    with _turn:
        of_table = [path for root, path in _unseen if root == storage.root and split(path)[0] == folder]
    missing = []
    for path in of_table:
        if split(path)[1] not in names and storage.exists(path):
            missing.append(path)
            continue
        with _turn:  # listed, or rolled back or archived by another process
            _unseen.pop((storage.root, path), None)
    return missing


def forget() -> None:
    """Forget everything, as a new process."""
    with _turn:
        _unseen.clear()


class Listed(_OfTables[_Place, tuple[Timeline, dict[str, Entry]]]):
    """The timeline of each of a few tables, and the entries of its completed instants' files."""

    def within(
        self,
        storage: Storage,
        folder: str,
        layout: int,
        sizes: Mapping[str, Entry],
        stamped: Collection[Action] | None = None,
    ) -> Timeline:
        """The timeline as it was, if the files of its completed instants are still the same; else an empty one.

        sizes    entries of all files of completed instants, or of those of some actions
        stamped  these actions
        """
        timeline, entries = self._get(_place(storage, folder, stamped)) or (None, {})
        if timeline is None or timeline.layout != layout or not entries.items() <= sizes.items():
            return Timeline(layout=layout)
        return timeline

    def keep(
        self,
        storage: Storage,
        timeline: Timeline,
        sizes: Mapping[str, Entry],
        stamped: Collection[Action] | None = None,
    ) -> None:
        """Remember a timeline of layout 1. A storage in memory has no place of its own, and where a file has no
        modification time another one of its size looks like it."""
        entries = {name: entry for name, entry in sizes.items() if name[:1].isdigit()}
        timed = all(entry.mtime for entry in entries.values())
        if timeline.layout == 1 and timed and not storage.root.startswith("memory:"):
            self._put(_place(storage, timeline.folder, stamped), (timeline, entries))


def _place(storage: Storage, folder: str, stamped: Collection[Action] | None) -> _Place:
    return storage.root, folder, None if stamped is None else frozenset(stamped)
