"""HDFS as a Storage, through hdfs-native: the protocol of the NameNode and DataNodes, without a JVM.

Not through fsspec: its driver of hdfs-native cuts names at '?', '#' and ';', its files cannot seek, and a read beyond
the end of a file is a panic that no `except Exception` sees.

hdfs-native raises RuntimeError for all that Python has no class for, with the Java class of the server's exception in
the text, and OSError without a number.
"""

import builtins
import errno
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from hoodie.errors import CredentialsRejected, InvalidInput, InvalidOption, clause
from hoodie.storage.at_uri import UriStorage
from hoodie.storage.buffered_output import BufferedOutput
from hoodie.storage.protocol import (
    Entry,
    InputFile,
    OutputFile,
    check_path,
    check_range,
    in_threads,
    join,
    temporary_beside,
)
from hoodie.storage.retry import retry

#: By the end of a Java class's name.
_OF_JAVA = {
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "DSQuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
    "FileAlreadyExistsException": errno.EEXIST,
    "AlreadyBeingCreatedException": errno.EEXIST,
    "FileNotFoundException": errno.ENOENT,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "PathComponentTooLongException": errno.ENAMETOOLONG,
    "SafeModeException": errno.EAGAIN,
    "RetriableException": errno.EAGAIN,
    "StandbyException": errno.EAGAIN,
}
_JAVA = re.compile(r'"(?:[\w.]+[.$])(\w+)"')
_NUMBER = re.compile(r"\(os error (\d+)\)")
#: What the client says of a connection that broke while a call was on its way, which it does not try again.
_BROKEN = re.compile(r"RPC listener disconnected|unexpected end of file|early eof|connection closed", re.IGNORECASE)
#: Errors of the client that mean that it, or the server, does not take who asks.
_STRANGERS = ("SASLError", "GSSAPIError", "NoSASLMechanism", "SaslException", "InvalidToken")


@contextmanager
def hdfs_faults() -> Iterator[None]:
    """Around calls of the client. Raises OSError, or a subclass as FileNotFoundError, for what it raises."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _fault(error) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # a fault within the client, which is no Exception
            raise
        raise OSError(errno.EIO, f"hdfs-native failed: {error}") from error


def is_broken(error: BaseException) -> bool:
    """Whether a connection broke in the middle of a call, or the NameNode has just started: worth another try.

    One that nobody accepts is not: the client tried it for minutes, as Hadoop's settings say.
    """
    return isinstance(error, ConnectionResetError | BrokenPipeError | BlockingIOError)


def _fault(error: Exception) -> OSError:
    text = str(error).replace("\\n", "\n").partition("\n")[0]  # a stack of Java's follows
    if any(word in text for word in _STRANGERS):
        return CredentialsRejected(errno.EACCES, text)
    if isinstance(error, OSError) and type(error) is not OSError:
        number = next(number for kind, number in _OF_PYTHON.items() if isinstance(error, kind))
    elif match := _NUMBER.search(text):
        number = int(match[1])
    elif _BROKEN.search(text):
        number = errno.ECONNRESET
    else:
        java = _JAVA.search(text)
        number = _OF_JAVA.get(java[1], errno.EIO) if java else errno.EIO
    return OSError(number, text)  # Python takes the subclass of the number


_OF_PYTHON: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    IsADirectoryError: errno.EISDIR,
    NotADirectoryError: errno.ENOTDIR,
    PermissionError: errno.EACCES,
    TimeoutError: errno.ETIMEDOUT,
    ConnectionError: errno.ECONNRESET,
    OSError: errno.EIO,
}


T = TypeVar("T")

_URI = re.compile(r"(hdfs|viewfs)://([^/]*)(/.*)?", re.IGNORECASE | re.DOTALL)
_LISTINGS_AT_ONCE = 8
_BUFFER = 1 << 20
_KEPT = 8 << 20
#: Arguments of the client; all other options are settings of Hadoop.
_OF_THE_CLIENT = frozenset({"config_dir", "kerberos_principal", "kerberos_keytab", "kerberos_cache"})


class HdfsStorage(UriStorage):
    """The files below a URI of HDFS.

    root     "hdfs://host:port/folder"; "hdfs://service/folder" and "hdfs:///folder" with the name service and the
             default file system of the settings; viewfs. Nothing is percent-decoded, as in Hadoop's own paths
    options  settings of Hadoop, which go before those of the files in HADOOP_CONF_DIR, such as
             {"dfs.client.failover.max.attempts": "3"}; `config_dir`, another folder of such files; and
             `kerberos_principal`, `kerberos_keytab`, `kerberos_cache`

    The client looks for a NameNode that answers, as Hadoop's settings say; a call whose connection broke is tried again
    here.
    Raises InvalidOption when hdfs-native is not installed, or takes the options not
    """

    def __init__(self, root: str, options: Mapping[str, Any] | None = None) -> None:
        parts = _URI.fullmatch(root.rstrip("/"))
        if parts is None:
            raise InvalidInput(f"{root}: expected hdfs://host:port/folder, or hdfs://name-service/folder")
        super().__init__(parts[0], options)
        self._base = parts[3] or ""
        _check_names(self._base, self.root)
        self._client = _client(f"{parts[1].lower()}://{parts[2]}", self._options)

    def list(self, folder: str = "") -> list[Entry]:
        full = self._at(check_path(folder))
        try:
            statuses = _call_client(lambda: list(self._client.list_status(full or "/")))
        except FileNotFoundError:
            return []
        if len(statuses) == 1 and not statuses[0].isdir and statuses[0].path == full:
            raise NotADirectoryError(full)
        return sorted(_entry(status) for status in statuses)

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        tree: dict[str, list[Entry]] = {}
        level = [folder]
        while level:  # a request for each folder, as HDFS has no other way
            below = []
            for path, entries in zip(level, in_threads(self.list, level, _LISTINGS_AT_ONCE), strict=True):
                below += [join(path, entry.name) for entry in entries if entry.is_dir and entry.name not in skip]
                if files := [entry for entry in entries if not entry.is_dir]:
                    tree[path] = files
            level, skip = below, ()
        return dict(sorted(tree.items()))

    def read(self, path: str) -> bytes:
        full = self._file(path)
        data: bytes = _call_client(lambda: self._client.read(full).read())
        return data

    def read_range(self, path: str, start: int, end: int) -> bytes:
        check_range(path, start, end)
        full = self._file(path)
        return _call_client(lambda: _range(self._client.read(full), start, end))

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        full = self._file(path)
        return io.BufferedReader(_Reader(_call_client(lambda: self._client.read(full))), _BUFFER)

    def size(self, path: str) -> int:
        status = self._status(self._file(path))
        if status is None or status.isdir:
            raise FileNotFoundError(join(self.root, path))
        return int(status.length)

    def exists(self, path: str) -> bool:
        status = self._status(self._file(path))
        return status is not None and not status.isdir

    def create_new(self, path: str, data: bytes) -> None:
        full = self._file(path)
        if self._status(full) is not None:  # saves the write; the rename decides
            raise FileExistsError(full)
        self._publish(self._put(full, data), full, overwrite=False)

    def write(self, path: str, data: bytes) -> None:
        full = self._file(path)
        self._publish(self._put(full, data), full, overwrite=True)

    @contextmanager
    def open_output(self, path: str) -> Iterator[OutputFile]:
        full = self._file(path)
        temporary = temporary_beside(full)
        file = BufferedOutput(_KEPT, lambda: _stream(_call_client(lambda: self._client.create(temporary))))
        try:
            yield file
            if file.stream is None:
                self.write(path, bytes(file.content))
            else:
                file.stream.close()
                self._publish(temporary, full, overwrite=True)
        except BaseException:
            if file.stream is not None:
                with suppress(Exception):  # what was raised first is what went wrong
                    file.stream.close()
                self._discard(temporary)
            raise

    def delete(self, path: str) -> bool:
        full = self._file(path)
        status = self._status(full)
        if status is None or status.isdir:
            return False
        _call_client(lambda: self._client.delete(full))
        return True

    def discard(self, path: str) -> None:
        full = self._file(path)
        _call_client(lambda: self._client.delete(full))

    def delete_tree(self, folder: str, paths: Collection[str] | None = None) -> None:
        full = self._file(folder)
        _call_client(lambda: self._client.delete(full, True))

    def _at(self, path: str) -> str:
        """The path on the NameNode. Raises InvalidInput for a name that HDFS does not take."""
        _check_names(path, self.root)
        return f"{self._base}/{path}" if path else self._base

    def _status(self, full: str) -> Any:
        """What the NameNode knows of a file or folder; None without one."""
        try:
            return _call_client(lambda: self._client.get_file_info(full))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _put(self, full: str, data: bytes) -> str:
        """The path of a new temporary file beside a path, with its content."""

        def put() -> str:
            temporary = temporary_beside(full)
            try:
                with self._client.create(temporary) as file:
                    if data:
                        file.write(data)
            except BaseException:
                self._discard(temporary)
                raise
            return temporary

        return _call_client(put)

    def _publish(self, temporary: str, full: str, *, overwrite: bool) -> None:
        """Rename: one operation of the NameNode, which refuses a taken name. The temporary file is gone afterwards."""

        def rename() -> None:
            try:
                with hdfs_faults():
                    self._client.rename(temporary, full, overwrite)
            except OSError:
                # The answer to our rename may have got lost and its repetition refused: nobody else renames our file.
                if self._status(temporary) is not None or self._status(full) is None:
                    raise

        try:
            _call_client(rename)
        except BaseException:
            self._discard(temporary)
            raise

    def _discard(self, temporary: str) -> None:
        with suppress(Exception):  # an old temporary file is removed with what a dead writer left
            self._client.delete(temporary)


#: A NameNode that was started takes no writes until its DataNodes have reported: some seconds, and the half minute that
#: Hadoop adds (dfs.namenode.safemode.extension).
_SAFE_MODE = 60.0


def _call_client(call: Callable[[], T]) -> T:
    """The result of an idempotent call of the client."""

    def ask() -> T:
        with hdfs_faults():
            return call()

    return retry(ask, is_broken, _SAFE_MODE)


def _client(url: str, options: Mapping[str, Any]) -> Any:
    try:
        from hdfs_native import Client
    except ImportError as error:
        raise InvalidOption(f"{url}: HDFS needs hdfs-native: pip install 'hoodie[hdfs]'") from error
    if wrong := sorted(str(key) for key, value in options.items() if not isinstance(value, str | int | float)):
        raise InvalidOption(f"{url}: options of HDFS are settings of Hadoop, as text: {', '.join(wrong)}")
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}
    client_options = {key: texts.pop(key) for key in sorted(_OF_THE_CLIENT & texts.keys())}
    try:
        return Client(url, texts, **client_options)
    except RuntimeError as error:  # its message is of addresses and files, not of settings' values
        advice = "name the NameNode (hdfs://host:port/folder), or set HADOOP_CONF_DIR to the folder of core-site.xml"
        raise InvalidOption(f"{url}: {clause(error)}; {advice}") from error


def _check_names(path: str, root: str) -> None:
    if ":" in path:
        raise InvalidInput(
            f"{path!r}: HDFS takes no ':' in a name ({root}); for partition values that have one, set "
            "hoodie.datasource.write.partitionpath.urlencode"
        )


def _entry(status: Any) -> Entry:
    name = status.path.rpartition("/")[2]
    if status.isdir:
        return Entry(name, 0, 0, is_dir=True)
    return Entry(name, int(status.length), int(status.modification_time))


def _range(reader: Any, start: int, end: int) -> bytes:
    """Bytes of a file, cut at its end: the client panics beyond it."""
    count = min(end, len(reader)) - start
    data: bytes = reader.read_range(start, count) if count > 0 else b""
    return data


class _Reader(io.RawIOBase):
    """A file of the client that seeks."""

    def __init__(self, reader: Any) -> None:
        self._reader, self._position = reader, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._reader)}[whence]
        if begin + offset < 0:
            raise ValueError(f"no position {begin + offset} in a file")
        self._position = begin + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        data = _call_client(lambda: _range(self._reader, self._position, self._position + len(buffer)))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)


def _stream(writer: Any) -> io.BufferedWriter:
    return io.BufferedWriter(_Writer(writer), _BUFFER)


class _Writer(io.RawIOBase):
    """A file of the client that raises OSError."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        with hdfs_faults():
            self._writer.write(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with hdfs_faults():
                self._writer.close()
