"""The error tree: one class for each thing a caller can do about a failure.

Every error pickles (its constructor arguments are its `args`), so that it travels from an executor to the driver.
"""

from __future__ import annotations


class HoodieError(Exception):
    """Base of all errors raised on purpose; subclasses differ by what a caller can do."""


class InvalidOption(HoodieError, ValueError):
    """A `hoodie.*` option or an argument that is unknown, malformed or contradicts another."""


class TableNotFound(HoodieError):
    """The path holds no table."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: no table here (.hoodie/hoodie.properties is missing). Create it with hoodie.create_table."


class TableMismatch(HoodieError):
    """The table at the path has other settings than the caller asked for."""


class UnsupportedTable(HoodieError):
    """A real table that this library does not read, or does not write: version, payload, metadata table."""


class CorruptFile(HoodieError):
    """Bytes that are not what the format says. Never raised for a file that is absent."""

    def __init__(self, path: str, problem: str, offset: int | None = None, advice: str = "") -> None:
        super().__init__(path, problem, offset, advice)
        self.path, self.problem, self.offset, self.advice = path, problem, offset, advice

    def __str__(self) -> str:
        where = self.path if self.offset is None else f"{self.path} at byte {self.offset}"
        return f"{where}: {self.problem}." + (f" {self.advice}" if self.advice else "")


class CorruptLogBlock(CorruptFile):
    """A log block that cannot be read as the format says."""


class InvalidInput(HoodieError, ValueError):
    """Rows or arguments that cannot be written; nothing on disk has changed."""


class SchemaMismatch(InvalidInput):
    """Columns of a batch, a file or a log block that the table's schema cannot take in."""


class KeyInTwoPartitions(InvalidInput):
    """A global index met keys that the table holds in more than one partition: it cannot tell which is meant."""

    def __init__(self, keys: int, named: dict[str, tuple[str, ...]]) -> None:
        super().__init__(keys, named)
        self.keys, self.named = keys, named

    def __str__(self) -> str:
        shown = "; ".join(f"{key!r} in {', '.join(map(repr, found))}" for key, found in self.named.items())
        return (
            f"{self.keys} keys of the batch are in more than one partition of the table, such as {shown}. An index "
            "that is not global, or inserts, brought them there. Delete these keys, which takes all their rows away, "
            "and write the rows that are wanted; or use an index that is not global."
        )


class WriteConflict(HoodieError):
    """Another writer took the instant or changed the same file groups; try the write again."""


class LockTimeout(HoodieError):
    """Somebody else held a lock for longer than the options say to wait; nothing has changed."""


class LockLost(HoodieError):
    """A lock that this writer had is free or another's: it was out of touch for too long. Try the write again."""


class InstantNotFound(HoodieError):
    """The timeline has no such instant, or not in the state that the call needs."""


class HollowCommit(HoodieError):
    """A pending commit that is older than completed ones: who reads changes and goes on would miss its rows."""


class HistoryGone(HoodieError):
    """Changes that cannot be told any more: their commits are archived, or their files cleaned."""

    def __init__(self, begin: str, end: str, problem: str, earliest: str) -> None:
        super().__init__(begin, end, problem, earliest)
        self.begin, self.end, self.problem, self.earliest = begin, end, problem, earliest

    def __str__(self) -> str:
        return (
            f"The changes in ({self.begin or 'earliest'}, {self.end}] are not all there: {self.problem}. The earliest "
            f"begin that can be told is {self.earliest}. Begin there; or read the whole table, for those rows that "
            "are still the latest, with hoodie.datasource.read.incr.fallback.fulltablescan.enable=true."
        )


class InvalidPlan(HoodieError):
    """A plan of a table service that the table's files do not allow to carry out, or to withdraw."""


class PlanInUse(WriteConflict):
    """Another process carries the plan out, or makes one, at this moment."""


class IndexUnavailable(HoodieError):
    """An index outside the table cannot be asked, or does not keep what it is told."""


class CorruptIndex(HoodieError):
    """An index outside the table says what cannot be: `hoodie index rebuild` makes it anew from the table."""


class WorkerEnvironment(HoodieError):
    """Spark's Python workers cannot run this library."""


class JavaNotFound(HoodieError):
    """Spark has no Java to run on."""

    def __init__(self, seen: str) -> None:
        super().__init__(seen)
        self.seen = seen

    def __str__(self) -> str:
        return (
            f"Spark needs Java 17 or later and none was found{f' ({self.seen})' if self.seen else ''}. Any of these "
            "will do: pip install 'hoodie[java]', which brings a Java along; apt-get install openjdk-17-jre-headless; "
            "or JAVA_HOME set to the folder of an installed one."
        )


class DamagedLog(UserWarning):
    """Bytes of a log that were skipped, as the format has it: a writer died there, or the file is damaged.

    `warnings.simplefilter("error", DamagedLog)` makes reads fail on them.
    """

    def __init__(self, path: str, offset: int, problem: str) -> None:
        super().__init__(path, offset, problem)
        self.path, self.offset, self.problem = path, offset, problem

    def __str__(self) -> str:
        return f"{self.path} at byte {self.offset}: {self.problem}. Skipped: rows may be missing."


class ServiceFailed(UserWarning):
    """A table service that runs after a commit has failed: the commit stands, and the service is done again later.

    `warnings.simplefilter("error", ServiceFailed)` makes writes fail on them, though their rows are published.
    """

    def __init__(self, service: str, instant: str, problem: str) -> None:
        super().__init__(service, instant, problem)
        self.service, self.instant, self.problem = service, instant, problem

    def __str__(self) -> str:
        return f"{self.instant} is committed, but {self.service} after it failed: {self.problem}"


class IndexOutOfDate(UserWarning):
    """A rollback stands, but an index outside the table did not take it: it may not know rows that came back."""
