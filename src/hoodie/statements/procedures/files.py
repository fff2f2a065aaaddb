"""Procedures that show the files of a table: slices, sizes, what log files hold, files that are no Parquet."""

import json
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.display.summary import bytes_text
from hoodie.errors import StatementError
from hoodie.formats.log.blocks import BlockKind, BlockMap, HeaderKey, LogBlock, read_blocks
from hoodie.formats.log.content import data_rows
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.model.files import FileSlice, LogFile
from hoodie.model.meta import RECORD_KEY
from hoodie.statements.procedures.procedure import Called, Rows
from hoodie.storage import storage_for
from hoodie.storage.protocol import Entry, Storage, join
from hoodie.view.load import data_files, list_folders
from hoodie.view.slices import FileSystemView, committed_slices, merged_slices


def fsview_all(called: Called) -> Rows:
    """All file slices of the partitions that `path_regex`, a glob, fits; the newest of a file group first."""
    pattern = str(called.get("path_regex"))
    root, view = called.state.storage.root, _view(called)
    for group in sorted(view.groups):
        if set(pattern) <= set("*/") or fnmatchcase(group.partition, pattern.strip("/")):
            for one in reversed(committed_slices(view, group, _up_to(called))):
                if one.base or one.logs:
                    yield (*_slice(root, one), one.log_bytes, _logs(root, one.logs))


def fsview_latest(called: Called) -> Rows:
    """The newest file slice of each file group of a partition, or of all; with `merge` that before a pending compaction
    is joined to it. `scheduled` are logs that the compaction takes, if it is not the slice's own: as in Hudi."""
    root, view = called.state.storage.root, _view(called, called.get("partition_path"))
    if called.get("merge"):
        slices = list(merged_slices(view, _up_to(called)).values())
    else:
        newest = (committed_slices(view, group, _up_to(called))[-1:] for group in sorted(view.groups))
        slices = [one for group_slices in newest for one in group_slices]
    for one in slices:
        scheduled = [log for log in one.logs if log.base_instant == one.base_instant]
        rest = [log for log in one.logs if log.base_instant != one.base_instant]
        sizes = [sum(log.size for log in logs) for logs in (one.logs, scheduled, rest)]
        base = one.base.size if one.base else 0
        shares = [size / base if base else 0.0 for size in sizes[1:]]
        yield (*_slice(root, one), *sizes, *shares, _logs(root, scheduled), _logs(root, rest))


def _view(called: Called, partition: str | None = None) -> FileSystemView:
    state = called.state
    return state.view(None if partition is None else [partition])


def _up_to(called: Called) -> str | None:
    """The newest instant that counts: `max_instant`, which itself counts with `include_max`."""
    newest = called.get("max_instant")
    if not newest or called.get("include_max"):
        return newest or None
    return max((i.requested for i in called.state.timeline.commits if i.requested < newest), default="0")


def _slice(root: str, one: FileSlice) -> tuple[Any, ...]:
    base = (_uri(root, one.base.path), one.base.size) if one.base else ("", -1)
    return one.group.partition, one.group.file_id, one.base_instant, *base, len(one.logs)


def _logs(root: str, logs: Iterable[LogFile]) -> str:
    return (
        "[" + ", ".join(f"HoodieLogFile{{pathStr='{_uri(root, log.path)}', fileLen={log.size}}}" for log in logs) + "]"
    )


def _uri(root: str, path: str) -> str:
    """A file's path as Hadoop writes it."""
    return f"{'file:' if root.startswith('/') else ''}{root.rstrip('/')}/{path}".rstrip("/")


# --- sizes ---


def show_file_sizes(called: Called) -> Rows:
    """Sizes of the data files by the instant in their name, and of all."""
    partition = str(called.get("partition_path", "")).strip("*/")
    sizes: dict[str, list[int]] = defaultdict(list)
    for file in data_files(list_folders(called.state.storage).marked):
        if not partition or file.group.partition == partition or file.group.partition.startswith(f"{partition}/"):
            sizes[file.base_instant].append(file.size)
    for instant in sorted(sizes, reverse=True):
        yield instant, *_distribution(sizes[instant])
    if sizes:
        yield "ALL", *_distribution([size for instant_sizes in sizes.values() for size in instant_sizes])


def _distribution(sizes: list[int]) -> tuple[Any, ...]:
    low, mid, high = (float(np.percentile(sizes, share, method="weibull")) for share in (10, 50, 95))
    spread = float(np.std(sizes, ddof=1)) if len(sizes) > 1 else 0.0
    return min(sizes), low, mid, float(np.mean(sizes)), high, max(sizes), len(sizes), spread


def path_detail(called: Called) -> Rows:
    """Folders, files and bytes below a path; of each folder in it with `is_sub`, the largest first by `sort`."""
    storage, tree = _tree(called)
    counted: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for folder, entries in tree.items():
        top = folder.split("/")[0] if called.get("is_sub") else ""
        files = [entry.size for entry in entries if not (entry.name.startswith(".") and entry.name.endswith(".crc"))]
        for at, number in enumerate((1, len(files), sum(files))):
            counted[top][at] += number
    rows = [(*count, bytes_text(count[2]), _uri(storage.root, top), -1, count[2], -1) for top, count in counted.items()]
    return sorted(rows, key=lambda row: -row[2]) if called.get("sort") else rows


def invalid_parquet(called: Called) -> Rows:
    """Files named Parquet below a path that have no footer which can be read."""
    storage, tree = _tree(called)
    for folder, entries in sorted(tree.items()):
        for entry in entries:
            path = join(folder, entry.name)
            if entry.name.endswith(".parquet") and not _has_footer(storage, path):
                yield (_uri(storage.root, path),)


def _tree(called: Called) -> tuple[Storage, dict[str, list[Entry]]]:
    """The files below the path that a call names. Raises StatementError where there are none"""
    storage = storage_for(str(called.arguments["path"]))
    tree = storage.list_tree()
    if not tree:
        raise StatementError(f"{called.name}: path => {storage.root!r}: there are no files. Is it misspelt?")
    return storage, tree


def _has_footer(storage: Storage, path: str) -> bool:
    with storage.open_input(path) as file:
        try:
            pq.ParquetFile(file)
        except (pa.ArrowInvalid, OSError) as problem:
            if isinstance(problem, OSError) and "arquet" not in str(problem) and "hrift" not in str(problem):
                raise
            return False
    return True


# --- logs ---


def logfile_metadata(called: Called) -> Rows:
    """One row for each block of log files: what its header says, and how many records it has."""
    for path, data in _matching(called):
        for block in read_blocks(data, path):
            count = (
                0 if not block.kind.is_data and block.kind is not BlockKind.DELETE else _records(block, path).num_rows
            )
            instant = block.header.instant
            yield instant, count, f"{block.kind.name}_BLOCK", _entries(block.header), _entries(block.footer)


def logfile_records(called: Called) -> Rows:
    """The rows in data blocks as JSON, as they were written; with `merge` the last one of each key."""
    rows: Iterator[str] = _texts(called)
    return [(row,) for row in rows]


def _texts(called: Called) -> Iterator[str]:
    by_key: dict[str, str] = {}
    for path, data in _matching(called):
        for block in read_blocks(data, path):
            if block.kind is BlockKind.DELETE and called.get("merge"):
                for key in decode_deletes(block.content, path, block.offset).column(0).to_pylist():
                    by_key.pop(str(key), None)
            if not block.kind.is_data:
                continue
            for row in data_rows(block, path).to_pylist():
                text = json.dumps(row, default=str, ensure_ascii=False)
                if called.get("merge"):
                    by_key[str(row.get(RECORD_KEY))] = text
                else:
                    yield text
    yield from by_key.values()


def _matching(called: Called) -> Iterator[tuple[str, bytes]]:
    """Log files whose path, whole or below the table, the glob `log_file_path_pattern` fits."""
    storage, pattern = called.state.storage, str(called.arguments["log_file_path_pattern"]).removeprefix("file:")
    logs = [file for file in data_files(list_folders(storage).marked) if isinstance(file, LogFile)]
    for log in sorted(logs, key=lambda log: (log.group, log.order)):
        whole = posixpath.join(storage.root, log.path)
        if any(fnmatchcase(name, pattern) for name in (whole, log.path)) or pattern in (whole, log.path):
            yield log.path, storage.read(log.path)


def _records(block: LogBlock, path: str) -> pa.Table:
    if block.kind is BlockKind.DELETE:
        return decode_deletes(block.content, path, block.offset)
    return data_rows(block, path)


def _entries(entries: BlockMap) -> str:
    names = {key.value: key.name for key in HeaderKey}
    return json.dumps({names.get(key, str(key)): text for key, text in entries.entries}, separators=(",", ":"))
