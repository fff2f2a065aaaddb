"""Rows of a table as Parquet or CSV files in another folder: all of them, or none.

On disk the files are written beside the folder, which gets its name at the end. Object stores have no such step: there
`_SUCCESS`, which is written last, says that all is there; what a failed export wrote is removed.
"""

import errno
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from hoodie.cli.output import Block
from hoodie.cli.rows import Question, plan_question, row_batches, write_tables
from hoodie.cli.secrets import masked_path
from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.config.table import PROPERTIES_FILE
from hoodie.display.summary import bytes_text
from hoodie.errors import InvalidInput, InvalidOption
from hoodie.storage import LocalStorage, Storage, storage_for
from hoodie.storage.local import path_from_root
from hoodie.table.state import load_state

SUCCESS = "_SUCCESS"
_PART = "{}: this folder is part of the table {}: export to another one"
#: Input bytes that go into one file, roughly: whole file slices.
_FILE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Exported:
    """What was exported, or (dry run) would be.

    to      the folder
    files   names in it, without `_SUCCESS`; dry run: ()
    rows    in them
    reads   bytes of the table's files that are read
    as_of   instant of the table's newest commit, which the rows show
    """

    to: str
    files: tuple[str, ...]
    rows: int
    reads: int
    as_of: str
    dry_run: bool


def table_folders(paths: Sequence[str], folder: str) -> dict[str, str]:
    """Where each table goes: one to the folder, several to folders of their name in it.

    Raises InvalidOption; InvalidInput where the folder is part of one of the tables
    """
    for path in paths:
        if "://" in path and f"{folder}/".startswith(f"{path.rstrip('/')}/"):
            raise InvalidInput(_PART.format(folder, path))
    if len(paths) == 1:
        return {paths[0]: folder}
    return {path: f"{folder.rstrip('/')}/{name}" for path, name in folder_names(paths).items()}


def folder_names(paths: Sequence[str]) -> dict[str, str]:
    """The name of each table's folder, by path. Raises InvalidOption when two have the same"""
    names = {path: os.path.basename(path_from_root(path.rstrip("/"))) for path in paths}
    if twice := sorted({name for name in names.values() if list(names.values()).count(name) > 1}):
        raise InvalidOption(f"several tables have a folder named {', '.join(twice)}: take them one after the other")
    return names


def export_table(
    storage: Storage,
    question: Question,
    options: Options,
    to: str,
    storage_options: Mapping[str, Any],
    form: str,
    *,
    dry_run: bool,
) -> Exported:
    """Write rows into a new or empty folder outside of the table. Raises InvalidInput when it has something in it; as a
    read"""
    target = storage_for(to, storage_options if "://" in to else None)
    if f"{_real_path(target)}/".startswith(f"{_real_path(storage)}/"):
        raise InvalidInput(_PART.format(target.root, storage.root))
    if isinstance(target, LocalStorage) and (table := _table_above(Path(_real_path(target)))):
        raise InvalidInput(_PART.format(target.root, table))
    if target.list():
        raise InvalidInput(f"{target.root}: there is something in this folder: export to a new or an empty one")
    state = load_state(storage)
    scan = plan_question(state, question, ReadSettings.read(options))
    exported = Exported(masked_path(target.root), (), 0, scan.bytes, state.timeline.newest_commit, True)
    if dry_run:
        return exported
    groups: list[list[Any]] = [[]]
    taken = 0
    for slice_ in scan.slices:
        if groups[-1] and taken + slice_.bytes > _FILE_BYTES:
            groups.append([])
            taken = 0
        groups[-1].append(slice_)
        taken += slice_.bytes
    scans = [replace(scan, slices=tuple(group)) for group in groups]
    names = [f"part-{number:05d}.{form}" for number in range(len(scans))]

    def write_all(into: Storage) -> int:
        rows = 0
        for name, part in zip(names, scans, strict=True):
            with into.open_output(name) as sink:
                rows += write_tables(row_batches(part), form, sink)
        into.write(SUCCESS, b"")
        return rows

    rows = _on_disk(target, write_all) if isinstance(target, LocalStorage) else _in_store(target, names, write_all)
    return replace(exported, files=tuple(names), rows=rows, dry_run=False)


def _table_above(folder: Path) -> Path | None:
    """The table that a folder on disk lies in."""
    return next((above for above in folder.parents if (above / PROPERTIES_FILE).is_file()), None)


def _real_path(storage: Storage) -> str:
    """Where a storage is: on disk without links."""
    return os.path.realpath(storage.root) if isinstance(storage, LocalStorage) else storage.root


def export_text(export: Exported) -> Sequence[Block]:
    if export.dry_run:
        return [f"would read {bytes_text(export.reads)} and write to {export.to}"]
    return [f"{export.rows} rows in {len(export.files)} files written to {export.to}, as of {export.as_of}"]


def _on_disk(target: LocalStorage, write_all: Any) -> int:
    place = Path(target.root)
    beside = place.parent / f".{place.name}.{uuid4().hex}.tmp"
    try:
        beside.mkdir(parents=True)
    except OSError as error:
        raise InvalidInput(f"--to {place}: no folder can be made there: {error.strerror}") from error
    try:
        rows: int = write_all(LocalStorage(beside))
        os.replace(beside, place)  # takes the place of an empty folder; another export's is not empty
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise InvalidInput(f"{place}: another process has written to this folder meanwhile") from error
        raise
    return rows


def _in_store(target: Storage, names: Sequence[str], write_all: Any) -> int:
    try:
        rows: int = write_all(target)
    except BaseException:
        with suppress(Exception):  # the error that is raised says more; a folder without _SUCCESS is not complete
            for name in (SUCCESS, *names):
                target.delete(name)
        raise
    return rows
