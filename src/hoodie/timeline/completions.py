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
    Raises  CorruptFile, also when there is no history and one with rows is older than the timeline, or one is in a file
            that the current manifest does not list

    Opens only files of the history whose range may hold one of them, and all of them for one that is in none of these.
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
    names = history_files(storage, config.history_folder, version)
    history |= _completions(storage, config.history_folder, names, times)
    if others := [time for time in times if time not in history and time < timeline.first_commit]:
        history |= _completions(storage, config.history_folder, names, others, everywhere=True)
        if rows and (others := [time for time in others if time not in history]):
            _refuse_unlisted(storage, config.history_folder, names, others)
    return dataclasses.replace(timeline, history=history)


def _refuse_unlisted(storage: Storage, folder: str, names: Collection[str], times: Collection[str]) -> None:
    """Raise CorruptFile where a file beside those that the manifest lists has one of some instants: the manifest is an
    older one. What a writer left that died is of instants that are on the timeline still."""
    for name in sorted(entry.name for entry in storage.list(folder)):
        if name in names or not _HISTORY_NAME.fullmatch(name):
            continue
        completions: dict[str, str] = {}
        with suppress(CorruptFile):  # such a writer left half of it
            completions = _completions(storage, folder, [name], times)
        if completions:
            raise CorruptFile(
                f"{folder}/{name}",
                f"no manifest of the history lists it that counts, and it has {min(completions)}, of which files are "
                "there",
                advice=f"Delete {VERSION_FILE} beside it where there is a newer manifest than that names: the newest "
                "one counts then. Else restore the newest manifest from a copy of the table",
            )


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
        return newest_manifest(storage, folder)
    if not re.fullmatch(r"\d+", version, re.ASCII):
        raise CorruptFile(f"{folder}/{VERSION_FILE}", f"{version!r} is not a version of the history")
    return int(version)


def newest_manifest(storage: Storage, folder: str) -> int | None:
    """The greatest number of a manifest; None: there is none."""
    numbers = [int(m[1]) for e in storage.list(folder) if not e.is_dir and (m := MANIFEST.fullmatch(e.name))]
    return max(numbers, default=None)


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


def _completions(
    storage: Storage, folder: str, names: Iterable[str], instants: Collection[str], *, everywhere: bool = False
) -> dict[str, str]:
    """When those of some instants were completed that some files of the history have.

    everywhere  also in files whose names do not cover them, as those that Hudi 1.0 makes when it upgrades a table
    Raises      CorruptFile
    """
    completions: dict[str, str] = {}
    for name in names:
        span, path = history_span(name), f"{folder}/{name}"
        inside = [time for time in instants if everywhere or span[0] <= time <= span[1]]
        if not inside:
            continue
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = read_history(storage, path, ["instantTime", "completionTime"])
        if not pc.all(pc.is_in(pa.array(span), rows.column(0).combine_chunks())).as_py():
            raise CorruptFile(path, "it lacks instants that are in its name: the content is another file's")
        rows = rows.filter(pc.is_in(rows.column(0), pa.array(inside, pa.string())))
        times, completed = (column.to_pylist() for column in rows.columns)
        if None in times or None in completed:
            raise CorruptFile(path, "an instant without completion time")
        completions |= zip(times, completed, strict=True)
    return completions
