"""The doctor's checks of data files' content: keys that a look-up would miss, duplicate keys, damage.

Source: docs/design/invariants.md 1 and 4; docs/format/base-files-and-bloom.md 1, 2 and 4,
docs/format/log-files.md 7 and 8.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.read import ReadSettings
from hoodie.display.progress import counted
from hoodie.doctor.files import PublishedFiles, of_another_instant, wrong_size
from hoodie.doctor.findings import Contents, Fault, Finding, Scene, Severity
from hoodie.errors import (
    CorruptFile,
    CorruptLogBlock,
    DamagedLog,
    HoodieError,
    InvalidOption,
    SchemaMismatch,
    UnsupportedTable,
    clause,
)
from hoodie.formats.java.strings import java_order
from hoodie.formats.log.blocks import BlockHead, BlockKind, read_block_headers
from hoodie.formats.parquet.base_footer import BaseFooter, java_min_max
from hoodie.formats.parquet.bloom import might_contain
from hoodie.formats.parquet.columns import damage_of, open_parquet
from hoodie.index.stored_keys import record_key_arrow
from hoodie.keygen.generated_keys import GENERATED
from hoodie.merge.ordering import roots
from hoodie.model.commit import WriteStat
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.model.instant import Instant
from hoodie.model.meta import FILE_NAME, PARTITION_PATH, RECORD_KEY
from hoodie.reading.slices.base_file_reader import footer_of
from hoodie.reading.slices.reader import SliceReader, base_batches, merged_batches, slice_reader
from hoodie.reading.table_schema import table_schema
from hoodie.schema.schema import with_meta_fields
from hoodie.storage.protocol import Storage, in_threads
from hoodie.table.properties import PROPERTIES
from hoodie.table.state import TableState
from hoodie.view.slices import FileSystemView, merged_slices

_SHOWN = 3  # examples in one finding
#: Rows that are in memory at a time, of each file whose columns are all read.
_BATCH_ROWS = 65_536
_RENAMED = "the file was renamed, or two were swapped"
_GIVE_BACK = "Give files the name that their rows have (_hoodie_file_name), or restore them from a copy of the table"


@dataclass(frozen=True, slots=True)
class Examination:
    """What the slices of a table are compared with.

    reader  None: logs are not merged
    """

    scene: Scene
    published: PublishedFiles
    reader: SliceReader | None
    all_columns: bool


@dataclass(frozen=True, slots=True)
class _Keys:
    """The record keys that a slice shows to readers."""

    slice: FileSlice
    keys: pa.ChunkedArray


def examine_rows(
    scene: Scene,
    contents: Contents,
    state: TableState,
    view: FileSystemView,
    reading: ReadSettings,
    *,
    whole_table: bool,
    all_columns: bool = False,
) -> Iterator[Finding]:
    """All findings from the files that a snapshot reader opens. The keys of one partition are in memory.

    reading      settings of reads, such as the import paths of mergers that may be loaded
    whole_table  a key must be unique in the table, not only in its partition: all keys of the table are in memory
    all_columns  merge all columns of slices with logs, not only the key
    """
    slices = list(merged_slices(view).values())
    schema = table_schema(state, view)
    if state.config.meta_fields:
        schema = with_meta_fields(schema)
    reader: SliceReader | None = None
    if any(slice_.logs for slice_ in slices) or not state.config.meta_fields:
        try:
            reader = slice_reader(state, schema, settings=reading)
        except (UnsupportedTable, InvalidOption) as error:
            advice = "Base files are checked for duplicate keys anyway"
            problem = f"rows of logs: {clause(error)}"
            yield Finding(Severity.NOTE, Fault.UNEXAMINED, "", problem, advice)
    published = PublishedFiles.by(contents)
    examined = Examination(scene, published, reader, all_columns)
    by_partition: dict[str, list[FileSlice]] = {}
    foreign: list[str] = []
    for slice_ in slices:
        by_partition.setdefault("" if whole_table else slice_.group.partition, []).append(slice_)
    for partition, part in by_partition.items():
        examine = counted(partial(_examine_slice, examined), len(part), "file slice")
        results = in_threads(examine, part, os.cpu_count() or 1, "hoodie-doctor")
        for findings, _ in results:
            yield from findings
        of_slices = [keys for _, keys in results if keys is not None]
        if not state.config.record_key and state.config.meta_fields:
            foreign += [keys for one in of_slices if (keys := _not_generated(one.keys))]
        yield from _duplicates(partition, of_slices)
    if foreign:
        problem = f"it names no record key, and the keys of the rows are of columns, such as {foreign[0]!r}"
        advice = (
            f"Put the columns of the table, whose values {RECORD_KEY} holds, into hoodie.table.recordkey.fields of "
            "that file, as they were when it was created: until then upserts insert rows a second time"
        )
        yield Finding(Severity.WARNING, Fault.COLUMN, PROPERTIES, problem, advice)


def _examine_slice(examined: Examination, slice_: FileSlice) -> tuple[list[Finding], _Keys | None]:
    scene, published, reader = examined.scene, examined.published, examined.reader
    findings: list[Finding] = []
    try:
        keys = None
        if slice_.base is not None and scene.config.meta_fields:
            keys = _base_keys(scene, slice_.base, published.stats.get(slice_.base.path), findings)
        if slice_.logs:
            findings += _logs(scene, published, slice_)
        if reader is not None and (slice_.logs or not scene.config.meta_fields):
            keys = _merged_keys(examined, reader, slice_, findings)
        return findings, None if keys is None else _Keys(slice_, keys)
    except CorruptFile as error:
        stays = scene.config.layout == 1 and isinstance(error, CorruptLogBlock)
        return [*findings, _damage_finding(error, stays=stays)], None
    except FileNotFoundError as error:
        advice = "If no writer or cleaner was active meanwhile, restore it from a copy of the table"
        problem = f"it was removed during the examination ({error})"
        return [*findings, Finding(Severity.WARNING, Fault.MISSING, _name(slice_), problem, advice)], None
    except HoodieError as error:
        problem = clause(error)
        advice = "This reader cannot read it; the Hudi release that wrote it may"
        fault = Fault.DAMAGED if isinstance(error, SchemaMismatch) else Fault.UNEXAMINED
        severity = Severity.ERROR if isinstance(error, SchemaMismatch) else Severity.NOTE
        return [*findings, Finding(severity, fault, _name(slice_), problem, advice)], None


def _damage_finding(error: CorruptFile, *, stays: bool = False) -> Finding:
    """stays: a rollback leaves the file there, as it does logs of layout 1, and reads fail on it all the same"""
    otherwise = "" if stays else ", or roll its commit back"
    advice = clause(error.advice) or f"Restore it from a copy of the table{otherwise}"
    return Finding(Severity.ERROR, Fault.DAMAGED, error.path, error.problem, advice)


def _name(slice_: FileSlice) -> str:
    return slice_.base.path if slice_.base else slice_.logs[0].path


# --- base files ---


def _not_generated(keys: pa.ChunkedArray) -> str:
    """A key that is not such as rows get where the table has no record key; "": there is none."""
    others = keys.filter(pc.invert(pc.match_substring_regex(keys, GENERATED)))
    return others[0].as_py() if len(others) else ""


def _base_keys(
    scene: Scene, file: BaseFile, published: tuple[Instant, WriteStat] | None, findings: list[Finding]
) -> pa.ChunkedArray:
    """The keys of a base file, checked against its footer and its commit."""
    footer = footer_of(scene.storage, file)
    target = pa.schema([(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH, FILE_NAME)])
    rows = pa.concat_tables([target.empty_table(), *base_batches(scene.storage, file, target)])
    keys, path = rows.column(RECORD_KEY), file.path
    if published is not None and published[1].num_writes != footer.rows:
        problem = f"{footer.rows} rows, and {published[0].requested} says {published[1].num_writes}"
        advice = "The file is not the published one: restore it from a copy of the table"
        findings.append(Finding(Severity.ERROR, Fault.COUNT, path, problem, advice))
    elif published is not None and (other := _other_name(published[1], rows.column(FILE_NAME), file.name)):
        problem = f"its rows say that they are of {other}: {_RENAMED}"
        findings.append(Finding(Severity.ERROR, Fault.DAMAGED, path, problem, _GIVE_BACK))
    bad = keys.null_count + pc.sum(pc.equal(pc.binary_length(keys), 0)).as_py() if len(keys) else 0
    if bad:
        advice = "Such rows cannot be updated or deleted; write them again with a key"
        findings.append(
            Finding(Severity.ERROR, Fault.KEY, path, f"{bad} of {len(keys)} rows have no record key", advice)
        )
        keys = keys.filter(pc.greater(pc.binary_length(keys), 0))
    partition = file.group.partition
    if len(rows) and not pc.all(pc.fill_null(pc.equal(rows.column(PARTITION_PATH), partition), False)).as_py():
        problem = "some rows belong to another partition by their meta column"
        findings.append(Finding(Severity.ERROR, Fault.KEY, path, problem, "Restore the file from a copy of the table"))
    if len(keys):
        _against_footer(footer, keys, path, findings)
    return keys


def _other_name(stat: WriteStat, names: pa.ChunkedArray, own: str) -> str | None:
    """The name of another file that rows of a base file carry, if none has its own though its write changed some. Hudi
    before 0.11 left rows that a write copies the name that they had."""
    others = pc.unique(names.drop_null()).to_pylist()
    return max(others, default=None) if (stat.num_inserts or stat.num_updates) and own not in others else None


def _against_footer(footer: BaseFooter, keys: pa.ChunkedArray, path: str, findings: list[Finding]) -> None:
    advice = "BLOOM upserts miss such keys and write them twice: rewrite the file by cluster or overwrite"
    bounds = java_min_max(keys)
    assert bounds is not None  # there is a key
    if footer.min_key is not None and footer.max_key is not None:
        low, high, least, most = java_order(
            pa.array([*bounds, footer.min_key, footer.max_key], pa.string())
        ).to_pylist()
        if low < least or high > most:
            problem = (
                f"keys from {bounds[0]!r} to {bounds[1]!r}, the footer says {footer.min_key!r} to {footer.max_key!r}"
            )
            findings.append(Finding(Severity.ERROR, Fault.RANGE, path, problem, advice))
    bloom = footer.bloom(path)
    if bloom is None:
        return
    inside = might_contain(bloom, keys)
    if not inside.all():
        lost = keys.filter(pa.array(~inside))
        problem = f"{len(lost)} of {len(keys)} keys are not in it, such as {lost[0].as_py()!r}"
        findings.append(Finding(Severity.ERROR, Fault.FILTER, path, problem, advice))


# --- logs ---


def _logs(scene: Scene, published: PublishedFiles, slice_: FileSlice) -> list[Finding]:
    """Logs with blocks of a commit that does not name them, or that no commit published there."""
    by_time = {instant.requested: instant for instant in scene.timeline.commits}
    names: dict[str, set[str]] = {}
    for path, (instant, _) in published.stats.items():
        names.setdefault(instant.requested, set()).add(path)
    findings = []
    for log in slice_.logs:
        if log.cdc:
            continue
        if log.path in published.stats:
            instant, stat = published.stats[log.path]
            if 0 < stat.file_size < log.size and _counts_behind(scene, log, stat.file_size):
                findings.append(wrong_size(log.path, log.size, instant, stat.file_size))
            # In layout 2 its name tells.
            elif scene.timeline.layout == 1 and (writers := _writers(scene, log)) and instant.requested not in writers:
                time, visible = max(writers), scene.timeline.visible()
                findings.append(of_another_instant(log.path, instant.requested, time, lost=not visible.committed(time)))
            continue
        writers = _writers(scene, log)
        for time in sorted(writers & by_time.keys() & names.keys()):
            problem = f"it holds rows of the completed instant {time}, which does not name it"
            advice = "A lost attempt of a task: the same rows are in another log. Compaction removes both"
            findings.append(Finding(Severity.WARNING, Fault.ORPHAN, log.path, problem, advice))
    return findings


def _writers(scene: Scene, log: LogFile) -> set[str]:
    """The instants whose rows a log holds."""
    return {head.header.instant for head in _heads(scene, log) if head.kind.is_data or head.kind is BlockKind.DELETE}


def _counts_behind(scene: Scene, log: LogFile, end: int) -> bool:
    """Whether a block counts that begins at `end` or later. Those of writes that died do not, and rollbacks of them."""
    completed = scene.timeline.visible().completed
    behind = (head for head in _heads(scene, log) if head.offset >= end and head.kind is not BlockKind.CORRUPT)
    targets = ({head.header.instant, head.header.target} for head in behind)
    return any(not instants.isdisjoint(completed) for instants in targets)


def _heads(scene: Scene, log: LogFile) -> Iterable[BlockHead]:
    def read(offset: int, length: int) -> bytes:
        return scene.storage.read_range(log.path, offset, offset + length)

    return read_block_headers(read, scene.storage.size(log.path), log.path)


def _merged_keys(
    examined: Examination, reader: SliceReader, slice_: FileSlice, findings: list[Finding]
) -> pa.ChunkedArray:
    keygen = reader.keygen
    columns = [RECORD_KEY, FILE_NAME] if keygen is None else list(roots(keygen.record_keys, reader.schema.names))
    if examined.all_columns:
        columns += [name for name in reader.schema.names if name not in columns]

    def keep(damage: DamagedLog) -> None:
        findings.extend(_skipped_bytes(examined.published, damage, sizes[damage.path]))

    sizes = {log.path: log.size for log in slice_.logs}
    # Not by catching warnings: their filters affect the whole process, and other threads' reads.
    arrays, names = [], set[str]()
    for part in merged_batches(reader, slice_, columns, keep):
        arrays.append(part.column(0) if keygen is None else record_key_arrow(part, keygen))
        if keygen is None:
            names.update(pc.unique(part.column(FILE_NAME)).drop_null().to_pylist())
    # Rows of a base file have its whole name, checked above.
    others = {name for name in names if "." not in name and name != slice_.group.file_id}
    if others:
        problem = f"rows of its slice's logs say that they are of {max(others)}: {_RENAMED}"
        findings.append(Finding(Severity.ERROR, Fault.DAMAGED, slice_.logs[-1].path, problem, _GIVE_BACK))
    return pa.chunked_array([chunk for array in arrays for chunk in _chunks(array.cast(pa.string()))], pa.string())


def _skipped_bytes(published: PublishedFiles, damage: DamagedLog, size: int) -> Iterator[Finding]:
    """Bytes of a log that readers skip: rows that a commit published there are lost, and a compaction would leave them
    out for good. Behind them nothing counts.

    size  of the log; of one that is shorter than it was published there is a finding already
    """
    _, stat = published.stats.get(damage.path, (None, None))
    if stat is None or damage.offset >= stat.file_size or damage.instant:
        advice = "If the writer died while writing it nothing is lost: compact the slice. Else restore the file"
        yield Finding(Severity.WARNING, Fault.DAMAGED, damage.path, damage.problem, advice)
    elif size >= stat.file_size:
        problem = f"{damage.problem}: readers skip it, and lack its rows"
        advice = "Restore it from a copy of the table, or roll its commit back. Hudi compacts without its rows"
        yield Finding(Severity.ERROR, Fault.DAMAGED, damage.path, problem, advice)


def _chunks(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(array.chunks) if isinstance(array, pa.ChunkedArray) else [array]


# --- the same key twice ---


def _duplicates(partition: str, slices: Sequence[_Keys]) -> Iterator[Finding]:
    everything = pa.chunked_array([chunk for slice_keys in slices for chunk in slice_keys.keys.chunks], pa.string())
    counts = pc.value_counts(everything)
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if not len(repeated):
        return
    shown = repeated[:_SHOWN]
    where = []
    for key in shown.to_pylist():
        groups = [slice_keys.slice for slice_keys in slices if pc.any(pc.equal(slice_keys.keys, key)).as_py()]
        where.append(f"{key!r} in {', '.join(_name(slice_) for slice_ in groups)}")
    problem = f"{len(repeated)} keys occur more than once: {'; '.join(where)}"
    advice = (
        "insert and bulk_insert look no key up and write duplicates as asked. If only upserts wrote here: upsert "
        "one version of each key, which changes all copies, or delete the keys and write them again, with a "
        "compaction between the two of a Merge-on-Read table"
    )
    yield Finding(Severity.WARNING, Fault.DUPLICATE, partition, problem, advice)


# --- every column, with the checksums of its pages ---


def examine_columns(storage: Storage, files: Iterable[BaseFile]) -> Iterator[Finding]:
    """Findings about base files of which a page cannot be read, or is not what its checksum says."""
    bases = list(files)
    read = counted(partial(_read_all, storage), len(bases), "base file")
    for finding in in_threads(read, bases, os.cpu_count() or 1, "hoodie-doctor"):
        if finding is not None:
            yield finding


def _read_all(storage: Storage, file: BaseFile) -> Finding | None:
    try:
        with storage.open_input(file.path, file.size) as source:
            parquet = open_parquet(source, file.path, checked=True)
            with damage_of(file.path):
                for _ in parquet.iter_batches(_BATCH_ROWS):
                    pass
    except CorruptFile as error:
        return _damage_finding(error)
    except FileNotFoundError:  # cleaned since it was listed, or there is a finding about it
        return None
    return None
