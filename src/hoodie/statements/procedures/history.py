"""Procedures that show what happened to a table: commits, those archived, rollbacks, savepoints."""

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from operator import attrgetter

from hoodie.errors import InstantNotFound
from hoodie.formats.timeline.services import decode_rollback_metadata
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import RollbackMetadata
from hoodie.statements.procedures.procedure import Called, Procedure, Rows, procedure, table_named
from hoodie.storage import storage_beside, storage_for
from hoodie.storage.protocol import join
from hoodie.table.state import load_state
from hoodie.timeline.archive import archived_commits
from hoodie.timeline.load import completion_times

_TIMES = "commit_time string, state_transition_time string"
_COMMIT_COUNTS = (
    "total_bytes_written long, total_files_added long, total_files_updated long, total_partitions_written long, "
    "total_records_written long, total_update_records_written long, total_errors long"
)
_FILE_COUNTS = (
    "action string, partition string, file_id string, previous_commit string, num_writes long, num_inserts long, "
    "num_deletes long, num_update_writes long, total_errors long, total_log_blocks long, "
    "total_corrupt_log_blocks long, total_rollback_blocks long, total_log_records long, "
    "total_updated_records_compacted long, total_bytes_written long"
)


def _is_new(stat: WriteStat) -> bool:
    return stat.prev_commit in ("", "null")


def counts_of(commit: CommitMetadata) -> tuple[int, ...]:
    """The columns of `_COMMIT_COUNTS`."""
    stats = commit.all_stats
    return (
        commit.bytes_written,
        sum(_is_new(stat) for stat in stats),
        sum(not _is_new(stat) for stat in stats),
        len(commit.stats),
        commit.rows_written,
        commit.updated,
        sum(stat.write_errors for stat in stats),
    )


#: The columns of `_FILE_COUNTS`, without the action.
_file_row = attrgetter(
    *("partition", "file_id", "prev_commit", "num_writes", "num_inserts", "num_deletes", "num_updates", "write_errors"),
    *("log_blocks", "corrupt_log_blocks", "rollback_blocks", "log_records", "updated_records_compacted"),
    "total_write_bytes",
)


def _commits(called: Called) -> Iterator[tuple[str, str | None, str, CommitMetadata]]:
    completed = completion_times(called.state.storage, called.state.config, called.state.timeline)
    for instant, commit in called.table.history():
        yield instant.requested, completed.get(instant.requested), instant.action.value, commit


def _show_commits(called: Called) -> Rows:
    return [(*head, *counts_of(commit)) for *head, commit in _commits(called)]


def _show_commits_metadata(called: Called) -> Rows:
    return [(*head, *row) for *head, commit in _commits(called) for row in map(_file_row, commit.all_stats)]


def _archived(called: Called) -> Iterator[tuple[Instant, CommitMetadata]]:
    """Commits of the archive between `start_ts` and `end_ts`, both inclusive, newest first."""
    start, end = called.get("start_ts", ""), called.get("end_ts") or "9"
    for instant, commit in archived_commits(called.state.storage, called.state.config):
        if start <= instant.requested <= end:
            yield instant, commit


def _show_archived(called: Called) -> Rows:
    return [(i.requested, i.completed or None, *counts_of(commit)) for i, commit in _archived(called)]


def _show_archived_metadata(called: Called) -> Rows:
    for instant, commit in _archived(called):
        for stat in commit.all_stats:
            yield (instant.requested, instant.completed or None, instant.action.value, *_file_row(stat))


def _extra_metadata(called: Called) -> Rows:
    """The extra metadata of one commit, or of the newest one, as Hudi does."""
    key = called.get("metadata_key")
    newest = called.get("instant_time") or called.state.timeline.newest_commit
    for instant, commit in called.table.history():
        if instant.requested == newest:
            for name, value in commit.extra.items():
                if key in (None, "", name):
                    yield instant.requested, instant.action.value, name, value


def _commit_of(called: Called) -> tuple[Instant, CommitMetadata]:
    time = called.arguments["instant_time"]
    for instant, commit in called.table.history():
        if instant.requested == time:
            return instant, commit
    raise InstantNotFound(f"{time} is no completed commit of the active timeline")


def _commit_files(called: Called) -> Rows:
    instant, commit = _commit_of(called)
    for stat in commit.all_stats:
        counts = (stat.num_updates, stat.num_writes, stat.total_write_bytes, stat.write_errors, stat.file_size)
        yield (instant.action.value, stat.partition, stat.file_id, stat.prev_commit, *counts)


def _commit_partitions(called: Called) -> Rows:
    instant, commit = _commit_of(called)
    for partition, stats in commit.stats.items():
        yield (
            instant.action.value,
            partition,
            sum(map(_is_new, stats)),
            sum(not _is_new(stat) for stat in stats),
            sum(stat.num_inserts for stat in stats),
            sum(stat.num_updates for stat in stats),
            sum(stat.total_write_bytes for stat in stats),
            sum(stat.write_errors for stat in stats),
        )


def _commit_write_stats(called: Called) -> Rows:
    instant, commit = _commit_of(called)
    size, rows = commit.bytes_written, commit.rows_written
    return [(instant.action.value, size, rows, size // rows if rows else 0)]


def _commits_compare(called: Called) -> Rows:
    """Which of the two tables has commits that the other lacks."""
    name = called.arguments["table"]
    state = load_state(storage_for(table_named(called.session, name).path))
    own = [instant.requested for instant in state.timeline.commits]
    path = storage_beside(state.storage, str(called.arguments["path"]))
    other = [instant.requested for instant in load_state(path).timeline.commits]
    behind = max(own, default="") < max(other, default="")
    newer, older = (other, own) if behind else (own, other)
    commits = [time for time in newer if time > max(older, default="")]
    listed = ", ".join(commits)
    word = "behind" if behind else "ahead"
    return [(f"Source {name} is {word} by {len(commits)} commits. Commits to catch up - [{listed}]",)]


def rollbacks(called: Called) -> Iterator[tuple[Instant, RollbackMetadata]]:
    """Completed rollbacks of the active timeline, newest first. Raises CorruptFile"""
    timeline = called.state.timeline
    for instant in reversed(timeline.completed({Action.ROLLBACK})):
        path = timeline.path(instant)
        with suppress(FileNotFoundError):  # archived meanwhile
            yield instant, decode_rollback_metadata(called.state.storage.read(path), path)


def _show_rollbacks(called: Called) -> Rows:
    for instant, metadata in rollbacks(called):
        for commit in metadata.commits:
            files, parts = metadata.files_deleted, len(metadata.partitions)
            yield instant.requested, commit, files, metadata.millis, parts


def _show_rollback_detail(called: Called) -> Rows:
    root = called.state.storage.root.rstrip("/")
    for instant, metadata in rollbacks(called):
        if instant.requested == called.arguments["instant_time"]:
            commits = "[" + ", ".join(metadata.commits) + "]"
            for partition, files in metadata.partitions.items():
                for names, succeeded in ((files.deleted, True), (files.failed, False)):
                    for name in names:
                        yield metadata.start, commits, partition, f"{root}/{join(partition, name)}", succeeded


def _show_savepoints(called: Called) -> Rows:
    return [(savepoint.instant,) for savepoint in reversed(called.table.savepoints())]


def _stats_wa(called: Called) -> Rows:
    """Rows written by rows updated, of each `commit` and of all, oldest first. As Hudi, without delta commits."""
    upserted = written = 0
    for instant, commit in reversed(called.table.history()):
        if instant.action is not Action.COMMIT:
            continue
        rows = commit.rows_written
        upserted, written = upserted + commit.updated, written + rows
        yield instant.requested, commit.updated, rows, _share(rows, commit.updated)
    yield "Total", upserted, written, _share(written, upserted)


def _share(rows: int, updated: int) -> str:
    return f"{rows / updated:.2f}" if updated else "0"


def _export_instants(called: Called) -> Rows:
    """Copy the files of completed instants into a folder: those of the archive as JSON, if there are not enough."""
    storage, timeline = called.state.storage, called.state.timeline
    actions = {word.strip() for word in str(called.get("actions")).replace(";", ",").split(",")}
    unknown = sorted(actions - set(Action))
    if unknown:
        raise called.problem(f"actions => … {', '.join(unknown)}: expected {', '.join(sorted(Action))}")
    instants = sorted(i for i in timeline.instants if i.state is State.COMPLETED and i.action.value in actions)
    chosen = list(reversed(instants)) if called.get("desc") else instants
    limit = called.get("limit", -1)
    folder = storage_beside(storage, str(called.arguments["local_folder"]))
    chosen = chosen if limit < 0 else chosen[:limit]
    for instant in chosen:
        path = timeline.path(instant)
        folder.write(posixpath.basename(path), storage.read(path))
    return [(f"Exported {len(chosen)} Instants to {called.arguments['local_folder']}",)]


_OF_INSTANT = "table string, limit int = 10, instant_time! string"

PROCEDURES: Mapping[str, Procedure] = {
    "show_commits": procedure(
        "table string, limit int = 10", f"{_TIMES}, action string, {_COMMIT_COUNTS}", _show_commits
    ),
    "show_commits_metadata": procedure(
        "table string, limit int = 10", f"{_TIMES}, {_FILE_COUNTS}", _show_commits_metadata
    ),
    "show_archived_commits": procedure(
        "table string, limit int = 10, start_ts string, end_ts string", f"{_TIMES}, {_COMMIT_COUNTS}", _show_archived
    ),
    "show_archived_commits_metadata": procedure(
        "table string, limit int = 10, start_ts string, end_ts string",
        f"{_TIMES}, {_FILE_COUNTS}",
        _show_archived_metadata,
    ),
    "show_commit_extra_metadata": procedure(
        "table string, limit int = 100, instant_time string, metadata_key string",
        "instant_time string, action string, metadata_key string, metadata_value string",
        _extra_metadata,
    ),
    "show_commit_files": procedure(
        _OF_INSTANT,
        "action string, partition_path string, file_id string, previous_commit string, total_records_updated long, "
        "total_records_written long, total_bytes_written long, total_errors long, file_size long",
        _commit_files,
    ),
    "show_commit_partitions": procedure(
        _OF_INSTANT,
        "action string, partition_path string, total_files_added long, total_files_updated long, "
        "total_records_inserted long, total_records_updated long, total_bytes_written long, total_errors long",
        _commit_partitions,
    ),
    "show_commit_write_stats": procedure(
        _OF_INSTANT,
        "action string, total_bytes_written long, total_records_written long, avg_record_size long",
        _commit_write_stats,
    ),
    "commits_compare": procedure(
        "table! string, path! string", "compare_detail string", _commits_compare, of_table=False
    ),
    "show_rollbacks": procedure(
        "table string, limit int = 10",
        "instant string, rollback_instant string, total_files_deleted int, time_taken_in_millis long, "
        "total_partitions int",
        _show_rollbacks,
    ),
    "show_rollback_detail": procedure(
        _OF_INSTANT,
        "instant string, rollback_instant string, partition string, deleted_file string, succeeded boolean",
        _show_rollback_detail,
    ),
    "show_savepoints": procedure("table string, path string", "savepoint_time string", _show_savepoints),
    "stats_wa": procedure(
        "table string, limit int = 10",
        "commit_time string, total_upserted long, total_written long, write_amplification_factor string",
        _stats_wa,
    ),
    "export_instants": procedure(
        "table string, local_folder! string, limit int = -1, "
        "actions string = clean;commit;deltacommit;rollback;savepoint;restore, desc boolean = false",
        "export_detail string",
        _export_instants,
    ),
}
