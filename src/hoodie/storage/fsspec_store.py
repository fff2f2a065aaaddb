"""Any fsspec file system as a Storage: S3, GCS, Azure, memory."""

import builtins
import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from fsspec.core import url_to_fs

from hoodie.errors import InvalidInput, InvalidOption
from hoodie.storage.at_uri import UriStorage
from hoodie.storage.drivers import Driver, LocalFiles, MemoryDriver
from hoodie.storage.gcs import GCS
from hoodie.storage.object_stores import S3, Azure
from hoodie.storage.protocol import (
    Entry,
    InputFile,
    OutputFile,
    check_file,
    check_path,
    check_range,
    in_threads,
    join,
    redacted_path,
    split,
)
from hoodie.storage.retry import as_os_error, retry

_REQUESTS_AT_ONCE = 32
_NO_LISTINGS_CACHE = {"use_listings_cache": False}
#: The extra of this package that brings the driver of a scheme.
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure"}
_CONNECTIONS = 64  # of an S3 client: its library has 10, and more requests than that at once would wait


class FsspecStorage(UriStorage):
    """The files below a URI.

    root     such as "s3://bucket/folder"
    options  of the fsspec driver, such as key, secret and endpoint_url of s3fs
    Raises   InvalidOption for a scheme without a driver, or whose driver is not installed; InvalidInput for a URI of an
             object store that names no bucket
    """

    def __init__(self, root: str, options: Mapping[str, Any] | None = None) -> None:
        if "::" in root:
            raise InvalidOption(f"{root}: chained URLs cache or pack files, and a table needs to see every change")
        scheme, _, path = root.partition("://")
        if scheme.lower() in _EXTRAS and not path.partition("/")[0]:
            raise InvalidInput(f"{root}: no bucket is named; expected {scheme}://bucket/path")
        super().__init__(root.rstrip("/"), options)
        try:
            driver_options = {**_with_connections(scheme, self._options), **_NO_LISTINGS_CACHE}
            self.fs, base = url_to_fs(self.root, **driver_options)
        except (ValueError, TypeError, ImportError) as error:
            lacks_driver = isinstance(error, ImportError) or "Protocol not known" in str(error)  # of abfss
            if lacks_driver and (extra := _EXTRAS.get(scheme.lower())):
                missing = f"the driver of {scheme}:// is not installed: pip install 'hoodie[{extra}]'"
                raise InvalidOption(f"{redacted_path(root)}: {missing}") from error
            if (message := _without_values(str(error), self._options)) != str(error):
                raise InvalidOption(f"{root}: {message}") from None  # the cause would show the values
            raise InvalidOption(f"{root}: {message}") from error
        self._base = base.rstrip("/")
        self._driver = driver_for(self.fs)
        self.remote = self._driver.remote

    def list(self, folder: str = "") -> list[Entry]:
        full = self._at(check_path(folder))
        return sorted(
            _entry(info, info["name"].rstrip("/").rpartition("/")[2])
            for info in self._ls(full)
            # Object stores list a folder's own marker object among its files.
            if self._relative_path(info["name"]) != self._relative_path(full)
        )

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        check_path(folder)
        tree: dict[str, list[Entry]] = {}
        # Flat listings, not a request a folder: of everything, or of what lies beside that which is skipped.
        for infos in [self._find(folder)] if not skip else self._find_beside(folder, skip, tree):
            for path, info in infos.items():
                parent, name = split(path)
                tree.setdefault(parent, []).append(_entry(info, name))
        return {parent: sorted(tree[parent]) for parent in sorted(tree)}

    def _find_beside(
        self, folder: str, skip: Collection[str], tree: dict[str, builtins.list[Entry]]
    ) -> Iterable[dict[str, dict[str, Any]]]:
        """The files in the folders of a folder, those left out that are skipped, which so cost nothing. Its own files
        are put into `tree`."""
        top = self.list(folder)
        if files := [entry for entry in top if not entry.is_dir]:
            tree[folder] = files
        branches = {entry.name for entry in top if entry.is_dir and entry.name not in skip}
        if self._driver.folders or len(branches) <= _REQUESTS_AT_ONCE:
            return in_threads(self._find, [join(folder, name) for name in sorted(branches)])
        # As many listings as are made at once, each of the branches that begin alike, not one a branch.
        others = [entry.name if not entry.is_dir else f"{entry.name}/" for entry in top if entry.name not in branches]
        beginnings = common_beginnings(sorted(branches), others, _REQUESTS_AT_ONCE)
        return in_threads(lambda beginning: self._find(folder, beginning), beginnings)

    def read(self, path: str) -> bytes:
        full = self._file(path)
        return retry(lambda: self._driver.read(full))

    def read_range(self, path: str, start: int, end: int) -> bytes:
        check_range(path, start, end)
        full = self._file(path)
        if start == end:
            self.size(path)  # raises when the file is absent
            return b""
        try:
            return retry(lambda: self._driver.read_range(full, start, end))
        except FileNotFoundError:
            raise
        except Exception:
            # Stores refuse a range beyond the end of the file, each with its own error.
            if start < self.size(path):
                raise
            return b""

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        file: InputFile = self._driver.open_input(self._file(path), size or None)
        return file

    def size(self, path: str) -> int:
        size = self._size(path)
        if size is None:
            raise FileNotFoundError(join(self.root, path))
        return size

    def exists(self, path: str) -> bool:
        return self._size(path) is not None

    def create_new(self, path: str, data: bytes) -> None:
        full = self._file(path)
        with as_os_error():
            self._driver.create(full, data)

    def write(self, path: str, data: bytes) -> None:
        full = self._file(path)
        retry(lambda: self._driver.overwrite(full, data))

    def open_output(self, path: str) -> AbstractContextManager[OutputFile]:
        return self._driver.output(self._file(path))

    def delete(self, path: str) -> bool:
        if not self.exists(path):  # most stores answer the same whether the file existed or not
            return False
        tries = 0

        def remove() -> None:
            nonlocal tries
            tries += 1
            self.fs.rm_file(self._at(path))

        try:
            retry(remove)
        except FileNotFoundError:
            return tries > 1  # the response to our own removal was lost
        return True

    def discard(self, path: str) -> None:
        full = self._file(path)
        with suppress(FileNotFoundError):
            retry(lambda: self.fs.rm_file(full))

    def delete_tree(self, folder: str, paths: Collection[str] | None = None) -> None:
        files = self._find(check_file(folder)) if paths is None else paths
        # File by file: bulk deletion takes names with '*', '?' or '[' for patterns, and that of s3fs hides errors.
        in_threads(self.discard, files)
        self._driver.remove_folders(self._file(folder))

    def _at(self, path: str) -> str:
        """The driver's path. Raises InvalidInput for a name that the driver would cut or read as something else."""
        full = f"{self._base}/{path}" if path else self._base
        if path and (self.fs._strip_protocol(full) != full or not self._driver.takes(path)):
            raise InvalidInput(f"{path!r} has a name that the driver of {self.root} cannot address")
        return full

    def _relative_path(self, full: str) -> str:
        return full.strip("/")

    def _ls(self, full: str) -> builtins.list[dict[str, Any]]:
        self.fs.invalidate_cache(full)
        try:
            infos: list[dict[str, Any]] = retry(lambda: self.fs.ls(full, detail=True))
        except FileNotFoundError:
            return []
        if len(infos) == 1 and infos[0]["type"] == "file" and infos[0]["name"] == full:
            raise NotADirectoryError(full)
        return infos

    def _find(self, folder: str, beginning: str = "") -> dict[str, dict[str, Any]]:
        """Files at any depth by their path relative to the base. beginning: as for the driver's"""
        full = self._at(folder)
        try:
            infos = retry(lambda: self._driver.find(full, beginning))
        except FileNotFoundError:
            return {}
        skipped = len(self._relative_path(self._base)) + 1
        files = ((name, info) for name, info in infos.items() if info["type"] == "file" and not name.endswith("/"))
        return {
            self._relative_path(name)[skipped:] if self._base else self._relative_path(name): info
            for name, info in files
        }

    def _size(self, path: str) -> int | None:
        full = self._file(path)
        return retry(lambda: self._driver.size(full))


def driver_for(fs: Any) -> Driver:
    """The way to publish through a file system, by the package that its class, or a base of it, comes from."""
    for base in type(fs).__mro__:
        match base.__module__.split("."):
            case ["s3fs", *_]:
                return S3(fs)
            case ["gcsfs", *_]:
                return GCS(fs)
            case ["adlfs", *_]:
                return Azure(fs)
            case ["fsspec", "implementations", "memory"]:
                return MemoryDriver(fs)
            case ["fsspec", "implementations", "local"]:
                return LocalFiles(fs)
    return Driver(fs)


def common_beginnings(names: Sequence[str], others: Sequence[str], most: int) -> builtins.list[str]:
    """Beginnings of the paths of folders, for about `most` flat listings: each folder's path has exactly one of them.

    names   of the folders
    others  paths beside them that no beginning may be of: "/" ends those of folders
    """
    groups, beginnings = [("", [f"{name}/" for name in names])], []
    while groups:
        groups.sort(key=lambda group: (_any_begins(others, group[0]), len(group[1])))
        beginning, paths = groups.pop()
        if len(paths) == 1:
            beginnings.append(paths[0])
        elif len(beginnings) + len(groups) + 1 < most or _any_begins(others, beginning):
            parts: dict[str, builtins.list[str]] = {}
            for path in paths:
                parts.setdefault(path[: len(beginning) + 1], []).append(path)
            groups.extend(parts.items())
        else:
            beginnings.append(beginning)
    return beginnings


def _any_begins(paths: Sequence[str], beginning: str) -> bool:
    return any(path.startswith(beginning) for path in paths)


def _with_connections(scheme: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    if scheme not in ("s3", "s3a"):
        return options
    return {**options, "config_kwargs": {"max_pool_connections": _CONNECTIONS, **(options.get("config_kwargs") or {})}}


def _entry(info: Mapping[str, Any], name: str) -> Entry:
    if info["type"] == "directory":
        return Entry(name, 0, 0, is_dir=True)
    return Entry(name, int(info["size"]), _mtime(info))


def _mtime(info: Mapping[str, Any]) -> int:
    """Milliseconds since 1970, from the field and form that the driver uses."""
    for key in ("LastModified", "last_modified", "mtime", "updated", "modification_time", "created"):
        match info.get(key):
            case dt.datetime() as moment:
                return round((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp() * 1000)
            case int() | float() as number:
                return int(number) if key == "modification_time" else int(number * 1000)
    return 0


def _without_values(text: str, options: Mapping[str, Any]) -> str:
    """The text of an error without the values of options, which may be secrets."""
    for value in options.values():
        for part in value.values() if isinstance(value, Mapping) else [value]:
            if isinstance(part, str) and len(part) > 3:
                text = text.replace(part, "***")
    return text
