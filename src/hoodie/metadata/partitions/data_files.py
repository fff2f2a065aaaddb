"""Data files of the table, as partitions of the metadata table look into them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.formats.log.blocks import BlockKind, LogBlock, read_blocks
from hoodie.formats.parquet.base_footer import read_file_metadata
from hoodie.metadata.changes import FileChanges
from hoodie.model.files import BaseFile, LogFile, parse_data_file
from hoodie.storage.protocol import Storage, in_threads

#: Files whose footers are in memory at once: that of a file with a bloom filter has half a megabyte.
_AT_ONCE = 64

F = TypeVar("F", bound=BaseFile | LogFile)
T = TypeVar("T")


def added_files(changes: FileChanges) -> tuple[list[BaseFile], list[LogFile]]:
    """The base files and the log files that an action added, without logs of change data."""
    files = [
        parse_data_file(partition, name, size)
        for partition, names in changes.added.items()
        for name, size in names.items()
    ]
    bases = [file for file in files if isinstance(file, BaseFile)]
    return bases, [file for file in files if isinstance(file, LogFile) and not file.cdc]


def deleted_base_files(changes: FileChanges) -> list[BaseFile]:
    files = [parse_data_file(partition, name, 0) for partition, names in changes.deleted.items() for name in names]
    return [file for file in files if isinstance(file, BaseFile)]


def shares_of(files: Sequence[F]) -> list[list[F]]:
    """The files for tasks that read their footers."""
    return [list(files[at : at + _AT_ONCE]) for at in range(0, len(files), _AT_ONCE)]


def of_footers(
    storage: Storage, files: Sequence[BaseFile], call: Callable[[BaseFile, pq.FileMetaData], T]
) -> Iterator[T]:
    """What the call makes of the footer of each file, in their order. Raises CorruptFile"""
    return of_sources(storage, files, lambda file, footer, _: call(file, footer))


def of_sources(
    storage: Storage, files: Sequence[BaseFile], call: Callable[[BaseFile, pq.FileMetaData, pa.NativeFile], T]
) -> Iterator[T]:
    """As `of_footers`, for a call that may read more of the open file."""

    def result(file: BaseFile) -> T:
        with storage.open_input(file.path, file.size) as source:
            return call(file, read_file_metadata(source, file.path), source)

    for at in range(0, len(files), _AT_ONCE):
        yield from in_threads(result, files[at : at + _AT_ONCE])


def blocks_of(storage: Storage, log: LogFile, instant: str) -> list[LogBlock]:
    """The blocks of an instant in a log file, but for command blocks. Raises CorruptLogBlock"""
    return [block for block in data_blocks(storage, log) if block.header.instant == instant]


def data_blocks(storage: Storage, log: LogFile) -> list[LogBlock]:
    """The blocks of a log file, but for command blocks. Raises CorruptLogBlock"""
    blocks = read_blocks(storage.read(log.path), log.path)
    return [block for block in blocks if block.kind is not BlockKind.COMMAND]
