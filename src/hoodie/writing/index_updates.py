"""An index hears from each task of a write which keys went to which file group, before anything is published.

An attempt of a task may be repeated, and a lost one may go on for a while. So what it tells follows from the plan, or
from the files that it wrote and the winner's statistics name.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import ServiceFailed
from hoodie.index.contract import Index, Placed, RecordWrites
from hoodie.index.stored_keys import keys_in
from hoodie.merge.rows import KEY_STATUS, KeyStatus, as_array, take_column
from hoodie.merge.rules import MergeRule, take_incoming
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import TaskKind, WriteTask
from hoodie.storage.protocol import Storage
from hoodie.writing.batch.duplicates import combine, in_order_of_arrival
from hoodie.writing.operations import OperationRules

WriteRows = Callable[[WriteTask, pa.Table, str], Sequence[WriteStat]]


@dataclass(frozen=True, slots=True, eq=False)
class TaskResult:
    """What a task did.

    later  what its index is to be given once the write is published
    """

    stats: Sequence[WriteStat]
    later: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class WriteRecorder:
    """How the tasks of a write tell its index what they did; picklable."""

    record_writes: RecordWrites
    storage: Storage
    instant: str
    rule: MergeRule
    operation_rules: OperationRules


def run_and_record(
    write: WriteRows, recorder: WriteRecorder, task: WriteTask, rows: pa.Table, token: str
) -> TaskResult:
    """Write the rows of one file group, then tell the index."""
    # In one order, whichever attempt it is: so each cuts its rows into the same files.
    rows = combine(in_order_of_arrival(rows).sort_by(RECORD_KEY), recorder.rule, recorder.operation_rules)
    stats = write(task, rows, token)
    return TaskResult(stats, recorder.record_writes(list(_placed(recorder, task, rows, stats))) if stats else None)


def _placed(recorder: WriteRecorder, task: WriteTask, rows: pa.Table, stats: Sequence[WriteStat]) -> Iterator[Placed]:
    rows, row_statuses = take_column(rows, KEY_STATUS)
    keys = as_array(rows.column(RECORD_KEY)).cast(pa.string())
    statuses = np.full(len(keys), KeyStatus.INSERT, np.int8) if row_statuses is None else row_statuses
    deletes = np.ones(len(keys), np.bool_) if recorder.operation_rules.delete else recorder.rule.is_delete(rows)
    # Other deletes may lose against a version in the file group: what is forgotten too early would be inserted again.
    certain = recorder.operation_rules.delete or (
        task.kind is TaskKind.REWRITE and recorder.rule.combine_with is take_incoming
    )
    inserted = keys.filter(pa.array(~deletes & (statuses == KeyStatus.INSERT)))
    moved = keys.filter(pa.array(~deletes & (statuses == KeyStatus.MOVED_IN)))
    deleted = keys.filter(pa.array(deletes & (statuses == KeyStatus.UPDATE) & certain))
    groups = dict.fromkeys(FileGroupId(stat.partition or "", stat.file_id) for stat in stats)
    if len(groups) == 1:
        yield Placed(recorder.instant, next(iter(groups)), inserted, moved, deleted, row_statuses is not None)
        return
    for stat in stats:  # new rows that filled a file: the rest went to the next ones
        assert stat.path is not None
        here = keys_in(recorder.storage, stat.path, stat.file_size)
        new, came = (part.filter(pc.is_in(part, value_set=here)) for part in (inserted, moved))
        group = FileGroupId(stat.partition or "", stat.file_id)
        yield Placed(recorder.instant, group, new, came, deleted.slice(0, 0), row_statuses is not None)


def finalize_index(index: Index, instant: str, later: Sequence[pa.Table]) -> None:
    """Give the index what it kept until its instant is published. An error becomes a warning: the commit stands."""
    if index.finalize is None or not later:
        return
    try:
        index.finalize(instant, pa.concat_tables(later))
    except Exception as problem:  # of whatever kind a user's own index raises
        warnings.warn(ServiceFailed(f"bringing the index {index.name} up to date", instant, str(problem)), stacklevel=2)


def record_files(
    storage: Storage, instant: str, stats: Iterable[WriteStat], record_writes: RecordWrites | None
) -> list[pa.Table]:
    """Tell the index of new base files, all of whose keys are new as far as anyone looked.

    returns  what it is to be given once the write is published
    """
    if record_writes is None:
        return []
    later = []
    for stat in stats:
        assert stat.path is not None
        none = pa.array([], pa.string())
        group = FileGroupId(stat.partition or "", stat.file_id)
        entries = record_writes(
            [Placed(instant, group, keys_in(storage, stat.path, stat.file_size), none, none, False)]
        )
        if entries is not None:
            later.append(entries)
    return later
