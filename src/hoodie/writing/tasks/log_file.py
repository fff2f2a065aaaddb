"""What a task of a Merge-on-Read table does with rows of one file group: append them, and deleted keys, to its logs.

No storage is asked to append to a file: each delta commit begins a log file of its own in each file group it changes.
Source: docs/format/log-files.md 1, 4 and 6 (HoodieAppendHandle).
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.commit.markers import MarkerKind
from hoodie.config.write import LogFormat
from hoodie.formats.log.blocks import LogBlock, encode_block
from hoodie.formats.log.content import RowPositions, avro_block, delete_block, encode_positions, parquet_block
from hoodie.formats.log.delete_block import deletes_of
from hoodie.index.pruning import SEVERAL
from hoodie.lookup.key_lookup import rows_in_base
from hoodie.merge.base import Incoming
from hoodie.merge.ordering import ordering_column
from hoodie.merge.rows import KeyStatus, KeyStatuses, Mask, as_array
from hoodie.merge.rules import MergeRule
from hoodie.model.commit import WriteStat
from hoodie.model.files import BaseFile, LogFile, log_file_name, log_token
from hoodie.model.meta import FILE_NAME, RECORD_KEY
from hoodie.plan.write import WriteTask
from hoodie.storage.protocol import Storage
from hoodie.table.partition_metadata import ensure_partition
from hoodie.writing.tasks.base_file import WriteSpec, open_marked, take_back_if_over

#: Rows that are encoded to learn how many bytes a row takes.
_SAMPLE = 1_000


def append_log(
    spec: WriteSpec,
    rule: MergeRule,
    task: WriteTask,
    incoming: Incoming,
    token: str,
    statuses: KeyStatuses | None = None,
    positions: RowPositions | None = None,
    replacing: Mask | None = None,
) -> list[WriteStat]:
    """Write rows as data blocks and deleted keys as one delete block after them.

    incoming  each key once. Rows that are deletes by the rule, and tombstones, go to the delete block, with their
              ordering value where they have one: without, they win over all that was written before
    token     write token of this attempt
    statuses  what is known of each row's key; None: the plan tells how many keys are new
    positions  int64[n], of the rows in the base file that their keys were looked up in, less than 0 where not known,
              `SEVERAL` where there may be several; None: of none. Rows whose positions are known go to blocks of their
              own, in the order of these
    replacing  bool[n]: rows that take the place of stored ones whose ordering value is greater: a delete block before
              them takes those away. None: none
    returns   a statistic for each log file, oldest first
    """
    deletes = rule.is_delete(incoming.rows)
    if incoming.deleted is not None:
        deletes = deletes | incoming.deleted
    rows = incoming.rows.filter(pa.array(~deletes)) if deletes.any() else incoming.rows
    rows = _named(rows, task.group.file_id)
    if positions is None or not _follows_base(task):
        positions = np.full(incoming.num_rows, -1, np.int64)
    based_on = task.slice.base.instant if spec.layout.version.logs_of_writes and task.slice and task.slice.base else ""
    by_position = partial(_by_position, spec.storage, task.slice.base if task.slice else None)
    with LogWriter(spec, task, token) as log:
        if replacing is not None and replacing.any():
            keys = incoming.keys.filter(pa.array(replacing))
            entries = deletes_of(keys, pa.repeat(task.group.partition, len(keys)), None)
            log.append(delete_block(spec.instant, spec.avro_schema, entries, None))
        for part, at in by_position(rows, rows.column(RECORD_KEY), positions[~deletes]):
            for block, count in _data_blocks(spec, part, at, based_on):
                log.append(block, rows=count)
        if deletes.any():
            entries = _deleted(rule, incoming, deletes, task.group.partition)
            for part, at in by_position(entries, entries.column("record_key"), positions[deletes]):
                header = None if at is None else encode_positions(at)
                log.append(delete_block(spec.instant, spec.avro_schema, part, header, based_on), deletes=part.num_rows)
    new = None if statuses is None else np.isin(statuses, (KeyStatus.INSERT, KeyStatus.MOVED_IN)) & ~deletes
    return log.stats(_inserted(task, rows.num_rows) if new is None else int(np.count_nonzero(new)))


def _follows_base(task: WriteTask) -> bool:
    """Whether the logs are of the base file that the look-up read: while a compaction of the group is pending they are
    to follow the file that it will make, and nothing in them would tell which of the two their positions are of."""
    present = task.slice
    return present is not None and present.base is not None and present.base.instant == present.base_instant


def _by_position(
    storage: Storage, base: BaseFile | None, rows: pa.Table, keys: pa.ChunkedArray, positions: RowPositions
) -> Iterator[tuple[pa.Table, RowPositions | None]]:
    """The rows whose positions are known, in the order of these, then the others.

    A row whose key several rows of the base file have is there for each of them, as by Hudi 1.x: its readers put a row
    in the place of one stored row, whatever the keys.
    """
    several = np.flatnonzero(positions == SEVERAL)
    if len(several) and base is not None:
        matches, places = rows_in_base(storage, base.path, as_array(keys).take(pa.array(several)), base.size)
        others = np.delete(np.arange(len(positions)), several[matches])
        rows = rows.take(pa.array(np.concatenate([others, several[matches]])))
        positions = np.concatenate([positions[others], places])
    positioned = np.flatnonzero(positions >= 0)
    if len(positioned):
        order = positioned[np.argsort(positions[positioned], kind="stable")]
        yield rows.take(pa.array(order)), positions[order]
    if len(positioned) < rows.num_rows:
        yield (rows.filter(pa.array(positions < 0)) if len(positioned) else rows), None


def _named(rows: pa.Table, file_id: str) -> pa.Table:
    """The rows with the file id as file name: in logs it is not the name of a file."""
    at = rows.schema.get_field_index(FILE_NAME)
    return rows.set_column(at, rows.schema.field(at), pa.repeat(file_id, len(rows)))


def _deleted(rule: MergeRule, incoming: Incoming, deletes: Mask, partition: str) -> pa.Table:
    keys = incoming.keys.filter(pa.array(deletes))
    columns = [ordering_column(incoming.rows, name) for name in rule.ordering]
    ordering = [as_array(column).filter(pa.array(deletes)) for column in columns if column is not None]
    if len(ordering) < len(columns):
        ordering = []  # of fields that the rows do not have there is nothing to compare
    if ordering and incoming.deleted is not None:  # these win over all that was written before
        wins = pa.array(incoming.deleted[deletes])
        ordering = [pc.if_else(wins, pa.scalar(None, values.type), values) for values in ordering]
    return deletes_of(keys, pa.repeat(partition, len(keys)), *ordering)


def _inserted(task: WriteTask, rows: int) -> int:
    """How many of the rows have new keys. A group that gets both has as many as were planned."""
    if task.updates == 0:
        return rows
    return min(task.inserts, rows)


def _data_blocks(
    spec: WriteSpec, rows: pa.Table, positions: RowPositions | None, positions_of: str
) -> Iterator[tuple[LogBlock, int]]:
    """Blocks of at most the maximum size, unless one row has more, and the number of rows in each.

    positions  of the rows, rising; None: not known
    positions_of  as for `avro_block`
    """
    limit = spec.logs.block_size
    encode = partial(avro_block, spec.instant, spec.avro_schema)
    if spec.logs.block_format is LogFormat.PARQUET:
        encode = partial(parquet_block, spec.instant, spec.avro_schema, compression=spec.sizing.codec.value)
    most = max(1, rows.num_rows)
    if 2 * rows.nbytes > limit:
        sample = rows.slice(0, _SAMPLE)
        most = max(1, int(limit * sample.num_rows / len(encode(sample).content)))
    waiting = [(start, rows.slice(start, most)) for start in range(0, rows.num_rows, most)][::-1]
    while waiting:
        start, part = waiting.pop()
        header = None if positions is None else encode_positions(positions[start : start + part.num_rows])
        block = encode(part, header, positions_of)
        if len(block.content) > limit and part.num_rows > 1:  # rows grow in the course of the batch
            half = part.num_rows // 2
            waiting += [(start + half, part.slice(half)), (start, part.slice(0, half))]
            continue
        yield block, part.num_rows


class LogWriter:
    """New log files of one file group, one after the other: a file that has its maximum size is followed by the next
    version. Leaving the `with` block by an error leaves no unfinished file."""

    def __init__(self, spec: WriteSpec, task: WriteTask, token: str) -> None:
        present = task.slice
        self._spec, self._task = spec, task
        self._token = log_token(spec.instant, token)
        self._own = spec.layout.version.logs_of_writes
        self._marker = MarkerKind.CREATE if self._own else MarkerKind.APPEND  # a rollback deletes them, or adds to them
        named = None if self._own else present
        self._base_instant = named.base_instant if named else spec.instant  # in the names
        self._version = max((log.version for log in named.logs), default=0) if named else 0
        # Logs that are named after their writes are told of by themselves, without the slice's, but for change data:
        # its readers look for the slice before a commit in the statistics.
        stats_slice = present if spec.cdc is not None else named
        self._previous = stats_slice.base_instant if stats_slice else spec.instant
        self._base_name = stats_slice.base.name if stats_slice and stats_slice.base else ""
        self._logs = [log.name for log in stats_slice.logs] if stats_slice else []
        self._stack = ExitStack()
        self._open = False
        self._written: list[tuple[LogFile, int, int]] = []  # file, rows, deletes

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._open:
            self._close()
        self._stack.__exit__(kind, error, trace)

    def _close(self) -> None:
        self._stack.close()
        self._open = False
        take_back_if_over(self._spec, self._written[-1][0].path, self._marker)

    def append(self, block: LogBlock, rows: int = 0, deletes: int = 0) -> None:
        """A block with so many rows and deleted keys in it."""
        if not self._open:
            self._begin()
        data = encode_block(block)
        self._sink.write(data)
        file, rows_before, deletes_before = self._written[-1]
        file = replace(file, size=file.size + len(data))
        self._written[-1] = (file, rows_before + rows, deletes_before + deletes)
        if file.size >= self._spec.logs.max_size:
            self._close()

    def stats(self, inserted: int) -> list[WriteStat]:
        """One statistic a file, after the `with` block. inserted: of the rows, how many have new keys"""
        statistics = []
        for number, (file, rows, deletes) in enumerate(self._written):
            new = min(inserted, rows)
            inserted -= new
            statistics.append(
                WriteStat(
                    file_id=file.group.file_id,
                    path=file.path,
                    partition=file.group.partition,
                    prev_commit=self._previous,
                    num_writes=rows,
                    num_deletes=deletes,
                    num_updates=rows - new,
                    num_inserts=new,
                    total_write_bytes=file.size,
                    file_size=file.size,
                    log_version=file.version,
                    log_offset=0,
                    base_file=self._base_name,
                    log_files=(file.name,)
                    if self._own and self._spec.cdc is None
                    else (*self._logs, *(log.name for log, _, _ in self._written[: number + 1])),
                )
            )
        return statistics

    def _begin(self) -> None:
        spec, group = self._spec, self._task.group
        if self._task.slice is None:
            ensure_partition(spec.storage, group.partition, spec.instant)
        self._version += 1
        name = log_file_name(group.file_id, self._base_instant, self._version, self._token)
        file = LogFile(group, self._base_instant, self._version, self._token, 0, name)
        self._sink = self._stack.enter_context(open_marked(spec, file.path, self._marker))
        self._written.append((file, 0, 0))
        self._open = True
