"""What a look-up of keys goes by: the table at one moment, its index, and the files that this index looks at.

Some keys only a log holds, though no index looks there: of rows that came back while a compaction was pending. While
compaction c of a file group is pending, writers find keys in the base file before c, and append to the slice that
c opened. If the logs that c merges delete a key, and a later write brings it back, then the base file of c lacks the
key and the log beside it has it. Looked up in the base file alone it would count as new, and occur twice.
docs/design/compaction.md says why statistics decide this.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import pyarrow as pa

from hoodie.commit.lost import completed_path, lost_commit
from hoodie.config.read import ReadSettings
from hoodie.config.table import TableType
from hoodie.errors import CorruptIndex, MissingFile, UnsupportedTable, WriteConflict
from hoodie.formats.parquet.base_footer import is_of_a_write
from hoodie.formats.parquet.columns import open_parquet
from hoodie.index.contract import ByFile, ByKey, Index, IndexContext
from hoodie.lookup.batch import one_chunk
from hoodie.lookup.index_choice import choose_index
from hoodie.lookup.key_lookup import FileWithLogs
from hoodie.lookup.record_index import for_reads
from hoodie.model.commit import WriteStat
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import Action
from hoodie.model.meta import RECORD_KEY
from hoodie.reading.complete_view import refuse_lost_commit
from hoodie.reading.slices.reader import SliceMerge, SliceReader, slice_reader
from hoodie.schema.schema import with_meta_fields
from hoodie.table.settings import Settings
from hoodie.table.state import TableFiles, TableState, declared_schema
from hoodie.timeline.load import read_commit


@dataclass(frozen=True, slots=True)
class LookupContext:
    """A table whose keys can be looked up, by a write or by a read.

    schema   the user's columns; of a write those after it
    reading  settings of the read that looks keys up; None: a write does
    instead  the index where the record index that it asks turns out to be of no use; None: it asks none
    """

    state: TableState
    settings: Settings
    index: Index
    why: str  # it is this index
    schema: pa.Schema
    reading: ReadSettings | None = None
    instead: Index | None = None

    @property
    def by_file(self) -> bool:
        """Whether keys are looked up in base files; else the index itself says where they are."""
        return isinstance(self.index.look_up, ByFile)

    @property
    def names_new(self) -> bool:
        """Whether the index names a file group for new keys, too."""
        return isinstance(self.index.look_up, ByKey) and self.index.look_up.names_new

    @property
    def is_certain(self) -> bool:
        """Whether a key is for certain in the file groups that the index names."""
        return self.by_file and self.state.config.type is TableType.COPY_ON_WRITE

    def files(self, partitions: Collection[str]) -> TableFiles:
        """The files of some partitions; with a global index that looks into files, of all.

        Raises   UnsupportedTable when a file group holds keys where the index does not look; as `TableState.files`
        """
        files = self.state.files(None if self.by_file and self.index.is_global else partitions, self.reading)
        if self.by_file and self.state.config.merge_on_read:
            refuse_groups_of_logs(self.state, files, self.index)
            if files.compacted and (late := compacted_logs(self.state, files.compacted)):
                reader = slice_reader(self.state, with_meta_fields(self.schema), settings=self.settings.reading)
                files = with_log_only_keys(files, late, reader)
        return files

    def with_partitions(self, files: TableFiles, partitions: Collection[str]) -> TableFiles:
        """The files, those of further partitions included."""
        missing = set(partitions) - files.slices.keys()
        if not missing:
            return files
        more = self.state.files(missing, self.reading)
        return replace(
            files,
            slices={**files.slices, **more.slices},
            bases={**files.bases, **more.bases},
            unmarked=files.unmarked | more.unmarked,
        )


def lookup_for_read(state: TableState, settings: Settings) -> LookupContext:
    """How a read looks keys up: by the index that the table's writers use. Raises as `choose_index`; MissingFile"""
    reading = settings.reading
    refuse_lost_commit(state, reading)
    chosen = choose_index(state, settings)
    index = for_reads(chosen.index, state) if reading.metadata.enable else chosen.index
    declared = declared_schema(state)
    schema = pa.schema([]) if declared is None else declared
    instead = None if index is chosen.index else chosen.index
    return LookupContext(state, settings, index, chosen.why, schema, reading, instead)


Logs = Mapping[BaseFile, tuple[LogFile, ...]]


def compacted_logs(state: TableState, compacted: Logs) -> dict[BaseFile, tuple[LogFile, ...]]:
    """The logs that may hold keys which their base file lacks: none, unless its compaction deleted rows.

    compacted  base files that a compaction made, with the logs of their slices
    """
    commits = {i.requested: i for i in state.timeline.completed({Action.COMMIT})}
    needed = sorted({base.instant for base in compacted} & commits.keys())
    without_deletes = {
        (instant, stat.partition, stat.file_id)
        for instant in needed
        for stat in _stats(state, commits[instant].requested, Action.COMMIT)
        if stat.num_deletes == 0
    }
    candidates = {
        base: logs
        for base, logs in compacted.items()
        if (base.instant, base.group.partition, base.group.file_id) not in without_deletes
    }
    if not candidates:
        return {}
    # A writer says which base file it saw beside a log: one that saw none wrote before the compaction was completed.
    first = min(base.instant for base in candidates)
    later = [i.requested for i in state.timeline.completed({Action.DELTA_COMMIT}) if i.requested > first]
    beside = {stat.path for instant in later for stat in _stats(state, instant, Action.DELTA_COMMIT) if stat.base_file}
    logs_by_base = {base: tuple(log for log in logs if log.path not in beside) for base, logs in candidates.items()}
    return {base: logs for base, logs in logs_by_base.items() if logs}


def _stats(state: TableState, instant: str, action: Action) -> Iterator[WriteStat]:
    commit = state.timeline.find(instant, action)
    assert commit is not None  # it is from this timeline
    for part in read_commit(state.storage, state.timeline, commit).stats.values():
        yield from part


def with_log_only_keys(files: TableFiles, late: Logs, reader: SliceReader) -> TableFiles:
    """The files, those with keys in logs only marked for look-ups."""
    bases: dict[str, Sequence[BaseFile]] = {}
    for partition, part in files.bases.items():
        bases[partition] = [_marked(base, late[base], reader) if base in late else base for base in part]
    return replace(files, bases=bases)


def _marked(base: BaseFile, logs: tuple[LogFile, ...], reader: SliceReader) -> FileWithLogs:
    values = {field.name: getattr(base, field.name) for field in fields(BaseFile)}
    return FileWithLogs(**values, late=partial(_late_keys, reader, base, logs))


def _late_keys(reader: SliceReader, base: BaseFile, logs: tuple[LogFile, ...]) -> Iterator[pa.Array]:
    """string[n] again and again: the keys that the merged logs do not delete; beside a file of a write, none."""
    with reader.storage.open_input(base.path, base.size) as source:
        if is_of_a_write(open_parquet(source, base.path).metadata, base.instant):
            return
    for rows in SliceMerge(reader, FileSlice(base.group, base.instant, None, logs), [RECORD_KEY]).batches():
        yield one_chunk(rows.column(0))


def index_context(state: TableState, partitions: Iterable[str], files: TableFiles) -> IndexContext:
    """What an index gets to know of the table before it tags keys."""
    return IndexContext(state.storage, state.config, state.timeline, tuple(partitions), files.slices)


def refuse_unknown(index: Index, places: Iterable[FileGroupId], groups: Collection[FileGroupId]) -> None:
    """Raises CorruptIndex when an index of its own names file groups that are not there."""
    missing = [place for place in places if place not in groups]
    if missing:
        raise CorruptIndex(
            f"the index {index.name} names {len(missing)} file groups that are not in the table, such as "
            f"{missing[0].file_id} of partition {missing[0].partition!r}. Where its keys are now it does not say: make "
            "the index anew from the table (HBASE: hoodie index rebuild)."
        )


def refuse_groups_of_logs(state: TableState, files: TableFiles, index: Index) -> None:
    """Raises UnsupportedTable when a file group has no base file, in which the index looks for keys; MissingFile when
    that is of a compaction whose completed file is lost; WriteConflict when that was so, and is no more."""
    if not isinstance(index.look_up, ByFile):
        return
    for partition in files.slices:
        if hidden := _groups_of_logs(files, partition):
            now = state.reload()
            if now.timeline != state.timeline and not _groups_of_logs(now.files([partition]), partition):
                raise WriteConflict(
                    f"file group {hidden[0]} of partition {partition!r} changed while the table was looked at: a "
                    "compaction, cleaning or another writer was at work; try again"
                )
            if lost := lost_commit(state, None):
                raise MissingFile(completed_path(lost, state.layout), lost.requested, lost.action, doing="write")
            raise UnsupportedTable(
                f"partition {partition!r}: {len(hidden)} file groups, such as {hidden[0]}, have log files only, where "
                f"the index {index.name} finds no keys: existing rows would count as new. A writer with "
                "another index made them; write with that one, or compact the table first."
            )


def _groups_of_logs(files: TableFiles, partition: str) -> list[str]:
    """The file groups of a partition without a base file."""
    groups = {base.group for base in files.bases.get(partition, ())}
    return [slice_.group.file_id for slice_ in files.slices.get(partition, ()) if slice_.group not in groups]
