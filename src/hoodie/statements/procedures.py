"""Hudi's procedures, by its names and with its result columns, for what this library can do.

Source: Hudi 0.15's page of SQL procedures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from hoodie.api.table import HoodieTable
from hoodie.errors import InstantNotFound, StatementError
from hoodie.model.commit import CommitMetadata, WriteStat
from hoodie.model.instant import Instant
from hoodie.services.compaction.schedule import pending_compactions
from hoodie.table.state import load_state

Arguments = Mapping[str, Any]
Rows = Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Procedure:
    """parameters  in the order in which they are given by place: name -> type
    columns     of the result, as DDL
    """

    parameters: Mapping[str, type]
    columns: str
    run: Callable[[HoodieTable[DataFrame], Arguments], Rows]


_TABLE = {"table": str, "path": str}
_LISTS = {"table": str, "limit": int, "path": str}
_OF_INSTANT = {"table": str, "limit": int, "instant_time": str, "path": str}
_COMMIT_COUNTS = (
    "total_bytes_written long, total_files_added long, total_files_updated long, total_partitions_written long, "
    "total_records_written long, total_update_records_written long, total_errors long"
)
_STAT_COUNTS = (
    "num_writes long, num_inserts long, num_deletes long, num_update_writes long, total_errors long, "
    "total_log_blocks long, total_corrupt_logblocks long, total_rollback_blocks long, total_log_records long, "
    "total_updated_records_compacted long, total_bytes_written long"
)


def _stats(commit: CommitMetadata) -> list[WriteStat]:
    return [stat for part in commit.stats.values() for stat in part]


def _is_new(stat: WriteStat) -> bool:
    return stat.prev_commit in ("", "null")


def _commit_row(instant: Instant, commit: CommitMetadata) -> tuple[Any, ...]:
    stats = _stats(commit)
    return (
        instant.requested,
        instant.action.value,
        sum(stat.total_write_bytes for stat in stats),
        sum(_is_new(stat) for stat in stats),
        sum(not _is_new(stat) for stat in stats),
        len(commit.stats),
        sum(stat.num_writes for stat in stats),
        sum(stat.num_updates for stat in stats),
        sum(stat.write_errors for stat in stats),
    )


def _show_commits(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    return [_commit_row(*commit) for commit in table.history()]


def _show_archived(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    active = {instant.requested for instant, _ in table.history()}
    start, end = arguments.get("start_ts", ""), arguments.get("end_ts", "") or "9"
    older = [commit for commit in table.history(archived=True) if commit[0].requested not in active]
    return [_commit_row(*commit) for commit in older if start <= commit[0].requested <= end]


def _show_commits_metadata(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    for instant, commit in table.history():
        for stat in _stats(commit):
            yield (
                instant.requested,
                instant.action.value,
                stat.partition,
                stat.file_id,
                stat.prev_commit,
                stat.num_writes,
                stat.num_inserts,
                stat.num_deletes,
                stat.num_updates,
                stat.write_errors,
                stat.log_blocks,
                stat.corrupt_log_blocks,
                stat.rollback_blocks,
                stat.log_records,
                stat.updated_records_compacted,
                stat.total_write_bytes,
            )


def _extra_metadata(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    wanted, key = arguments.get("instant_time"), arguments.get("metadata_key")
    for instant, commit in table.history():
        if wanted in (None, "", instant.requested):
            for name, value in commit.extra.items():
                if key in (None, "", name):
                    yield instant.requested, instant.action.value, name, value


def _commit_of(table: HoodieTable[DataFrame], arguments: Arguments) -> tuple[Instant, CommitMetadata]:
    wanted = _needed(arguments, "instant_time")
    for instant, commit in table.history():
        if instant.requested == wanted:
            return instant, commit
    raise InstantNotFound(f"{wanted} is no completed commit of the active timeline")


def _needed(arguments: Arguments, name: str) -> str:
    if not arguments.get(name):
        raise StatementError(f"the argument {name} is missing")
    return str(arguments[name])


def _commit_files(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    instant, commit = _commit_of(table, arguments)
    for stat in _stats(commit):
        counts = (stat.num_updates, stat.num_writes, stat.total_write_bytes, stat.write_errors, stat.file_size)
        yield (instant.action.value, stat.partition, stat.file_id, stat.prev_commit, *counts)


def _commit_partitions(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    instant, commit = _commit_of(table, arguments)
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


def _commit_write_stats(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    instant, commit = _commit_of(table, arguments)
    size = sum(stat.total_write_bytes for stat in _stats(commit))
    rows = sum(stat.num_writes for stat in _stats(commit))
    return [(instant.action.value, size, rows, size // rows if rows else 0)]


def _rollback_to_instant(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    table.rollback(_needed(arguments, "instant_time"))
    return [(True,)]


def _create_savepoint(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    table.savepoint(
        arguments.get("commit_time") or None, comment=arguments.get("comments", ""), user=arguments.get("user", "")
    )
    return [(True,)]


def _delete_savepoint(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    table.delete_savepoint(_needed(arguments, "instant_time"))
    return [(True,)]


def _rollback_to_savepoint(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    table.restore(_needed(arguments, "instant_time"))
    return [(True,)]


def _show_savepoints(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    return [(savepoint.instant,) for savepoint in reversed(table.savepoints())]


def _archive(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    names = {"min_commits": "hoodie.keep.min.commits", "max_commits": "hoodie.keep.max.commits"}
    table.archive(options={option: arguments[name] for name, option in names.items() if name in arguments})
    return [(0,)]


def _run_clean(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    names = {
        "clean_policy": "hoodie.cleaner.policy",
        "retain_commits": "hoodie.cleaner.commits.retained",
        "file_versions_retained": "hoodie.cleaner.fileversions.retained",
        "hours_retained": "hoodie.cleaner.hours.retained",
    }
    done = table.clean(options={option: arguments[name] for name, option in names.items() if name in arguments})
    return [(done.instant, len(done.paths), done.earliest)] if done.instant else []


def _run_compaction(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    operation = _needed(arguments, "op").lower()
    instant = arguments.get("timestamp") or None
    if operation == "schedule":
        planned = table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
        return [row for row in _show_compaction(table, arguments) if row[0] == planned]
    if operation not in ("run", "execute", "scheduleandexecute"):
        raise StatementError(f"op => {operation!r}: expected schedule, run, execute or scheduleandexecute")
    if operation == "scheduleandexecute":
        instant = table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1})
    sizes = {row[0]: row[1] for row in _show_compaction(table, arguments)}
    done = table.compact(instant) if instant or sizes else None
    return [] if done is None else [(done.instant, sizes.get(done.instant, len(done.stats)), "COMPLETED")]


def _show_compaction(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    pending = pending_compactions(load_state(table.storage))
    return [(instant.requested, len(plan.operations), instant.state.name) for instant, plan in reversed(pending)]


def _table_properties(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    return sorted(load_state(table.storage).config.properties.items())


def _file_sizes(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    wanted = arguments.get("partition_path", "").strip("*/")
    every: list[int] = []
    for instant, commit in table.history():
        sizes = [stat.file_size for stat in _stats(commit) if (stat.partition or "").startswith(wanted)]
        every += sizes
        if sizes:
            yield (instant.requested, *_distribution(sizes))
    if every:
        yield ("ALL", *_distribution(every))


def _distribution(sizes: list[int]) -> tuple[Any, ...]:
    low, mid, high = (float(np.percentile(sizes, share)) for share in (10, 50, 95))
    return min(sizes), low, mid, float(np.mean(sizes)), high, max(sizes), len(sizes), float(np.std(sizes))


def _validate(table: HoodieTable[DataFrame], arguments: Arguments) -> Rows:
    found = table.check(rows=arguments.get("rows", True))
    return [(f.severity.name, f.fault.name, f.where, f.problem, f.advice) for f in found]


_DISTRIBUTION = (
    "commit_time string, min long, `10th` double, `50th` double, avg double, `95th` double, max long, num_files int, "
    "std_dev double"
)

PROCEDURES: Mapping[str, Procedure] = {
    "show_commits": Procedure(_LISTS, f"commit_time string, action string, {_COMMIT_COUNTS}", _show_commits),
    "show_archived_commits": Procedure(
        {"table": str, "limit": int, "start_ts": str, "end_ts": str, "path": str},
        f"commit_time string, action string, {_COMMIT_COUNTS}",
        _show_archived,
    ),
    "show_commits_metadata": Procedure(
        _LISTS,
        f"commit_time string, action string, partition string, file_id string, previous_commit string, {_STAT_COUNTS}",
        _show_commits_metadata,
    ),
    "show_commit_extra_metadata": Procedure(
        {"table": str, "limit": int, "instant_time": str, "metadata_key": str, "path": str},
        "instant_time string, action string, metadata_key string, metadata_value string",
        _extra_metadata,
    ),
    "show_commit_files": Procedure(
        _OF_INSTANT,
        "action string, partition_path string, file_id string, previous_commit string, total_records_updated long, "
        "total_records_written long, total_bytes_written long, total_errors long, file_size long",
        _commit_files,
    ),
    "show_commit_partitions": Procedure(
        _OF_INSTANT,
        "action string, partition_path string, total_files_added long, total_files_updated long, "
        "total_records_inserted long, total_records_updated long, total_bytes_written long, total_errors long",
        _commit_partitions,
    ),
    "show_commit_write_stats": Procedure(
        _OF_INSTANT,
        "action string, total_bytes_written long, total_records_written long, avg_record_size long",
        _commit_write_stats,
    ),
    "rollback_to_instant": Procedure(
        {"table": str, "instant_time": str, "path": str}, "rollback_result boolean", _rollback_to_instant
    ),
    "create_savepoint": Procedure(
        {"table": str, "commit_time": str, "user": str, "comments": str, "path": str},
        "create_savepoint_result boolean",
        _create_savepoint,
    ),
    "delete_savepoint": Procedure(
        {"table": str, "instant_time": str, "path": str}, "delete_savepoint_result boolean", _delete_savepoint
    ),
    "rollback_to_savepoint": Procedure(
        {"table": str, "instant_time": str, "path": str}, "rollback_savepoint_result boolean", _rollback_to_savepoint
    ),
    "show_savepoints": Procedure(_TABLE, "savepoint_time string", _show_savepoints),
    "archive_commits": Procedure({**_TABLE, "min_commits": int, "max_commits": int}, "result int", _archive),
    "run_clean": Procedure(
        {
            "table": str,
            "path": str,
            "clean_policy": str,
            "retain_commits": int,
            "hours_retained": int,
            "file_versions_retained": int,
        },
        "start_clean_time string, total_files_deleted int, earliest_commit_to_retain string",
        _run_clean,
    ),
    "run_compaction": Procedure(
        {"op": str, "table": str, "path": str, "timestamp": str},
        "timestamp string, operation_size int, state string",
        _run_compaction,
    ),
    "show_compaction": Procedure(_LISTS, "timestamp string, operation_size int, state string", _show_compaction),
    "show_table_properties": Procedure(
        {"table": str, "path": str, "limit": int}, "key string, value string", _table_properties
    ),
    "stats_file_sizes": Procedure(
        {"table": str, "partition_path": str, "limit": int, "path": str}, _DISTRIBUTION, _file_sizes
    ),
    "validate_table": Procedure(
        {**_TABLE, "rows": bool},
        "severity string, fault string, where string, problem string, advice string",
        _validate,
    ),
}
