"""What readers lack, or look for in vain, that list files from the metadata table.

Its file lists are compared with the storage. After an upgrade there is more: logs that readers of Hudi 1.x lack, though
they are there.

Version 6 names a log by the base instant of its slice: one that was written behind the plan of a compaction has that
compaction's instant. From version 8 on the name has the instant of the write, and Hudi takes such a log for one of the
compaction: as long as that is pending no reader of Hudi's sees it, and the metadata table, which the upgrading write
builds, never lists it. Source: tests/fixtures/upgrades, pending_upgraded_by_1.2.0; tests/engines/test_upgrade_traps.py.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from hoodie.doctor.files import by_commits
from hoodie.doctor.findings import Contents, Fault, Finding, Mend, Remedy, Scene, Severity
from hoodie.doctor.timeline import read_contents, read_names, read_settings
from hoodie.errors import CorruptFile, HoodieError, SettingsMissing, TableNotFound, UnsupportedTable, clause
from hoodie.metadata.definitions import DEFAULT_PATH, PATH, UNDEFINED, read_definitions
from hoodie.metadata.keys import FOLDER, MetadataPartition
from hoodie.metadata.listing import listed_folders
from hoodie.metadata.table import open_metadata, own_config
from hoodie.metadata.validate import validate_metadata
from hoodie.model.files import LogFile
from hoodie.model.instant import Action
from hoodie.model.table_version import VERSIONS
from hoodie.reading.row_keys import read_keys
from hoodie.storage.protocol import join
from hoodie.storage.wrapped import SubfolderStorage
from hoodie.table.properties import PROPERTIES
from hoodie.timeline.load import load_timeline
from hoodie.view.load import data_files, folders_of_tree


def wrong_lists(scene: Scene, commits: Contents, *, contents: bool) -> Iterator[Finding]:
    """Differences between the file lists and the storage, of a table that is written.

    Where the commits say what the lists do it is the storage that is wrong: the metadata table stays, as without it
    readers would show what lies there.

    contents  and between other partitions and the data files, of a version in which these are kept
    """
    version = VERSIONS[scene.config.version]
    if not version.written or MetadataPartition.FILES not in scene.config.metadata_partitions:
        return
    if scene.config.was_upgraded:  # what its lists lack `unlisted_logs` says
        return
    folders = folders_of_tree({folder: list(entries) for folder, entries in scene.tree.items()})
    problems = list(_own_problems(scene))
    unlike: Mapping[str, int | None] = {}
    try:
        validation = validate_metadata(
            scene.storage, scene.config, scene.timeline, folders, read_keys, contents=contents
        )
        if validation is not None:
            problems += validation.problems
            unlike = validation.lists
    except (HoodieError, FileNotFoundError) as damage:
        problems.append(clause(damage))
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        problem = f"{problems[0]}{more}"
        if len(problems) == len(unlike) and by_commits(scene, commits, unlike):
            problem = f"{problem}; the commits say so as well"
            advice = (
                "Restore files that are lost or changed, and move away what no commit wrote. Keep the metadata table: "
                "readers that list folders see what lies there"
            )
            yield Finding(Severity.ERROR, Fault.UNLIKE, min(unlike), problem, advice)
            return
        advice = (
            "--repair removes the metadata table: readers list folders then. `hoodie metadata create` builds it anew"
        )
        yield Finding(Severity.ERROR, Fault.LISTS, FOLDER, problem, advice, Remedy(Mend.METADATA, FOLDER))


def damaged_definitions(scene: Scene) -> Iterator[Finding]:
    """Index definitions that are lost or cannot be read: Hudi's queries with filters fail on them."""
    storage, config = scene.storage, scene.config
    if not VERSIONS[config.version].defines_indexes:
        return
    path = config.properties.get(PATH, DEFAULT_PATH)
    try:
        read_definitions(storage, config)
    except CorruptFile as damage:
        if not {*config.metadata_partitions, *config.metadata_inflight} <= UNDEFINED:
            advice = "The next write removes what they are about; --repair removes the whole metadata table"
            yield Finding(Severity.ERROR, Fault.LISTS, path, damage.problem, advice, Remedy(Mend.METADATA, FOLDER))
        elif storage.exists(path):
            advice = "No partition of the metadata table needs them: it can be deleted"
            yield Finding(Severity.ERROR, Fault.LISTS, path, damage.problem, advice, Remedy(Mend.DELETE, path))


def _own_problems(scene: Scene) -> Iterator[str]:
    """What is wrong with the settings and the timeline of the metadata table: Hudi opens it as a table, and fails."""
    inside = SubfolderStorage(scene.storage, FOLDER)
    if not inside.list(".hoodie"):
        return  # there is none: the comparison says so
    try:
        _, damages = read_settings(inside)
        yield from (f"{FOLDER}/{finding.where}: {finding.problem}" for finding in damages)
    except (SettingsMissing, TableNotFound):
        yield f"{FOLDER}/{PROPERTIES} is missing"
    except IsADirectoryError:
        yield f"{FOLDER}/{PROPERTIES} is a folder"
    own = own_config(scene.config)
    states, unknown = read_names(inside.list(own.timeline_folder), own.layout, own.timeline_folder)
    yield from (f"{FOLDER}/{finding.where}: {finding.problem}" for finding in unknown)
    if unknown:
        return
    try:
        timeline = load_timeline(inside, own)
    except UnsupportedTable as problem:  # Hudi made it anew, of a version that the table does not have
        yield f"{FOLDER}: {clause(problem)}"
        return
    _, broken = read_contents(replace(scene, storage=inside, config=own, timeline=timeline, states=states))
    yield from (f"{FOLDER}/{finding.where}: {finding.problem}" for finding in broken)


def unlisted_logs(scene: Scene) -> Iterator[Finding]:
    """The logs of an upgraded Merge-on-Read table that were written behind the plan of a compaction."""
    if scene.timeline.layout == 1 or not scene.config.merge_on_read:
        return
    pending = _logs(scene, {i.requested for i in scene.timeline.instants if i.action is Action.COMPACTION})
    if pending:
        problem = (
            f"{_files_text(pending)} was written behind a compaction that is pending: readers of Hudi 1.x lack its rows"
        )
        advice = "Let Hudi run the compaction (CALL run_compaction(op => 'run', path => '...')), then --repair"
        yield Finding(Severity.ERROR, Fault.UNLISTED, pending[0], problem, advice)
        return
    # A commit of a Merge-on-Read table is a completed compaction.
    completed = _logs(scene, {i.requested for i in scene.timeline.instants if i.action is Action.COMMIT})
    if not completed or MetadataPartition.FILES not in scene.config.metadata_partitions:
        return
    if unlisted := sorted({*completed} - _listed_paths(scene)):
        problem = (
            f"the metadata table that Hudi 1.x built does not list {_files_text(unlisted)}: its readers lack these rows"
        )
        advice = "--repair removes the metadata table: Hudi then lists folders, and its next write builds it again"
        yield Finding(Severity.ERROR, Fault.UNLISTED, FOLDER, problem, advice, Remedy(Mend.METADATA, FOLDER))


def _listed_paths(scene: Scene) -> set[str]:
    """Paths of the files that the metadata table lists; none where it cannot be read."""
    with suppress(HoodieError, FileNotFoundError):
        table = open_metadata(scene.storage, scene.config, scene.timeline)
        if table is not None:
            return {file.path for file in data_files(listed_folders(table).marked)}
    return set()


def _logs(scene: Scene, instants: Collection[str]) -> list[str]:
    """Paths of the logs of rows whose name has one of these instants. Hudi 1.2 logs changes in a compaction, too."""
    logs = (file for file in scene.files if isinstance(file, LogFile) and not file.cdc)
    return sorted(join(log.group.partition, log.name) for log in logs if log.base_instant in instants)


def _files_text(logs: list[str]) -> str:
    return f"{logs[0]} and {len(logs) - 1} more" if len(logs) > 1 else logs[0]
