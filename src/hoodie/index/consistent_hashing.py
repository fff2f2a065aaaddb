"""The BUCKET index, engine CONSISTENT_HASHING: buckets of a partition split and merge, and a file says what they are.

Each partition has a ring of nodes, a file group each: a key belongs to the first node whose value is not below the
key's hash. The ring is in `.hoodie/.bucket_index/consistent_hashing_metadata/<partition>/<instant>.hashing_meta`. The
first one has the instant 00000000000000 and follows from the partition path and the number of buckets; a clustering
that resizes buckets (Hudi's: this library makes none) writes the next one, which counts once its instant is completed.

Source: docs/format/clustering.md 7 and Hudi's ConsistentBucketIdentifier, HoodieConsistentHashingMetadata and
ConsistentBucketIndexUtils; pinned by tests/fixtures/buckets/consistent_mor and, for versions 8 and 9 of the format,
tests/fixtures/hudi-1.x/v9_mor_consistent_hashing.
"""

import hashlib
import json
import re
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config.options import read_options
from hoodie.config.table import TableConfig, TableType
from hoodie.config.write import IndexOptions
from hoodie.errors import CorruptFile, InvalidOption, TableMismatch, UnsupportedTable
from hoodie.index.bucket import BUCKETS, ENGINE, NAME, HashFields, hash_fields, hashed_text
from hoodie.index.contract import ByKey, Index, IndexContext, TagKeys, Tags
from hoodie.index.pruning import IndexStats
from hoodie.index.xxhash32 import xxh32
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, State
from hoodie.storage.protocol import Storage, in_threads, join
from hoodie.timeline.completions import with_history
from hoodie.timeline.load import read_commit, still_pending
from hoodie.timeline.timeline import Timeline

BUCKET_INDEX = ".bucket_index"
METADATA = f".hoodie/{BUCKET_INDEX}/consistent_hashing_metadata"

#: The instant of the ring that a partition begins with.
INITIAL = "00000000000000"
_LARGEST = 0x7FFFFFFF  # hash values are masked to it; it is the value of a ring's last node
_NAME = re.compile(r"(\d+)\.hashing_meta", re.ASCII)
_MARKER = ".commit"
_NORMAL = "NORMAL"


@dataclass(frozen=True, slots=True)
class BucketNode:
    """A bucket: the keys whose hash is up to `value`, and above the node before."""

    value: int
    file_id_prefix: str

    @property
    def file_id(self) -> str:
        """The id of the one file group of the bucket."""
        return f"{self.file_id_prefix}-0"


@dataclass(frozen=True, slots=True)
class Ring:
    """The buckets of one partition, by value.

    began_with  the number of buckets of the partition's first ring
    sequence    how often the ring was changed
    """

    partition: str
    instant: str
    began_with: int
    sequence: int
    nodes: tuple[BucketNode, ...]

    @property
    def file_ids(self) -> tuple[str, ...]:
        return tuple(node.file_id for node in self.nodes)


def make(options: Mapping[str, str], config: TableConfig) -> Index:
    """The index by a write's options, completed by what the table recorded when it was created for the index.

    Raises InvalidOption on a hash field outside the record key, and for a Copy-on-Write table; TableMismatch on other
           hash fields than the table has recorded
    """
    if config.type is not TableType.MERGE_ON_READ:
        raise InvalidOption(
            f"{ENGINE}=CONSISTENT_HASHING is for Merge-on-Read tables, as in Hudi, and {config.name} is Copy-on-Write: "
            f"leave {ENGINE} unset, for buckets whose number stays"
        )
    fields = hash_fields(options, config)
    recorded = {BUCKETS: config.properties[BUCKETS]} if BUCKETS in config.properties else {}
    settings = {**recorded, **({BUCKETS: options[BUCKETS]} if BUCKETS in options else {})}
    buckets = read_options(IndexOptions, settings).buckets if settings else None
    return Index(
        name=NAME,
        look_up=ByKey(partial(_tagger, fields, buckets), names_new=True, every_write=True),
        check=_check,
        prepare=partial(_prepare, buckets),
        replaceable=False,
    )


def keeps_metadata(storage: Storage, timeline: Timeline) -> bool:
    """Whether a table has the rings of this engine, whatever the options say.

    One listing; none where the timeline's listing has shown that the folder does not exist.
    """
    return not timeline.lacks_folder(BUCKET_INDEX) and bool(storage.list(METADATA))


# --- the ring ---


def first_ring(partition: str, buckets: int) -> Ring:
    """The ring that a partition begins with: nodes at equal distances, their file ids made from their bounds."""
    step = (_LARGEST + buckets - 1) // buckets
    nodes, low = [], 0
    for number in range(1, buckets + 1):
        high = min(step * number, _LARGEST)
        nodes.append(BucketNode(high, _file_id_prefix(partition, low, high)))
        low = high
    return Ring(partition, INITIAL, buckets, 0, tuple(nodes))


def _file_id_prefix(partition: str, low: int, high: int) -> str:
    """Java's UUID.nameUUIDFromBytes of both bounds and the partition path."""
    digest = hashlib.md5(struct.pack(">qq", low, high) + partition.encode(), usedforsecurity=False).digest()
    return str(UUID(bytes=digest, version=3))


def encode_ring(ring: Ring) -> bytes:
    """The file of a ring, as Jackson prints it."""
    nodes = ", ".join(
        f'{{\n    "value" : {node.value},\n    "fileIdPrefix" : {json.dumps(node.file_id_prefix)},\n'
        f'    "tag" : "{_NORMAL}"\n  }}'
        for node in ring.nodes
    )
    partition = json.dumps(ring.partition, ensure_ascii=False)
    return (
        f'{{\n  "version" : 0,\n  "partitionPath" : {partition},\n  "instant" : "{ring.instant}",\n'
        f'  "numBuckets" : {ring.began_with},\n  "seqNo" : {ring.sequence},\n  "nodes" : [ {nodes} ]\n}}'
    ).encode()


def decode_ring(data: bytes, path: str) -> Ring:
    """The ring of a file. Raises CorruptFile; UnsupportedTable on a node that is being split or merged."""
    try:
        document = json.loads(data)
        nodes = [(int(node["value"]), str(node["fileIdPrefix"]), node.get("tag")) for node in document["nodes"]]
        ring = Ring(
            str(document["partitionPath"]),
            str(document["instant"]),
            int(document["numBuckets"]),
            int(document["seqNo"]),
            tuple(BucketNode(value, prefix) for value, prefix, _ in sorted(nodes, key=lambda node: node[0])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFile(path, f"no hashing metadata: {error!r}", advice=_RESTORE) from error
    if tags := {tag for _, _, tag in nodes if tag not in (None, _NORMAL)}:
        raise UnsupportedTable(f"{path}: a node has the tag {', '.join(map(str, tags))}; only {_NORMAL} is known")
    values, prefixes = {node.value for node in ring.nodes}, {node.file_id_prefix for node in ring.nodes}
    if not nodes or len(values) < len(nodes) or len(prefixes) < len(nodes) or "" in prefixes:
        raise CorruptFile(path, "its nodes are no ring: none, or two with the same value or file id", advice=_RESTORE)
    return ring


_RESTORE = "Restore it from a copy of the table: without it the partition's keys cannot be located."


def load_ring(
    storage: Storage, config: TableConfig, timeline: Timeline, partition: str, groups: Collection[str]
) -> Ring | None:
    """The ring by which keys of a partition are placed now; None when it has none yet. One listing, one read.

    groups   file ids of the partition's live file groups
    Raises   CorruptFile when a partition with file groups has no ring, or one of another partition
    """
    folder = _folder(partition)
    names = {entry.name for entry in storage.list(folder) if not entry.is_dir}
    instants = sorted((match[1] for name in names if (match := _NAME.fullmatch(name))), reverse=True)
    for instant in instants:
        path = f"{folder}/{instant}.hashing_meta"
        counts = instant == INITIAL or f"{instant}{_MARKER}" in names or _is_completed(timeline, instant)
        if not counts and not _may_be_archived(storage, config, timeline, instant):
            continue  # of a clustering that is pending, or was rolled back
        ring = decode_ring(storage.read(path), path)
        if ring.partition != partition:
            raise CorruptFile(path, f"it is of partition {ring.partition!r}, not {partition!r}", advice=_RESTORE)
        # One that is archived was completed if all file groups are its own: else those that it replaced live on.
        if counts or (groups and set(groups) <= set(ring.file_ids)):
            return ring
    if groups:
        raise CorruptFile(
            folder,
            f"no hashing metadata counts, though partition {partition!r} has file groups such as {min(groups)}",
            advice=_RESTORE,
        )
    return None


def _folder(partition: str) -> str:
    """Where the rings of a partition are; of a table without partitions they lie in the folder itself."""
    return join(METADATA, partition) if partition else METADATA


def _is_completed(timeline: Timeline, instant: str) -> bool:
    replace = timeline.find(instant, Action.REPLACE_COMMIT)
    return replace is not None and replace.state is State.COMPLETED


def _may_be_archived(storage: Storage, config: TableConfig, timeline: Timeline, instant: str) -> bool:
    if timeline.find(instant, Action.REPLACE_COMMIT) is not None:
        return False
    return with_history(storage, config, timeline, [instant], rows=False).visible().committed(instant)


# --- a write ---


def _check(context: IndexContext) -> None:
    """Refuse a table whose files were written without this index. Raises TableMismatch"""
    if context.written and not keeps_metadata(context.storage, context.timeline):
        raise TableMismatch(
            f"{ENGINE}=CONSISTENT_HASHING: {context.config.name} has files and no hashing metadata: its keys were "
            f"not placed by it. Leave {ENGINE} unset; if the folder {METADATA} was lost, restore it from a copy."
        )


def _prepare(buckets: int | None, context: IndexContext) -> None:
    """Check that rows of the partitions can be placed, and create the rings of new partitions, as Hudi does.

    A write that fails leaves the ring of a new partition in place: it belongs to the partition, not to the write.

    Raises UnsupportedTable while a clustering resizes buckets of a partition, or when the file group of a bucket was
           replaced, so that readers would not see what is written to it; as `load_ring`
    """
    _refuse_pending_clustering(context)
    replaced = _replaced(context)
    rings = _rings(buckets, context)
    for ring, _ in rings:
        for file_id in ring.file_ids:
            if (instant := replaced.get(FileGroupId(ring.partition, file_id))) is not None:
                raise UnsupportedTable(
                    f"partition {ring.partition!r}: file group {file_id} of a bucket was replaced at {instant}, by an "
                    "overwrite or a delete of the partition, and readers would not see rows that are written to it "
                    "now. Write the rows to another table, or to this one once its cleaning and archiving have "
                    "removed that file group and that instant."
                )
    in_threads(partial(_begin, context.storage), [ring for ring, is_new in rings if is_new])


def _begin(storage: Storage, ring: Ring) -> None:
    # Where another writer came first its ring counts: keys are tagged by the ring on storage.
    with suppress(FileExistsError):
        storage.create_new(f"{_folder(ring.partition)}/{INITIAL}.hashing_meta", encode_ring(ring))


def _refuse_pending_clustering(context: IndexContext) -> None:
    for instant in context.timeline.pending_replaces:
        plan = still_pending(context.storage, context.timeline, instant)
        touched = {slice_.group.partition for slice_ in (plan.slices if plan else ())} & set(context.partitions)
        if touched:
            raise UnsupportedTable(
                f"partition {min(touched)!r}: the pending clustering {instant.requested} resizes buckets, and rows "
                "written now would be missing in the new ones. Have Hudi run or withdraw the clustering, then write."
            )


def _replaced(context: IndexContext) -> dict[FileGroupId, str]:
    """The file groups that completed replace commits replaced, with the instant."""
    return {
        FileGroupId(partition, file_id): instant.requested
        for instant in context.timeline.completed({Action.REPLACE_COMMIT})
        for partition, file_ids in read_commit(context.storage, context.timeline, instant).replaced.items()
        for file_id in file_ids
    }


def _buckets(count: int | None, context: IndexContext) -> int:
    """The number of buckets of a new partition: as the options or the table say, else as another partition began."""
    if count is not None:
        return count
    for folder, entries in sorted(context.storage.list_tree(METADATA).items()):
        for entry in entries:
            if entry.name == f"{INITIAL}.hashing_meta":
                path = f"{folder}/{entry.name}"
                return decode_ring(context.storage.read(path), path).began_with
    return read_options(IndexOptions, {}).buckets


def _rings(buckets: int | None, context: IndexContext) -> list[tuple[Ring, bool]]:
    """The ring of each partition of the batch; and whether it is new: the partition's first one."""
    rings = in_threads(partial(_ring, context), context.partitions)
    begins = _buckets(buckets, context) if None in rings else 0
    return [
        (first_ring(partition, begins), True) if ring is None else (ring, False)
        for partition, ring in zip(context.partitions, rings, strict=True)
    ]


def _ring(context: IndexContext, partition: str) -> Ring | None:
    """As `load_ring`. Raises UnsupportedTable when a file group of the partition is of no bucket."""
    groups = {slice_.group.file_id for slice_ in context.slices.get(partition, ())}
    ring = load_ring(context.storage, context.config, context.timeline, partition, groups)
    if ring is not None and (strange := sorted(groups.difference(ring.file_ids))):
        raise UnsupportedTable(
            f"partition {partition!r}: file groups such as {strange[0]} are of no bucket of its hashing metadata "
            f"({ring.instant}): a writer with another index made them, and a key may be in two file groups. Take that "
            "writer's commits back (`rollback`), or copy the rows to a new table; `hoodie check` finds keys that are "
            "there twice."
        )
    return ring


def _tagger(fields: HashFields, buckets: int | None, context: IndexContext) -> TagKeys:
    rings = {ring.partition: ring.nodes for ring, _ in _rings(buckets, context)}
    existing_groups = frozenset(
        (path, slice_.group.file_id) for path in context.partitions for slice_ in context.slices.get(path, ())
    )
    return partial(_tag, fields, rings, existing_groups)


def _tag(
    fields: HashFields,
    rings: Mapping[str, Sequence[BucketNode]],
    existing_groups: Collection[tuple[str, str]],
    keys: pa.Array,
    partitions: pa.Array,
) -> Tags:
    hashes = hash_values(keys, fields)
    encoded = partitions.dictionary_encode()
    owner = encoded.indices.to_numpy(zero_copy_only=False)
    file_ids: list[str] = []
    exists: list[bool] = []
    which = np.empty(len(keys), np.int64)
    for number, path in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(owner == number)
        which[rows] = len(file_ids) + nodes_of(hashes[rows], rings[path])
        ids = [node.file_id for node in rings[path]]
        file_ids += ids
        exists += [(path, file_id) in existing_groups for file_id in ids]
    placed = pa.array(file_ids, pa.string()).take(pa.array(which))
    hits = int(np.count_nonzero(np.asarray(exists, np.bool_)[which]))
    return Tags(partitions, placed, IndexStats(candidates=len(keys), checked=len(keys), hits=hits))


def hash_values(keys: pa.Array, fields: HashFields) -> npt.NDArray[np.int64]:
    """Where keys are on the ring.

    keys     string[n], no nulls
    returns  int64[n], in [0, 2**31)
    """
    return xxh32(hashed_text(keys, fields)).astype(np.int64) & _LARGEST


def nodes_of(hashes: npt.NDArray[np.int64], nodes: Iterable[BucketNode]) -> npt.NDArray[np.int64]:
    """The number of each hash's node, of nodes by value: the first whose value is not below it, else the first."""
    values = np.asarray([node.value for node in nodes], np.int64)
    positions = np.searchsorted(values, hashes, side="left")
    return np.where(positions == len(values), 0, positions).astype(np.int64)
