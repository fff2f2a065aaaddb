"""The HBase index: global, kept outside the table, and shared with Hudi's writers.

In the order of a write: keys are looked up; each task puts the entries of its new keys before the write is published,
which count only afterwards; moved keys get their new entry beside the old one; after publication it replaces the old
one, and entries of deleted keys are deleted. So neither a failed write nor a crashed one leaves a wrong entry.
"""

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.hbase import HBaseOptions
from hoodie.config.options import read_options
from hoodie.config.table import TableConfig, TimelineZone
from hoodie.errors import CorruptIndex, IndexUnavailable, InvalidOption
from hoodie.formats.timeline.services import decode_restore_metadata, decode_rollback_metadata
from hoodie.hbase.client import FAMILY, HBaseClient
from hoodie.hbase.connect import check_reachable, require_happybase
from hoodie.hbase.entries import (
    ENTRY,
    NEXT,
    NO_LATER,
    KeyEntry,
    Validity,
    delete_rows,
    entry_locations,
    find_entries,
    put_entries,
    row_keys,
)
from hoodie.hbase.mark import MARK, SEEN, Mark, put_mark, require_seen
from hoodie.hbase.missed_rollbacks import recorded_instants, uncompleted
from hoodie.index.contract import ByKey, Index, IndexContext, Placed, Tags
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, parse_time
from hoodie.timeline.load import read_commit

_NAME = "HBASE"
#: Classes of Hudi's that `hoodie.index.class` may name, and whether row keys have a prefix.
CLASSES = {
    "org.apache.hudi.index.hbase.SparkHoodieHBaseIndex": False,
    "org.apache.hudi.index.hbase.RebalancedSparkHoodieHBaseIndex": True,
}
#: In the extra metadata of a commit: further file groups whose keys got entries elsewhere, as JSON [[partition, id]].
LOST = "hoodie.index.hbase.lost"
#: Their rows lose nothing, whatever they count as deleted.
_SERVICES = frozenset({Operation.COMPACT, Operation.LOG_COMPACT, Operation.CLUSTER})
_ROWS_GO = frozenset({Operation.INSERT_OVERWRITE, Operation.INSERT_OVERWRITE_TABLE, Operation.DELETE_PARTITION})
#: What `record_writes` gives to `finalize`: the row, and its new entry; null: the row is to be deleted.
#: With the file group of its old entry, where that is in no statistic of the commit: null elsewhere.
_FINALIZE = pa.schema(
    [("row", pa.binary()), *((name, pa.string()) for name in ("file_id", "partition", "old_file_id", "old_partition"))]
)
#: Rows that are finalized at a time.
_FINALIZE_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class HBaseIndex:
    """How to reach the index of a table.

    buckets  prefixes of row keys; 0: none
    ahead    seconds that the clock of the table's instants is ahead of UTC
    table    name of the table whose index it is
    """

    options: HBaseOptions
    buckets: int
    ahead: float
    table: str

    def client(self, *, limited: bool = True) -> HBaseClient:
        return HBaseClient(self.options, limited=limited)

    @property
    def where(self) -> str:
        """For errors."""
        return f"the index in HBase at {self.options.host}:{self.options.port}, table {self.options.table!r},"

    def timestamp(self, instant: str) -> int:
        """HBase's timestamp of all cells that a write at `instant` makes, ms since 1970.

        Instants increase with writes, clocks of machines need not: so a later write's cells are later, on any machine.
        """
        # The gateway closes the connection on one that is negative.
        return max(0, int((parse_time(instant).replace(tzinfo=dt.UTC).timestamp() - self.ahead) * 1000))


def make_entries(options: Mapping[str, str], config: TableConfig) -> Index:
    """The index that the options describe. Raises InvalidOption; nothing is connected yet."""
    hbase = reach(options, config)
    return Index(
        name=_NAME,
        look_up=ByKey(partial(_tagger, hbase)),
        is_global=True,
        sees_logs=True,
        moves=hbase.options.moves,
        check=partial(_check, hbase),
        record_writes=partial(_record_writes, hbase),
        finalize=partial(_finalize, hbase),
        announce=partial(_announce, hbase),
        rolled_back=partial(roll_entries_back, hbase) if hbase.options.rollback_sync else None,
    )


def reach(options: Mapping[str, str], config: TableConfig) -> HBaseIndex:
    """How to reach the index of a table. Raises InvalidOption naming what is missing."""
    require_happybase()
    hbase_options = read_options(HBaseOptions, options)
    if not hbase_options.table:
        raise InvalidOption("hoodie.index.type=HBASE needs hoodie.index.hbase.table, the HBase table of the index")
    if not hbase_options.host:
        also = " hoodie.index.hbase.zkquorum is for Hudi's Java client." if hbase_options.quorum else ""
        raise InvalidOption(
            "hoodie.index.type=HBASE needs hoodie.index.hbase.thrift.host (and .port, 9090 by default): HBase is "
            f"reached through its Thrift gateway, which `hbase thrift start` runs.{also}"
        )
    check_reachable(hbase_options)
    class_name = options.get("hoodie.index.class", "")
    if class_name.startswith("org.apache.hudi.") and class_name not in CLASSES:
        raise InvalidOption(f"hoodie.index.class={class_name!r}: of Hudi's classes only {', '.join(CLASSES)} are known")
    rebalanced = CLASSES.get(class_name, False)
    zone = config.timezone
    ahead = (
        dt.timedelta(0) if zone is TimelineZone.UTC else dt.datetime.now().astimezone().utcoffset() or dt.timedelta()
    )
    return HBaseIndex(hbase_options, hbase_options.buckets if rebalanced else 0, ahead.total_seconds(), config.name)


def _check(hbase: HBaseIndex, context: IndexContext) -> None:
    with hbase.client() as client:
        client.check_table()
        require_seen(client, context, hbase.where)


# --- tagging ---


def _tagger(hbase: HBaseIndex, context: IndexContext) -> partial[Tags]:
    require_up_to_date(hbase, context)
    return partial(tag, hbase, validity_of(context))


def require_up_to_date(hbase: HBaseIndex, context: IndexContext) -> None:
    """Raises CorruptIndex while the index lacks the entries of a rolled back instant: a write restores them when it
    begins, so this is a reader, or a rollback is in progress. One listing."""
    missed = uncompleted(recorded_instants(context.storage), context.timeline)
    if missed:
        raise CorruptIndex(
            f"{hbase.where} is out of date: {', '.join(undone.instant for undone in missed)} was rolled back; entries "
            "of restored rows are missing. The next write with this index puts them, or hoodie index rebuild "
            f"{context.storage.root}"
        )


def validity_of(context: IndexContext) -> Validity:
    """Which entries count for a table: reads replace commits, rollbacks and restores of the active timeline.

    Raises CorruptFile
    """
    replaced: dict[tuple[str, str], bool] = {}
    for instant in context.timeline.completed({Action.REPLACE_COMMIT}):
        commit = read_commit(context.storage, context.timeline, instant)
        rows_gone = commit.operation in _ROWS_GO
        replaced.update({(part, file_id): rows_gone for part, ids in commit.replaced.items() for file_id in ids})
    return Validity(context.timeline.visible(), frozenset(_undone_instants(context)), replaced)


def _undone_instants(context: IndexContext) -> Iterator[str]:
    for instant in context.timeline.completed({Action.ROLLBACK, Action.RESTORE}):
        path = context.timeline.path(instant)
        content = context.storage.read(path)
        if instant.action is Action.ROLLBACK:
            yield from decode_rollback_metadata(content, path).commits
        else:
            yield from decode_restore_metadata(content, path).instants


def tag(hbase: HBaseIndex, validity: Validity, keys: pa.Array, partitions: pa.Array) -> Tags:
    """Where each key is: one multi-get for `hoodie.index.hbase.get.batch.size` keys.

    keys, partitions  string[n], no nulls; the partitions are not needed: the index is global
    Raises            IndexUnavailable; CorruptIndex; InvalidInput as `row_keys`
    """
    rows = row_keys(keys, hbase.buckets)
    with hbase.client() as client:
        entries = find_entries(client, rows, validity)
        where = f"{client.where}, table {hbase.options.table!r}"
    paths, file_ids = entry_locations(rows, entries, validity, where)
    count = len(rows)
    hits = count - file_ids.null_count
    return Tags(paths, file_ids, IndexStats(candidates=count, checked=count, hits=hits))


# --- what a write did ---


def _record_writes(hbase: HBaseIndex, placed: Sequence[Placed]) -> pa.Table | None:
    """Put the entries of new keys, and those of moved keys beside their old ones. Returns the rows to finalize."""
    later: list[pa.Table] = []
    with hbase.client() as client:
        for part in placed:
            entry = KeyEntry(part.instant.encode(), part.group.file_id.encode(), part.group.partition.encode())
            timestamp = hbase.timestamp(part.instant)
            new = row_keys(part.inserted, hbase.buckets)
            moved = row_keys(part.moved, hbase.buckets)
            elsewhere: dict[bytes, KeyEntry] = {}
            if not part.looked_up:
                elsewhere = _of_others(client, new, entry)
                new = [row for row in new if row not in elsewhere] if elsewhere else new
            put_entries(client, new, [entry] * len(new), timestamp)
            put_entries(client, [*moved, *elsewhere], [entry] * (len(moved) + len(elsewhere)), timestamp, NEXT)
            later.append(_to_finalize(moved, entry))
            later.append(_to_finalize(list(elsewhere), entry, list(elsewhere.values())))
            later.append(_to_finalize(row_keys(part.deleted, hbase.buckets), None))
    table = pa.concat_tables([_FINALIZE.empty_table(), *later])
    return table if table.num_rows else None


def _of_others(client: HBaseClient, rows: Sequence[bytes], entry: KeyEntry) -> dict[bytes, KeyEntry]:
    """Those of the rows that have an entry of another write, which must stay should this one fail."""
    cells_by_row = client.get(rows, ENTRY)
    return {
        row: KeyEntry(*(cells[name].value if name in cells else b"" for name in ENTRY))
        for row, cells in cells_by_row.items()
        if ENTRY[0] not in cells or cells[ENTRY[0]].value != entry.commit
    }


def _to_finalize(rows: Sequence[bytes], entry: KeyEntry | None, old: Sequence[KeyEntry] = ()) -> pa.Table:
    """entry  None: the rows are to be deleted"""
    count = len(rows)
    place = (None, None) if entry is None else (entry.file_id.decode(), entry.partition.decode())
    before: list[pa.Array] = [pa.nulls(count, pa.string())] * 2
    if old:
        before = [
            pa.array([entry_cells[part].decode(errors="replace") for entry_cells in old], pa.string())
            for part in (1, 2)
        ]
    columns = [
        pa.array(rows, pa.binary()),
        *(pa.repeat(pa.scalar(value, pa.string()), count) for value in place),
        *before,
    ]
    return pa.Table.from_arrays(columns, schema=_FINALIZE)


def _announce(
    hbase: HBaseIndex, instant: str, stats: Sequence[WriteStat], later: Sequence[pa.Table]
) -> Mapping[str, str]:
    """Before publication, once all entries are put: mark the index as having them. Returns the extra metadata."""
    extra = {SEEN: ""}
    old = {
        (partition, file_id)
        for table in later
        for pairs in (table.select(["old_partition", "old_file_id"]).group_by(["old_partition", "old_file_id"]),)
        for partition, file_id in zip(*pairs.aggregate([]).to_pydict().values(), strict=True)
        if file_id
    }
    if old:
        extra[LOST] = json.dumps(sorted(old))
    if any(stat.num_inserts for stat in stats):  # which put entries
        with hbase.client() as client:
            put_mark(client, Mark(instant, hbase.table), hbase.timestamp(instant))
        extra[SEEN] = hbase.table
    return extra


def lost_keys(commit: CommitMetadata) -> frozenset[FileGroupId]:
    """The file groups whose keys lost their entries by a commit, and need them again when it is rolled back.

    Raises ValueError when the metadata has another form
    """
    lost = {
        FileGroupId(partition, stat.file_id)
        for partition, stats in commit.stats.items()
        for stat in stats
        if stat.num_deletes > 0 and not commit.compacted and commit.operation not in _SERVICES
    }
    lost.update(FileGroupId(partition, file_id) for partition, ids in commit.replaced.items() for file_id in ids)
    lost.update(FileGroupId(partition, file_id) for partition, file_id in json.loads(commit.extra.get(LOST, "[]")))
    return frozenset(lost)


def _finalize(hbase: HBaseIndex, instant: str, rows: pa.Table) -> None:
    """After publication: new entries of moved keys replace the old ones, those of deleted keys are removed."""
    deleted = pc.is_null(rows.column("file_id"))
    try:
        with hbase.client() as client:
            for part in _parts(rows.filter(pc.invert(deleted))):
                _promote(client, instant, hbase.timestamp(instant), part)
            for part in _parts(rows.filter(deleted)):
                delete_rows(client, part.column("row").to_pylist(), hbase.timestamp(instant), instant)
    except IndexUnavailable as problem:
        raise IndexUnavailable(
            f"{problem} Entries of deleted keys may be left, and Hudi's writers see the old ones of moved keys, until "
            "the index is rebuilt: hoodie index rebuild"
        ) from problem


def _promote(client: HBaseClient, instant: str, timestamp: int, moved: pa.Table) -> None:
    keys = moved.column("row").to_pylist()
    places = zip(moved.column("file_id").to_pylist(), moved.column("partition").to_pylist(), strict=True)
    put_entries(
        client, keys, [KeyEntry(instant.encode(), file.encode(), path.encode()) for file, path in places], timestamp
    )
    client.delete(keys, NEXT, timestamp)  # in a call of its own: a put and a delete of a row must not meet


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, _FINALIZE_ROWS):
        yield rows.slice(start, _FINALIZE_ROWS)


def roll_entries_back(hbase: HBaseIndex, instant: str) -> None:
    """Remove the entries of an instant that was rolled back (`hoodie.index.hbase.rollback.sync`).

    A row gets the version before back where HBase still has it, and is deleted otherwise. Costs a scan.
    """
    row_filter = (
        b"SingleColumnValueFilter('" + FAMILY + b"', 'commit_ts', =, 'binary:" + instant.encode() + b"', true, true)"
    )
    with hbase.client() as client:
        for row, cells in client.scan(ENTRY, row_filter):
            if row == MARK:
                continue
            timestamp = max(cell.timestamp for cell in cells.values())
            before = client.get_before(row, ENTRY, min(cell.timestamp for cell in cells.values()))
            if all(name in before for name in ENTRY):
                put_entries(
                    client, [row], [KeyEntry(*(before[name].value for name in ENTRY))], timestamp + 1, last=NO_LATER
                )
            else:
                client.delete([row], [FAMILY], timestamp)
