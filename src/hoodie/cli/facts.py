"""The facts of a table as text: what `show`, `history`, `files` and `stats` print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hoodie.cli.output import Block, Grid
from hoodie.display.summary import bytes_text, percent_text

if TYPE_CHECKING:  # a look at a timeline loads nothing that only sizes need
    from hoodie.facts.files import Files, Stats
    from hoodie.facts.instants import History
    from hoodie.facts.summary import Summary

#: What SQL, and Python, call types of Avro.
_SQL_NAMES = {
    "long": "bigint",
    "bytes": "binary",
    "fixed": "binary",
    "record": "struct",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
#: What `stats` says of a table on one line.
STATS_SHOWN = (
    "base_files",
    "base_bytes",
    "small_files",
    "log_files",
    "log_bytes",
    "log_share",
    "older_bytes",
    "amplification",
)


def summary_text(table: Summary) -> Sequence[Block]:
    rows: list[tuple[str, object]] = [
        ("table", f"{table.database}.{table.name}" if table.database else table.name),
        ("type", f"{table.type}, version {table.version}"),
        ("record key", _comma_separated(table.record_key)),
        ("partitioned by", _comma_separated(table.partition_by)),
        ("ordering", _comma_separated(table.ordering)),
        ("payload", table.payload.rpartition(".")[2] or "(default)"),
        ("columns", _comma_separated(f"{column.name} {_sql_type(column.type)}" for column in table.columns)),
        ("commits", f"{table.commits} on the active timeline" + (f", from {table.first}" if table.first else "")),
    ]
    if last := table.last:
        counts = f"{last.inserted} inserted, {last.updated} updated, {last.deleted} deleted"
        rows.append(
            ("newest", f"{last.instant} {last.operation or last.action}: {counts}, {bytes_text(last.bytes)} written")
        )
    rows.append(("pending", _comma_separated(f"{line.action} {line.instant} ({line.state})" for line in table.pending)))
    rows += [("savepoints", _comma_separated(table.savepoints)), ("last clean", table.last_clean or "-")]
    rows += [("metadata table", _comma_separated(table.metadata))]
    rows += [("cannot be read", table.cannot_read)] if table.cannot_read else []
    rows += [("cannot be written", table.cannot_write)] if table.cannot_write and not table.cannot_read else []
    return [f"{name:18}{value}" for name, value in rows]


def _sql_type(avro: str) -> str:
    return re.sub(r"[\w-]+", lambda word: _SQL_NAMES.get(word[0], word[0]), avro)


def _comma_separated(items: Iterable[str]) -> str:
    return ", ".join(items) or "-"


def history_text(history: History) -> Sequence[Block]:
    if not history.instants:
        return ["no instants"]
    header = ("instant", "action", "state", "operation", "inserted", "updated", "deleted", "files", "written")
    rows = [
        (
            line.instant,
            line.action,
            "ARCHIVED" if line.archived else line.state,
            line.operation,
            *((line.inserted, line.updated, line.deleted, line.files) if line.operation else (None,) * 4),
            bytes_text(line.bytes) if line.operation else None,
        )
        for line in history.instants
    ]
    return [Grid(header, rows), *([f"and {history.more} older: --limit 0 shows all"] if history.more else [])]


def files_text(files: Files) -> Sequence[Block]:
    if not files.slices:
        return ["no files"]
    header = ("partition", "file id", "instant", "base", "logs", "log size", "")
    rows = [
        (
            line.partition,
            line.file_id,
            line.base_instant,
            bytes_text(line.base_bytes) if line.base else "-",
            line.logs,
            bytes_text(line.log_bytes) if line.logs else "-",
            "" if line.current else "older",
        )
        for line in files.slices
    ]
    return [Grid(header, rows)]


def stats_text(stats: Stats) -> Sequence[Block]:
    smallest, median, high, largest = map(bytes_text, stats.base_sizes)
    rows = (
        ("partitions", f"{stats.partitions}"),
        ("file groups", f"{stats.file_groups}"),
        ("base files", f"{stats.base_files}, {bytes_text(stats.base_bytes)}; {stats.small_files} take inserts first"),
        ("their sizes", f"from {smallest}, median {median}, 95 % {high}, to {largest}"),
        (
            "log files",
            f"{stats.log_files}, {bytes_text(stats.log_bytes)}: {percent_text(stats.log_share)} of the base files",
        ),
        ("older files", f"{stats.older_files}, {bytes_text(stats.older_bytes)}"),
        ("rows changed", f"{stats.rows_changed} by the commits of the active timeline"),
        ("rows written", f"{stats.rows_written}: {stats.amplification} for each that changed"),
        ("bytes written", bytes_text(stats.bytes_written)),
    )
    return [f"{name:15}{value}" for name, value in rows]
