"""Local disk, and whatever is mounted as one: atomic by hard link and rename, durable by fsync."""

import builtins
import errno
import os
import re
import threading
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from hoodie.errors import InvalidInput
from hoodie.storage.protocol import (
    Entry,
    InputFile,
    OutputFile,
    Storage,
    check_file,
    check_path,
    check_range,
    join,
    temporary_beside,
)

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_GONE = (FileNotFoundError, NotADirectoryError)  # the second: a file where the path has a folder
#: Bytes of a read that needs no buffer.
_SMALL = 1024 * 1024
_NONE = re.compile(r"(?!)")  # matches nothing


def path_from_root(path: str | os.PathLike[str]) -> str:
    """A local path from the root. Raises InvalidInput on one below a working folder that was removed"""
    try:
        return os.path.abspath(path)
    except FileNotFoundError as error:
        raise InvalidInput(
            f"{os.fspath(path)!r} is below the working folder of this process, which was removed: give a path that "
            "begins with /"
        ) from error


class LocalStorage(Storage):
    """The files below one folder of a local file system.

    A file is on disk, its name included, when the call that wrote it returns; one that is created ahead, when the next
    one is.
    """

    root = ""  # set below; a property of the protocol
    remote = False

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = path_from_root(root)

    def __repr__(self) -> str:
        return f"LocalStorage({self.root!r})"

    def list(self, folder: str = "") -> list[Entry]:
        return self.list_some(folder, frozenset(), _NONE)[0]

    def list_some(
        self, folder: str, names: Set[str], pattern: re.Pattern[str]
    ) -> tuple[builtins.list[Entry], builtins.list[str]]:
        full = self._at(check_path(folder))
        try:
            files = set(os.listdir(full))
        except FileNotFoundError:
            return [], []
        sized = [name for name in files - names if not pattern.fullmatch(name)]
        entries = [entry for name in sorted(sized) if (entry := _entry(full, name)) is not None]
        return entries, list(files.difference(sized))

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        tree: dict[str, list[Entry]] = {}
        linked: set[str] = set()  # folders entered through a symbolic link, so that none is entered twice
        todo = [check_path(folder)]
        while todo:
            here = todo.pop()
            entries = self.list(here)
            if files := [entry for entry in entries if not entry.is_dir]:
                tree[here] = files
            folders = (join(here, entry.name) for entry in entries if entry.is_dir and entry.name not in skip)
            todo.extend([path for path in folders if self._enter(path, linked)])
            skip = ()
        return dict(sorted(tree.items()))

    def _enter(self, path: str, linked: set[str]) -> bool:
        """Whether a folder is listed. A link into the base path, or to a folder around it, would show files twice."""
        full = self._at(path)
        if not os.path.islink(full):
            return True
        target, base = os.path.realpath(full), os.path.realpath(self.root)
        if target in linked or Path(target).is_relative_to(base) or Path(base).is_relative_to(target):
            return False
        linked.add(target)
        return True

    def read(self, path: str) -> bytes:
        return Path(self._at(check_file(path))).read_bytes()

    def read_range(self, path: str, start: int, end: int) -> bytes:
        check_range(path, start, end)
        # A buffer costs more than a small read does, and one system call may not give all of a very large one.
        with open(self._at(check_file(path)), "rb", buffering=0 if end - start <= _SMALL else -1) as file:
            file.seek(start)
            return file.read(end - start)

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        import pyarrow as pa  # here, so that looking at a timeline does not load it

        # As bytes: Arrow itself takes no path that is no UTF-8.
        file: InputFile = pa.OSFile(os.fsencode(self._at(check_file(path))), "rb")
        return file

    def size(self, path: str) -> int:
        return os.stat(self._at(check_file(path))).st_size

    def exists(self, path: str) -> bool:
        try:
            stat = os.stat(self._at(check_file(path)))
        except _GONE:
            return False
        return S_ISREG(stat.st_mode)

    def create_new(self, path: str, data: bytes) -> None:
        self._create(path, data)
        _sync_folder(os.path.dirname(self._at(path)))

    def create_ahead(self, path: str, data: bytes) -> None:
        self._create(path, data, ahead=True)
        _sync_name(os.path.dirname(self._at(path)))

    def _create(self, path: str, data: bytes, *, ahead: bool = False) -> None:
        full = self._at(check_file(path))
        folder = os.path.dirname(full)
        _make_folder(folder)
        _drop_checksum(full)
        if not data:  # the exclusive open is the whole publication
            if not ahead:
                _sync_ahead(but=folder)
            os.close(os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            return
        temporary = self._at(temporary_beside(path))
        try:
            _write_durably(temporary, data)
            if not ahead:
                _sync_ahead(but=folder)
            _link(temporary, full)
        except OSError as error:
            _name_file(error, full)
            raise
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def write(self, path: str, data: bytes) -> None:
        with self.open_output(path) as file:
            file.write(data)

    @contextmanager
    def open_output(self, path: str) -> Iterator[OutputFile]:
        full, temporary = self._at(check_file(path)), self._at(temporary_beside(path))
        _make_folder(os.path.dirname(full))
        import pyarrow as pa

        file = pa.OSFile(os.fsencode(temporary), "wb")
        try:
            yield file
            file.close()
            _sync(temporary)
            _sync_ahead(but=os.path.dirname(full))
            _drop_checksum(full)
            os.replace(temporary, full)
        except BaseException as error:
            _name_file(error, full)
            with suppress(OSError):
                file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        _sync_folder(os.path.dirname(full))

    def delete(self, path: str) -> bool:
        full = self._at(check_file(path))
        _drop_checksum(full)
        try:
            os.unlink(full)
        except _GONE:
            return False
        return True

    def delete_tree(self, folder: str, paths: Collection[str] | None = None) -> None:
        _remove_folder(self._at(check_file(folder)))

    def set_modified(self, path: str, millis: int) -> None:
        """Give a file another time of its last change, in milliseconds since 1970, UTC."""
        os.utime(self._at(check_file(path)), ns=(millis * 1_000_000, millis * 1_000_000))

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path) if path else self.root


def _drop_checksum(full: str) -> None:
    """Remove the checksum that Hadoop's local file system left beside an earlier file of the name: it would refuse the
    new one."""
    folder, name = os.path.split(full)
    with suppress(*_GONE):
        os.unlink(os.path.join(folder, f".{name}.crc"))


def _entry(parent: str, name: str) -> Entry | None:
    try:
        stat = os.stat(f"{parent}/{name}")
    except FileNotFoundError:  # deleted since it was listed, or a link to nothing
        return None
    if S_ISREG(stat.st_mode):
        return Entry(name, stat.st_size, stat.st_mtime_ns // 1_000_000, False)
    # A pipe, a socket or a device is no file: in place of one it would let its reader wait for ever.
    return Entry(name, 0, 0, True) if S_ISDIR(stat.st_mode) else None


def _remove_folder(full: str) -> None:
    # Another deleter may come first, and another writer meanwhile: missing files are skipped, new ones stay.
    # No fsync: journals keep the order, so the synced file that reports the deletion carries it along.
    if os.path.islink(full):
        os.unlink(full)
        return
    with suppress(FileNotFoundError), os.scandir(full) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove_folder(entry.path)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(entry.path)
    try:
        os.rmdir(full)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def _make_folder(folder: str) -> None:
    """Make a folder and its parents, whose names are on disk before the next file has its own."""
    if os.path.isdir(folder):
        return
    parent = os.path.dirname(folder)
    _make_folder(parent)
    _sync_name(parent)  # before, so that no other thread finds a folder that nobody is to sync
    with suppress(FileExistsError):  # another writer came first; if a file lies there the next call says so
        os.mkdir(folder)
    _sync_name(parent)


#: Folders that may have names that are not on disk, of this process. Values differ for each name that came ahead.
_unsynced: dict[str, object] = {}
_turn = threading.Lock()


def _sync_name(folder: str) -> None:
    """A folder has a name that is to be on disk before the next file has its own."""
    with _turn:
        _unsynced[folder] = object()


def _sync_ahead(*, but: str) -> None:
    """Put the names on disk that came ahead. but: a folder that is synced with the name that is about to be given"""
    with _turn:
        folders = [folder for folder in _unsynced if folder != but]
    for folder in folders:
        try:
            _sync_folder(folder)
        except _GONE:  # deleted since, such as the folder of a write's markers
            with _turn:
                _unsynced.pop(folder, None)


def _write_durably(full: str, data: bytes) -> None:
    with open(full, "xb", buffering=0) as file:
        rest = memoryview(data)
        while rest:  # one system call may not take all of very many
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def _name_file(error: BaseException, full: str) -> None:
    """Have a fault of an open file, such as a full disk, name the file."""
    if isinstance(error, OSError) and error.errno and error.filename is None:
        error.filename = full


def _link(temporary: str, full: str) -> None:
    """Give a written file its name, unless the name is taken."""
    try:
        os.link(temporary, full)
    except FileExistsError:
        # Over NFS the answer to a link can get lost and the repeated call is refused: then our file has two names.
        if os.stat(temporary).st_nlink != 2:
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        problem = "this file system has no hard links, and without them a commit cannot appear whole; move the table"
        raise OSError(error.errno, problem, full) from error


def _sync(full: str) -> None:
    handle = os.open(full, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(full: str) -> None:
    with _turn:
        last = _unsynced.get(full)
    if os.name != "nt":  # Windows opens no folders
        _sync(full)
    with _turn:
        if last is not None and _unsynced.get(full) is last:
            del _unsynced[full]
