"""Reading the history of layout 2: when instants were completed that left the timeline.

Source: docs/format/table-and-timeline.md 8.2.
"""

import dataclasses
import json
import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile
from hoodie.formats.timeline.services import decode_rollback_metadata
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage
from hoodie.timeline.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa

_HISTORY_NAME = re.compile(r"(\d+)_(\d+)_\d+\.parquet", re.ASCII)
MANIFEST = re.compile(r"manifest_(\d+)", re.ASCII)
VERSION_FILE = "_version_"


def with_history(
    storage: Storage, config: TableConfig, timeline: Timeline, instants: Collection[str], *, rows: bool = True
) -> Timeline:
    """The timeline, knowing also when `instants` completed that left it. Layout 1 keeps no such record.

    rows    files of them hold rows of the table
    Raises  CorruptFile, also when there is no history and one with rows is older than the timeline

    Opens only files of the history whose range may hold one of them.
    """
    recorded_times = {instant.requested for instant in timeline.instants} | timeline.history.keys()
    times = sorted(set(instants) - recorded_times)
    if timeline.layout == 1 or not times:
        return timeline
    history, version = dict(timeline.history), history_version(storage, config.history_folder)
    if rows and version is None and (older := [time for time in times if time < timeline.first_commit]):
        # A task of a failed write may have left a file after it was rolled back.
        undone = rolled_back_times(storage, map(timeline.path, timeline.completed({Action.ROLLBACK})))
        # Archiving removes the markers of a write: one that has some was never completed.
        unmarked = (time for time in older if time not in undone and not storage.list(f".hoodie/.temp/{time}"))
        if archived := next(unmarked, ""):
            raise CorruptFile(
                config.history_folder,
                f"no manifest of the history, and files of instant {archived} are older than the timeline, which "
                f"begins at {timeline.first_commit}: they were archived",
                advice="Restore the folder from a copy of the table. If nothing was ever archived, delete those files",
            )
    for name in history_files(storage, config.history_folder, version):
        oldest, newest = history_span(name)
        inside = [time for time in times if oldest <= time <= newest]
        if inside:
            history |= _completions(storage, f"{config.history_folder}/{name}", inside)
    return dataclasses.replace(timeline, history=history)


def rolled_back_times(storage: Storage, rollbacks: Iterable[str]) -> frozenset[str]:
    """The instants that rollbacks of the timeline undid. rollbacks: paths of their completed files"""
    undone: set[str] = set()
    for path in rollbacks:
        with suppress(FileNotFoundError, CorruptFile):  # archived meanwhile, or the doctor says what to do about it
            undone.update(decode_rollback_metadata(storage.read(path), path).commits)
    return frozenset(undone)


def history_version(storage: Storage, folder: str) -> int | None:
    """The number of the current manifest; None: there is no history. Raises CorruptFile"""
    try:
        version = storage.read(f"{folder}/{VERSION_FILE}").decode("ascii", "replace").strip()
    except FileNotFoundError:
        numbers = [int(m[1]) for e in storage.list(folder) if not e.is_dir and (m := MANIFEST.fullmatch(e.name))]
        return max(numbers, default=None)
    if not re.fullmatch(r"\d+", version, re.ASCII):
        raise CorruptFile(f"{folder}/{VERSION_FILE}", f"{version!r} is not a version of the history")
    return int(version)


def history_span(name: str) -> tuple[str, str]:
    """The oldest and the newest instant in a file of the history, by its name.

    A name that an upgrade by Hudi 1.0 gave has the newest first.
    """
    first, last, _ = name.split("_", 2)
    return min(first, last), max(first, last)


def history_files(storage: Storage, folder: str, version: int | None = None) -> list[str]:
    """Names of the files that a manifest lists; others are unfinished or obsolete.

    version  None: the current one
    Raises   CorruptFile
    """
    return list(history_sizes(storage, folder, version))


def history_sizes(storage: Storage, folder: str, version: int | None = None) -> dict[str, int]:
    """As `history_files`, with the bytes that the manifest says; -1: it does not."""
    version = history_version(storage, folder) if version is None else version
    if version is None:
        return {}
    path = f"{folder}/manifest_{version}"
    try:
        sizes = {file["fileName"]: file.get("fileLen", -1) for file in json.loads(storage.read(path))["files"]}
    except FileNotFoundError as error:
        raise CorruptFile(f"{folder}/{VERSION_FILE}", f"names version {version}, but {path} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFile(path, f"no manifest of the history: {error!r}") from error
    for name in sizes:
        if not isinstance(name, str) or not _HISTORY_NAME.fullmatch(name):
            raise CorruptFile(path, f"{name!r} is not a file of the history")
    return sizes


def read_history(storage: Storage, path: str, columns: Sequence[str]) -> "pa.Table":
    """Some columns of a file of the history. Raises CorruptFile when it is missing, or cannot be read"""
    import pyarrow as pa  # here: only the history of layout 2 is Parquet
    import pyarrow.parquet as pq

    from hoodie.formats.parquet.columns import is_storage_fault

    try:
        with storage.open_input(path) as file:
            return pq.read_table(file, columns=columns)
    except FileNotFoundError as error:
        raise CorruptFile(path, "missing, though the history's manifest lists it") from error
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        if is_storage_fault(error):
            raise
        raise CorruptFile(path, f"no file of the history: {str(error).strip()}") from error


def _completions(storage: Storage, path: str, instants: list[str]) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = read_history(storage, path, ["instantTime", "completionTime"])
    rows = rows.filter(pc.is_in(rows.column(0), pa.array(instants, pa.string())))
    times, completed = (column.to_pylist() for column in rows.columns)
    if None in times or None in completed:
        raise CorruptFile(path, "an instant without completion time")
    return dict(zip(times, completed, strict=True))
