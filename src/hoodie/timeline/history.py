"""Writing the history of layout 2: instants that left the active timeline, in Parquet files that a manifest lists.

Files are written whole, then a manifest with them, then `_version_`, which readers follow: files that a dead writer
leaves are not read, and are written again; from its manifest the next one goes on. Small files of one layer become one
of the next, as history grows.
Source: docs/format/table-versions-8-9.md 5; pinned by tests/vectors/v8-v9/lsm_history.json.
"""

import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import CorruptFile
from hoodie.formats.timeline.schemas import LSM_INSTANT
from hoodie.model.instant import Action, Instant, State
from hoodie.storage.protocol import Storage, join, rewrite
from hoodie.timeline.completions import (
    MANIFEST,
    VERSION_FILE,
    history_files,
    history_span,
    history_version,
    newest_manifest,
    read_history,
)

#: Files of one layer that become one of the next, and the bytes that these have at most.
MERGED_FILES = 10
_MERGED_BYTES = 1000 * 1024 * 1024
#: Manifests that stay, for those who read them, beside those of the merges of one run.
_KEPT_MANIFESTS = 3

_COLUMNS = pa.schema(
    [
        pa.field("instantTime", pa.string()),
        pa.field("completionTime", pa.string()),
        pa.field("action", pa.string()),
        pa.field("metadata", pa.binary()),
        pa.field("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A completed instant with the contents of its files.

    content  of the completed file
    plans    of its pending files, by state and action
    """

    instant: Instant
    content: bytes
    plans: Mapping[tuple[State, Action], bytes]

    @property
    def plan(self) -> bytes | None:
        """What the history keeps of the pending files; None: nothing."""
        for (state, action), data in sorted(self.plans.items(), key=lambda item: item[0][0], reverse=True):
            if _KEEPS_PLAN.get(action) and state in _KEEPS_PLAN[action] and data:
                return data
        return None


_KEEPS_PLAN: Mapping[Action, Collection[State]] = {
    Action.CLEAN: (State.REQUESTED, State.INFLIGHT),
    Action.COMPACTION: (State.REQUESTED,),
    Action.LOG_COMPACTION: (State.REQUESTED,),
    Action.CLUSTERING: (State.REQUESTED, State.INFLIGHT),
    Action.REPLACE_COMMIT: (State.REQUESTED, State.INFLIGHT),
}


def add_to_history(
    storage: Storage, folder: str, entries: Collection[HistoryEntry], *, everywhere: bool = False
) -> str:
    """Put instants into the history that are not there yet. The caller holds the table's lock, where there is one.

    everywhere  the table was upgraded: files may hold instants that their names do not cover
    returns     the path of the file that has them; "" when the history has them all
    """
    newest = newest_manifest(storage, folder) or 0
    if newest > (history_version(storage, folder) or 0):  # it was set back, or a writer died before it changed it
        with suppress(CorruptFile):  # one that Hudi died in is written again
            history_files(storage, folder, newest)
            rewrite(storage, join(folder, VERSION_FILE), str(newest).encode())
    names = history_files(storage, folder)
    times = {entry.instant.requested for entry in entries}
    existing = _instants_in(storage, folder, [name for name in names if everywhere or _covers(name, times)])
    missing = sorted(
        (entry for entry in entries if (entry.instant.requested, entry.instant.action.value) not in existing),
        key=lambda entry: entry.instant.requested,
    )
    if not missing:
        return ""
    name = f"{missing[0].instant.requested}_{missing[-1].instant.requested}_0.parquet"
    if name in names:  # other instants of the same two times: those of a savepoint that is no more
        name = f"{missing[0].instant.requested}_{missing[-1].instant.requested}_1.parquet"
    rows = {
        "instantTime": [entry.instant.requested for entry in missing],
        "completionTime": [entry.instant.completed for entry in missing],
        "action": [entry.instant.action.value for entry in missing],
        "metadata": [entry.content or None for entry in missing],
        "plan": [entry.plan for entry in missing],
        "version": [1] * len(missing),
    }
    _write(storage, join(folder, name), pa.table(rows, schema=_COLUMNS))
    _publish(storage, folder, [*names, name])
    merges = _merge_layers(storage, folder)
    _clean(storage, folder, _KEPT_MANIFESTS + merges)
    return join(folder, name)


def history_rows(storage: Storage, folder: str, batch: int) -> Iterator[list[dict[str, Any]]]:
    """The instants of the history as they are stored, at most so many at once, older files first. Raises CorruptFile"""
    for name in sorted(history_files(storage, folder)):
        table = read_history(storage, join(folder, name), _COLUMNS.names)
        for rows in table.to_batches(max_chunksize=batch):
            yield rows.to_pylist()


def _covers(name: str, times: Collection[str]) -> bool:
    oldest, newest = history_span(name)
    return any(oldest <= time <= newest for time in times)


def _instants_in(storage: Storage, folder: str, names: Collection[str]) -> set[tuple[str, str]]:
    """The instants that some files of the history have: with the action that these say."""
    instants: set[tuple[str, str]] = set()
    for name in names:
        rows = read_history(storage, join(folder, name), ["instantTime", "action"])
        instants.update(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return instants


def _write(storage: Storage, path: str, rows: pa.Table) -> None:
    """One that is there already no manifest lists: a writer died before it did."""
    out = io.BytesIO()
    metadata = {"parquet.avro.schema": json.dumps(LSM_INSTANT, separators=(",", ":")), "writer.model.name": "avro"}
    with pq.ParquetWriter(out, rows.schema, compression="gzip", store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(metadata)
    storage.discard(path)
    storage.create_new(path, out.getvalue())


def _publish(storage: Storage, folder: str, names: Sequence[str]) -> None:
    """A new version of the history, of these files. Raises CorruptFile"""
    version = (history_version(storage, folder) or 0) + 1
    sizes = {entry.name: entry.size for entry in storage.list(folder)}
    if lost := sorted({*names} - sizes.keys()):
        raise CorruptFile(join(folder, lost[0]), "missing, though the history's manifest lists it")
    path = join(folder, f"manifest_{version}")
    storage.discard(path)  # of a writer that died in it
    storage.create_new(path, _manifest([(name, sizes[name]) for name in sorted(names)]))
    rewrite(storage, join(folder, VERSION_FILE), str(version).encode())


def _manifest(files: Sequence[tuple[str, int]]) -> bytes:
    """The files, with their sizes, in the form that Hudi's JSON has."""
    items = ", ".join(f'{{\n    "fileName" : {json.dumps(name)},\n    "fileLen" : {size}\n  }}' for name, size in files)
    return f'{{\n  "files" : [ {items} ]\n}}'.encode()


def _merge_layers(storage: Storage, folder: str) -> int:
    """Merge the oldest files of each layer that has enough; how many merges were made."""
    merges, layer = 0, 0
    while True:
        names = history_files(storage, folder)
        of_layer = sorted(name for name in names if name.endswith(f"_{layer}.parquet"))
        if len(of_layer) < MERGED_FILES:
            return merges
        sizes = {entry.name: entry.size for entry in storage.list(folder)}
        chosen: list[str] = []
        for name in of_layer[:MERGED_FILES]:
            chosen.append(name)
            if sum(sizes[other] for other in chosen) > _MERGED_BYTES:
                break
        if len(chosen) < 2:
            return merges
        parts = [read_history(storage, join(folder, name), _COLUMNS.names) for name in chosen]
        first, last = min(history_span(name)[0] for name in chosen), max(history_span(name)[1] for name in chosen)
        merged = f"{first}_{last}_{layer + 1}.parquet"
        _write(storage, join(folder, merged), pa.concat_tables([part.cast(_COLUMNS) for part in parts]))
        _publish(storage, folder, [*(name for name in names if name not in chosen), merged])
        merges, layer = merges + 1, layer + 1


def _clean(storage: Storage, folder: str, manifest_count: int) -> None:
    """Remove all but the newest manifests, then the files that none of these lists."""
    entries = [entry.name for entry in storage.list(folder) if not entry.is_dir]
    manifests = sorted((int(m[1]) for name in entries if (m := MANIFEST.fullmatch(name))), reverse=True)
    current = history_version(storage, folder) or 0
    stays = [number for number in manifests if number <= current][:manifest_count]
    for number in manifests:
        if number < min(stays):
            storage.discard(join(folder, f"manifest_{number}"))
    listed = {name for number in stays for name in history_files(storage, folder, number)}
    for name in entries:
        if name.endswith(".parquet") and not name.startswith(".") and name not in listed:
            storage.discard(join(folder, name))
