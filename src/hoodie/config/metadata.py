"""Options of the metadata table."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.options import Options, option
from hoodie.config.write import IndexType, WriteOptions

_ENABLE = "hoodie.metadata.enable"
_RECORD_INDEX = "hoodie.metadata.record.index.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataOptions:
    """What becomes of a metadata table."""

    enable: bool = option(
        _ENABLE,
        True,
        "Reads: list files from the metadata table, and leave files out by its column statistics, where the table has "
        "one that is up to date; false: list the storage. Writes keep the file lists of a metadata table; true, if it "
        "is given, builds them on a table without one, and false removes the metadata table first. A new table gets "
        "none unless true is given.",
    )
    delta_commits: int = option(
        "hoodie.metadata.compact.max.delta.commits",
        10,
        "Delta commits of the metadata table after which its file lists are compacted into a base file.",
        expected="a number, such as 10",
        check=lambda value: value > 0,
    )


def builds_metadata_table(options: Options) -> bool:
    """Whether a write is to build the metadata table of a table that has none: only if that is asked for."""
    return _ENABLE in options and options.read(MetadataOptions).enable


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordIndexOptions:
    """The record index of the metadata table. How many file groups it has is fixed when it is built."""

    enable: bool = option(
        _RECORD_INDEX,
        False,
        "Writes: true builds the record index, and the file lists with it, on a table without one, as "
        "`hoodie.index.type=RECORD_INDEX` does; false, if it is given, removes it first. Not given: one that is there "
        "is kept.",
    )
    fewest: int = option(
        "hoodie.metadata.record.index.min.filegroup.count",
        10,
        "Fewest file groups of a record index that is built.",
        check=lambda value: value > 0,
    )
    most: int = option(
        "hoodie.metadata.record.index.max.filegroup.count",
        10_000,
        "Most file groups of a record index that is built.",
        check=lambda value: value > 0,
    )
    growth: float = option(
        "hoodie.metadata.record.index.growth.factor",
        2.0,
        "How many times its keys a record index is built for.",
        check=lambda value: value > 0,
    )
    group_bytes: int = option(
        "hoodie.metadata.record.index.max.filegroup.size",
        1024 * 1024 * 1024,
        "Bytes that a file group of a record index should not exceed, at 48 bytes a key.",
        check=lambda value: value >= 48,
    )


def record_index_asked_for(options: Options) -> bool | None:
    """Whether a write is to build the record index of a table without one (True), or to remove it (False); None: the
    options say nothing."""
    if _RECORD_INDEX in options:
        return options.read(RecordIndexOptions).enable
    return True if options.read(WriteOptions).index is IndexType.RECORD_INDEX else None


METADATA_GROUPS = (MetadataOptions, RecordIndexOptions)
