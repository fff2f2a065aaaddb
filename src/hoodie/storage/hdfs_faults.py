"""What hdfs-native raises, as OSError with the number of what went wrong.

It has RuntimeError for all that Python has no class for, with the Java class of the server's exception in the text, and
OSError without a number.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from hoodie.errors import CredentialsRejected

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
    elif found := _NUMBER.search(text):
        number = int(found[1])
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
