"""Finding tables: below a folder, and by a glob."""

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hoodie.cli.output import Block, Grid, with_path
from hoodie.cli.secrets import masked, masked_path
from hoodie.config.table import PROPERTIES_FILE, from_properties
from hoodie.errors import HoodieError, InvalidInput, TableNotFound
from hoodie.model.instant import Action
from hoodie.storage import Storage, storage_beside, storage_for
from hoodie.storage.driver_errors import missing_bucket, no_bucket
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Entry, in_threads, join
from hoodie.table.other_tables import kind_of_table, other_table
from hoodie.table.properties import completed_commits, load_properties
from hoodie.timeline.load import load_timeline

_GLOB = re.compile(r"[*?\[]")
#: Folders of one that is no table that are looked into for tables.
_LOOKED_INTO = 20


@dataclass(frozen=True, slots=True)
class TableLine:
    """One table of a listing.

    path     below the folder that was listed: its own path
    commits  completed commits on the active timeline
    newest   instant of the newest of them; ""
    pending  instants that are requested or inflight
    problem  why nothing more can be said of it; ""
    """

    path: str
    name: str = ""
    type: str = ""
    version: int = 0
    commits: int = 0
    newest: str = ""
    pending: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OtherFolder:
    """A folder that holds data and is no Hudi table.

    holds  "Parquet files", "a Delta table", "an Iceberg table", or of which Hudi table it is a part
    """

    path: str
    holds: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The tables in a folder and below it, and the folders that hold data and are no Hudi tables."""

    tables: tuple[TableLine, ...]
    others: tuple[OtherFolder, ...] = ()


def list_tables(storage: Storage, depth: int) -> Listing:
    """The tables at the root of a storage, or in folders below it.

    depth   folders below the root that are looked into; tables are not entered
    Raises  TableNotFound when the folder is missing or empty, or is a file
    """
    try:
        below, paths, others = _tables(storage, depth)
    except NotADirectoryError:
        raise TableNotFound(storage.root, is_file=True) from None
    if not paths and not below:
        raise TableNotFound(storage.root, _missing_bucket(storage) or "there is no such folder, or nothing in it")
    if "" in others:  # it may be a partition of a table
        others[""] = other_table(storage) or others[""]
    folders = tuple(OtherFolder(masked_path(_path(storage, folder)), kind) for folder, kind in others.items())
    return Listing(tuple(in_threads(partial(_line, storage), paths)), folders)


def _missing_bucket(storage: Storage) -> str:
    """What the store says of a bucket that is not there; "" where there is one. To a listing it says nothing."""
    try:
        storage.read(PROPERTIES_FILE)
    except FileNotFoundError as problem:
        if no_bucket(problem):
            bucket = missing_bucket(problem)
            return f"{problem}: {bucket}" if bucket and bucket not in str(problem) else str(problem)
    return ""


def matching(pattern: str, storage_options: Mapping[str, Any]) -> tuple[list[str], list[OtherFolder]]:
    """The tables whose path matches a glob, sorted, and the folders that hold data and are no Hudi tables. Others are
    left out."""
    options = storage_options if "://" in pattern else None
    tables, others = [], []
    for path in _matches(pattern, storage_options):
        storage = storage_for(path, options)
        if _holds_table(storage, ""):
            tables.append(path)
        elif kind := other_table(storage):
            others.append(OtherFolder(masked_path(path), kind))
    return tables, others


def _matches(pattern: str, storage_options: Mapping[str, Any]) -> list[str]:
    """The folders whose path matches."""
    if "://" not in pattern:
        return [path for path in sorted(glob.glob(pattern)) if os.path.isdir(path)]
    from fsspec.core import url_to_fs

    if not (fixed := _GLOB.split(pattern)[0]).partition("://")[2].partition("/")[1]:
        raise InvalidInput(f"{pattern}: a glob may not stand in the bucket or host of a URI")
    scheme = fixed.partition("://")[0]
    fs, path = url_to_fs(pattern, **{**storage_options, "use_listings_cache": False})
    return [
        f"{scheme}://{match.lstrip('/')}"
        for match, entry in sorted(fs.glob(path, detail=True).items())
        if entry["type"] == "directory"
    ]


def listing_text(listing: Listing) -> Sequence[Block]:
    others = [f"{other.path} holds {other.holds} and is no Hudi table" for other in listing.others]
    if not listing.tables:
        return ["no tables", *others]
    rows = [
        (line.name, line.type, line.version, line.commits, line.newest, line.pending, line.path)
        for line in listing.tables
    ]
    problems = [with_path(line.path, line.problem) for line in listing.tables if line.problem]
    return [Grid(("name", "type", "version", "commits", "newest", "pending", "path"), rows), *problems, *others]


def tables_inside(storage: Storage) -> bool:
    """Whether tables lie directly in a folder, as far as its first folders show."""
    folders = [entry.name for entry in storage.list() if entry.is_dir][:_LOOKED_INTO]
    return any(in_threads(partial(_holds_table, storage), folders))


def _holds_table(storage: Storage, folder: str) -> bool:
    """Whether a folder is a table, be it one that lost its settings. One that this process may not look into counts: it
    fails by itself, with its name."""
    try:
        return storage.exists(join(folder, PROPERTIES_FILE)) or any(completed_commits(storage, folder))
    except PermissionError:
        return True
    except NotADirectoryError:  # .hoodie is a file
        return False


def _entries(storage: Storage, folder: str) -> Sequence[Entry] | None:
    """What a folder holds; None of one below the root that this process may not look into."""
    try:
        return storage.list(folder)
    except PermissionError:
        if not folder:
            raise
        return None


def _tables(storage: Storage, depth: int) -> tuple[bool, list[str], dict[str, str]]:
    """Whether the root has anything in it, the folders that hold tables, and what other folders with data hold."""
    paths: list[str] = []
    others: dict[str, str] = {}
    level, remaining_depth, anything = [""], depth, False
    while level:
        deeper: list[str] = []
        for folder, entries in zip(level, in_threads(partial(_entries, storage), level), strict=True):
            if entries is None:
                paths.append(folder)
                continue
            anything = anything or bool(entries)
            names = [entry.name for entry in entries if entry.is_dir]
            if ".hoodie" in names and _holds_table(storage, folder):
                paths.append(folder)
            elif kind := kind_of_table(entries):
                others.setdefault(_above_partitions(folder), kind)
            elif remaining_depth:
                deeper += [join(folder, name) for name in names if not name.startswith(".")]
        level, remaining_depth = deeper, remaining_depth - 1
    return anything, sorted(paths), dict(sorted(others.items()))


def _above_partitions(folder: str) -> str:
    """The folder above partitions such as `city=oslo/day=1`."""
    parts = folder.split("/")
    first = next((at for at, part in enumerate(parts) if "=" in part), len(parts))
    return "/".join(parts[:first])


def _path(storage: Storage, folder: str) -> str:
    return f"{storage.root.rstrip('/')}/{folder}" if folder else storage.root


def _line(storage: Storage, folder: str) -> TableLine:
    path = _path(storage, folder)
    try:
        with typed_errors():
            table = storage_beside(storage, path)
            config = from_properties(load_properties(table))
            timeline = load_timeline(table, config)
    except HoodieError as error:
        return TableLine(masked_path(path), problem=masked(" ".join(str(error).split())))
    pending = len(timeline.pending(Action))
    return TableLine(
        masked_path(path),
        config.name,
        config.type.value,
        config.version,
        len(timeline.commits),
        timeline.newest_commit,
        pending,
    )
