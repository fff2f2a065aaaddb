"""Deleting rows of keys that are in several file groups of a table with a global index: the newest of each is kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.config.write import WriteOperation
from hoodie.hbase.entries import NO_LATER, put_entries, row_keys
from hoodie.hbase.index import reach
from hoodie.hbase.repair import entry_of
from hoodie.index.pruning import IndexStats
from hoodie.merge.rows import KeyStatus, with_statuses
from hoodie.model.files import FileGroupId
from hoodie.model.meta import COMMIT_SEQNO, COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import WritePlan, WriteTask
from hoodie.reading.slices.reader import slice_reader
from hoodie.reading.snapshot import merged_rows, read_slices_arrow
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.view.load import load_view
from hoodie.view.slices import merged_slices
from hoodie.writing.finish import abandoned_on_error, finish
from hoodie.writing.planning import DRIVER, TaskResults
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.tasks.run import run_task
from hoodie.writing.write import check, start, writable_state

_GROUP = "_hoodie_group"
Doubled = Mapping[str, tuple[FileGroupId, ...]]


def mend(storage: Storage, options: Options, doubled: Doubled) -> WriteResult:
    """Keep one row of each key: that with the greatest values of the ordering columns, then of the newest instant.

    Entries name the kept row before the others are deleted: after a crash in between, call it again.

    doubled  record keys -> the file groups that hold them
    Raises   as a write. Nothing was deleted then
    """
    settings = Settings.read(options)
    phases = Phases()
    with phases.time("check"):
        write = check(writable_state(storage, settings), WriteOperation.DELETE, None, settings)
    write = start(write)
    with abandoned_on_error(write):
        with phases.time("locate"):
            going = _choose(write.state, options, doubled)
            slices = write.state.slices({group.partition for group in going})
            newest = {slice_.group: slice_ for part in slices.values() for slice_ in part}
            tasks = tuple(
                WriteTask(number, group, write.operation_rules.kinds.update, newest[group], len(going[group]), 0)
                for number, group in enumerate(going)
            )
        write = write.with_plan(WritePlan(tasks, {}, 0))
        spec, stats = write.spec(), []
        with phases.time("write"):
            for task in tasks:
                keys = going[task.group]
                paths = pa.array([task.group.partition] * len(keys), pa.string())
                rows = with_statuses(
                    pa.table({RECORD_KEY: keys, PARTITION_PATH: paths}), np.full(len(keys), KeyStatus.UPDATE, np.int8)
                )
                stats += run_task(spec, write.rule, write.operation_rules, task, rows, f"{task.number}-0-0")
        outcome = TaskResults(stats, frozenset(group.partition for group in going), IndexStats(), DRIVER)
        return finish(write, outcome, phases)


def _choose(state: TableState, options: Options, doubled: Doubled) -> dict[FileGroupId, pa.Array]:
    """Put the entries of the kept rows. Returns the keys whose rows are to be deleted, by file group."""
    groups = sorted({group for holders in doubled.values() for group in holders})
    view = load_view(state.storage, state.timeline, state.config, {group.partition for group in groups})
    slices = merged_slices(view)
    schema = with_meta_fields(table_schema(state, view))
    merge = partial(merged_rows, slice_reader(state, schema, settings=ReadSettings.read(options)))
    ordering = [name for name in state.config.ordering if name in schema.names]
    columns = list(dict.fromkeys([RECORD_KEY, *ordering, COMMIT_TIME, COMMIT_SEQNO]))
    doubled_keys = pa.array(list(doubled), pa.string())
    tables = []
    for number, group in enumerate(groups):
        rows = read_slices_arrow(state.storage, [slices[group]], schema, columns, merge=merge)
        rows = rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=doubled_keys))
        tables.append(rows.append_column(_GROUP, pa.array([number] * len(rows), pa.int64())))
    rows = pa.concat_tables(tables)
    by = [*ordering, COMMIT_TIME, COMMIT_SEQNO]
    rows = rows.sort_by([(RECORD_KEY, "ascending"), *((name, "descending") for name in dict.fromkeys(by))])
    keys, numbers = rows.column(RECORD_KEY).combine_chunks(), rows.column(_GROUP).to_numpy()
    first = np.ones(len(rows), np.bool_)
    if len(rows) > 1:
        first[1:] = np.asarray(pc.not_equal(keys[1:], keys[:-1]))
    stays = numbers[np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))]
    index = reach(options, state.config)
    with index.client() as client:
        for number in np.unique(numbers[first]).tolist():
            kept = row_keys(keys.filter(pa.array(first & (numbers == number))), index.buckets)
            entry = entry_of(view, slices[groups[number]])
            put_entries(client, kept, [entry] * len(kept), index.timestamp(state.timeline.newest), last=NO_LATER)
    goes = numbers != stays
    return {groups[n]: keys.filter(pa.array(goes & (numbers == n))).unique() for n in np.unique(numbers[goes]).tolist()}
