"""Markers: the files that a write is about to create, recorded first, so that a rollback finds what it left behind.

Written as files (DIRECT); those of Hudi's timeline server are read as well.
Source: DirectWriteMarkers, TimelineServerBasedWriteMarkers and MarkerUtils of Hudi 0.15.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from hoodie.errors import CorruptFile, InvalidInput
from hoodie.model.files import inside
from hoodie.storage.protocol import Storage, is_temporary, join

_FOLDER = ".hoodie/.temp"
_TYPE_FILE = "MARKERS.type"
_LIST_FILE = re.compile(r"MARKERS\d+")
_DIRECT, _TIMELINE_SERVER = "DIRECT", "TIMELINE_SERVER_BASED"


class MarkerKind(StrEnum):
    """What the write does to the data file. The value is the word in the marker's name."""

    CREATE = "CREATE"  # the first base file of a group
    MERGE = "MERGE"  # a new version of a base file
    APPEND = "APPEND"  # a log file


_NAME = re.compile(rf"(.+)\.marker\.({'|'.join(MarkerKind)})", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class Marker:
    """A data file that an instant may have left behind. `path` is relative to the table's base path."""

    path: str
    kind: MarkerKind


def marker_folder(instant: str) -> str:
    """The folder of an instant's markers. Raises InvalidInput when it is not an instant time."""
    if not (instant.isascii() and instant.isdigit()):  # "" would be the folder of all instants
        raise InvalidInput(f"{instant!r} is not an instant time, so it has no markers")
    return join(_FOLDER, instant)


def marker_path(instant: str, data_file_path: str, kind: MarkerKind) -> str:
    """The path of a data file's marker."""
    return join(marker_folder(instant), f"{data_file_path}.marker.{MarkerKind(kind)}")


def create_marker(storage: Storage, instant: str, data_file_path: str, kind: MarkerKind) -> None:
    """Record that a data file is about to be written; on storage before that has its name. Call it before opening the
    file, in its process.

    An existing marker is accepted: data file names are unique by their write token, so it is our own, of a create
    whose response was lost.
    """
    try:
        storage.create_ahead(marker_path(instant, data_file_path, kind), b"")
    except FileExistsError:
        return


def read_markers(storage: Storage, instant: str) -> tuple[Marker, ...]:
    """The markers of an instant, sorted; none when the folder is missing or empty.

    Raises CorruptFile for a name that is not a marker's, one of a file outside the table, or an unknown kind of
    markers: then the files of the instant must be found by listing the partitions
    """
    folder = marker_folder(instant)
    tree = storage.list_tree(folder)
    top = {entry.name for entry in tree.get(folder, ())}
    if _kind_of_markers(storage, folder, top) == _TIMELINE_SERVER:
        files = sorted(join(folder, name) for name in top if _LIST_FILE.fullmatch(name))
        names = [(file, line) for file in files for line in _lines(storage, file)]
    else:
        paths = (join(parent, entry.name) for parent, entries in tree.items() for entry in entries)
        names = [(path, path[len(folder) + 1 :]) for path in paths]
        names = [(path, name) for path, name in names if not _is_companion(name)]
    return tuple(sorted({_parse(name, file) for file, name in names}))


def delete_markers(storage: Storage, instant: str, markers: Collection[Marker] | None = None) -> None:
    """Remove the markers of an instant, if any.

    markers  all of them, as `read_markers` has just found them, each in a file of its own; None: they are looked for
    """
    paths = None if markers is None else [marker_path(instant, marker.path, marker.kind) for marker in markers]
    storage.delete_tree(marker_folder(instant), paths)


def _kind_of_markers(storage: Storage, folder: str, names: set[str]) -> str:
    if _TYPE_FILE not in names:
        return _DIRECT
    path = join(folder, _TYPE_FILE)
    kind = _text(storage, path).strip()
    if kind not in (_DIRECT, _TIMELINE_SERVER):
        raise CorruptFile(path, f"unknown kind of markers {kind!r}: expected {_DIRECT} or {_TIMELINE_SERVER}")
    return kind


def _is_companion(name: str) -> bool:
    """Whether a file in the folder is legitimately not a marker: the type file, Hadoop's checksums, temporary files."""
    last = name.rpartition("/")[2]
    return name == _TYPE_FILE or (last.startswith(".") and last.endswith(".crc")) or is_temporary(last)


def _parse(name: str, file: str) -> Marker:
    match = _NAME.fullmatch(name)
    if match is None:
        raise CorruptFile(file, f"{name!r} is not a marker: expected <data file>.marker.{'|'.join(MarkerKind)}")
    return Marker(inside(match[1], file), MarkerKind(match[2]))


def _lines(storage: Storage, path: str) -> list[str]:
    lines = (line.removesuffix("\r") for line in _text(storage, path).split("\n"))  # names may hold other line breaks
    return [line for line in lines if line]


def _text(storage: Storage, path: str) -> str:
    try:
        return storage.read(path).decode()
    except UnicodeDecodeError as error:
        raise CorruptFile(path, "not UTF-8 text", error.start) from None
