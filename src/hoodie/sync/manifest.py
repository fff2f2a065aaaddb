"""Manifests: files that list the newest base files of a table, for engines that do not know its timeline.

Each file is replaced as a whole, so a reader has the old list or the new one. For a Merge-on-Read table they list what
a read-optimized read sees. Source: docs/format/engines.md 7.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from hoodie.config.options import read_options
from hoodie.config.sync import ManifestFormat, ManifestOptions
from hoodie.errors import InvalidInput
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage, in_threads, join, rewrite, split
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.timeline.load import read_commit
from hoodie.timeline.timeline import Timeline
from hoodie.view.slices import latest_base_files


@dataclass(frozen=True, slots=True)
class ManifestState:
    """The instants of the timeline when the manifests were written, and which manifests these were.

    completed  completed commits of the active timeline
    pending    pending ones: one may be completed and archived before the next look
    """

    formats: tuple[str, ...]
    base: str
    completed: tuple[str, ...]
    pending: tuple[str, ...] = ()

    @classmethod
    def of(cls, timeline: Timeline, formats: Collection[str], base: str) -> ManifestState:
        completed = tuple(instant.requested for instant in timeline.commits)
        return cls(tuple(sorted(formats)), base, completed, tuple(instant.requested for instant in timeline.pending()))

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()


def recorded_state(storage: Storage) -> ManifestState | None:
    """None where none is recorded, or the bytes are none: the manifests are written whole then."""
    try:
        content = json.loads(storage.read(STATE_FILE))
        lists = (content["formats"], content["completed"], content["pending"])
        formats, completed, pending = (tuple(map(str, values)) for values in lists)
        return ManifestState(formats, str(content["base"]), completed, pending)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def new_commits(before: ManifestState | None, now: ManifestState) -> frozenset[str] | None:
    """The commits whose partitions have other files than their manifests say; None: unknown, look at all partitions.

    Unknown when there is no state, or one of other manifests; when a commit was rolled back; and when commits may have
    come and left the active timeline unseen.
    """
    if before is None or (before.formats, before.base) != (now.formats, now.base):
        return None
    if not before.completed or not now.completed or before.completed[-1] not in now.completed:
        return None
    first = now.completed[0]
    former_commits = set(before.completed) - set(now.completed)
    unseen = set(before.pending) - set(now.completed) - set(now.pending)
    if any(time >= first for time in former_commits) or any(time < first for time in unseen):
        return None
    return frozenset(now.completed) - set(before.completed)


SYMLINK_FOLDER = ".hoodie/symlink-manifest"
SYMLINK_NAME = "manifest"
CSV_NAMES = ".hoodie/manifest/latest-snapshot.csv"
CSV_URIS = ".hoodie/absolute-path-manifest/latest-snapshot.csv"
STATE_FILE = ".hoodie/manifest-state/state.json"


@dataclass(frozen=True, slots=True)
class ManifestResult:
    """What was written.

    instant     the newest commit that the manifests show; "" of an empty table
    formats     "symlink", "csv"
    partitions  partition paths that were looked at
    whole       whether these were all of the table's
    files       base files in these partitions
    """

    instant: str = ""
    formats: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    whole: bool = False
    files: int = 0

    def __str__(self) -> str:
        if not self.partitions and not self.whole:
            return f"manifests ({', '.join(self.formats)}): up to date as of {self.instant}"
        scope = "all partitions" if self.whole else f"{len(self.partitions)} partitions"
        return f"manifests ({', '.join(self.formats)}) as of {self.instant}: {self.files} base files of {scope}"


@typed_errors()
def write_manifests(
    storage: Storage,
    settings: Settings,
    *,
    formats: Collection[str] | None = None,
    whole: bool = False,
    removed: Collection[str] = (),
    state: TableState | None = None,
) -> ManifestResult:
    """Bring the manifests of a table up to date: those of the partitions that commits since the last time touched.

    formats  "symlink", "csv"; None: those of `hoodie.sync.manifest`
    whole    look at all partitions, whatever was written last
    removed  partitions that cleaning removed: their symlink manifests go, unless they have rows again
    state    the table as it was loaded just now; None: it is loaded
    Raises   InvalidOption on an unknown format; TableNotFound; InvalidInput when a file's name has a line break;
             LockTimeout while another process writes them. The manifests that were written by then stay: the next call
             goes on
    With a lock provider only one process writes them at a time, so that none puts an older list over a newer one.
    """
    manifest_options = settings.manifests
    if formats is not None:
        manifest_options = read_options(ManifestOptions, {"hoodie.sync.manifest": ",".join(formats)})
    chosen = manifest_options.chosen_formats
    if not chosen:
        return ManifestResult()
    with settings.writers.lock_on(storage, "manifest") as lock:
        state = load_state(storage) if state is None or lock.real else state
        base = uri_base(storage, settings)
        before = recorded_state(storage)
        now = ManifestState.of(state.timeline, chosen, base)
        result = ManifestResult(state.timeline.newest_commit, now.formats)
        if before == now and not (whole or removed):
            return result
        listed = _listed_paths(storage, base) if ManifestFormat.CSV in chosen else []
        commits = None if whole or listed is None else new_commits(before, now)
        partitions = None if commits is None else {*_touched_partitions(state, commits), *removed}
        if partitions is None or partitions:
            files = _newest_files(state, partitions)
            if ManifestFormat.SYMLINK in chosen:
                _write_symlinks(storage, base, files, partitions)
            if ManifestFormat.CSV in chosen:
                other_paths = [] if partitions is None else [p for p in listed or [] if split(p)[0] not in partitions]
                _write_csv(storage, base, files, other_paths)
            count = sum(map(len, files.values()))
            result = replace(result, partitions=tuple(files), whole=partitions is None, files=count)
        storage.write(STATE_FILE, now.encode())
    return result


def uri_base(storage: Storage, settings: Settings) -> str:
    """The base path as a URI that other engines understand, without a trailing slash; not percent-encoded, as Hadoop's
    paths are not."""
    base = settings.meta_sync.base_path.rstrip("/")
    root = base or storage.root
    return f"file://{root}" if root.startswith("/") else root


def _touched_partitions(state: TableState, commits: Collection[str]) -> tuple[str, ...]:
    """The partitions in which commits wrote or replaced file groups, sorted."""
    partitions: set[str] = set()
    for instant in state.timeline.commits:
        if instant.requested in commits:
            metadata = read_commit(state.storage, state.timeline, instant)
            partitions |= metadata.stats.keys() | metadata.replaced.keys()
    return tuple(sorted(partitions))


def _listed_paths(storage: Storage, base: str) -> list[str] | None:
    """The paths that the list of the whole table has, relative to the base; None when there is none."""
    try:
        text = storage.read(CSV_URIS).decode()
    except FileNotFoundError:
        return None
    return [line.removeprefix(f"{base}/") for line in text.split("\n")[:-1]]


def _newest_files(state: TableState, partitions: Collection[str] | None) -> dict[str, list[str]]:
    """Paths of the newest base files by partition path; None: of all partitions. Partitions without any are empty."""
    view = state.view(partitions)
    files: dict[str, list[str]] = {partition: [] for partition in view.partitions}
    for group, file in latest_base_files(view).items():
        if "\n" in file.path or "\r" in file.path:
            raise InvalidInput(f"{file.path!r}: a manifest has one file a line, and this name has a line break")
        files[group.partition].append(file.path)
    return {partition: sorted(paths) for partition, paths in files.items()}


def _write_symlinks(
    storage: Storage, base: str, files: Mapping[str, Sequence[str]], partitions: Collection[str] | None
) -> None:
    """One file a partition. A partition whose rows are gone keeps an empty one, as a catalog may still name its folder,
    until cleaning removes the partition."""

    def write(partition: str) -> None:
        rewrite(storage, symlink_path(partition), _lines(f"{base}/{path}" for path in files[partition]))

    in_threads(write, list(files))
    if partitions is None:
        folders = storage.list_tree(SYMLINK_FOLDER)
        partitions = {folder.removeprefix(SYMLINK_FOLDER).removeprefix("/") for folder in folders}
    for partition in sorted(set(partitions) - files.keys()):
        storage.delete(symlink_path(partition))


def _write_csv(storage: Storage, base: str, files: Mapping[str, Sequence[str]], other_paths: Iterable[str]) -> None:
    """The two lists of the whole table. other_paths: those listed before, of partitions that were not looked at now"""
    paths = sorted([*other_paths, *(path for partition_files in files.values() for path in partition_files)])
    rewrite(storage, CSV_URIS, _lines(f"{base}/{path}" for path in paths))
    rewrite(storage, CSV_NAMES, _lines(split(path)[1] for path in paths))


def symlink_path(partition: str) -> str:
    """The path of a partition's manifest, relative to the base path."""
    return join(join(SYMLINK_FOLDER, partition) if partition else SYMLINK_FOLDER, SYMLINK_NAME)


def _lines(texts: Iterable[str]) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()
