"""Compares a metadata table with what it is about: file lists with the storage, other partitions with data files."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.metadata import MetadataOptions
from hoodie.config.table import TableConfig
from hoodie.errors import CorruptFile, UnsupportedTable, clause
from hoodie.metadata.changes import of_listing
from hoodie.metadata.encode import column_in_one_piece
from hoodie.metadata.keeping.drop import not_kept
from hoodie.metadata.keys import MetadataPartition
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.partitions.kind import Building, ReadKeys
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.metadata.read import partition_slices, read_records
from hoodie.metadata.record_index import PLACES, is_by_partition, locations, places_table
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.model.files import BaseFile, LogFile
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage
from hoodie.timeline.cleanings import cleaned_files
from hoodie.timeline.completions import with_history
from hoodie.timeline.timeline import Timeline, Visible
from hoodie.view.load import Folders, data_files, list_folders, load_view, slice_instants
from hoodie.view.slices import merged_slices

DataFile = BaseFile | LogFile


#: The size of a log of a failed write, where Hudi 0.15 rolled that back by markers. All that is in it is taken back.
_FAILED = 1


@dataclass(frozen=True, slots=True)
class Validated:
    """What was compared, and what differs.

    partitions  that were read whole, with the number of records in each
    problems    one line each; none: the metadata table tells the state of the table
    unread      partitions that are not compared, one line each: a data file is damaged
    lists       files of which the file lists and the storage differ, with the size that the lists have; None: they lack
                it. There is a problem of each
    """

    partitions: dict[str, int]
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()
    lists: Mapping[str, int | None] = field(default_factory=dict)


def validate_metadata(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    folders: Folders | None = None,
    read_keys: ReadKeys | None = None,
    *,
    contents: bool = True,
) -> Validated | None:
    """Read the metadata table whole, and list the storage beside it; None: the table has none.

    folders    of the table, where they have been listed
    read_keys  compares the record index with the rows of the table, too; None: it is only read
    contents   compare other partitions than the file lists, too: opens data files
    Files of pending and of failed writes are no difference: other readers do not see them either. Nor are those that a
    pending clean removes, before it tells the metadata table.
    A partition that is damaged is a problem.
    Raises CorruptFile where its timeline cannot be read
    """
    table = open_metadata(storage, config, timeline)
    if table is None:
        return None
    records: dict[MetadataPartition, pa.Table] = {}
    unread: list[str] = []
    problems = [problem] if (problem := table.problem()) else []
    for partition in sorted(table.ready):
        try:
            records[partition] = read_records(table, partition)
        except (CorruptFile, UnsupportedTable) as damage:
            problems.append(f"{partition} cannot be read: {clause(damage)}")
    counts = {str(partition): len(part) for partition, part in records.items()}
    if MetadataPartition.FILES not in records:
        return Validated(counts, tuple(problems))
    listed = data_files(listed_folders(table).marked)
    stored = data_files((folders or list_folders(storage)).marked)
    visible = with_history(storage, config, timeline, slice_instants([*listed, *stored])).visible()
    going = cleaned_files(storage, timeline, timeline.pending({Action.CLEAN}))
    lists = _differences(listed, stored, visible, storage, going, by_logs=timeline.layout == 2)
    if contents and going:
        unread.append("partitions beside files are not compared: a clean is pending, which removes files of them")
    elif contents and not (problem or lists):  # else the files to look into are in doubt
        files = of_listing((), _published_files(listed, visible))
        building = Building(storage, config, timeline, "", files, MetadataOptions())
        for kind in kinds_of(records.keys() - {*not_kept(storage, config)}):
            try:
                problems += kind.differences(building, records[kind.partition])
            except CorruptFile as damage:
                unread.append(f"{kind.partition} is not compared: {damage}")
        if read_keys is not None and MetadataPartition.RECORD_INDEX in records:
            problems += _record_index_problems(table, storage, config, read_keys)
    in_lists = {file.path: file.size for file in listed}
    return Validated(counts, (*problems, *lists.values()), tuple(unread), {path: in_lists.get(path) for path in lists})


def _published_files(files: Iterable[DataFile], visible: Visible) -> Iterator[DataFile]:
    for file in files:
        if visible.committed(file.base_instant) and file.base_instant not in visible.open:
            yield file


def _differences(
    in_lists: Iterable[DataFile],
    on_storage: Iterable[DataFile],
    visible: Visible,
    storage: Storage,
    going: Collection[str],
    *,
    by_logs: bool,
) -> dict[str, str]:
    """What the file lists and the storage say differently of files of completed instants, by path.

    storage  of the table, to look once more: a write or a clean may have come after the folders were listed
    going    paths that a pending clean removes
    by_logs  a log that is not in the lists counts, too
    """
    listed = {file.path: file for file in in_lists}
    stored = {file.path: file for file in on_storage}
    where = MetadataPartition.FILES
    missing = [path for path in sorted(listed.keys() - stored.keys()) if path not in going and not storage.exists(path)]
    if by_logs:  # Hudi 1.2 lists files for good that a rollback deleted which built the metadata table
        missing = [path for path in missing if visible.committed(listed[path].base_instant)]
    problems = {path: f"{path} is in {where}, and not on the storage" for path in missing}
    for path in sorted(stored.keys() - listed.keys()):
        file = stored[path]
        counts = visible.committed(file.base_instant) and (by_logs or isinstance(file, BaseFile))
        # An open one is the base file of a compaction that is at work, or died.
        counts = counts and file.base_instant not in visible.open
        if counts and storage.exists(path):
            problems[path] = f"{path} is on the storage, and not in {where}"
    sizes = {path: (stored[path].size, listed[path].size) for path in sorted(listed.keys() & stored.keys())}
    of_failed = {path for path, file in listed.items() if file.size == _FAILED and isinstance(file, LogFile)}
    wrong = {path: pair for path, pair in sizes.items() if pair[0] != pair[1] and path not in of_failed}
    return problems | {
        path: f"{path} has {size} bytes, and {expected} in {where}" for path, (size, expected) in wrong.items()
    }


def _record_index_problems(
    table: MetadataTable, storage: Storage, config: TableConfig, read_keys: ReadKeys
) -> Iterator[str]:
    """What the record index and the rows say differently, one line each. storage, config: of the data table"""
    slices = list(merged_slices(load_view(storage, table.data, config)).values())
    keys_of = read_keys(storage, config, table.data, slices)
    rows = pa.concat_tables(
        [PLACES.empty_table()]
        + [places_table(chunk.cast(pa.string()), slice_.group) for slice_ in slices for chunk in keys_of(slice_).chunks]
    )
    where = MetadataPartition.RECORD_INDEX
    entry_slices = partition_slices(table, where)
    records = read_records(table, where, slices=entry_slices)
    paths, ids = locations(records)
    stored = pa.Table.from_arrays([column_in_one_piece(records, "row"), paths, ids], schema=PLACES)
    if is_by_partition(entry_slices):
        rows, stored = _with_paths(rows), _with_paths(stored)
    at = pc.index_in(rows.column("row"), value_set=column_in_one_piece(stored, "row"))
    yield from _some_keys(rows.filter(pc.is_null(at)), f"in no entry of {where}")
    located = rows.filter(pc.is_valid(at))
    entries = stored.take(at.drop_null())
    same = pc.and_(*(pc.equal(located.column(name), entries.column(name)) for name in ("partition", "file_id")))
    yield from _some_keys(located.filter(pc.invert(same)), f"elsewhere by {where}")
    live = pc.is_in(stored.column("row"), value_set=column_in_one_piece(rows, "row"))
    yield from _some_keys(stored.filter(pc.invert(live)), f"in {where}, and in no row")
    if len(rows) != len(stored):
        yield f"the table has {len(rows)} keys, and {where} {len(stored)} entries"


def _with_paths(places: pa.Table) -> pa.Table:
    """Keys that are unique in a partition of the table, behind its path."""
    keys = pc.binary_join_element_wise(places.column("partition"), places.column("row"), "/")
    return places.set_column(0, PLACES.field(0), keys)


def _some_keys(places: pa.Table, problem: str) -> Iterator[str]:
    if len(places):
        first = places.slice(0, 1).to_pylist()[0]
        more = f", and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"key {first['row']!r} of file group {first['file_id']} in {first['partition']!r}{more}: {problem}"
