"""The tasks that build a partition of the metadata table: records of some of the table's files each, and then one base
file each.

The first kind of task puts its records into a file, by the file group of the index that they belong to; the second
takes those of one file group from all of these files. So nobody holds more than a share of the table's files, or one
file group. A task that runs twice writes the same bytes under the same name: the first one's are kept.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock, encode_block
from hoodie.formats.log.delete_block import DELETES, encode_deletes
from hoodie.metadata.encode import base_file, column_in_one_piece
from hoodie.metadata.keys import MetadataPartition, file_groups_of
from hoodie.metadata.partitions.kind import InitialContent
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.metadata.record_schema import STORED_SCHEMA
from hoodie.metadata.records import SCHEMAS
from hoodie.model.commit import WriteStat
from hoodie.model.files import log_file_name
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage, in_threads, join
from hoodie.storage.wrapped import SubfolderStorage
from hoodie.table.settings import MapItems

_TOKEN = "0-0-0"
#: Where records lie between the two kinds of tasks, if these run elsewhere.
_SPILLED = ".hoodie/.temp/staged"
#: Tasks of this process that run at once: each holds a share of the files, or a file group.
_NEAR = 4

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class _Target:
    """What is built. storage: of the metadata table; spilled: where records lie meanwhile"""

    storage: Storage
    spilled: Storage
    partition: MetadataPartition
    instant: str
    groups: int
    schema: str


@dataclass(frozen=True, slots=True)
class _Spill:
    """The records of a share: for each file group that has any the batches of the file that hold them."""

    path: str
    batches: Mapping[int, tuple[int, ...]]


def write_base_files(
    data: Storage,
    inside: Storage,
    partition: MetadataPartition,
    instant: str,
    first: InitialContent,
    run: MapItems | None,
    schema: str = STORED_SCHEMA,
) -> list[WriteStat]:
    """Write the files that a partition begins with; the statistics of its base files.

    data     of the table
    inside   of its metadata table
    instant  of the delta commit
    run      None: this process does it
    schema   of the records, in Avro
    Raises   CorruptFile, UnsupportedTable as `First`
    """
    with _place_for_records(data, instant, here=run is None) as spilled:
        target = _Target(inside, spilled, partition, instant, first.groups, schema)
        call = run or _map_here
        shares = list(enumerate(first.shares))
        spills = call(partial(_spill, target, first.records), shares)
        groups = [
            (number, [(spill.path, spill.batches[number]) for spill in spills if number in spill.batches])
            for number in range(first.groups)
        ]
        stats = call(partial(_write_group, target, first.check), groups)
    return [stat for stat in stats if stat is not None]


@contextmanager
def _place_for_records(data: Storage, instant: str, *, here: bool) -> Iterator[Storage]:
    if here:
        with tempfile.TemporaryDirectory(prefix="hoodie-metadata-") as folder:
            yield LocalStorage(Path(folder))
        return
    folder = join(_SPILLED, f"metadata-{instant}")
    data.delete_tree(folder)
    try:
        yield SubfolderStorage(data, folder)
    finally:
        data.delete_tree(folder)


def _map_here(kernel: Callable[[A], B], items: Sequence[A], /) -> list[B]:
    return in_threads(kernel, items, min(_NEAR, os.cpu_count() or 1), "hoodie-build")


def _spill(target: _Target, records_of: Callable[[Any], Iterable[pa.Table]], share: tuple[int, Any]) -> _Spill:
    number, files = share
    sink, path, batches, count = pa.BufferOutputStream(), f"{number}.arrow", dict[int, list[int]](), 0
    with pa.ipc.new_file(sink, SCHEMAS[target.partition], options=pa.ipc.IpcWriteOptions(compression="lz4")) as file:
        for records in records_of(files):
            for group, part in _by_group(records, target.groups):
                for batch in part.combine_chunks().to_batches():
                    file.write_batch(batch)
                    batches.setdefault(group, []).append(count)
                    count += 1
    if count:
        _create(target.spilled, path, sink.getvalue().to_pybytes())
    return _Spill(path, {group: tuple(numbers) for group, numbers in batches.items()})


def _by_group(records: pa.Table, groups: int) -> Iterator[tuple[int, pa.Table]]:
    if groups == 1 or not len(records):
        if len(records):
            yield 0, records
        return
    numbers = file_groups_of(column_in_one_piece(records, "row"), groups)
    order = np.argsort(numbers, kind="stable")
    ordered = records.take(pa.array(order))
    bounds = np.searchsorted(numbers[order], np.arange(groups + 1)).tolist()
    for group, (begin, end) in enumerate(pairwise(bounds)):
        if end > begin:
            yield group, ordered.slice(begin, end - begin)


def _write_group(
    target: _Target, check: Callable[[pa.Table], None], group: tuple[int, Sequence[tuple[str, Sequence[int]]]]
) -> WriteStat | None:
    """Log file and base file of a file group; None: it has no records."""
    started, (number, parts) = time.monotonic(), group
    (kind,) = kinds_of([target.partition])
    folder, file_id = str(target.partition), kind.file_id(number)
    _create(target.storage, join(folder, log_file_name(file_id, target.instant, 1, _TOKEN)), _empty_log(target.instant))
    tables = [SCHEMAS[target.partition].empty_table()]
    for path, batches in parts:
        with target.spilled.open_input(path) as source, pa.ipc.open_file(source) as file:
            tables.append(pa.Table.from_batches([file.get_batch(batch) for batch in batches]))
    records = pa.concat_tables(tables)
    check(records)
    name = f"{file_id}_{_TOKEN}_{target.instant}.hfile"
    rows, values = kind.cells(records, name, target.schema)
    if not (count := len(rows)):
        return None
    content = base_file(rows, values, kind.block_size, target.schema)
    _create(target.storage, join(folder, name), content)
    return WriteStat(
        file_id=file_id,
        path=join(folder, name),
        partition=folder,
        num_writes=count,
        num_inserts=count,
        total_write_bytes=len(content),
        file_size=len(content),
        create_time=int((time.monotonic() - started) * 1000),
    )


def _create(storage: Storage, path: str, content: bytes) -> None:
    """Create a file, unless another run of the task has: with the same content."""
    try:
        storage.create_new(path, content)
    except FileExistsError:
        return


def _empty_log(instant: str) -> bytes:
    """A block that deletes nothing."""
    header = BlockMap(((HeaderKey.INSTANT_TIME, instant),))
    return encode_block(LogBlock(BlockKind.DELETE, header, encode_deletes(DELETES.empty_table())))
