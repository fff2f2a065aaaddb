"""Which files the completed commits of a timeline published: read in parallel, and cached.

What a completed commit names is remembered in this process (`hoodie.timeline.memory`), apart from the rest that it
says: it takes less room, so more commits are remembered by it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from hoodie.errors import CommitNotChecked, CorruptFile
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Instant
from hoodie.storage.protocol import Storage
from hoodie.storage.together import in_threads
from hoodie.timeline.load import COMMITS, read_commit
from hoodie.timeline.memory import Memory
from hoodie.timeline.timeline import Timeline

#: The most commits not yet cached that one read opens, newest first: number of files, and their bytes together. The
#: newest one is read whatever its size.
FRESH_COMMITS = 32
FRESH_BYTES = 16 * 1024 * 1024


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


#: What completed commits name: of up to 64 MiB of commit files.
PUBLISHED: Memory[Published] = Memory(64 * 1024 * 1024)


def all_published(storage: Storage, timeline: Timeline, *, tolerant: bool = True) -> list[Published]:
    """What all completed commits of the timeline name, newest first; those archived since it was loaded are left out.

    tolerant  warn (CommitNotChecked) of commits that cannot be read; False: raise CorruptFile
    """
    commits = _read(storage, timeline, reversed(timeline.commits), tolerant=tolerant)
    return [commit for commit in commits if commit is not None]


def read_ahead(storage: Storage, timeline: Timeline) -> None:
    """Read the commits at once that this process has not read yet, for those who need all of them one after the other.
    Only where each read waits for a network, and if they are few. What cannot be read, they find out."""
    if not storage.remote:
        return
    fresh = [instant for instant in timeline.commits if _known(storage, timeline, instant) is None]
    if sum(timeline.stamps.get(instant, (0, 0))[0] for instant in fresh) > FRESH_BYTES:
        return

    def read(instant: Instant) -> None:
        with suppress(OSError, CorruptFile):
            read_commit(storage, timeline, instant)

    in_threads(read, fresh)


def newest_published(storage: Storage, timeline: Timeline, as_of: str | None = None) -> list[Published]:
    """What the newest commits up to `as_of` (inclusive; None: now) name, newest first: all that are cached, and as
    many others as `FRESH_COMMITS` and `FRESH_BYTES` let one read open.

    Warns CommitNotChecked of commits that cannot be read; those archived since the timeline was loaded are left out
    """
    instants, opened, size = [], 0, 0
    for instant in reversed(timeline.commits):
        if as_of is not None and instant.requested > as_of:
            continue
        if _known(storage, timeline, instant) is None:
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
        try:
            made = published_by(instant, read_commit(storage, timeline, instant))
        except FileNotFoundError:  # archived, or rolled back, since the timeline was loaded
            return None
        except CorruptFile as damage:
            return damage
        PUBLISHED.put(storage, timeline, instant, made)
        return made

    ordered = list(instants)
    remembered = [
        _known(storage, timeline, instant) if known is None else known
        for instant, known in zip(ordered, PUBLISHED.get_all(storage, timeline, ordered), strict=True)
    ]
    fresh = [instant for instant, known in zip(ordered, remembered, strict=True) if known is None]
    outcomes = iter(in_threads(read, fresh))
    for known in remembered:
        outcome = next(outcomes) if known is None else known
        if isinstance(outcome, CorruptFile):
            if not tolerant:
                raise outcome
            warnings.warn(CommitNotChecked(outcome.path, outcome.problem), stacklevel=4)
            continue
        yield outcome


def _known(storage: Storage, timeline: Timeline, instant: Instant) -> Published | None:
    found = PUBLISHED.get(storage, timeline, instant)
    if found is None and (commit := COMMITS.get(storage, timeline, instant)) is not None:
        found = published_by(instant, commit)
        PUBLISHED.put(storage, timeline, instant, found)
    return found
