"""The available indexes, by name: those of the table's own files, and those that a package of its own keeps outside."""

from collections.abc import Callable, Mapping
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


def _by_file(name: IndexType, *, pruned: bool) -> MakeIndex:
    return lambda options, config: Index(name=name, look_up=ByFile(pruned=pruned))


def _global(name: IndexType, moves: Callable[[IndexOptions], bool], *, pruned: bool = False) -> MakeIndex:
    """moves  the option that says whether a row with another partition moves there"""

    def make(options: Mapping[str, str], config: TableConfig) -> Index:
        moving = moves(read_options(IndexOptions, options))
        return Index(name=name, look_up=ByFile(pruned=pruned), is_global=True, moves=moving)

    return make


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
    IndexType.BLOOM: _by_file(IndexType.BLOOM, pruned=True),
    IndexType.SIMPLE: _by_file(IndexType.SIMPLE, pruned=False),
    IndexType.GLOBAL_BLOOM: _global(IndexType.GLOBAL_BLOOM, lambda how: how.bloom_moves, pruned=True),
    IndexType.GLOBAL_SIMPLE: _global(IndexType.GLOBAL_SIMPLE, lambda how: how.simple_moves),
    IndexType.BUCKET: _bucket,
    # As it is where the table has no record index that can be used: see `hoodie.lookup.record_index`.
    IndexType.RECORD_INDEX: _global(IndexType.RECORD_INDEX, lambda how: how.record_moves),
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
