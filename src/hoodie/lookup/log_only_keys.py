"""Keys that only a log holds, though no index looks there: of rows that came back while a compaction was pending.

While compaction c of a file group is pending, writers find keys in the base file before c, and append to the slice that
c opened. If the logs that c merges delete a key, and a later write brings it back, then the base file of c lacks the
key and the log beside it has it. Looked up in the base file alone it would count as new, and occur twice.
docs/design/compaction.md says why statistics decide this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial

import pyarrow as pa

from hoodie.lookup.batch import one_chunk
from hoodie.lookup.key_lookup import FileWithLogs
from hoodie.model.commit import WriteStat
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.model.instant import Action
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.slices.reader import SliceMerge, SliceReader
from hoodie.table.state import TableFiles, TableState
from hoodie.timeline.load import read_commit

Logs = Mapping[BaseFile, tuple[LogFile, ...]]


def compacted_logs(state: TableState, compacted: Logs) -> dict[BaseFile, tuple[LogFile, ...]]:
    """The logs that may hold keys which their base file lacks: none, unless its compaction deleted rows.

    compacted  base files that a compaction made, with the logs of their slices
    """
    commits = {i.requested: i for i in state.timeline.completed({Action.COMMIT})}
    needed = sorted({base.instant for base in compacted} & commits.keys())
    kept = {
        (instant, stat.partition, stat.file_id)
        for instant in needed
        for stat in _stats(state, commits[instant].requested, Action.COMMIT)
        if stat.num_deletes == 0
    }
    left = {
        base: logs
        for base, logs in compacted.items()
        if (base.instant, base.group.partition, base.group.file_id) not in kept
    }
    if not left:
        return {}
    # A writer says which base file it saw beside a log: one that saw none wrote before the compaction was completed.
    first = min(base.instant for base in left)
    later = [i.requested for i in state.timeline.completed({Action.DELTA_COMMIT}) if i.requested > first]
    beside = {stat.path for instant in later for stat in _stats(state, instant, Action.DELTA_COMMIT) if stat.base_file}
    found = {base: tuple(log for log in logs if log.path not in beside) for base, logs in left.items()}
    return {base: logs for base, logs in found.items() if logs}


def _stats(state: TableState, instant: str, action: Action) -> Iterator[WriteStat]:
    found = state.timeline.find(instant, action)
    assert found is not None  # it is from this timeline
    for part in read_commit(state.storage, state.timeline, found).stats.values():
        yield from part


def with_log_only_keys(files: TableFiles, late: Logs, reader: SliceReader) -> TableFiles:
    """The files, those with keys in logs only marked for look-ups."""
    bases: dict[str, Sequence[BaseFile]] = {}
    for partition, part in files.bases.items():
        bases[partition] = [_marked(base, late[base], reader) if base in late else base for base in part]
    return replace(files, bases=bases)


def _marked(base: BaseFile, logs: tuple[LogFile, ...], reader: SliceReader) -> FileWithLogs:
    values = {found.name: getattr(base, found.name) for found in fields(BaseFile)}
    return FileWithLogs(**values, late=partial(_keys_of, reader, FileSlice(base.group, base.instant, None, logs)))


def _keys_of(reader: SliceReader, slice_: FileSlice) -> Iterator[pa.Array]:
    """string[n] again and again: the keys that the logs, merged, do not delete."""
    for rows in SliceMerge(reader, slice_, [RECORD_KEY]).batches():
        yield one_chunk(rows.column(0))
