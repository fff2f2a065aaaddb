"""The available indexes, by name: those of the table's own files, and those that a package of its own keeps outside."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from hoodie.config.options import read_options
from hoodie.config.table import TableConfig
from hoodie.config.write import BucketEngine, IndexOptions, IndexType
from hoodie.errors import InvalidOption
from hoodie.index import bucket, consistent_hashing
from hoodie.index.contract import ByFile, Index, MakeIndex


def make_index(kind: IndexType, options: Mapping[str, str], config: TableConfig) -> Index:
    """The index of a type, by the options of a write. Raises InvalidOption, TableMismatch."""
    make = _MAKERS.get(kind)
    return make(options, config) if make else package(kind).make(options, config)


def _bloom(options: Mapping[str, str], config: TableConfig) -> Index:
    return Index(name=IndexType.BLOOM, look_up=ByFile(pruned=True))


def _simple(options: Mapping[str, str], config: TableConfig) -> Index:
    return Index(name=IndexType.SIMPLE, look_up=ByFile(pruned=False))


def _global_bloom(options: Mapping[str, str], config: TableConfig) -> Index:
    moves = read_options(IndexOptions, options).bloom_moves
    return Index(name=IndexType.GLOBAL_BLOOM, look_up=ByFile(pruned=True), is_global=True, moves=moves)


def _global_simple(options: Mapping[str, str], config: TableConfig) -> Index:
    moves = read_options(IndexOptions, options).simple_moves
    return Index(name=IndexType.GLOBAL_SIMPLE, look_up=ByFile(pruned=False), is_global=True, moves=moves)


def _record_index(options: Mapping[str, str], config: TableConfig) -> Index:
    """As it is where the table has no record index that can be used: see `hoodie.lookup.record_index`."""
    moves = read_options(IndexOptions, options).record_moves
    return Index(name=IndexType.RECORD_INDEX, look_up=ByFile(pruned=False), is_global=True, moves=moves)


def bucket_engine(options: Mapping[str, str], config: TableConfig) -> BucketEngine:
    """The engine of a bucket index that the options name, else the one that the table was created for."""
    engine = next(
        (settings[bucket.ENGINE] for settings in (options, config.properties) if bucket.ENGINE in settings), None
    )
    return read_options(IndexOptions, {} if engine is None else {bucket.ENGINE: engine}).engine


def _bucket(options: Mapping[str, str], config: TableConfig) -> Index:
    if bucket_engine(options, config) is BucketEngine.CONSISTENT_HASHING:
        return consistent_hashing.make(options, config)
    return bucket.make(options, config)


_MAKERS: Mapping[IndexType, MakeIndex] = {
    IndexType.BLOOM: _bloom,
    IndexType.SIMPLE: _simple,
    IndexType.GLOBAL_BLOOM: _global_bloom,
    IndexType.GLOBAL_SIMPLE: _global_simple,
    IndexType.BUCKET: _bucket,
    IndexType.RECORD_INDEX: _record_index,
}
#: Indexes that keep their entries outside the table: each is a package, `hoodie.NAME`.
OUTSIDE = tuple(kind for kind in IndexType if kind is not IndexType.AUTO and kind not in _MAKERS)


def package(kind: IndexType) -> Any:
    """The package of an index outside the table. It has `make`, as `MakeIndex`, and `follow`: see
    `hoodie.lookup.index_follow`.

    Raises InvalidOption when the package, or what it needs, is not installed
    """
    name = kind.lower()
    try:
        return import_module(f"hoodie.{name}")
    except ImportError as problem:
        needed = f"pip install 'hoodie[{name}]' ({problem})"
        raise InvalidOption(f"hoodie.index.type={kind} needs its client: {needed}") from problem
