"""Examining a table: checks its invariants, and says what to do about violations.

Nothing is changed; `hoodie.doctor.repair` repairs what is safe without a person.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

from hoodie.config.read import DEFAULT_READ, ReadSettings
from hoodie.config.table import DOWNGRADED_FROM, PROPERTIES_FOLDER, TableConfig, from_properties
from hoodie.doctor.engines import ENGINES
from hoodie.doctor.files import damaged_metafiles, examine_files, named_and_missing
from hoodie.doctor.findings import Contents, Fault, Finding, Findings, Mend, Remedy, Scene, Severity
from hoodie.doctor.key_columns import damaged_history_of_columns, lost_key_columns
from hoodie.doctor.metadata import damaged_definitions, unlisted_logs, wrong_lists
from hoodie.doctor.rows import examine_columns, examine_rows
from hoodie.doctor.timeline import (
    archives,
    damaged_history,
    files_for_folders,
    leftovers,
    other_tables,
    pending_instants,
    read_contents,
    read_names,
    read_settings,
    temporaries,
)
from hoodie.errors import CorruptFile, HoodieError, InvalidInput, clause
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Entry, Storage
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.state import TableState
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import load_timeline
from hoodie.timeline.stopped_upgrade import UPGRADED_FOLDER, late_writes, stopped, stopped_upgrade
from hoodie.view.load import data_files, list_table, load_view, refuse_lost_timeline, require_rows, slice_instants

__all__ = ["GRACE", "Fault", "Finding", "Mend", "Remedy", "Severity", "examine"]

#: Seconds within which apparent leftovers may be the work of a live process.
GRACE = 3600.0
#: How often a table is examined at most, where something that was listed went away while others wrote it.
_ATTEMPTS = 3
#: Faults that another process at work causes for a moment: it removed or published files since the timeline was listed.
_TRANSIENT = {Fault.MISSING, Fault.UNEXAMINED, Fault.LISTS}


class _ListedStorage(WrappedStorage):
    """Answers for the timeline's folder with what was listed before, without what was found not to be an instant."""

    def __init__(self, inner: Storage, entries: list[Entry], folder: str) -> None:
        super().__init__(inner)
        self.entries, self.folder = entries, folder

    def list(self, folder: str = "") -> list[Entry]:
        return self.entries if folder == self.folder else self.inner.list(folder)


@typed_errors()
def examine(
    storage: Storage,
    reading: ReadSettings = DEFAULT_READ,
    *,
    rows: bool = True,
    whole_table: bool = False,
    all_columns: bool = False,
    metafiles: bool = False,
    grace: float = GRACE,
    engine: str = "",
    now: int | None = None,
    attempts: int = _ATTEMPTS,
) -> Findings:
    """The problems of a table, worst first; none: it is healthy.

    reading      settings of reads, such as the import paths of mergers that may be loaded
    rows         open the data files, too: keys, filters, key ranges, row counts. Costs a read of the key columns
    whole_table  a key must be unique in the table, not only in its partition (global indexes)
    all_columns  read every column of every base file, older versions included, and compare its pages with their
                 checksums. Costs a read of all bytes of the table
    metafiles    read those of partitions without `rows`, too
    grace        seconds; younger pending instants and leftovers count as the work of a live process
    engine       one of `doctor.engines.ENGINES`: also what it would not read, or would change
    now          milliseconds since 1970; None: the clock's
    attempts     how often to examine at most: again where files went away and the timeline has changed meanwhile, as
                 beside a writer that cleans and archives
    Raises       TableNotFound; UnsupportedTable when the table is of a kind that cannot be read; InvalidInput on
             another engine
    """
    if engine and engine not in tuple(ENGINES):
        raise InvalidInput(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
    properties, findings = read_settings(storage)
    if properties is None:
        return Findings(findings)
    try:
        config = from_properties(properties)
    except CorruptFile as error:
        advice = clause(error.advice) or "Restore it from a copy of the table"
        return Findings([*findings, Finding(Severity.ERROR, Fault.PROPERTIES, error.path, error.problem, advice)])
    require_rows(storage, config)

    # Files are listed before the timeline: a commit published meanwhile has its instant, but not yet its files.
    aside = storage.list_tree(".hoodie", skip=("metadata",))
    if blocked := list(files_for_folders(config, aside)):  # what lists these folders fails
        return Findings([*findings, *blocked])
    names = [entry.name for entry in storage.list(PROPERTIES_FOLDER)] if config.layout == 1 else []
    changes = list(_stopped_changes(storage, config, names))
    findings += changes
    if any(finding.severity is Severity.ERROR for finding in changes):
        return Findings(findings)
    tree, others = list_table(storage)
    folder = config.timeline_folder
    entries = storage.list(folder)
    states, unknown = read_names(entries, config.layout, folder)
    findings += unknown
    strange = {finding.where.rpartition("/")[2] for finding in unknown}
    listed = _ListedStorage(storage, [entry for entry in entries if entry.name not in strange], folder)
    timeline = load_timeline(listed, config)
    files = data_files(tree)
    history: list[Finding] = []
    try:
        timeline = with_history(storage, config, timeline, slice_instants(files))
    except CorruptFile as error:
        history.append(damaged_history(error))
    scene = Scene(
        storage=storage,
        config=config,
        timeline=timeline,
        states=states,
        aside=aside,
        tree=tree,
        files=files,
        now=time.time_ns() // 1_000_000 if now is None else now,
        grace=grace * 1000,
    )
    contents, broken = read_contents(scene)
    findings += broken
    findings += pending_instants(scene, contents, {finding.where for finding in (*unknown, *broken)})
    findings += leftovers(scene)
    findings += other_tables(others)
    findings += temporaries(scene, tree)
    history = history or list(archives(scene, contents=all_columns))
    findings += history
    lost_history = config.layout != 1 and any(f.severity is Severity.ERROR for f in history)
    findings += unlisted_logs(scene)
    findings += damaged_definitions(scene)
    if not lost_history:  # else the metadata table alone may know which files count
        findings += wrong_lists(scene, contents, contents=rows)
    if rows or metafiles:
        findings += damaged_metafiles(scene)
    if engine:
        findings += ENGINES[engine](scene, contents)
    if lost_history or any(f.fault in (Fault.UNREADABLE, Fault.UNKNOWN_NAME) for f in (*unknown, *broken)):
        problem = "data files: the timeline does not say which of them count"
        findings.append(Finding(Severity.NOTE, Fault.UNEXAMINED, "", problem, "Repair the timeline first"))
    else:
        findings += _examine_data(scene, contents, reading, rows, whole_table, all_columns)
        if attempts > 1 and any(f.fault in _TRANSIENT for f in findings) and storage.list(folder) != entries:
            return examine(
                storage,
                reading,
                rows=rows,
                whole_table=whole_table,
                all_columns=all_columns,
                metafiles=metafiles,
                grace=grace,
                engine=engine,
                now=now,
                attempts=attempts - 1,
            )
    return Findings(sorted(_safe(findings), key=lambda f: (-f.severity, f.fault, f.where)))


def _stopped_changes(storage: Storage, config: TableConfig, names: list[str]) -> Iterator[Finding]:
    """A change of the table's version that stopped half-way: an error; a write that one overtook: a warning.

    names  of the files beside the timeline of layout 1
    """
    folder = f".hoodie/{UPGRADED_FOLDER}"
    if names and (moved := stopped_upgrade(storage, names)):
        advice = "Run --repair; then examine again"
        remedy = Remedy(Mend.MOVE_BACK, folder)
        yield Finding(Severity.ERROR, Fault.UPGRADE, folder, stopped(len(moved)), advice, remedy)
    elif before := config.properties.get(DOWNGRADED_FROM):
        problem = f"a downgrade from version {before} stopped before its logs had the names of version {config.version}"
        advice = "Run --repair, or the downgrade again; then examine again"
        yield Finding(Severity.ERROR, Fault.DOWNGRADE, folder, problem, advice, Remedy(Mend.FINISH, folder))
    elif names and (late := late_writes(storage, names)):
        problem = f"{len(late)} instant files of a write of version 8 or 9 that began before the table was downgraded"
        advice = "If its writer is dead, the next write rolls it back; --repair does so now"
        remedy = Remedy(Mend.MOVE_BACK, folder)
        yield Finding(Severity.WARNING, Fault.DOWNGRADE, folder, problem, advice, remedy)


def _safe(findings: list[Finding]) -> list[Finding]:
    """The findings; where another table lies among the folders, what this one does not know may be that one's."""
    if all(finding.fault is not Fault.MISPLACED for finding in findings):
        return findings
    advice = "It may be the other table's: move that one away, and examine again"
    return [replace(f, advice=advice, remedy=None) if f.fault is Fault.ORPHAN else f for f in findings]


def _examine_data(
    scene: Scene, contents: Contents, reading: ReadSettings, rows: bool, whole_table: bool, all_columns: bool
) -> list[Finding]:
    if scene.files and not scene.timeline.instants:
        try:
            refuse_lost_timeline(scene.storage, scene.config, scene.files)
        except CorruptFile as error:
            return [Finding(Severity.ERROR, Fault.MISSING, error.path, error.problem, clause(error.advice))]
    findings = list(examine_files(scene, contents, rows=rows))
    state = TableState(scene.storage, scene.config, scene.timeline)
    try:
        if damaged_columns := list(damaged_history_of_columns(state)):
            return findings + damaged_columns
        lost = list(lost_key_columns(state))
        findings += lost
        if not rows or (lost and not scene.config.meta_fields):  # without the columns there are no keys
            return findings
        view = load_view(scene.storage, scene.timeline, scene.config)
        findings += named_and_missing(state, view, {finding.where for finding in findings})
        findings += examine_rows(
            scene, contents, state, view, reading, whole_table=whole_table, all_columns=all_columns
        )
        if all_columns:
            damaged = {finding.where for finding in findings if finding.fault is Fault.DAMAGED}
            half_written = scene.timeline.visible().open  # by compactions that are at work, or died
            bases = (base for group in view.groups.values() for base in group.bases)
            findings += examine_columns(
                scene.storage, (base for base in bases if base.path not in damaged and base.instant not in half_written)
            )
    except (HoodieError, FileNotFoundError) as error:
        problem = f"rows: {clause(error)}"
        advice = "Repair the other findings first; if a writer was active, examine again"
        findings.append(Finding(Severity.ERROR, Fault.UNEXAMINED, "", problem, advice))
    damaged = {finding.where for finding in findings if finding.fault is Fault.DAMAGED}
    return [finding for finding in findings if finding.fault is not Fault.SIZE or finding.where not in damaged]
