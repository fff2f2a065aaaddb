"""What the library asks of storage: a few methods, each with a written contract, and the paths they take; and
independent calls, made at once by threads: they wait for a storage, or for Arrow, which lets other threads run.

Every implementation passes tests/contract/test_storage.py whole.
"""

import builtins
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from posixpath import join as join
from posixpath import split as split
from typing import Any, NamedTuple, Protocol, Self, TypeVar
from uuid import uuid4

from hoodie.errors import InvalidInput

_TEMPORARY = re.compile(r"\.(?:[0-9a-f]{16}-)?[0-9a-f]{32}\.tmp")


class Entry(NamedTuple):
    """One name in a folder. A tuple: a writer makes thousands of them for each commit."""

    name: str  # last segment of the path
    size: int  # bytes; 0 for a folder
    mtime: int  # milliseconds since 1970, by the storage's clock; 0 where the storage does not say, as for folders
    is_dir: bool = False


class InputFile(Protocol):
    """A seekable binary file, as pyarrow.parquet and `struct` readers take it. One thread at a time."""

    def read(self, size: int = -1, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: Any) -> None: ...


class OutputFile(Protocol):
    """A binary file to write from start to end, as pyarrow.parquet takes it. Its `open_output` block closes it."""

    def write(self, data: Any, /) -> Any: ...
    def tell(self) -> int: ...


class Storage(Protocol):
    """The files of one table.

    Paths are relative to the table's base path, '/'-separated; "" is the base path itself. A path that is absolute or
    has an empty, "." or ".." segment raises InvalidInput. Names may hold any other character; nothing is decoded.

    Folders come with the first file in them; whether an empty one stays is up to the storage. What is written is
    seen by every later call of anyone. Calls may come from any thread. A storage pickles, and what comes out reads and
    writes the same files (hoodie.testing.MemoryStorage alone copies them).

    Faults of the storage (no permission, no space, no network) are OSError or the driver's own error; never an empty
    answer.
    """

    @property
    def root(self) -> str:
        """The base path as people write it: an absolute local path, or a URI without a trailing slash."""

    @property
    def remote(self) -> bool:
        """Whether each call waits for a network: then independent ones are made at once."""
        return False

    def options_for(self, uri: str) -> Mapping[str, Any]:
        """The options that reach another path or URI as this storage is reached: its driver's, for the same scheme."""
        return {}

    def list(self, folder: str = "") -> list[Entry]:
        """The entries directly in a folder, files and folders, sorted by name. A missing folder is empty.

        Temporary files of writers at work, or dead, may show: see `is_temporary`.
        Raises NotADirectoryError when a file has that path.
        """

    def list_some(
        self, folder: str, names: Set[str], pattern: re.Pattern[str]
    ) -> tuple[builtins.list[Entry], builtins.list[str]]:
        """As `list`, for those who need the size and time of some files only: their entries, and the other names.

        names, pattern  of the files whose name is enough, and of further ones
        """
        entries = self.list(folder)
        rest = {e.name for e in entries if not e.is_dir and (e.name in names or pattern.fullmatch(e.name))}
        return [entry for entry in entries if entry.name not in rest], sorted(rest)

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        """All files below a folder, by the folder that holds them, in as few requests as the storage allows.

        skip     names of folders directly in it that are not entered, such as ".hoodie"
        returns  {folder path, relative to the base: its files, sorted by name}, sorted by path; only folders with files
        """

    def read(self, path: str) -> bytes:
        """The whole content. Raises FileNotFoundError."""

    def read_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes `start` (inclusive) up to `end` (exclusive), cut at the end of the file; 0 <= start <= end.

        Raises FileNotFoundError; ValueError when the bounds are not in order.
        """

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        """A file for random reads. Raises FileNotFoundError, now or (some drivers) at the first read.

        size  bytes, where a listing told, so that the storage need not be asked for it; None or 0: not known. Where the
              file turns out shorter, a read raises an OSError, or gives what is there
        """

    def size(self, path: str) -> int:
        """Bytes in a file. Raises FileNotFoundError."""

    def exists(self, path: str) -> bool:
        """Whether a file (not a folder) exists."""

    def create_new(self, path: str, data: bytes) -> None:
        """Publish a file: whole or not at all, and only if the path is free. Parents are made.

        Exactly one of any number of racing creators returns; the others raise FileExistsError. This one call is what
        the commit protocol rests on.

        A lost answer (time-out, broken connection) is resolved by reading back, never by deleting. Where the storage
        keeps a creator's mark with the file (S3, GCS), the mark tells ours from others' for any content, the empty one
        included. Where it does not (Azure), equal content that is not empty counts as ours; of an *empty* file nobody
        can prove to be the creator, so it counts as another's: FileExistsError, and never two winners. A caller that
        names the file uniquely, such as a marker, may take that for success; one that picks an instant takes the next.
        If reading back is inconclusive the storage's error is raised and the outcome is unknown.

        Raises FileExistsError; UnsupportedTable when the storage cannot create exclusively.
        """

    def create_ahead(self, path: str, data: bytes) -> None:
        """As `create_new`, of a file that counts only for others that this process writes after it: a failure of power
        may lose it, but none that comes later by `create_new`, `write` or `open_output`."""
        self.create_new(path, data)

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file; readers see the old content or the new. Parents are made."""

    def open_output(self, path: str) -> AbstractContextManager[OutputFile]:
        """Stream a new file: `with storage.open_output(path) as file: file.write(...)`. Parents are made.

        The file appears, whole, when the block ends; a block that raises leaves nothing. The caller sees to it that the
        name is its own (write tokens do): an existing file is replaced.
        A process killed inside leaves at most a temporary file, and an unknown fsspec driver part of the file.
        """

    def delete(self, path: str) -> bool:
        """Remove a file; returns whether it existed. At least one of several racing deleters gets True."""

    def discard(self, path: str) -> None:
        """Remove a file, if it exists: `delete` for those who need not know whether it did."""
        self.delete(path)

    def delete_tree(self, folder: str, paths: Collection[str] | None = None) -> None:
        """Remove all files and folders below a folder, and the folder. Missing: nothing to do.

        Not atomic; a file that another writer adds meanwhile may stay. The base path ("") is refused.

        paths  of all files below the folder, from those who have just listed it and know that nobody adds to it
        """


def check_path(path: str) -> str:
    """The path itself. Raises InvalidInput when it leaves the base path or is not a plain relative path."""
    if path and (path.startswith("/") or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/"))):
        raise InvalidInput(
            f"{path!r} is not a path inside a table: expected a relative one without empty, '.' or '..' parts"
        )
    return path


def check_file(path: str) -> str:
    """As `check_path`, and refuses the base path, which is no file (and no folder to delete)."""
    if not path:
        raise InvalidInput("'' is the table's base path: expected a path below it")
    return check_path(path)


def check_range(path: str, start: int, end: int) -> None:
    """Raises ValueError unless 0 <= start <= end."""
    if not 0 <= start <= end:
        raise ValueError(f"{path}: no range from {start} to {end}")


def hadoop_checksum(path: str) -> str:
    """The path of the checksum that Hadoop's local file system keeps beside a file, and compares when it reads it."""
    folder, name = split(path)
    return join(folder, f".{name}.crc")


def rewrite(storage: Storage, path: str, data: bytes) -> None:
    """Replace a file that another program may have written: Hadoop's checksum of the old bytes goes first.

    A table on another storage than a local disk may hold such files, too: it was copied there, or is mounted somewhere.
    """
    storage.discard(hadoop_checksum(path))
    storage.write(path, data)


def temporary_beside(path: str) -> str:
    """A fresh temporary path in the folder of `path`.

    It repeats nothing of the name: readers match log files with a pattern that is not anchored at its end. A hash of
    the name in it tells `remove_with_temporaries` whose it is.
    """
    folder, name = split(path)
    return join(folder, f".{_hash(name)}-{uuid4().hex}.tmp")


def is_temporary(name: str) -> bool:
    """Whether a name is a temporary file of a storage. Nothing refers to it; an old one is a dead writer's."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_with_temporaries(storage: Storage, paths: Collection[str]) -> None:
    """Remove files, and the temporary ones that processes left which were killed while they wrote these files."""
    by_folder: dict[str, set[str]] = {}
    for path in paths:
        storage.discard(path)
        folder, name = split(path)
        by_folder.setdefault(folder, set()).add(f".{_hash(name)}-")
    for folder, hashes in by_folder.items():
        for entry in storage.list(folder):
            if is_temporary(entry.name) and entry.name[:18] in hashes:
                storage.discard(join(folder, entry.name))


def _hash(name: str) -> str:
    import hashlib  # here: it loads OpenSSL, which takes longer than to look at a table

    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()


def same_scheme(uri: str, other: str) -> bool:
    """Whether two URIs have the same scheme."""
    return uri.partition("://")[0].lower() == other.partition("://")[0].lower()


_PASSWORD = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/@:]*):[^/@]*@")


def redacted_path(uri: str) -> str:
    """A path or URI without the password that it may have, for logs and results."""
    return _PASSWORD.sub(r"\1:***@", uri)


#: Calls at once that wait rather than compute.
AT_ONCE = 32

A = TypeVar("A")
B = TypeVar("B")


def in_threads(call: Callable[[A], B], items: Iterable[A], threads: int = AT_ONCE, name: str = "hoodie") -> list[B]:
    """The call's results in the order of the items. Raises the first failure, once the calls that had begun have ended.

    threads  calls at once, at most
    name     of the threads
    """
    items = list(items)
    if len(items) < 2 or threads < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(min(threads, len(items)), thread_name_prefix=name) as pool:
        return list(pool.map(call, items))


def waiting_threads(storage: Storage) -> int:
    """Threads for calls that wait for the storage. A small file of a local disk is read before a thread has begun."""
    return AT_ONCE if storage.remote else 1


@contextmanager
def meanwhile(storage: Storage, call: Callable[[], A]) -> Iterator[Callable[[], A]]:
    """What gives the result of a call. On a remote storage the call is made while the block runs, and has ended after
    it; else when it is asked for."""
    if not storage.remote:
        yield call
        return
    with ThreadPoolExecutor(1, thread_name_prefix="hoodie-storage") as pool:
        yield pool.submit(call).result
