"""Paths that timeline files name: kept inside the table, whatever the bytes say."""

from __future__ import annotations

from hoodie.errors import CorruptFile


def inside(path: str, source: str) -> str:
    """The path itself, relative to the base path; "" is the base path.

    source  the file that names it, for the error
    Raises  CorruptFile when it leaves the table or is no plain relative path
    """
    if path and ("\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/"))):
        raise CorruptFile(source, f"{path!r} is no path inside the table")
    return path


def file_name(path: str, source: str) -> str:
    """The last segment of a path or of a name.

    Other machines and mount points wrote absolute paths, so only the name counts: its folder is the partition's.
    Raises CorruptFile when there is no name in it.
    """
    name = path.rpartition("/")[2]
    if not name:
        raise CorruptFile(source, f"{path!r} names no file")
    return inside(name, source)


def absolute(root: str, partition: str, name: str) -> str:
    """The path of a file of a partition as plans of other writers spell it."""
    return "/".join(part for part in (root.rstrip("/"), partition, name) if part)
