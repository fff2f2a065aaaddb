"""The paths that jobs read: a table's, that of a partition, or a pattern over folders and files, as Hudi takes them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hoodie.config.options import Options
from hoodie.config.table import PROPERTIES_FILE
from hoodie.errors import InvalidInput, TableNotFound
from hoodie.reading.filters.path_globs import GLOB_CHARACTERS, matches_folder
from hoodie.storage import storage_at
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, load_state
from hoodie.view.load import discover_partitions

#: Folders above a path that are looked at for the table that it belongs to.
_MOST_LEVELS = 12


@dataclass(frozen=True, slots=True)
class TableAt:
    """A table, and the part of it that a path names: "" for all of it."""

    state: TableState
    below: str = ""

    def partitions(self) -> list[str] | None:
        """The partition paths that are meant; None: all. Raises InvalidInput when there is none"""
        if not self.below:
            return None
        partitions = discover_partitions(self.state.storage)
        if self.below in partitions:
            return [self.below]
        matches = [partition for partition in partitions if matches_folder(self.below, partition)]
        if not matches:
            raise InvalidInput(
                f"{self.state.storage.root} is a table, and none of its {len(partitions)} partitions is "
                f"{self.below!r}. Its partition paths are such as {', '.join(map(repr, partitions[:3])) or 'none yet'}"
            )
        return None if len(matches) == len(partitions) else matches


def table_at(path: str, base_path: str, options: Options, storage_options: Mapping[str, Any] | None = None) -> TableAt:
    """The table that a path leads to or into.

    base_path  of the table, where the caller names it; ""
    Raises     TableNotFound; InvalidInput when the path is not below the base path
    """

    def storage(at: str) -> Storage:
        return storage_at(at, options, storage_options)

    if base_path:
        base, whole = base_path.rstrip("/"), path.rstrip("/")
        if whole != base and not whole.startswith(f"{base}/"):
            raise InvalidInput(f"the path {path!r} is not below basePath={base_path!r}")
        return TableAt(load_state(storage(base)), whole[len(base) + 1 :])
    start = _without_patterns(path)
    if start == path:
        try:
            return TableAt(load_state(storage(path)))
        except TableNotFound:
            table = _table_above(path.rstrip("/"), storage)
            if table is None:
                raise
            return table
    if storage(start).exists(PROPERTIES_FILE):
        return TableAt(load_state(storage(start)), path.rstrip("/")[len(start) + 1 :])
    table = _table_above(path.rstrip("/"), storage, start)
    return TableAt(load_state(storage(start))) if table is None else table


def _without_patterns(path: str) -> str:
    """The path up to the first part that is a pattern; the path itself when none is."""
    if GLOB_CHARACTERS.isdisjoint(path):
        return path
    parts = path.split("/")
    first = next(number for number, part in enumerate(parts) if not GLOB_CHARACTERS.isdisjoint(part))
    return "/".join(parts[:first])


def _table_above(path: str, storage: Callable[[str], Storage], start: str = "") -> TableAt | None:
    """The table in the nearest folder above a path; None: there is none. start: look from there on"""
    scheme, separator, rest = path.rpartition("://")
    folder = (start or path).removeprefix(f"{scheme}{separator}")
    for _ in range(_MOST_LEVELS):
        folder = folder.rpartition("/")[0]
        if not folder:
            return None
        base = f"{scheme}{separator}{folder}"
        if storage(base).exists(PROPERTIES_FILE):
            return TableAt(load_state(storage(base)), rest[len(folder) + 1 :])
    return None
