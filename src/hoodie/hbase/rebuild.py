"""Rebuilding the entries of an HBase index from the table: for a table without an index yet, or with a wrong one."""

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.config.table import require_writable
from hoodie.config.write import WriteOperation
from hoodie.hbase.client import Cells, HBaseClient
from hoodie.hbase.entries import ENTRY, NEXT, NO_LATER, KeyEntry, delete_rows, put_entries, row_keys
from hoodie.hbase.index import HBaseIndex, reach
from hoodie.hbase.mark import MARK, Mark, put_mark, read_mark
from hoodie.hbase.missed_rollbacks import forget_missed, recorded_instants
from hoodie.hbase.repair import ROWS, entry_of, parts
from hoodie.index.contract import Rebuilt
from hoodie.index.pruning import IndexStats
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.merge.rows import KeyStatus, with_statuses
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.meta import COMMIT_SEQNO, COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from hoodie.plan.write import WritePlan, WriteTask
from hoodie.reading.row_keys import KeyReader
from hoodie.reading.slices.reader import slice_reader
from hoodie.reading.snapshot import merged_rows, read_slices_arrow
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.view.slices import FileSystemView, merged_slices
from hoodie.writing.finish import abandoned_on_error, finish
from hoodie.writing.planning import DRIVER, TaskResults
from hoodie.writing.result import Phases, WriteResult
from hoodie.writing.tasks.run import run_task
from hoodie.writing.write import check, start, writable_state

_log = logging.getLogger("hoodie.index")


def rebuild(options: Options, storage: Storage, mend_doubled: bool = False) -> Rebuilt:
    """Put an entry for each row of the table, and remove entries without a row. The table is only read, except with
    `mend_doubled`.

    options       of a write: hoodie.index.hbase.*
    mend_doubled  delete the rows of keys that are in several file groups, all but the newest of each: by the table's
                  ordering columns, then by the instant that wrote it. One commit
    Raises        InvalidOption when the index cannot be reached by the options; IndexUnavailable; TableNotFound;
                  UnsupportedTable; CorruptFile; MissingFile; `mend_doubled`: as a write

    While it runs nothing else should write to the table: entries of a pending write are left as they are. The mark
    that ties the index to the table comes last: writes refuse an index whose rebuild was interrupted, unless it had a
    mark before.
    """
    begun = time.perf_counter()
    state = load_state(storage)
    require_writable(state.config, KNOWN_PAYLOADS)
    index = reach(options, state.config)
    missed = recorded_instants(storage)
    view = state.view()
    state.require_complete(view)
    slices = list(merged_slices(view).values())
    reader = KeyReader.of(state, view, slices)
    timestamp = _next_timestamp(index, state)
    keys_of: dict[KeyEntry, int] = {}
    written = 0
    with index.client() as client:
        client.check_table()
        for slice_ in slices:
            entry, keys = entry_of(view, slice_), reader.keys(slice_)
            keys_of[entry] = pc.count_distinct(keys).as_py()
            for part in parts(keys):
                rows = row_keys(part, index.buckets)
                put_entries(client, rows, [entry] * len(rows), timestamp, last=NO_LATER)
            written += len(keys)
        removed, shown = _sweep(client, state, keys_of.keys(), timestamp)
        # The entry of a key in two file groups is that of the last one: the others have fewer entries than keys.
        short = {entry for entry, keys in keys_of.items() if shown[entry] < keys}
        doubled = _doubled(client, index, view, reader, slices, short, keys_of.keys()) if short else {}
        _mark(client, index, state)
    for record in missed:
        forget_missed(storage, record.instant)
    if doubled and mend_doubled:
        mend(storage, options, doubled)
    seconds = time.perf_counter() - begun
    _log.info("%s: index rebuilt: %d entries put, %d removed, %.3f s", state.config.name, written, removed, seconds)
    return Rebuilt(written, removed, len(slices), seconds, doubled, bool(doubled) and mend_doubled)


def _mark(client: HBaseClient, index: HBaseIndex, state: TableState) -> None:
    """Put the mark: the index has the keys of all commits."""
    if not state.timeline.commits:
        return
    newest = state.timeline.commits[-1].requested
    before = read_mark(client)
    if before is not None and before.table == index.table:
        newest = max(newest, before.instant)  # of a pending write
    put_mark(client, Mark(newest, index.table), index.timestamp(newest), force=True)


def _next_timestamp(index: HBaseIndex, state: TableState) -> int:
    """A timestamp after those of all writes so far, ms since 1970."""
    newest = index.timestamp(state.timeline.newest) if state.timeline.newest else 0
    return max(time.time_ns() // 1_000_000, newest)


def _doubled(
    client: HBaseClient,
    index: HBaseIndex,
    view: FileSystemView,
    reader: KeyReader,
    slices: Sequence[FileSlice],
    short: Collection[KeyEntry],
    entries: Collection[KeyEntry],
) -> dict[str, tuple[FileGroupId, ...]]:
    """The keys of some file groups whose entries name others: record key -> all groups that hold it."""
    doubled: dict[str, set[FileGroupId]] = {}
    for slice_ in slices:
        entry = entry_of(view, slice_)
        if entry not in short:
            continue
        for keys in parts(reader.keys(slice_)):
            rows = row_keys(keys, index.buckets)
            cells = client.get(rows, ENTRY)
            for key, row in zip(keys.to_pylist(), rows, strict=True):
                shown = KeyEntry(*(cells[row][name].value for name in ENTRY)) if row in cells else entry
                if shown != entry and shown in entries:
                    other = FileGroupId(shown.partition.decode(), shown.file_id.decode())
                    doubled.setdefault(key, set()).update((slice_.group, other))
    order = [slice_.group for slice_ in slices]
    return {key: tuple(sorted(groups, key=order.index)) for key, groups in sorted(doubled.items())}


def _sweep(
    client: HBaseClient, state: TableState, entries: Collection[KeyEntry], timestamp: int
) -> tuple[int, Counter[KeyEntry]]:
    """Remove the entries that were not put just now, and unfinished moves.

    returns  the number of removed rows, and how many rows each entry has
    """
    pending = {instant.requested for instant in state.timeline.pending()}
    stale: dict[bytes, int] = {}
    moved: list[bytes] = []
    removed = 0
    shown: Counter[KeyEntry] = Counter()

    def remove() -> None:
        nonlocal removed
        delete_rows(client, list(stale), max([timestamp, *stale.values()]), "9" * 17)
        client.delete(moved, NEXT, timestamp)
        removed += len(stale)
        stale.clear()
        moved.clear()

    for row, cells in client.scan((*ENTRY, *NEXT)):
        if row == MARK:
            continue
        if all(name in cells for name in ENTRY):
            shown[KeyEntry(*(cells[name].value for name in ENTRY))] += 1
        if _is_stale(cells, state, pending, entries, timestamp):
            stale[row] = max(cell.timestamp for cell in cells.values())
        elif NEXT[0] in cells and cells[NEXT[0]].value.decode(errors="replace") not in pending:
            moved.append(row)
        if len(stale) + len(moved) >= ROWS:
            remove()
    remove()
    return removed, shown


def _is_stale(
    cells: Cells, state: TableState, pending: Collection[str], entries: Collection[KeyEntry], timestamp: int
) -> bool:
    if all(name in cells for name in ENTRY):
        entry = KeyEntry(*(cells[name].value for name in ENTRY))
        if entry in entries and cells[ENTRY[0]].timestamp >= timestamp:
            return False
        commit = entry.commit.decode(errors="replace")
        if commit in pending or commit > state.timeline.newest:  # of a concurrent write
            return False
    return True


# --- rows of keys that are in several file groups: the newest of each is kept ---

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
    view = state.view({group.partition for group in groups})
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
            hbase_rows = row_keys(keys.filter(pa.array(first & (numbers == number))), index.buckets)
            entry = entry_of(view, slices[groups[number]])
            put_entries(
                client, hbase_rows, [entry] * len(hbase_rows), index.timestamp(state.timeline.newest), last=NO_LATER
            )
    goes = numbers != stays
    return {groups[n]: keys.filter(pa.array(goes & (numbers == n))).unique() for n in np.unique(numbers[goes]).tolist()}
