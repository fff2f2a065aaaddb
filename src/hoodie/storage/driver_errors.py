"""What the errors of drivers mean, the same for all: each has its own tree of them."""

import errno
import re
from collections.abc import Iterator
from typing import Any

_ERRNOS = frozenset(
    {errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE}
    | {getattr(errno, "EREMOTEIO", errno.EAGAIN)}  # what s3fs makes of a 500
)
_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
#: Packages whose errors name what happened on the wire, by words that their classes have in common.
_DRIVERS = frozenset(
    {"aiobotocore", "aiohttp", "azure", "botocore", "fsspec", "gcsfs", "hdfs_native", "requests", "urllib3"}
)
#: Google's has others' packages beside it: only these of "google".
_GOOGLE = ("google.auth", "google.api_core")
_WORDS = (
    *("Timeout", "Connection", "Disconnected", "Incomplete", "Payload", "HTTPClientError", "ResponseParser"),
    *("ServiceRequest", "ServiceResponse", "ServiceUnavailable"),  # azure's and google's, of the network
)
#: Packages that only raise errors of others and of Python.
_RAISING = frozenset({*_DRIVERS, "adlfs", "s3fs"})
_LASTING = ("Credentials", "SSLError", "ProxyConnection", "UnknownEndpoint")
#: What stores answer to credentials that they do not take, and how classes of such errors are named.
_REJECTED = frozenset(
    {
        "AuthenticationFailed",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"})
_UNKNOWN = ("Credential", "ClientAuthentication", "RefreshError", "TokenRetrieval", "SSOToken", "UnauthorizedSSO")


def is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed after this error."""
    # s3fs makes a TimeoutError of an expired token: to ask again with it is of no use.
    return not rejects_credentials(error) and any(_transient(cause) for cause in chain(error))


def is_unreachable(error: BaseException) -> bool:
    """Whether a driver found no server, or got no connection to it: botocore, azure's, aiohttp of gcsfs."""
    return bool(
        {"EndpointConnectionError", "ConnectTimeoutError", "ServiceRequestError", "ClientConnectorError"}
        & {kind.__name__ for kind in type(error).__mro__}
    )


def rejects_credentials(error: BaseException) -> bool:
    """Whether a call failed because the store rejects the credentials, or none are given."""
    return any(_rejects(cause) for cause in chain(error))


def no_bucket(error: BaseException) -> bool:
    """Whether a call failed because there is no such bucket or container, where the store says so."""
    return any(_code(cause) in _NO_BUCKET for cause in chain(error))


def missing_bucket(error: BaseException) -> str:
    """The name of the bucket that is not there, where the store of S3's kind says it; ""."""
    responses = [getattr(cause, "response", None) for cause in chain(error)]
    names = [str(r.get("Error", {}).get("BucketName", "")) for r in responses if isinstance(r, dict)]
    return next(filter(None, names), "")


def _rejects(error: BaseException) -> bool:
    if not (from_driver(error) or isinstance(error, OSError)):
        return False
    if status_of(error) == 401 or _code(error) in _REJECTED:
        return True
    names = [kind.__name__ for kind in type(error).__mro__ if _of_driver(kind)]
    return any(word in name for name in names for word in _UNKNOWN)


def from_driver(error: BaseException) -> bool:
    """Whether an error is of a class of a driver, or of the network library that it uses."""
    return any(_of_driver(kind) for kind in type(error).__mro__)


def raised_by_driver(error: BaseException) -> bool:
    """Whether a driver has raised a plain error of Python: "Bad Request" as a ValueError, what failed as a
    RuntimeError."""
    if not isinstance(error, (ValueError, RuntimeError)):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    module = "" if last is None else str(last.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _RAISING or module.startswith(_GOOGLE)


def refuses_options(error: BaseException) -> bool:
    """Whether s3fs could not make its client, as that does not know an option: it looks at them with the first request
    only."""
    if not isinstance(error, TypeError):
        return False
    part = error.__traceback__
    while part is not None:
        code, module = part.tb_frame.f_code, str(part.tb_frame.f_globals.get("__name__", ""))
        if code.co_name == "set_session" and module.startswith("s3fs."):
            return True
        part = part.tb_next
    return False


def _of_driver(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _DRIVERS or kind.__module__.startswith(_GOOGLE)


def _transient(error: BaseException) -> bool:
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if isinstance(error, FileNotFoundError | FileExistsError | PermissionError):
        return False
    status = status_of(error)
    if status is not None:
        return status in _STATUS
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return True
    names = [kind.__name__ for kind in type(error).__mro__ if _of_driver(kind)]
    if any(word in name for name in names for word in _LASTING):
        return False
    return any(word in name for name in names for word in _WORDS)


def _code(error: BaseException) -> str:
    """The word of the store for what went wrong, such as "ExpiredToken"; "" without one."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        return str(response.get("Error", {}).get("Code", ""))
    return str(getattr(error, "error_code", "") or "")  # azure


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries; None without one."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return status if isinstance(status, int) else None
    for name in ("status_code", "status", "code"):  # azure, aiohttp, gcsfs
        status = getattr(error, name, None)
        if isinstance(status, int) and 100 <= status < 600:
            return status
    return None


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from: drivers wrap what their network library raised."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__


_CODES = frozenset(
    {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect", "TemporaryRedirect"}
)
#: The answers to a HEAD have no code but their status; 400 may be anything else.
_STATUS_ALONE = frozenset({"301", "307"})
_HEADER = "x-amz-bucket-region"
_EXPECTED = re.compile(r"expecting '([a-z0-9-]+)'")


# --- an S3 bucket that is asked for in another region than its own ---


def wrong_region(error: BaseException) -> str | None:
    """The region of the bucket, where a call failed because it went to another; "" where the store does not say which;
    None for all other errors."""
    for cause in chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict) and (region := _of_answer(response)) is not None:
            return region
    return None


def _of_answer(response: dict[str, Any]) -> str | None:
    error = response.get("Error", {})
    code, status = str(error.get("Code", "")), response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    header = str(response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get(_HEADER, ""))
    expected = _EXPECTED.search(str(error.get("Message", "")))
    region = header or str(error.get("Region", "")) or (expected[1] if expected else "")
    if code == "AuthorizationHeaderMalformed":
        return region or None  # else it is the header itself that is malformed
    if code in _CODES or code in _STATUS_ALONE or status in (301, 307):
        return region
    return region if code == "400" and header else None
