"""The BUCKET index, engine SIMPLE: a key's file group follows from a hash of the key; nothing is looked up.

Each partition has one file group a bucket, whose file id begins with the bucket's number. So a write of a new key into
an existing bucket is an update of its file group, whatever the key.
Source: docs/format/indexing-and-write-path.md 4.
"""

import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import UUID, uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.config.locks import ConcurrencyOptions
from hoodie.config.options import read_options
from hoodie.config.table import TableConfig
from hoodie.config.write import IndexOptions
from hoodie.errors import InvalidOption, TableMismatch, UnsupportedTable
from hoodie.formats.java.strings import list_hashes, string_hashes
from hoodie.index.contract import ByKey, Index, IndexContext, TagKeys, Tags
from hoodie.index.pruning import IndexStats
from hoodie.index.stored_keys import keys_in
from hoodie.keygen.keygen import stored_key_generator
from hoodie.model.commit import WriteStat
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Action
from hoodie.model.table_version import VERSIONS
from hoodie.storage.protocol import join
from hoodie.timeline.load import read_commit

NAME = "BUCKET"
BUCKETS = "hoodie.bucket.index.num.buckets"
HASH_FIELDS = "hoodie.bucket.index.hash.field"
ENGINE = "hoodie.index.bucket.engine"

#: File ids of a bucket index begin with the bucket's number. One UUID in 40,000 looks so, too.
_FILE_ID = re.compile(r"(\d{8})-")

#: Base files whose keys a write looks at when the table does not say how many buckets it has.
_FILES_CHECKED = 2

#: The least keys from which the number of buckets is inferred, and the most base files opened for them. That so
#: many keys agree on a multiple of the number has a chance of one in 2 ** 24.
_KEYS_SAMPLED = 24
_FILES_SAMPLED = 16
#: File ids have room for fewer buckets.
_MOST_BUCKETS = 100_000

#: What no key has, before the name of each field but the first.
_BEFORE_NAME = "\0,\0"

Buckets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class HashFields:
    """The columns of the record key that a bucket follows from.

    hold_commas  their values may, as `TableVersion.keys_hold_commas` says; else a comma ends a value
    """

    names: tuple[str, ...]
    hold_commas: bool = False


def make(options: Mapping[str, str], config: TableConfig) -> Index:
    """The index by a write's options, completed by what the table recorded when it was created for the index.

    Raises InvalidOption on a hash field outside the record key; TableMismatch on another number of buckets, or other
           hash fields, than the table has recorded
    """
    recorded = {BUCKETS: config.properties[BUCKETS]} if BUCKETS in config.properties else {}
    chosen = read_options(IndexOptions, {**recorded, **options})
    if BUCKETS in recorded and chosen.buckets != int(recorded[BUCKETS]):
        raise TableMismatch(f"{BUCKETS}={chosen.buckets}: {config.name} has {recorded[BUCKETS]} buckets for good")
    fields = hash_fields(options, config)
    # Writers that do not wait for one another make the same new file groups, and only logs in them.
    shared = read_options(ConcurrencyOptions, options).non_blocking
    look_up = ByKey(partial(_tagger, fields, chosen.buckets, shared), names_new=True, every_write=True)
    return Index(name=NAME, look_up=look_up, sees_logs=shared, check=partial(_check, fields, chosen.buckets))


def hash_fields(options: Mapping[str, str], config: TableConfig) -> HashFields:
    """The columns that options and table name, else those of the record key.

    Raises InvalidOption on one outside the record key, and without a record key; TableMismatch on others than the table
           has recorded
    """
    recorded = {key: config.properties[key] for key in (BUCKETS, HASH_FIELDS) if key in config.properties}
    chosen = read_options(IndexOptions, {**recorded, **options})
    keys = stored_key_generator(config.properties).record_keys
    if not keys:
        raise InvalidOption(
            f"{config.name} has no record key, from which a bucket follows: leave hoodie.index.type=BUCKET out, or "
            "make a table with a record key"
        )
    fields = chosen.hash_fields or keys
    outside = [name for name in fields if name not in keys]
    if outside:
        raise InvalidOption(
            f"{HASH_FIELDS}={','.join(fields)}: {', '.join(outside)} is not in the record key of {config.name}, which "
            f"is {', '.join(keys)}. A bucket must follow from the key."
        )
    own = read_options(IndexOptions, recorded).hash_fields or tuple(keys)
    if BUCKETS in recorded and tuple(fields) != own:
        raise TableMismatch(f"{HASH_FIELDS}={','.join(fields)}: {config.name} has {','.join(own)}, which cannot change")
    return HashFields(tuple(fields), VERSIONS[config.version].keys_hold_commas)


def buckets_of(keys: pa.Array, fields: HashFields, count: int) -> Buckets:
    """The bucket of each record key.

    keys     string[n], no nulls
    returns  int64[n], in [0, count)
    """
    hashes = (string_hashes(keys).view(np.uint32) + np.uint32(31)).view(np.int32)  # of a list of one
    pairs = _pairs(keys, fields)
    if len(pairs):
        hashes[pairs] = _hashes_of_pairs(keys.take(pa.array(pairs)), fields)
    return (hashes.astype(np.int64) & 0x7FFFFFFF) % count


def hashed_text(keys: pa.Array, fields: HashFields) -> pa.Array:
    """What the engine CONSISTENT_HASHING hashes of each record key: its values, one after the other.

    keys     string[n], no nulls
    returns  string[n]
    """
    pairs = _pairs(keys, fields)
    if not len(pairs):
        return keys
    values, absent, bounds = _values_of_pairs(keys.take(pa.array(pairs)), fields)
    values = pc.if_else(pa.array(absent), "null", values)  # as Java joins a null
    lists = pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), values)
    joined = pc.binary_join(lists, "").cast(keys.type)
    mask = np.zeros(len(keys), np.bool_)
    mask[pairs] = True
    return pc.replace_with_mask(keys, pa.array(mask), joined)


def _pairs(keys: pa.Array, fields: HashFields) -> npt.NDArray[np.int64]:
    """Which keys are taken apart."""
    colon = np.asarray(pc.match_substring(keys, ":"))
    return np.flatnonzero(colon & np.asarray(pc.match_substring(keys, ",")) if fields.hold_commas else colon)


def _hashes_of_pairs(keys: pa.Array, fields: HashFields) -> npt.NDArray[np.int32]:
    values, absent, bounds = _values_of_pairs(keys, fields)
    hashes = string_hashes(values)
    hashes[absent] = 0
    return list_hashes(np.ascontiguousarray(hashes), bounds)


def _values_of_pairs(
    keys: pa.Array, fields: HashFields
) -> tuple[pa.Array, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """The values of keys such as "name:value,name:value": string[v], which of them are null, and bounds [n + 1].

    Where a comma ends a value, one with a colon of a simple key is split, too, as by Hudi 0.15: its first part is not a
    field, so that all such keys go to one bucket.
    """
    lists = _at_names(keys) if fields.hold_commas else pc.split_pattern(keys, ",")
    pieces, bounds = lists.flatten(), lists.offsets.to_numpy().astype(np.int64)
    owner = np.repeat(np.arange(len(keys)), np.diff(bounds))
    colon = np.asarray(pc.find_substring(pieces, ":")).astype(np.int64)
    names = pc.list_element(pc.split_pattern(pieces, ":", max_splits=1), 0)
    lone = colon < 0
    is_value = lone | np.asarray(pc.is_in(names, pa.array(fields.names, pa.string())))
    # Java's split drops empty pieces at the end.
    last = np.full(len(keys), -1, np.int64)
    filled = np.flatnonzero(np.asarray(pc.not_equal(pieces, "")))
    last[owner[filled]] = filled  # of equal indexes the last assignment stays
    is_value &= np.arange(len(pieces)) <= last[owner]
    values = pc.if_else(pa.array(lone), pieces, _after_colon(pieces))
    absent, empty = (~lone & np.asarray(pc.equal(values, word)) for word in ("__null__", "__empty__"))
    values = pc.if_else(pa.array(absent | empty), "", values)
    if fields.hold_commas:  # a key without a value of a field is one itself
        whole = np.bincount(owner[is_value], minlength=len(keys)) == 0
        first = np.zeros(len(pieces), np.bool_)
        first[bounds[:-1][whole]] = True
        is_value |= first
        absent &= ~first
        values = pc.replace_with_mask(values, first, keys.filter(pa.array(whole)))
    counts = np.bincount(owner[is_value], minlength=len(keys))
    return values.filter(pa.array(is_value)), absent[is_value], np.concatenate([[0], np.cumsum(counts)])


def _at_names(keys: pa.Array) -> pa.Array:
    """Keys with a colon, split at the last comma before each further name: list<string>[n]."""
    parts = pc.split_pattern(keys, ":", max_splits=1)
    rest = pc.replace_substring_regex(pc.list_element(parts, 1), ",([^,:]*:)", rf"{_BEFORE_NAME}\1")
    return pc.split_pattern(pc.binary_join_element_wise(pc.list_element(parts, 0), rest, ":"), _BEFORE_NAME)


def _after_colon(pieces: pa.Array) -> pa.Array:
    """What follows the first colon; "" where there is none."""
    parts = pc.split_pattern(pieces, ":", max_splits=1)
    text, bounds = parts.flatten(), parts.offsets.to_numpy().astype(np.int64)
    two = np.diff(bounds) == 2
    return pc.if_else(pa.array(two), text.take(pa.array(np.where(two, bounds[:-1] + 1, bounds[:-1]))), "")


def bucket_of(file_id: str) -> int | None:
    """The bucket of a file id; None: it is not a file id of a bucket index."""
    match = _FILE_ID.match(file_id)
    return int(match[1]) if match else None


def buckets_by_keys(options: Mapping[str, str], context: IndexContext) -> int | None:
    """How many buckets a table has, inferred from keys in the base files of `context.written`; None: they are too few,
    or hashed by other fields.

    The number divides what hash and bucket of each key differ by. Opens the key columns of a few files, the smaller
    ones first.
    """
    recorded = {key: context.config.properties[key] for key in (HASH_FIELDS,) if key in context.config.properties}
    names = read_options(IndexOptions, {**recorded, **options}).hash_fields
    names = names or stored_key_generator(context.config.properties).record_keys
    fields = HashFields(tuple(names), VERSIONS[context.config.version].keys_hold_commas)
    divisor, count = 0, 0
    for path, bucket in _some_files(context.written, _FILES_SAMPLED):
        if count >= _KEYS_SAMPLED:
            break
        with suppress(FileNotFoundError):  # removed by cleaning meanwhile
            hashes = np.unique(buckets_of(keys_in(context.storage, path), fields, 1 << 31))
            divisor = int(np.gcd(divisor, np.gcd.reduce(np.abs(hashes - bucket)))) if len(hashes) else divisor
            count += len(hashes)
    most = max((number for stat in context.written if (number := bucket_of(stat.file_id)) is not None), default=0)
    return divisor if count >= _KEYS_SAMPLED and most < divisor <= _MOST_BUCKETS else None


def file_id_of(bucket: int, seed: str) -> str:
    """A file id that no other has: the same for the same seed."""
    uuid = UUID(bytes=hashlib.md5(seed.encode(), usedforsecurity=False).digest(), version=4)
    return f"{bucket:08d}{str(uuid)[8:]}-0"


def shared_file_id(bucket: int, replaced: Collection[str]) -> str:
    """The file id that every writer gives a new bucket that others may make at the same time, as in Hudi.

    replaced  ids of file groups that were replaced: what is written to one of these is not read. Hudi takes them
    """
    ids = (f"{bucket:08d}-0000-0000-0000-{number:012d}-0" for number in itertools.count())
    return next(file_id for file_id in ids if file_id not in replaced)


def _tagger(fields: HashFields, count: int, shared: bool, context: IndexContext) -> TagKeys:
    groups = {
        partition: _by_bucket(partition, context.slices.get(partition, ()), count) for partition in context.partitions
    }
    new_id = partial(_shared_id, _replaced(context)) if shared else partial(_own_id, uuid4().hex)
    return partial(_tag, fields, count, groups, new_id)


def _own_id(seed: str, partition: str, bucket: int) -> str:
    return file_id_of(bucket, f"{seed}/{partition}/{bucket}")


def _shared_id(replaced: Mapping[str, Collection[str]], partition: str, bucket: int) -> str:
    return shared_file_id(bucket, replaced.get(partition, ()))


def _replaced(context: IndexContext) -> dict[str, set[str]]:
    """The ids of replaced file groups, by partition path."""
    replaced: dict[str, set[str]] = {}
    for instant in context.timeline.completed({Action.REPLACE_COMMIT}):
        for partition, ids in read_commit(context.storage, context.timeline, instant).replaced.items():
            replaced.setdefault(partition, set()).update(ids)
    return replaced


def _by_bucket(partition: str, slices: Iterable[FileSlice], count: int) -> dict[int, str]:
    """File ids by bucket. Raises TableMismatch on a file group of no bucket, or a second one of a bucket."""
    file_ids: dict[int, str] = {}
    for slice_ in slices:
        bucket = _require_bucket(slice_.group, count)
        if bucket in file_ids:
            raise UnsupportedTable(
                f"partition {partition!r}: bucket {bucket} has two file groups, {file_ids[bucket]} and "
                f"{slice_.group.file_id}, so the bucket of a key is ambiguous. A writer without the bucket index, "
                "or two concurrent ones, made them; roll the later commit back."
            )
        file_ids[bucket] = slice_.group.file_id
    return file_ids


def _require_bucket(group: FileGroupId, count: int) -> int:
    bucket = bucket_of(group.file_id)
    if bucket is None:
        raise TableMismatch(
            f"partition {group.partition!r}: file group {group.file_id} is of no bucket. The table was not written "
            "with the BUCKET index: leave hoodie.index.type unset."
        )
    if bucket >= count:
        raise TableMismatch(
            f"{BUCKETS}={count}: partition {group.partition!r} has a file group of bucket {bucket}, so that the table "
            "has more buckets. Give the number that it was made with."
        )
    return bucket


def _tag(
    fields: HashFields,
    count: int,
    groups: Mapping[str, Mapping[int, str]],
    new_id: Callable[[str, int], str],
    keys: pa.Array,
    partitions: pa.Array,
) -> Tags:
    encoded = partitions.dictionary_encode()
    paths = encoded.dictionary.to_pylist()
    places = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64) * count + buckets_of(keys, fields, count)
    distinct, which = np.unique(places, return_inverse=True)
    ids, exists = [], np.zeros(len(distinct), np.bool_)
    for number, place in enumerate(distinct.tolist()):
        path, bucket = paths[place // count], place % count
        file_id = groups.get(path, {}).get(bucket)
        exists[number] = file_id is not None
        ids.append(file_id or new_id(path, bucket))
    file_ids = pa.array(ids, pa.string()).take(pa.array(which.reshape(-1)))
    hits = int(np.count_nonzero(exists[which]))
    return Tags(partitions, file_ids, IndexStats(candidates=len(keys), checked=len(keys), hits=hits))


def _check(fields: HashFields, count: int, context: IndexContext) -> None:
    """Refuse a number of buckets, or hash fields, that put the keys of an existing file into other buckets.

    Raises TableMismatch
    """
    for stat in context.written:
        _require_bucket(FileGroupId(stat.partition or "", stat.file_id), count)
    if BUCKETS in context.config.properties:
        return
    # Hudi records neither number nor fields: they fit if all keys of a file are in the bucket that they give.
    for path, bucket in _some_files(context.written):
        with suppress(FileNotFoundError):  # removed by cleaning meanwhile
            _require_here(keys_in(context.storage, path), path, bucket, fields, count)


def _require_here(keys: pa.Array, path: str, bucket: int, fields: HashFields, count: int) -> None:
    elsewhere = np.flatnonzero(buckets_of(keys, fields, count) != bucket)
    if len(elsewhere):
        raise TableMismatch(
            f"{BUCKETS}={count}, {HASH_FIELDS}={','.join(fields.names)}: with these the key "
            f"{keys[int(elsewhere[0])].as_py()!r} of {path} would not be in bucket {bucket}, as it is. Give those that "
            "the table was made with."
        )


def _some_files(written: Sequence[WriteStat], most: int = _FILES_CHECKED) -> list[tuple[str, int]]:
    """A few base files that a commit wrote, or wrote logs for, each with its bucket; of many the smallest."""
    files = []
    for stat in sorted(written, key=lambda stat: stat.file_size or 0):
        name = stat.base_file if stat.log_version is not None else (stat.path or "").rpartition("/")[2]
        bucket = bucket_of(stat.file_id)
        if name and bucket is not None:
            files.append((join(stat.partition or "", name), bucket))
    return files[:most]
