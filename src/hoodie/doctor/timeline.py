"""The doctor's checks of `.hoodie`: settings, instants and their content, leftovers of dead writers.

Source: docs/design/invariants.md 2, 6; docs/format/table-and-timeline.md 2, 4, 5.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hoodie.commit.conflict_check import FAILED
from hoodie.commit.lost import completed_path, lost_completion, unmarked
from hoodie.config.services import ArchiveOptions
from hoodie.config.table import TableConfig
from hoodie.doctor.damaged_instants import COMPACTIONS, damaged_instant
from hoodie.doctor.findings import Contents, Fault, Finding, Mend, Remedy, Scene, Severity
from hoodie.errors import CorruptFile, clause
from hoodie.formats.java.properties import CHECKSUM, parse_properties, verify_checksum
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.timeline import services
from hoodie.formats.timeline.archive_log import decode_entries, with_java_headers
from hoodie.formats.timeline.internal_schema import SCHEMA_FOLDER
from hoodie.formats.timeline.plans import decode_compaction_plan, decode_replace_plan
from hoodie.locks.clock import LOCKS
from hoodie.metadata.keys import FOLDER
from hoodie.model.instant import COMMITS, WRITES, Action, Instant, State
from hoodie.model.plans import CleanMetadata
from hoodie.reading.changes.plan import refuse_lost_history
from hoodie.storage.protocol import Entry, Storage, is_temporary, join, split
from hoodie.table.properties import BACKUP, PROPERTIES, load_properties
from hoodie.table.state import TableState
from hoodie.timeline.archive import archive_files, archived_commits, commits_that_left
from hoodie.timeline.cleanings import refuse_other_clean
from hoodie.timeline.completions import VERSION_FILE, history_sizes
from hoodie.timeline.history import history_rows
from hoodie.timeline.load import read_commit
from hoodie.timeline.stopped_upgrade import UPGRADED_FOLDER
from hoodie.timeline.timeline import comparable_action, parse_name

MARKERS = ".hoodie/.temp"
HEARTBEATS = ".hoodie/.heartbeat"
_ROWS = 10_000  # of the history at once


#: Versions of tables whose Hudi, before 0.11, wrote no checksum.
_WITHOUT_CHECKSUM = ("0", "1", "2", "3")

States = dict[tuple[str, Action], dict[State, Entry]]


# --- what Hudi 1.x stumbles on ---


def archives(scene: Scene, *, contents: bool) -> Iterator[Finding]:
    """Files of the archive that cannot be read, and those of layout 1 that the upgrade by Hudi 1.x cannot.

    contents  read each entry, too
    """
    if scene.config.layout != 1:
        yield from _history(scene, contents=contents)
        return
    for path in archive_files(scene.storage, scene.config).values():
        try:
            yield from _archive(path, scene.storage.read(path), contents=contents)
        except FileNotFoundError:  # merged into another one meanwhile
            continue
        except CorruptFile as error:
            advice = "Restore the file from a copy of the table"
            yield Finding(Severity.ERROR, Fault.HISTORY, path, error.problem, advice)
    if contents:
        yield from _lost_archives(scene)


def _lost_archives(scene: Scene) -> Iterator[Finding]:
    """Commits that a later one was made on, and that are neither on the timeline nor in the archive."""
    state = TableState(scene.storage, scene.config, scene.timeline)
    try:
        history = commits_that_left(scene.storage, scene.config, scene.timeline, "")
        refuse_lost_history(state, scene.timeline.with_archived(history.commits), "")
    except CorruptFile as error:
        if error.path == scene.config.history_folder:  # else there is a finding
            problem = f"{clause(error.problem)}: changes of its time are refused"
            yield Finding(Severity.ERROR, Fault.HISTORY, error.path, problem, "Restore it from a copy of the table")


def _archive(path: str, data: bytes, *, contents: bool) -> Iterator[Finding]:
    """Raises CorruptFile"""
    lacking = with_java_headers(data, path) is not None
    if not data or any(block.kind is BlockKind.CORRUPT for block in read_blocks(data, path)):
        problem = "it is empty, or a block of it cut short: its writer died, or instants of the history are lost"
        advice = "No row depends on it; if the history is needed, restore the file from a copy of the table"
        yield Finding(Severity.NOTE, Fault.HISTORY, path, problem, advice)
    elif contents:
        for _ in decode_entries(data, path):
            pass
    if lacking:
        problem = "its schemas have no Java strings: the upgrade by Hudi 1.1 and later stops half-way"
        advice = "Hoodie reads it; --repair writes them before a job of Hudi 1.x is let in"
        yield Finding(Severity.WARNING, Fault.ARCHIVE, path, problem, advice, Remedy(Mend.ARCHIVE, path))


def _history(scene: Scene, *, contents: bool) -> Iterator[Finding]:
    """The first file of the history of layout 2 that is missing, has another size, or cannot be read."""
    folder = scene.config.history_folder
    try:
        # The manifest first: what it lists is there already, and stays for a while.
        listed = history_sizes(scene.storage, folder)
        sizes = {entry.name: entry.size for entry in scene.storage.list(folder)}
        for name, size in listed.items():
            if name not in sizes:
                raise CorruptFile(join(folder, name), "missing, though the history's manifest lists it")
            if size >= 0 and sizes[name] != size:
                raise CorruptFile(join(folder, name), f"{sizes[name]} bytes, and the history's manifest says {size}")
        if contents:
            for _ in history_rows(scene.storage, folder, _ROWS):
                pass
    except CorruptFile as error:
        yield damaged_history(error)


def damaged_history(error: CorruptFile) -> Finding:
    """Without the history of layout 2 nobody knows when archived instants were completed. Where the name of the current
    manifest is all that is damaged, the newest manifest is the current one."""
    if error.path.endswith(f"/{VERSION_FILE}") and "names version" not in error.problem:
        advice, remedy = "It can be deleted: the newest manifest counts then", Remedy(Mend.DELETE, error.path)
        return Finding(Severity.ERROR, Fault.HISTORY, error.path, error.problem, advice, remedy)
    advice = clause(error.advice) or "Restore the file from a copy of the table"
    return Finding(Severity.ERROR, Fault.HISTORY, error.path, error.problem, advice)


# --- settings ---


def read_settings(storage: Storage) -> tuple[dict[str, str] | None, list[Finding]]:
    """The table's settings, None when they cannot be read, and their problems. Raises TableNotFound"""
    findings: list[Finding] = []
    if storage.exists(BACKUP):
        problem = "a writer that was changing the table's settings died, or is still changing them"
        advice = "The next change of settings finishes it; --repair does so now"
        restored = Remedy(Mend.RECOVER, PROPERTIES)
        findings.append(Finding(Severity.WARNING, Fault.BACKUP, BACKUP, problem, advice, restored))
    try:
        properties = load_properties(storage, sleep=lambda seconds: None)
        return properties, [*findings, *_cut_settings(storage, properties)]
    except CorruptFile as error:
        fault = error
    remedy = findings[0].remedy if findings else None
    try:
        properties = parse_properties(storage.read(PROPERTIES), PROPERTIES)
        verify_checksum(properties, PROPERTIES)
    except FileNotFoundError:
        properties = {}
    except CorruptFile as error:
        if CHECKSUM in error.problem:
            advice = "If the names in it are right, repair with --checksum; else restore the file"
            remedy = Remedy(Mend.CHECKSUM, PROPERTIES)
            finding = Finding(Severity.ERROR, Fault.CHECKSUM, error.path, error.problem, advice, remedy)
            return properties, [*findings, finding]
        properties = {}
    advice = clause(fault.advice) or "Restore it from a copy of the table"
    return None, [*findings, Finding(Severity.ERROR, Fault.PROPERTIES, fault.path, fault.problem, advice, remedy)]


def _cut_settings(storage: Storage, properties: Mapping[str, str]) -> Iterator[Finding]:
    """Signs that settings which can be read are not all that there were."""
    if not storage.exists(PROPERTIES):
        return  # a writer died that had them in the backup; there is a finding
    if not storage.read(PROPERTIES).endswith(b"\n"):
        problem = "the file ends within a line: it was cut short, and the settings behind are lost"
        yield Finding(Severity.ERROR, Fault.PROPERTIES, PROPERTIES, problem, "Restore it from a copy of the table")
    elif CHECKSUM not in properties and properties.get("hoodie.table.version", "") not in _WITHOUT_CHECKSUM:
        problem = f"it has no {CHECKSUM}, which each writer puts there: settings may be lost"
        advice = "Compare it with a copy of the table; if it has all settings, repair with --checksum"
        remedy = Remedy(Mend.CHECKSUM, PROPERTIES)
        yield Finding(Severity.WARNING, Fault.CHECKSUM, PROPERTIES, problem, advice, remedy)


# --- names and contents ---


def read_names(entries: list[Entry], layout: int, folder: str) -> tuple[States, list[Finding]]:
    """The files of the timeline's folder by instant and state, and those that only look like an instant."""
    states: States = {}
    findings = []
    for entry in entries:
        try:
            instant = parse_name(entry.name, layout, folder)
        except CorruptFile as error:
            if not entry.is_dir:
                advice = "Every reader fails on it: move it away if it is not the table's"
                findings.append(Finding(Severity.ERROR, Fault.UNKNOWN_NAME, error.path, error.problem, advice))
            continue
        if instant is not None and entry.is_dir:
            problem = "a folder has the name of an instant's file"
            advice = "Move it away, restore the file from a copy of the table if it is lost, and examine again"
            where = join(folder, entry.name)
            findings.append(Finding(Severity.ERROR, Fault.UNKNOWN_NAME, where, problem, advice))
        elif instant is not None:
            key = (instant.requested, comparable_action(instant.action))
            states.setdefault(key, {})[instant.state] = entry
    return states, findings


Decoder = Callable[[bytes, str], Any]
#: What the files hold that are Avro in both layouts. Replace commits' requested files may be empty.
_DECODERS: Mapping[tuple[Action, State], Decoder] = {
    (Action.COMPACTION, State.REQUESTED): decode_compaction_plan,
    (Action.LOG_COMPACTION, State.REQUESTED): decode_compaction_plan,
    (Action.REPLACE_COMMIT, State.REQUESTED): decode_replace_plan,
    (Action.CLUSTERING, State.REQUESTED): decode_replace_plan,
    (Action.CLEAN, State.REQUESTED): services.decode_clean_plan,
    (Action.CLEAN, State.INFLIGHT): services.decode_clean_plan,
    (Action.CLEAN, State.COMPLETED): services.decode_clean_metadata,
    (Action.ROLLBACK, State.REQUESTED): services.decode_rollback_plan,
    (Action.ROLLBACK, State.COMPLETED): services.decode_rollback_metadata,
    (Action.SAVEPOINT, State.COMPLETED): services.decode_savepoint,
    (Action.RESTORE, State.REQUESTED): services.decode_restore_plan,
    (Action.RESTORE, State.COMPLETED): services.decode_restore_metadata,
}
_MAY_BE_EMPTY = {(Action.REPLACE_COMMIT, State.REQUESTED), (Action.CLUSTERING, State.REQUESTED)}
_PLANS = {Action.CLEAN, Action.ROLLBACK}


def read_contents(scene: Scene) -> tuple[Contents, list[Finding]]:
    """The content of the instants, and which of their files are empty or unreadable."""
    findings: list[Finding] = []
    contents: dict[tuple[Action, State], dict[Instant, Any]] = {}
    highest = {(i.requested, comparable_action(i.action)): i for i in scene.timeline.instants}
    for key, states in sorted(scene.states.items()):
        for state, entry in sorted(states.items()):
            path = join(scene.timeline.folder, entry.name)
            instant = _instant_of(scene, entry)
            value, finding = _content(scene, instant, entry, path, states)
            findings += finding
            if value is not None:
                # A plan is stored under its pending instant.
                owner = instant if state is State.COMPLETED else highest[key]
                contents.setdefault((instant.action, state), {})[owner] = value
        findings += _half_begun(scene, key, states)

    def pending_plans(action: Action) -> dict[Instant, Any]:
        plans = contents.get((action, State.REQUESTED), {})
        return {i: plan for i, plan in plans.items() if i.state is not State.COMPLETED}

    def completed(action: Action) -> dict[Instant, Any]:
        return contents.get((action, State.COMPLETED), {})

    cleans = completed(Action.CLEAN)
    return Contents(
        commits={i: value for action in COMMITS for i, value in completed(action).items()},
        compactions=pending_plans(Action.COMPACTION) | pending_plans(Action.LOG_COMPACTION),
        replaces=pending_plans(Action.REPLACE_COMMIT) | pending_plans(Action.CLUSTERING),
        clean_plans={i: p for i, p in contents.get((Action.CLEAN, State.REQUESTED), {}).items() if i not in cleans},
        cleans=cleans,
        rollbacks=completed(Action.ROLLBACK),
        savepoints=completed(Action.SAVEPOINT),
    ), findings


def _instant_of(scene: Scene, entry: Entry) -> Instant:
    instant = parse_name(entry.name, scene.timeline.layout, scene.timeline.folder)
    assert instant is not None  # read_names left others out
    if instant.state is State.COMPLETED:  # the loaded one has its completion time
        instant = scene.timeline.find(instant.requested, instant.action) or instant
    return instant


def _content(
    scene: Scene, instant: Instant, entry: Entry, path: str, states: Mapping[State, Entry]
) -> tuple[Any, list[Finding]]:
    """The content of an instant's file, None when it is irrelevant or unreadable."""
    writes = instant.action in COMMITS and instant.state is not State.REQUESTED
    decode = _DECODERS.get((instant.action, instant.state))
    try:
        if entry.size == 0:
            return None, _empty(scene, instant, path, states)
        if writes:
            metadata = read_commit(scene.storage, scene.timeline, instant)
            if instant.state is not State.COMPLETED:
                return None, []
            return (None, _empty(scene, instant, path, states)) if metadata.says_nothing else (metadata, [])
        value = None if decode is None else decode(scene.storage.read(path), path)
        if isinstance(value, CleanMetadata):
            refuse_other_clean(value, instant, path)
        return value, []
    except FileNotFoundError:  # archived, or rolled back, since it was listed
        return None, []
    except CorruptFile as error:
        return None, list(damaged_instant(scene, instant, path, states, Fault.UNREADABLE, error.problem))


def _empty(scene: Scene, instant: Instant, path: str, states: Mapping[State, Entry]) -> list[Finding]:
    action, state = instant.action, instant.state
    if state is State.COMPLETED:
        problem = "the instant is completed and there is nothing in its file: its writer died while publishing"
        problem += ", and nothing says which files it wrote" if action in COMMITS else ""
        return list(damaged_instant(scene, instant, path, states, Fault.EMPTY, problem))
    needs = (action, state) in _DECODERS and (action, state) not in _MAY_BE_EMPTY
    # Hudi 1.x begins cleans of tables of version 6, too, with an empty file.
    begun = scene.timeline.layout == 2 or (action is Action.CLEAN and State.COMPLETED in states)
    if not needs or (state is State.INFLIGHT and begun):
        return []
    problem = f"the plan of a {action} is empty: its writer died while writing it"
    return list(damaged_instant(scene, instant, path, states, Fault.EMPTY, problem))


def _half_begun(scene: Scene, key: tuple[str, Action], states: Mapping[State, Entry]) -> list[Finding]:
    """An inflight instant that was never requested: no writer leaves that. (Archiving leaves only completed ones.)"""
    if set(states) != {State.INFLIGHT} or key[1] is Action.SAVEPOINT:
        return []
    entry = states[State.INFLIGHT]
    path = join(scene.timeline.folder, entry.name)
    problem = "the instant is inflight, and its requested file is missing"
    instant = _instant_of(scene, entry)
    if instant.action in COMPACTIONS:
        return list(damaged_instant(scene, instant, path, states, Fault.HALF, problem))
    if key[1] in _PLANS:
        remedy = Remedy(Mend.DELETE, path) if scene.is_settled(entry.mtime) else None
        return [Finding(Severity.ERROR, Fault.HALF, path, problem, "Nothing can finish it: it can be deleted", remedy)]
    if key[1] in FAILED and key[1] is not Action.REPLACE_COMMIT:  # it is rolled back as any other
        return []
    if key[1] is not Action.REPLACE_COMMIT:
        return [Finding(Severity.ERROR, Fault.HALF, path, problem, "Restore it from a copy of the table")]
    remedy = Remedy(Mend.ROLL_BACK, instant.requested) if scene.is_settled(_sign_of_life(scene, instant)) else None
    advice = "Hudi neither reads nor writes the table meanwhile. If its writer is dead, --repair rolls it back"
    return [Finding(Severity.ERROR, Fault.HALF, path, problem, advice, remedy)]


# --- pending instants and leftovers ---


def pending_instants(scene: Scene, contents: Contents, damaged: Collection[str] = ()) -> Iterator[Finding]:
    """Pending instants whose process is no longer active.

    damaged  paths of which there is a finding, such as of files that cannot be read
    """
    newest, archived = scene.timeline.newest_commit, _archived(scene)
    for instant in scene.timeline.instants:
        if instant.state is State.COMPLETED or not scene.is_settled(_sign_of_life(scene, instant)):
            continue
        files = {scene.timeline.path(pending) for pending in (instant, replace(instant, state=State.REQUESTED))}
        begun = instant.action in COMMITS and instant.state is State.INFLIGHT
        if not begun and not files.isdisjoint(damaged):
            continue
        path = scene.timeline.path(instant)
        if instant.requested in archived:
            problem = "its instant was completed and archived, and readers take it for pending"
            for entry in scene.states[instant.requested, comparable_action(instant.action)].values():
                where = join(scene.timeline.folder, entry.name)
                yield Finding(
                    Severity.ERROR, Fault.STALE, where, problem, "It can be deleted", Remedy(Mend.DELETE, where)
                )
            continue
        lost = None
        if instant.action in WRITES:
            state = TableState(scene.storage, scene.config, scene.timeline)
            lost = lost_completion(state, instant, contents.commits, contents.plans)
        if lost is not None:
            if lost.path not in damaged:
                problem = f"{lost.problem}, and readers miss its rows"
                yield Finding(Severity.ERROR, Fault.HOLLOW, lost.path, problem, clause(lost.advice))
        elif path in damaged:
            continue
        # Fewer than three states: it did not get as far as any effect that a plan must undo.
        elif instant.action in COMMITS and not _is_clustering(contents, instant):
            hollow = instant.requested < newest
            fault = Fault.HOLLOW if hollow else Fault.STALE
            problem = f"a {instant.action} began and did not end" + (", and later ones did" if hollow else "")
            if hollow:
                problem += ": incremental readers stop before it, or miss it, and archiving stops there"
            advice = "If its writer is dead, the next write rolls it back; --repair does so now"
            if unmarked(scene.storage, instant, state.layout):
                completed = completed_path(instant, state.layout, instant.requested)
                problem += "; it has files and no markers, as one that was completed and lost its completed file"
                advice = f"If it succeeded, restore that file before, or create {completed} empty. {advice}"
            yield Finding(Severity.WARNING, fault, path, problem, advice, Remedy(Mend.ROLL_BACK, instant.requested))
        elif instant.action is Action.ROLLBACK:
            advice = "The next write finishes it; --repair does so now"
            half = State.REQUESTED not in scene.states[instant.requested, Action.ROLLBACK]
            remedy = None if half else Remedy(Mend.RESUME, instant.requested)
            yield Finding(Severity.WARNING, Fault.STALE, path, "a rollback began and did not end", advice, remedy)
        elif instant.action is Action.SAVEPOINT:  # it keeps nothing before it is completed, and blocks nothing
            advice = "Make the savepoint again, or delete the file"
            remedy = Remedy(Mend.DELETE, path)
            problem = "a savepoint was begun, or is half deleted"
            yield Finding(Severity.NOTE, Fault.STALE, path, problem, advice, remedy)
        elif instant.state is State.INFLIGHT or instant.action not in _SCHEDULED:
            advice = _FINISH.get(instant.action, "Run it again with what began it")
            problem = f"a {instant.action} began and did not end"
            yield Finding(Severity.WARNING, Fault.STALE, path, problem, advice)
        elif instant.action in WRITES and (late := _commits_behind(scene, instant)) > ArchiveOptions().max_commits:
            what = "clustering" if _is_clustering(contents, instant) else instant.action
            hours = (scene.now - _sign_of_life(scene, instant)) // 3_600_000
            problem = f"a {what} was planned {hours} h ago and is not run: archiving stops there, {late} commits behind"
            yield Finding(Severity.WARNING, Fault.STALE, path, problem, _RUN[instant.action is Action.COMPACTION])


def _commits_behind(scene: Scene, instant: Instant) -> int:
    return sum(commit.requested > instant.requested for commit in scene.timeline.commits)


def _archived(scene: Scene) -> set[str]:
    """The pending instants that the archive has as completed. It is read only where one is older than the timeline."""
    old = {instant.requested for instant in scene.timeline.pending() if instant.requested < scene.timeline.first_commit}
    try:
        commits = archived_commits(scene.storage, scene.config) if old else []
    except CorruptFile:  # there is a finding
        return set()
    return old & {instant.requested for instant, _ in commits}


#: Instants that wait to be run: requested is not a problem.
_SCHEDULED = {Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT, Action.INDEXING}
_FINISH = {
    Action.COMPACTION: "Run it again: it starts over",
    Action.CLEAN: "The next clean finishes it",
    Action.RESTORE: "No write is accepted before it is finished: run the restore again",
}
#: The ways out of a plan that waits, by whether it is one that is run here.
_RUN = {
    True: "Run it (hoodie compaction run) or withdraw it (hoodie compaction unschedule)",
    False: "Have the job of Hudi that planned it run it, or delete the file if no job will: no row depends on it",
}


def _is_clustering(contents: Contents, instant: Instant) -> bool:
    plan = contents.replaces.get(instant)
    return plan is not None and plan.clustering is not None


def _sign_of_life(scene: Scene, instant: Instant) -> int:
    """When a writer of the instant was last active: by its instant files, its heartbeat, its markers."""
    time = instant.requested
    files = list(scene.states[time, comparable_action(instant.action)].values())
    files += [entry for entry in scene.aside.get(HEARTBEATS, ()) if entry.name == time]
    for folder, entries in scene.aside.items():
        if folder == f"{MARKERS}/{time}" or folder.startswith(f"{MARKERS}/{time}/"):
            files += entries
    return max(entry.mtime for entry in files)


def leftovers(scene: Scene) -> Iterator[Finding]:
    """Markers and heartbeats of instants that are over, and temporary files of processes that died."""
    pending = {instant.requested for instant in scene.timeline.instants if instant.state is not State.COMPLETED}
    last: dict[str, int] = {}
    for folder, entries in scene.aside.items():
        parts = folder.split("/")
        if folder.startswith(f"{MARKERS}/") and parts[2].isdigit() and parts[2] not in pending:
            last[parts[2]] = max([last.get(parts[2], 0), *(entry.mtime for entry in entries)])
    for time, mtime in sorted(last.items()):
        if scene.is_settled(mtime):
            folder = f"{MARKERS}/{time}"
            problem, advice = f"markers of instant {time}, which is over", "They have no effect and can be deleted"
            yield Finding(Severity.NOTE, Fault.MARKERS, folder, problem, advice, Remedy(Mend.DELETE_TREE, folder))
    for entry in scene.aside.get(HEARTBEATS, ()):
        if entry.name.isdigit() and entry.name not in pending and scene.is_settled(entry.mtime):
            path = join(HEARTBEATS, entry.name)
            problem, advice = f"a heartbeat of instant {entry.name}, which is over", "It can be deleted"
            yield Finding(Severity.NOTE, Fault.HEARTBEAT, path, problem, advice, Remedy(Mend.DELETE, path))
    for entry in scene.aside.get(LOCKS, ()):
        if not is_temporary(entry.name) and scene.is_settled(entry.mtime):
            path = join(LOCKS, entry.name)
            problem, advice = "a lock of a process that is dead", "Its lease has expired: the next writer takes it over"
            yield Finding(Severity.NOTE, Fault.LOCK, path, problem, advice, Remedy(Mend.DELETE, path))
    for entry in scene.aside.get(".hoodie", ()):
        if (entry.name == "lock" or entry.name.startswith("lock-")) and scene.is_settled(entry.mtime):
            problem = "a lock file that is not renewed: its writer may be dead, and others wait for it"
            advice = "If no writer with FileSystemBasedLockProvider is active, delete it"
            yield Finding(Severity.WARNING, Fault.LOCK, join(".hoodie", entry.name), problem, advice)
    yield from temporaries(scene, scene.aside, {f"{MARKERS}/{time}" for time in last})


def files_for_folders(config: TableConfig, aside: Mapping[str, Sequence[Entry]]) -> Iterator[Finding]:
    """Files where the table has folders. aside: as of `Scene`"""
    folders = {MARKERS, HEARTBEATS, LOCKS, FOLDER, SCHEMA_FOLDER, f".hoodie/{UPGRADED_FOLDER}"}
    for path in sorted({*folders, config.timeline_folder, config.history_folder}):
        above, name = split(path)
        if any(entry.name == name for entry in aside.get(above, ())):
            problem = "a file lies where the table has a folder: reads, writes or services fail"
            advice = "Move it away, restore the folder from a copy of the table if that had one, and examine again"
            yield Finding(Severity.ERROR, Fault.MISPLACED, path, problem, advice)


def other_tables(paths: Iterable[str]) -> Iterator[Finding]:
    """Tables in the folder of the table. paths: their base paths"""
    for path in paths:
        problem = "another table lies in this one's folder: Hudi reads its rows as this table's where it lists folders"
        yield Finding(Severity.ERROR, Fault.MISPLACED, path, problem, "Move it out of the folder")


def temporaries(scene: Scene, tree: Mapping[str, Sequence[Entry]], besides: Collection[str] = ()) -> Iterator[Finding]:
    """Temporary files of dead processes. besides: folders below `.hoodie/.temp` that are removed whole"""
    for folder, entries in tree.items():
        if "/".join(folder.split("/")[:3]) in besides:
            continue
        for entry in entries:
            if is_temporary(entry.name) and scene.is_settled(entry.mtime):
                path = join(folder, entry.name)
                problem, advice = "a process died while writing this file; nothing refers to it", "It can be deleted"
                yield Finding(Severity.NOTE, Fault.TEMPORARY, path, problem, advice, Remedy(Mend.DELETE, path))
