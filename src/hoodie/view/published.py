"""Which files the completed commits of a timeline published: read in parallel, and cached.

A completed commit does not change, so what it names is cached in this process, by path, size and modification time.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hoodie.errors import CommitNotChecked, CorruptFile
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Instant
from hoodie.storage.protocol import Storage
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Timeline
from hoodie.view.parallel import in_threads

#: The most commits not yet cached that one read opens, newest first: number of files, and their bytes together. The
#: newest one is read whatever its size.
FRESH_COMMITS = 32
FRESH_BYTES = 16 * 1024 * 1024

#: The most bytes of commit files whose names are cached.
_REMEMBERED_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Published:
    """What a completed commit names.

    files       names of the base and log files that it made or appended to, by partition path
    base_files  names of the base files of the slices to whose logs it wrote, by partition path
    partitions  all partition paths that it wrote to, or replaced file groups of
    """

    instant: Instant
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    base_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: frozenset[str] = frozenset()


def published_by(instant: Instant, commit: CommitMetadata) -> Published:
    """What a commit's metadata names. Only the name in a path counts: its folder is the partition's."""
    files = {
        partition: tuple(dict.fromkeys(stat.path.rpartition("/")[2] for stat in stats if stat.path))
        for partition, stats in commit.stats.items()
    }
    base_files = {
        partition: tuple(dict.fromkeys(stat.base_file for stat in stats if stat.base_file))
        for partition, stats in commit.stats.items()
    }
    return Published(
        instant,
        {partition: names for partition, names in files.items() if names},
        {partition: names for partition, names in base_files.items() if names},
        frozenset({*(partition for partition, names in files.items() if names), *commit.replaced}),
    )


def all_published(storage: Storage, timeline: Timeline, *, tolerant: bool = True) -> list[Published]:
    """What all completed commits of the timeline name, newest first; those archived since it was loaded are left out.

    tolerant  warn (CommitNotChecked) of commits that cannot be read; False: raise CorruptFile
    """
    commits = _read(storage, timeline, reversed(timeline.commits), tolerant=tolerant)
    return [commit for commit in commits if commit is not None]


def newest_published(storage: Storage, timeline: Timeline, as_of: str | None = None) -> list[Published]:
    """What the newest commits up to `as_of` (inclusive; None: now) name, newest first: all that are cached, and as
    many others as `FRESH_COMMITS` and `FRESH_BYTES` let one read open.

    Warns CommitNotChecked of commits that cannot be read; those archived since the timeline was loaded are left out
    """
    instants, opened, size = [], 0, 0
    for instant in reversed(timeline.commits):
        if as_of is not None and instant.requested > as_of:
            continue
        if _REMEMBERED.get(storage, timeline, instant) is None:
            bytes_ = timeline.stamps.get(instant, (0, 0))[0]
            if opened and (opened >= FRESH_COMMITS or size + bytes_ > FRESH_BYTES):
                continue
            opened, size = opened + 1, size + bytes_
        instants.append(instant)
    return [commit for commit in _read(storage, timeline, instants) if commit is not None]


def _read(
    storage: Storage, timeline: Timeline, instants: Iterable[Instant], *, tolerant: bool = True
) -> Iterator[Published | None]:
    def read(instant: Instant) -> Published | CorruptFile | None:
        known = _REMEMBERED.get(storage, timeline, instant)
        if known is not None:
            return known
        try:
            made = published_by(instant, read_commit(storage, timeline, instant))
        except FileNotFoundError:  # archived, or rolled back, since the timeline was loaded
            return None
        except CorruptFile as damage:
            return damage
        _REMEMBERED.put(storage, timeline, made)
        return made

    for outcome in in_threads(read, list(instants)):
        if isinstance(outcome, CorruptFile):
            if not tolerant:
                raise outcome
            warnings.warn(CommitNotChecked(outcome.path, outcome.problem), stacklevel=4)
            continue
        yield outcome


_Key = tuple[str, str, int, int]


class _Memory:
    """Cache of what commits name, least recently used out, up to a number of bytes. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._known: OrderedDict[_Key, Published] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, storage: Storage, timeline: Timeline, instant: Instant) -> Published | None:
        key = _key(storage, timeline, instant)
        if key is None:
            return None
        with self._turn:
            commit = self._known.get(key)
            if commit is not None:
                self._known.move_to_end(key)
            return commit

    def put(self, storage: Storage, timeline: Timeline, made: Published) -> None:
        key = _key(storage, timeline, made.instant)
        if key is None:
            return
        with self._turn:
            if key not in self._known:
                self._known[key] = made
                self._bytes += key[2]
            while self._bytes > self._most and len(self._known) > 1:
                gone, _ = self._known.popitem(last=False)
                self._bytes -= gone[2]


def _key(storage: Storage, timeline: Timeline, instant: Instant) -> _Key | None:
    """The cache key of a commit file; None where it cannot be distinguished from another of the same path.

    A compaction that was rolled back is completed again under the same name. A storage in memory has no identity of
    its own, and some storages keep no times.
    """
    size, mtime = timeline.stamps.get(instant, (0, 0))
    if not mtime or storage.root.startswith("memory:"):
        return None
    return storage.root, timeline.path(instant), size, mtime


_REMEMBERED = _Memory(_REMEMBERED_BYTES)
