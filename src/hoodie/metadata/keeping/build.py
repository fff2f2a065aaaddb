"""Building the metadata table, or partitions of it, from a listing of the storage and the files of the table.

The caller holds the table's lock, where there is one. Source: docs/format/metadata-table.md 1.1, 1.2, 7.2 and 7.5;
pinned by tests/unit/metadata/test_metadata_build.py.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from hoodie.config.metadata import MetadataOptions
from hoodie.config.table import TableConfig
from hoodie.errors import UnsupportedTable
from hoodie.metadata.changes import FileChanges, of_listing
from hoodie.metadata.definitions import (
    DEFAULT_PATH,
    PATH,
    TYPED,
    IndexDefinition,
    read_definitions,
    undefine_expressions,
    write_definitions,
)
from hoodie.metadata.keeping.build_tasks import write_base_files
from hoodie.metadata.keeping.drop import PARTITIONS, drop_metadata, drop_partitions, drop_with_warning
from hoodie.metadata.keys import FOLDER, MetadataPartition
from hoodie.metadata.partitions.files import FILES
from hoodie.metadata.partitions.indexed_columns import first_columns
from hoodie.metadata.partitions.kind import Building, PartitionKind, ReadKeys
from hoodie.metadata.partitions.kinds import kinds_of
from hoodie.metadata.record_schema import record_schema_text, stored_schema_of
from hoodie.metadata.table import open_metadata, own_config
from hoodie.model.commit import CommitMetadata, Operation
from hoodie.model.instant import Action, State
from hoodie.model.table_version import VERSIONS
from hoodie.storage.protocol import Storage, join
from hoodie.storage.wrapped import SubfolderStorage
from hoodie.table.partition_metadata import ensure_partition
from hoodie.table.properties import create_properties, update_properties
from hoodie.table.settings import Executors, MapItems
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline, layout_of
from hoodie.timeline.transition import complete, completed_content, create_requested, to_inflight
from hoodie.view.load import data_files, list_folders, load_view

#: What a table's instant is called before its first commit.
_NOTHING = "0" * 14
_FIRST = 10
_PROPERTIES = {
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.base.file.format": "HFILE",
    "hoodie.table.recordkey.fields": "key",
    "hoodie.populate.meta.fields": "false",
    "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
    "hoodie.datasource.write.drop.partition.columns": "false",
}
_BY_LAYOUT = {
    1: {
        "hoodie.table.keygenerator.class": "org.apache.hudi.metadata.HoodieTableMetadataKeyGenerator",
        "hoodie.compaction.record.merger.strategy": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
        "hoodie.archivelog.folder": "archived",
    },
    2: {
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.record.merge.mode": "CUSTOM",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.archivelog.folder": "history",
        "hoodie.timeline.path": "timeline",
        "hoodie.timeline.history.path": "history",
    },
}


def why_not_built(timeline: Timeline) -> str:
    """Why the metadata table of a table cannot be built now; "" when it can.

    A savepoint leaves no files, and one whose writer died stays pending.
    """
    instants = (instant for instant in timeline.instants if instant.action is not Action.SAVEPOINT)
    pending = [instant for instant in instants if instant.state is not State.COMPLETED]
    if pending:
        return f"{pending[0].action} {pending[0].requested} is pending: which files it leaves is not known yet"
    return ""


def missing_partitions(config: TableConfig, partitions: Iterable[str]) -> tuple[str, ...]:
    """Those of some partitions that the table lacks, the file lists before all; those that are not kept are none."""
    names = {*partitions}
    names |= {str(MetadataPartition.FILES)} if names else set()
    version = VERSIONS[config.version]
    if MetadataPartition.COLUMN_STATS in names and version.types_statistics and config.partition_by:
        names.add(str(MetadataPartition.PARTITION_STATS))  # Hudi has both or none
    kinds = kinds_of(names - {*config.metadata_partitions})
    return tuple(str(kind.partition) for kind in kinds if kind.is_of(version))


def not_built(config: TableConfig, partitions: Iterable[str]) -> str:
    """Why some partitions that a table lacks are not built here; "" where they are."""
    names = {str(name) for name in partitions} - {str(MetadataPartition.PARTITION_STATS)}  # as column statistics are
    new = [kind for kind in kinds_of(names) if kind.partition not in config.metadata_partitions]
    if new and config.was_upgraded:
        return f"the metadata table of a table that was upgraded to version {config.version} is not built here"
    if unfit := [str(kind.partition) for kind in new if not kind.is_of(VERSIONS[config.version])]:
        return f"{', '.join(unfit)} of the metadata table of a table of version {config.version} is not built here"
    return ""


def recorded_settings(partitions: Iterable[str], options: MetadataOptions) -> dict[str, str]:
    """What the table's settings keep of the options of some partitions."""
    return {key: value for kind in kinds_of(partitions) for key, value in kind.settings(options).items()}


def build(
    storage: Storage,
    config: TableConfig,
    timeline: Timeline,
    partitions: Iterable[str] = (),
    options: MetadataOptions | None = None,
    read_keys: ReadKeys | None = None,
    executors: Executors | None = None,
) -> bool:
    """Build the file lists of a table that has no metadata table, or one that was begun, and other partitions that it
    lacks; whether they are there now.

    timeline    of the table, loaded just now, for which `why_not_built` has no reason
    partitions  names; those that are not kept are passed by
    read_keys   as of `Building`
    executors   carry out what is large; None: this process does all
    returns     False when another writer began meanwhile, whose files may not be among those that were listed
    Raises      as `load_view`; CorruptFile, UnsupportedTable where a partition cannot be built of the table's files, or
                the table's version has none that is kept
    """
    names = {str(MetadataPartition.FILES), *partitions}
    if problem := not_built(config, names):
        raise UnsupportedTable(f"{config.name}: {problem}. Hudi's next write builds it by default")
    config = _sound_config(storage, config, timeline, names)
    new = missing_partitions(config, names)
    building = Building(
        storage, config, timeline, "", _all_files(storage, config, timeline), options or MetadataOptions(), read_keys
    )
    if new:
        undefine_expressions(storage, config, {*config.metadata_partitions, *config.metadata_inflight})
    if str(MetadataPartition.FILES) in new:
        drop_metadata(storage)
        inside = SubfolderStorage(storage, FOLDER)
        create_properties(inside, {"hoodie.table.name": f"{config.name}_metadata", **_properties(config)})
    read = sum(size for files in building.files.added.values() for size in files.values())
    run = executors.run if executors is not None and read > executors.above else None
    for kind in kinds_of(new):
        instant = _free_time(storage, config, timeline)
        _write_first(replace(building, instant=instant), kind, None if kind is FILES else run)
    complete_ones = tuple(sorted({*config.metadata_partitions, *new}))
    if _began_meanwhile(storage, config, timeline):
        for name in new:
            storage.delete_tree(FOLDER if name == MetadataPartition.FILES else join(FOLDER, name))
        return False
    settings = {**recorded_settings(new, building.options), **_define(building, new)}
    update_properties(storage, {PARTITIONS: ",".join(complete_ones), **settings})
    if _began_meanwhile(storage, config, timeline):  # a writer that does not know of it would leave it behind
        drop_partitions(storage, replace(config, metadata_partitions=complete_ones), new)
        return False
    return True


def _define(building: Building, names: Collection[str]) -> dict[str, str]:
    """Define the partitions that have been built; settings of the table that say where the definitions are.

    names  of the partitions
    """
    if not VERSIONS[building.config.version].types_statistics:
        return {}
    new = {}
    if MetadataPartition.COLUMN_STATS in names:
        name = str(MetadataPartition.COLUMN_STATS)
        new[name] = IndexDefinition(name, name, name, first_columns(building), version=TYPED)
    if MetadataPartition.RECORD_INDEX in names:
        name = str(MetadataPartition.RECORD_INDEX)
        new[name] = IndexDefinition(name, name, options={"isPartitioned": "false"}, version="V1")
    if not new:
        return {}
    write_definitions(building.storage, building.config, {**read_definitions(building.storage, building.config), **new})
    return {PATH: building.config.properties.get(PATH, DEFAULT_PATH)}


def _properties(config: TableConfig) -> dict[str, str]:
    version = VERSIONS[config.version]
    numbers = {"hoodie.table.version": str(version.number), "hoodie.timeline.layout.version": str(version.layout)}
    if version.defines_indexes:
        numbers["hoodie.table.initial.version"] = str(version.number)
    return {**_PROPERTIES, **numbers, **_BY_LAYOUT[version.layout]}


def _sound_config(storage: Storage, config: TableConfig, timeline: Timeline, partitions: Iterable[str]) -> TableConfig:
    """The settings to build on: without a metadata table that is behind, and without partitions that were begun."""
    if str(MetadataPartition.FILES) not in config.metadata_partitions:
        return replace(config, metadata_partitions=(), metadata_inflight=())
    table = open_metadata(storage, config, timeline)
    assert table is not None  # its file lists are complete
    if missing_partitions(config, partitions) and (problem := table.problem()):
        drop_with_warning(storage, problem)
        return replace(config, metadata_partitions=(), metadata_inflight=())
    return config


def _began_meanwhile(storage: Storage, config: TableConfig, timeline: Timeline) -> bool:
    return load_timeline(storage, config).instants != timeline.instants


def _all_files(storage: Storage, config: TableConfig, timeline: Timeline) -> FileChanges:
    """The files of a table, without those of writes that no instant stands for."""
    folders = list_folders(storage)
    view = load_view(storage, timeline, config, folders=folders)
    partitions = folders.with_unmarked(view.unmarked)
    visible = view.timeline.visible()  # with the history, where commits have left the timeline
    files = [file for file in data_files(partitions) if visible.committed(file.base_instant)]
    return of_listing(partitions, files)


def _free_time(storage: Storage, config: TableConfig, timeline: Timeline) -> str:
    """The first that is free: of the newest completed instant of the table with three digits more; in layout 2, of the
    numbers from 0 on."""
    inside = SubfolderStorage(storage, FOLDER)
    own = own_config(config)
    taken = {instant.requested for instant in load_timeline(inside, own).instants}
    if VERSIONS[config.version].layout == 2:
        return next(time for number in range(1000) if (time := f"{number:017}") not in taken)
    newest = max((instant.requested for instant in timeline.instants), default=_NOTHING)
    return next(time for number in range(_FIRST, 1000) if (time := f"{newest}{number:03}") not in taken)


def _write_first(building: Building, kind: PartitionKind, run: MapItems | None) -> None:
    """The first delta commit of a partition: log files mark its file groups, those with records get base files."""
    folder, instant = str(kind.partition), building.instant
    storage = SubfolderStorage(building.storage, FOLDER)
    storage.delete_tree(folder)  # what a writer left that died
    ensure_partition(storage, folder, instant)
    layout = layout_of(building.config)
    requested = create_requested(storage, instant, Action.DELTA_COMMIT, layout=layout)
    begun = to_inflight(storage, requested, just_requested=True, layout=layout)
    first, schema = kind.first(building), stored_schema_of(layout.version)
    stats = write_base_files(building.storage, storage, kind.partition, instant, first, run, schema)
    by_partition = {folder: tuple(stats)} if stats else {}
    extra = {"schema": record_schema_text(layout.version)}
    commit = CommitMetadata(operation=Operation.BULK_INSERT, stats=by_partition, extra=extra)
    complete(storage, begun, completed_content(commit, Action.DELTA_COMMIT, layout), layout=layout)
