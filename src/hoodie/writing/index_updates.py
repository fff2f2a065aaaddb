"""An index hears from each task of a write which keys went to which file group, before anything is published.

An attempt of a task may be repeated, and a lost one may go on for a while. So what it tells follows from the plan, or
from the files that it wrote and the winner's statistics name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import ServiceFailed
from hoodie.index.contract import Index, Learn, Placed
from hoodie.index.stored_keys import keys_in
from hoodie.lookup.key_status import Fate, take_fates
from hoodie.merge.rows import as_array
from hoodie.merge.rules import MergeRule, take_incoming
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.meta import RECORD_KEY
from hoodie.plan.write import Work, WriteTask
from hoodie.storage.protocol import Storage
from hoodie.writing.operations import Semantics
from hoodie.writing.precombine import combine

Write = Callable[[WriteTask, pa.Table, str], Sequence[WriteStat]]


@dataclass(frozen=True, slots=True, eq=False)
class Done:
    """What a task did.

    later  what its index is to be given once the write is published
    """

    stats: Sequence[WriteStat]
    later: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Learning:
    """How the tasks of a write tell its index what they did; picklable."""

    learn: Learn
    storage: Storage
    instant: str
    rule: MergeRule
    semantics: Semantics


def run_and_learn(write: Write, learning: Learning | None, task: WriteTask, rows: pa.Table, token: str) -> Done:
    """Write the rows of one file group, then tell the index."""
    if learning is None:
        return Done(write(task, rows, token))
    # In one order, whichever attempt it is: so each cuts its rows into the same files.
    rows = combine(rows.sort_by(RECORD_KEY), learning.rule, learning.semantics)
    stats = write(task, rows, token)
    return Done(stats, learning.learn(list(_placed(learning, task, rows, stats))) if stats else None)


def _placed(learning: Learning, task: WriteTask, rows: pa.Table, stats: Sequence[WriteStat]) -> Iterator[Placed]:
    rows, given = take_fates(rows)
    keys = as_array(rows.column(RECORD_KEY)).cast(pa.string())
    fates = np.full(len(keys), Fate.NEW, np.int8) if given is None else given
    deletes = np.ones(len(keys), np.bool_) if learning.semantics.delete else learning.rule.is_delete(rows)
    # Other deletes may lose against a version in the file group: what is forgotten too early would be inserted again.
    certain = learning.semantics.delete or (task.work is Work.REWRITE and learning.rule.combine_with is take_incoming)
    inserted = keys.filter(pa.array(~deletes & (fates == Fate.NEW)))
    moved = keys.filter(pa.array(~deletes & (fates == Fate.MOVED)))
    deleted = keys.filter(pa.array(deletes & (fates == Fate.UPDATE) & certain))
    groups = dict.fromkeys(FileGroupId(stat.partition or "", stat.file_id) for stat in stats)
    if len(groups) == 1:
        yield Placed(learning.instant, next(iter(groups)), inserted, moved, deleted, given is not None)
        return
    for stat in stats:  # new rows that filled a file: the rest went to the next ones
        assert stat.path is not None
        here = keys_in(learning.storage, stat.path)
        new, came = (part.filter(pc.is_in(part, value_set=here)) for part in (inserted, moved))
        group = FileGroupId(stat.partition or "", stat.file_id)
        yield Placed(learning.instant, group, new, came, deleted.slice(0, 0), given is not None)


def settle_index(index: Index, instant: str, later: Sequence[pa.Table]) -> None:
    """Give the index what it kept until its instant is published. An error is told as a warning: the commit stands."""
    if index.settle is None or not later:
        return
    try:
        index.settle(instant, pa.concat_tables(later))
    except Exception as problem:  # of whatever kind a user's own index raises
        warnings.warn(ServiceFailed(f"bringing the index {index.name} up to date", instant, str(problem)), stacklevel=2)


def learn_files(storage: Storage, instant: str, stats: Iterable[WriteStat], learn: Learn | None) -> list[pa.Table]:
    """Tell the index of new base files, all of whose keys are new as far as anyone looked.

    returns  what it is to be given once the write is published
    """
    later = []
    for stat in stats if learn is not None else ():
        assert learn is not None
        assert stat.path is not None
        none = pa.array([], pa.string())
        group = FileGroupId(stat.partition or "", stat.file_id)
        told = learn([Placed(instant, group, keys_in(storage, stat.path), none, none, False)])
        if told is not None:
            later.append(told)
    return later
