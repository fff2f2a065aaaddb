"""How Presto, Trino and Hive find the rows of a table: a reader written from docs/format/engines.md 6 alone.

It shares nothing with the library: no import of it, its own look at timeline, metafiles, file names and slices. What
Java's record readers do behind the splits (merging logs) is not among an engine's rules: splits with logs are compared,
not read.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

COPY_ON_WRITE = {"org.apache.hudi.hadoop.HoodieParquetInputFormat", "com.uber.hoodie.hadoop.HoodieInputFormat"}
MERGE_ON_READ = {
    "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat",
    "com.uber.hoodie.hadoop.realtime.HoodieRealtimeInputFormat",
}
_INSTANT = re.compile(r"(\d{14,17})\.(commit|deltacommit|replacecommit|compaction)(\.requested|\.inflight)?")
_BASE = re.compile(r"([^_]+)_([^_]+)_(\d{14,17})\.parquet")
_LOG = re.compile(r"\.(.+)_(\d{14,17})\.log\.(\d+)(?:_([^.]+))?")
_METAFILE = ".hoodie_partition_metadata"


@dataclass(frozen=True)
class CatalogEntry:
    """What an engine gets from a metastore.

    columns, keys  name -> Hive's type
    partitions     values -> location
    """

    input_format: str
    location: str
    columns: Mapping[str, str]
    keys: Mapping[str, str]
    partitions: Mapping[tuple[str, ...], str]
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Split:
    """The files that one record reader takes: a base file, and logs to merge into it."""

    values: tuple[str, ...]
    file_id: str
    base: str | None
    logs: tuple[str, ...] = ()


@dataclass
class Timeline:
    """Completed instants, file groups that replace commits took away, and the base instants of pending compactions."""

    completed: set[str]
    replaced: set[tuple[str, str]]
    compacting: dict[tuple[str, str], str]

    @property
    def newest(self) -> str:
        return max(self.completed, default="")


def local(location: str) -> str:
    return re.sub(r"^file:(//)?(?=/)", "", location)


def properties(root: str) -> dict[str, str]:
    text = Path(root, ".hoodie", "hoodie.properties").read_text()
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return dict(line.replace("\\:", ":").split("=", 1) for line in lines)


def read_timeline(root: str) -> Timeline:
    done: set[str] = set()
    replaced: set[tuple[str, str]] = set()
    plans: dict[str, Path] = {}
    for path in Path(root, ".hoodie").iterdir():
        match = _INSTANT.fullmatch(path.name)
        if path.is_dir() or match is None:
            continue
        if match[2] == "compaction" and match[3] == ".requested":
            plans[match[1]] = path
        if match[3] is None and match[2] != "compaction":
            done.add(match[1])
            if match[2] == "replacecommit":
                ids = json.loads(path.read_text()).get("partitionToReplaceFileIds") or {}
                replaced |= {(partition, file_id) for partition, found in ids.items() for file_id in found}
    compacting = {}
    for instant, path in plans.items():
        if instant not in done:
            with path.open("rb") as file:
                for plan in fastavro.reader(file):
                    for operation in plan["operations"] or ():
                        compacting[operation["partitionPath"] or "", operation["fileId"]] = instant
    return Timeline(done, replaced, compacting)


def relative(location: str, root: str) -> str:
    """The path of a partition below the table. A partition elsewhere is an error to Trino and unread by Presto."""
    path, base = local(location).rstrip("/"), local(root).rstrip("/")
    assert path == base or path.startswith(f"{base}/"), f"{location} is not below {root}"
    return path[len(base) :].lstrip("/")


def visible(instant: str, timeline: Timeline) -> bool:
    """Files of completed instants count, and those from before the timeline, which the archive has."""
    return instant in timeline.completed or instant < min(timeline.completed, default="")


def slices(root: str, partition: str, values: tuple[str, ...], timeline: Timeline) -> list[Split]:
    """The newest slice of each file group of a partition, with its logs in order."""
    bases: dict[str, dict[str, str]] = {}
    logs: dict[str, dict[str, list[tuple[int, str]]]] = {}
    folder = Path(root, partition)
    for path in folder.iterdir():
        if path.is_dir() or path.name.endswith(".cdc"):
            continue
        if match := _BASE.fullmatch(path.name):
            if visible(match[3], timeline):
                bases.setdefault(match[1], {})[match[3]] = str(path)
        elif match := _LOG.fullmatch(path.name):
            logs.setdefault(match[1], {}).setdefault(match[2], []).append((int(match[3]), str(path)))
    found = []
    for file_id in sorted(bases.keys() | logs.keys()):
        if (partition, file_id) in timeline.replaced:
            continue
        pending = timeline.compacting.get((partition, file_id))
        begun = {*bases.get(file_id, ()), *logs.get(file_id, ())}
        starts = sorted(start for start in begun if start != pending and (visible(start, timeline)))
        start = starts[-1] if starts else None
        base = bases.get(file_id, {}).get(start) if start else None
        taken = sorted(logs.get(file_id, {}).get(start, [])) if start else []
        taken += sorted(logs.get(file_id, {}).get(pending, [])) if pending else []
        if base or taken:
            found.append(Split(values, file_id, base, tuple(path for _, path in taken)))
    return found


def splits(entry: CatalogEntry) -> list[Split]:
    """Presto's way: the input format alone says what the table is."""
    assert entry.input_format in COPY_ON_WRITE | MERGE_ON_READ, f"unknown table type: {entry.input_format}"
    root = local(entry.location)
    timeline = read_timeline(root)
    if not timeline.completed:
        return []
    partitions = entry.partitions if entry.keys else {(): entry.location}
    found = [
        split
        for values, location in partitions.items()
        for split in slices(root, relative(location, root), values, timeline)
    ]
    if entry.input_format in COPY_ON_WRITE:
        return [Split(split.values, split.file_id, split.base) for split in found if split.base]
    return found


def splits_of_old_trino(entry: CatalogEntry) -> list[Split]:
    """Trino's older connector: any table with something in `.hoodie` is Copy-on-Write, whatever the entry says."""
    assert os.listdir(Path(local(entry.location), ".hoodie"))
    plain = next(iter(COPY_ON_WRITE - {"com.uber.hoodie.hadoop.HoodieInputFormat"}))
    return splits(CatalogEntry(plain, entry.location, entry.columns, entry.keys, entry.partitions))


def base_path_by_metafile(location: str) -> str:
    """Hive's way from an input path to the table: as many folders up as the partition's metafile says."""
    text = Path(local(location), _METAFILE).read_text()
    depth = int(re.search(r"^partitionDepth=(\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    path = Path(local(location))
    for _ in range(depth):
        path = path.parent
    assert (path / ".hoodie").is_dir(), f"the metafile of {location} leads to {path}"
    return str(path)


def rows(entry: CatalogEntry, found: Iterable[Split]) -> list[dict[str, Any]]:
    """The rows of splits without logs: columns by name, whatever its case; partition columns from the metastore."""
    read: list[dict[str, Any]] = []
    for split in found:
        assert not split.logs
        assert split.base is not None
        table = pq.ParquetFile(split.base).read()
        by_name = {name.lower(): name for name in table.column_names}
        columns: dict[str, Any] = {}
        for name in entry.columns:
            stored = by_name.get(name.lower())
            columns[name.lower()] = table.column(stored).to_pylist() if stored else [None] * len(table)
        for (name, kind), value in zip(entry.keys.items(), split.values, strict=True):
            columns[name.lower()] = [_typed(value, kind)] * len(table)
        names = list(columns)
        read += [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return read


def rows_of_listed_files(versions: CatalogEntry, listed: CatalogEntry) -> list[dict[str, Any]]:
    """What the view has for engines that know plain formats alone: of all Parquet files, rows whose file is listed."""
    texts = [path.read_text() for path in Path(local(listed.location)).iterdir() if path.name[0] not in "._"]
    names = {line for text in texts for line in text.splitlines()}
    partitions = versions.partitions if versions.keys else {(): versions.location}
    files = [
        Split(values, "", str(path))
        for values, location in partitions.items()
        for path in sorted(Path(local(location)).iterdir())
        if path.name[0] not in "._" and path.is_file()
    ]
    return [row for row in rows(versions, files) if row["_hoodie_file_name"] in names]


def _typed(value: str, kind: str) -> Any:
    if value == "__HIVE_DEFAULT_PARTITION__":
        return None
    return int(value) if kind in ("int", "bigint") else value


def check_files(entry: CatalogEntry) -> None:
    """What all these readers ask of the files of a table."""
    root = local(entry.location)
    found = properties(root)
    for key in ("hoodie.table.name", "hoodie.table.type", "hoodie.table.version", "hoodie.timeline.layout.version"):
        assert found.get(key), f"hoodie.properties lacks {key}"
    assert found["hoodie.table.base.file.format"] == "PARQUET"
    timeline = read_timeline(root)
    schemas = []
    for path in sorted(Path(root, ".hoodie").iterdir()):
        match = _INSTANT.fullmatch(path.name)
        if match and match[3] is None:
            schemas.append(json.loads(path.read_text())["extraMetadata"].get("schema"))
    fields = {column["name"].lower() for column in json.loads(next(filter(None, reversed(schemas))))["fields"]}
    named = {name.lower() for name in [*entry.columns, *entry.keys] if not name.startswith("_hoodie_")}
    assert named <= fields | {name.lower() for name in entry.keys}
    for location in entry.partitions.values() if entry.keys else [entry.location]:
        assert Path(base_path_by_metafile(location)).samefile(root)
        for path in Path(local(location)).iterdir():
            if match := _BASE.fullmatch(path.name):
                names = pq.ParquetFile(path).schema_arrow.names
                assert len({name.lower() for name in names}) == len(names)
                if visible(match[3], timeline):
                    assert {name.lower() for name in names} <= named | {n.lower() for n in entry.columns}
            elif not path.is_dir():
                assert path.name.startswith("."), f"a foreign file: {path}"


def parquet_types(entry: CatalogEntry, found: Iterable[Split]) -> None:
    """See that Hive's types of an entry are what a Parquet reader by name finds in the base files."""
    fits = {
        "string": pa.types.is_string,
        "bigint": lambda kind: pa.types.is_int64(kind) or pa.types.is_timestamp(kind),
        "int": pa.types.is_int32,
        "double": pa.types.is_float64,
        "float": pa.types.is_float32,
        "boolean": pa.types.is_boolean,
        "date": pa.types.is_date32,
        "binary": pa.types.is_binary,
        "timestamp": pa.types.is_timestamp,
    }
    for split in found:
        if split.base:
            schema = pq.read_schema(split.base)
            for name, kind in entry.columns.items():
                if kind in fits and name in schema.names:
                    stored = schema.field(name).type
                    assert fits[kind](stored) or (kind == "bigint" and pa.types.is_int32(stored)), (name, kind, stored)
