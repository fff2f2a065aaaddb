"""Data files: what their names say, and the groups and slices they form; paths that stay inside the table."""

import datetime as dt
import re
from dataclasses import dataclass

from hoodie.display.render import Displayed, DisplayedList
from hoodie.display.summary import ColumnKind, ResultSummary, ShownColumn, bytes_text, count_text, summary
from hoodie.errors import CorruptFile
from hoodie.model.instant import parse_time

#: The file that makes a folder a partition: text, or in the base files' format.
METAFILE = ".hoodie_partition_metadata"
METAFILES = frozenset(METAFILE + suffix for suffix in ("", ".parquet", ".orc"))

_LOG_NAME = re.compile(r"^\.(.+)_(.*)\.(log|archive)\.(\d+)(_((\d+)-(\d+)-(\d+))(\.cdc)?)?$")
_ATTEMPTS = 2_000_000  # numbers of attempts before they come again: times 1000 they fit 31 bits
_BASE_NAME = re.compile(r"^([^_.][^_]*)_(\d+-\d+-\d+)_(\d+)\.(parquet|hfile)$")


@dataclass(frozen=True, slots=True, order=True)
class FileGroupId:
    """The versions of one set of keys: a partition path ("" when not partitioned) and a file id."""

    partition: str
    file_id: str


@dataclass(frozen=True, slots=True)
class BaseFile:
    """One version of a file group as Parquet."""

    group: FileGroupId
    instant: str
    token: str  # "<task>-<stage>-<attempt>"
    size: int  # bytes
    name: str

    @property
    def base_instant(self) -> str:
        """The instant of the slice that it begins, as a log file has it."""
        return self.instant

    @property
    def path(self) -> str:
        """Relative to the table's base path."""
        return f"{self.group.partition}/{self.name}" if self.group.partition else self.name


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of log blocks beside a base file. `base_instant` is the word in its name: which instant that is differs
    by table version (the slice's base in 6 and before, the delta commit's own in 8 and later)."""

    group: FileGroupId
    base_instant: str
    version: int
    token: str  # "" in very old tables
    size: int  # bytes
    name: str
    cdc: bool = False

    @property
    def path(self) -> str:
        """Relative to the table's base path."""
        return f"{self.group.partition}/{self.name}" if self.group.partition else self.name

    @property
    def order(self) -> tuple[str, int, str, bool]:
        """Sort key: the order in which a reader takes the logs of a slice."""
        return (self.base_instant, self.version, self.token, self.cdc)


@dataclass(frozen=True, slots=True, repr=False)
class FileSlice(Displayed):
    """A base file and the logs that change it. No natural order."""

    group: FileGroupId
    base_instant: str
    base: BaseFile | None  # None: only logs so far
    logs: tuple[LogFile, ...] = ()  # oldest first

    @property
    def log_bytes(self) -> int:
        return sum([log.size for log in self.logs])

    @property
    def bytes(self) -> int:
        """The size of base file and logs."""
        return (self.base.size if self.base else 0) + self.log_bytes

    def _summary(self) -> ResultSummary:
        base = "no base file" if self.base is None else f"base file of {bytes_text(self.base.size)}"
        logs = bytes_text(self.log_bytes)
        where = f"{self.group.partition}/{self.group.file_id}" if self.group.partition else self.group.file_id
        return summary(
            f"FileSlice({where} at {self.base_instant}: {base}, {count_text(len(self.logs), 'log')} of {logs})"
        )


class FileSlices(DisplayedList[FileSlice]):
    """The file slices that a reader sees."""

    __slots__ = ()

    def _summary(self) -> ResultSummary:
        base = sum(slice_.base.size for slice_ in self if slice_.base is not None)
        logs = sum(slice_.log_bytes for slice_ in self)
        title = f"{count_text(len(self), 'file slice')}: {bytes_text(base)} in base files, {bytes_text(logs)} in logs"
        rows = (
            (
                slice_.group.partition,
                slice_.group.file_id,
                slice_.base_instant,
                None if slice_.base is None else slice_.base.size,
                len(slice_.logs),
                slice_.log_bytes,
            )
            for slice_ in self
        )
        return summary(title, _SLICE_COLUMNS, rows, len(self))


_SLICE_COLUMNS = (
    *(ShownColumn(name) for name in ("partition", "file id", "instant")),
    ShownColumn("base file", ColumnKind.BYTES),
    ShownColumn("logs", ColumnKind.COUNT),
    ShownColumn("log bytes", ColumnKind.BYTES),
)


def base_file_name(file_id: str, token: str, instant: str) -> str:
    return f"{file_id}_{token}_{instant}.parquet"


def log_file_name(file_id: str, base_instant: str, version: int, token: str) -> str:
    return f".{file_id}_{base_instant}.log.{version}_{token}"


def change_log_name(file_id: str, instant: str, token: str) -> str:
    """The name of a change log: instant and token are those of the base file that it is beside."""
    return f"{log_file_name(file_id, instant, 1, token)}.cdc"


def parse_data_file(partition: str, name: str, size: int, base_format: str = "parquet") -> BaseFile | LogFile | None:
    """The data file of a name; None for any other file (partition metafile, checksum, stray file).

    base_format  what base files end in: "hfile" in the metadata table
    """
    if not name.startswith("."):
        if (match := _BASE_NAME.match(name)) and match[4] == base_format:
            file_id, token, instant = match.groups()[:3]
            return BaseFile(FileGroupId(partition, file_id), instant, token, size, name)
    elif (match := _LOG_NAME.match(name)) and match[3] == "log":
        group = FileGroupId(partition, match[1])
        return LogFile(group, match[2], int(match[4]), match[6] or "", size, name, match[10] is not None)
    return None


def log_token(instant: str, token: str) -> str:
    """The write token of a log file: that of its attempt, with the instant in place of the stage.

    A log file's name does not hold the delta commit that wrote it. Were the token the attempt's own, two writers that
    start alike, such as a job and its next run, would give their files one name, and a late one would replace a file
    that is published. Each of the three numbers fits 31 bits, as other readers take them.
    """
    task, _, attempt = token.split("-")  # an attempt's number is unique over all stages
    millis = parse_time(instant).microsecond // 1000
    return f"{task}-{_seconds(instant)}-{int(attempt) % _ATTEMPTS * 1000 + millis}"


def names_instant(log: LogFile, instant: str) -> bool:
    """Whether the name of a log file tells that this library wrote it at the instant: `log_token` made its token."""
    numbers = log.token.split("-")
    try:
        return len(numbers) == 3 and numbers[1] == str(_seconds(instant))
    except ValueError:  # an instant of a writer that has other ones
        return False


def _seconds(instant: str) -> int:
    return int(parse_time(instant).replace(tzinfo=dt.UTC).timestamp()) % 2**31


def inside(path: str, source: str) -> str:
    """The path itself, relative to the base path; "" is the base path.

    source  the file that names it, for the error
    Raises  CorruptFile when it leaves the table or is no plain relative path
    """
    if path and ("\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/"))):
        raise CorruptFile(source, f"{path!r} is no path inside the table")
    return path


def parent_folders(path: str) -> list[str]:
    """The folders that a partition lies in, outermost first, the base path left out."""
    return [path[:at] for at, char in enumerate(path) if char == "/"]


def file_name(path: str, source: str) -> str:
    """The last segment of a path or of a name.

    Other machines and mount points wrote absolute paths, so only the name counts: its folder is the partition's.
    Raises CorruptFile when there is no name in it.
    """
    name = path.rpartition("/")[2]
    if not name:
        raise CorruptFile(source, f"{path!r} names no file")
    return inside(name, source)


def absolute_path(root: str, partition: str, name: str) -> str:
    """The path of a file of a partition as plans of other writers spell it."""
    return "/".join(part for part in (root.rstrip("/"), partition, name) if part)
