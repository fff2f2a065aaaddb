"""Which index a write uses, and whether the table's keys lie where it looks.

Where other indexes look than the one that placed the keys, rows would occur twice: such a write is refused.
Source: docs/format/indexing-and-write-path.md 1 and 4.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoodie.config.write import BucketEngine, IndexType
from hoodie.errors import InvalidOption, TableMismatch, UnsupportedTable
from hoodie.index import own
from hoodie.index.bucket import BUCKETS, ENGINE, HASH_FIELDS, buckets_by_keys
from hoodie.index.choose import OUTSIDE, bucket_engine, make_index
from hoodie.index.consistent_hashing import BUCKET_INDEX, METADATA, keeps_metadata
from hoodie.index.contract import ByKey, Index, IndexContext
from hoodie.model.commit import WriteStat
from hoodie.table.recorded_index import RECORDED
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.view.slices import latest_base_files

#: File ids of a bucket index begin with the bucket's number, of fewer than 100,000. One in 40,000 UUIDs does, too.
_BUCKET = re.compile(r"000\d{5}-")
_HUDI_CLASS = "org.apache.hudi."
#: Its classes of indexes outside the table. Jobs that name one get the same rows.
_HUDI_OUTSIDE = re.compile(r"org\.apache\.hudi\.index\.(\w+)\.\w+")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The index of a write, and why it is this one."""

    index: Index
    why: str


def is_bucket(file_id: str) -> bool:
    """Whether a file id looks like one of a bucket index. Those of new file groups never do."""
    return _BUCKET.match(file_id) is not None


def choose_index(state: TableState, settings: Settings) -> Chosen:
    """The index that the options name; else the one that the table was created with; else BUCKET on a table that keeps
    hashing metadata, or whose newest files are those of buckets; else SIMPLE.

    Raises InvalidOption; TableMismatch and UnsupportedTable when the table's keys are elsewhere than the index looks
    """
    written = newest_files(state)
    if not state.timeline.lacks_folder(BUCKET_INDEX) and keeps_metadata(state.storage, state.timeline):
        chosen = _by_hashing_metadata(state, settings)
        _check(state, chosen.index, written)
        return chosen
    buckets = bool(written) and all(is_bucket(stat.file_id) for stat in written) and _all_buckets(state)
    chosen = _chosen(state, settings, buckets, written)
    index = chosen.index
    names_new = isinstance(index.look_up, ByKey) and index.look_up.names_new
    if buckets and not names_new:
        raise UnsupportedTable(
            f"{state.config.name}: file ids such as {written[0].file_id} are those of a bucket index. {index.name} "
            "would not find keys in log files, and its file groups would belong to no bucket: leave hoodie.index.type "
            f"unset, and give the table's {BUCKETS}."
        )
    if state.config.properties.get(RECORDED) == IndexType.BUCKET and not names_new:
        raise TableMismatch(
            f"{state.config.name} was created for the index BUCKET, whose file groups others do not keep: leave "
            "hoodie.index.type unset"
        )
    _check(state, index, written)
    return chosen


def _check(state: TableState, index: Index, written: tuple[WriteStat, ...]) -> None:
    if index.check is not None:
        index.check(IndexContext(state.storage, state.config, state.timeline, written=written))


def _by_hashing_metadata(state: TableState, settings: Settings) -> Chosen:
    """BUCKET with the engine CONSISTENT_HASHING: by no other can the keys of such a table be found.

    Raises TableMismatch when the options name another index, or another engine
    """
    named = named_index(state, settings)
    if named.own or named.name not in ("", IndexType.BUCKET):
        raise TableMismatch(
            f"{state.config.name}: {named.name} was asked for ({named.why}), but the table's keys lie where its "
            f"hashing metadata says ({METADATA}), before and after a compaction: other indexes would write them a "
            "second time. Leave hoodie.index.type and hoodie.index.class unset"
        )
    if bucket_engine({ENGINE: BucketEngine.CONSISTENT_HASHING.value, **settings.options}, state.config) is (
        BucketEngine.SIMPLE
    ):
        raise TableMismatch(
            f"{ENGINE}=SIMPLE: {state.config.name} keeps hashing metadata ({METADATA}), by which its keys lie; the "
            f"other engine would write them a second time. Leave {ENGINE} unset"
        )
    if not state.config.merge_on_read:
        raise UnsupportedTable(
            f"{state.config.name} keeps hashing metadata ({METADATA}) of the engine CONSISTENT_HASHING, which is for "
            "Merge-on-Read tables, and is Copy-on-Write: what writes such a table is not known here"
        )
    options = {**settings.options, ENGINE: BucketEngine.CONSISTENT_HASHING.value}
    return Chosen(make_index(IndexType.BUCKET, options, state.config), "the table keeps hashing metadata")


def _chosen(state: TableState, settings: Settings, buckets: bool, written: tuple[WriteStat, ...]) -> Chosen:
    named = named_index(state, settings)
    if named.own:
        return Chosen(own.make_own(named.name, settings.options, state.config), named.why)
    kind, why = named.name, named.why
    if not kind and buckets:
        kind, why = IndexType.BUCKET, "the table's files are those of buckets"
    elif not kind:
        kind, why = IndexType.SIMPLE, "the default"
    if kind not in IndexType.__members__:
        raise UnsupportedTable(f"{state.config.name} was created for the index {kind}, which is not known here")
    options: Mapping[str, str] = settings.options
    if kind == IndexType.BUCKET and buckets:
        options = _with_buckets(state, settings, written, inferred=not named.name)
    return Chosen(make_index(IndexType[kind], options, state.config), why)


def _with_buckets(
    state: TableState, settings: Settings, written: tuple[WriteStat, ...], *, inferred: bool
) -> Mapping[str, str]:
    """The options with the table's number of buckets, where neither they nor the table's settings give it.

    inferred  nobody names the index either
    Raises    TableMismatch when the number is not known, and the index but by the file ids
    """
    options = settings.options
    if BUCKETS in options or BUCKETS in state.config.properties:
        return options
    context = IndexContext(state.storage, state.config, state.timeline, written=written)
    count = buckets_by_keys(options, context)
    if count is None:  # the newest commit wrote a few rows
        count = buckets_by_keys(options, replace(context, written=_live_files(state)))
    if count is not None:
        return {**options, BUCKETS: str(count)}
    if inferred:
        raise TableMismatch(
            f"{state.config.name} has the files of a bucket index, such as {written[0].file_id}, but hoodie.properties "
            f"does not say of how many buckets (Hudi does not record it, and its CREATE TABLE over this table drops "
            f"the number that was recorded), and the keys of its files do not tell. Give {BUCKETS}, and "
            f"{HASH_FIELDS} if it was set, as the table was made with; a wrong number would write keys twice."
        )
    return options


def _live_files(state: TableState) -> tuple[WriteStat, ...]:
    """The newest base file of each file group of the table; none where some are not those of buckets."""
    bases = latest_base_files(state.view())
    if not all(is_bucket(group.file_id) for group in bases):
        return ()
    return tuple(
        WriteStat(file_id=group.file_id, path=base.path, partition=group.partition, file_size=base.size)
        for group, base in bases.items()
    )


def _all_buckets(state: TableState) -> bool:
    """Whether all that the last few commits wrote looks like buckets: one random file id in 43 does as well."""
    stats = (stat for commit in state.recent_commits() for part in commit.stats.values() for stat in part)
    return all(is_bucket(stat.file_id) for stat in stats)


@dataclass(frozen=True, slots=True)
class Named:
    """The index that somebody names: its type, or the import path of a user's own; "" when nobody does."""

    name: str
    why: str
    own: bool = False


def named_index(state: TableState, settings: Settings) -> Named:
    """The index that options name, else the one that the table was created for.

    Raises InvalidOption on a Java class, but for one of Hudi's of an index outside the table
    """
    path, kind = settings.indexes.own, settings.write.index
    if (outside := _HUDI_OUTSIDE.fullmatch(path)) and outside[1].upper() in OUTSIDE:
        return Named(outside[1].upper(), "hoodie.index.class names it")
    if path.startswith(_HUDI_CLASS):
        raise InvalidOption(f"hoodie.index.class={path}: Java classes are not run here; name the index by its type")
    if path:
        return Named(path, "hoodie.index.class names it", own=True)
    if kind is not IndexType.AUTO:
        return Named(kind, "hoodie.index.type names it")
    return Named(state.config.properties.get(RECORDED, ""), "the table was created with it")


def newest_files(state: TableState) -> tuple[WriteStat, ...]:
    """What the newest commit that wrote files says of them; nothing when none of the last few did."""
    for commit in state.recent_commits():
        if stats := tuple(stat for part in commit.stats.values() for stat in part):
            return stats
    return ()
