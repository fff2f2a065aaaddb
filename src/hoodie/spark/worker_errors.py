"""Errors on their way from Spark's workers to the driver: what went wrong in a task, as the error that it was."""

import errno
import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from pyspark import TaskContext

from hoodie import errors
from hoodie.errors import CorruptFile, FileGone, HoodieError, InvalidInput, StorageFull, WorkerEnvironment
from hoodie.storage.faults import typed_errors

_MARK = "hoodie-error "
_NOTE = re.compile(rf"{_MARK}(\[.*\])")
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE\.NO_HINT\] Encountered error while reading file (\S+?)\.?\s")
#: A file that was there when the table was looked at. Spark looks at it when it plans, and opens it in a task.
_NOT_FOUND = re.compile(r"\[PATH_NOT_FOUND\] Path does not exist: (.*?)\.(?:\s|$)")
_NOT_READ = re.compile(r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.?\s")
#: Beside _UNREADABLE: it was removed while a task read it, between the footer and the rows.
_REMOVED = re.compile(r"Caused by: java\.(?:nio\.file\.NoSuchFile|io\.FileNotFound)Exception")
_DAMAGED = re.compile(r"RuntimeException: (.*(?:corrupted file|is not a Parquet file).*)")
#: Spark's own files: shuffles and what does not fit into memory.
_FULL = re.compile(r"(java\.io\.IOException: No space left on device[^\n]*|[\w.]*DiskQuotaExceededException[^\n]*)")
_MODULES = ("hoodie", "pyarrow", "numpy", "pandas")

_frozen = False


@contextmanager
def mark_worker_errors() -> Iterator[None]:
    """In a worker: have an error of ours carry its class and arguments in its text, all that Spark brings back. Every
    task of ours begins with it, so a worker's first one freezes libraries here, too.

    Faults of storage are errors of ours here: see `hoodie.storage.faults`.
    """
    _freeze_libraries()
    try:
        with typed_errors():
            yield
    except HoodieError as error:
        error.add_note(_note(error))
        raise


def _freeze_libraries() -> None:
    """Have the collector of garbage leave out what a worker has loaded.

    Spark's workers collect garbage after each task. Among a hundred thousand objects of libraries, which stay, that
    took more than half the processor time of small tasks.
    """
    global _frozen
    if not _frozen and TaskContext.get() is not None:  # not on the driver, where objects are the user's
        _frozen = True
        gc.freeze()


def error_text(error: HoodieError) -> str:
    """An error for SQL's `raise_error`: it comes back as what it was."""
    return f"{error} {_note(error)}"


def _note(error: HoodieError) -> str:
    return _MARK + json.dumps([type(error).__name__, *error.args], default=str)


def raise_worker_errors() -> AbstractContextManager[None]:
    """On the driver: raise what made a Spark job fail as the HoodieError that it was; other errors pass as they are.

    Raises WorkerEnvironment when the workers' Python cannot run this library, naming PYSPARK_PYTHON
    """
    return _raising(_cause)


def raise_marked_errors() -> AbstractContextManager[None]:
    """As `raise_worker_errors`, but for failures of anybody's: only what `mark_worker_errors` marked is ours."""
    return _raising(_marked_cause)


def raise_missing_paths() -> AbstractContextManager[None]:
    """Where Spark is told to read files of the table: raise FileGone where one is no longer there."""
    return _raising(_missing_path)


@contextmanager
def _raising(cause: Callable[[str], HoodieError | None]) -> Iterator[None]:
    try:
        yield
    except HoodieError:
        raise
    except Exception as problem:  # Spark has several bases, one of them of a package that Spark Connect is without
        error = cause(str(problem))
        if error is None:
            raise
        raise error from problem


def _marked_cause(text: str) -> HoodieError | None:
    if "No module named 'hoodie'" in text:
        return _environment("cannot import 'hoodie'", _SHIP)
    noted = _NOTE.search(text)
    return None if noted is None else _noted_error(noted[1])


def _missing_path(text: str) -> HoodieError | None:
    missing = _NOT_FOUND.search(text)
    return None if missing is None else FileGone(errno.ENOENT, f"Spark does not find {missing[1]}")


def _cause(text: str) -> HoodieError | None:
    if noted := _NOTE.search(text):
        return _noted_error(noted[1])
    if missing := _NOT_READ.search(text):
        return FileGone(errno.ENOENT, f"Spark does not find {missing[1]}")
    if unreadable := _UNREADABLE.search(text):
        if _REMOVED.search(text):
            return FileGone(errno.ENOENT, f"Spark does not find {unreadable[1]}")
        if damage := _DAMAGED.search(text):
            return CorruptFile(unreadable[1], f"cannot be read as Parquet: {damage[1].strip()}")
    if "[SCALAR_SUBQUERY_TOO_MANY_ROWS]" in text:
        return InvalidInput(
            "a subquery that stands for a value gives more than one row: take an aggregate, as (SELECT max(…) FROM …)"
        )
    if full := _FULL.search(text):
        return StorageFull(errno.ENOSPC, f"a task of Spark's failed: {full[1].strip().rstrip('.')}")
    if "PYTHON_VERSION_MISMATCH" in text:
        return _environment("run another version of Python than the driver")
    for module in _MODULES:
        if re.search(rf"No module named '{module}\b", text) or re.search(rf"(?i){module} >= [\d.]+ must be", text):
            return _environment(f"cannot import {module!r}", _SHIP if module == "hoodie" else "")
    return None


def _noted_error(text: str) -> HoodieError | None:
    try:
        name, *args = json.loads(text)
        kind = getattr(errors, str(name), None)
        return kind(*args) if isinstance(kind, type) and issubclass(kind, HoodieError) else None
    except (ValueError, TypeError):  # cut off on the way, or a text that only looks like a note
        return None


#: Where only Hoodie itself is missing.
_SHIP = " Or send Hoodie's code to them: `hoodie.spark.ship(spark)`, or spark-submit with `--py-files`."


def _environment(what: str, also: str = "") -> WorkerEnvironment:
    return WorkerEnvironment(
        f"Spark's Python workers {what}. They run the interpreter that PYSPARK_PYTHON names (or `python3` on the "
        "worker's PATH): set PYSPARK_PYTHON, before the session starts, to one like the driver's that has hoodie and "
        f"pyarrow installed, on every machine.{also}"
    )
