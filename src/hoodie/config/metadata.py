"""The option of the metadata table."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.options import Options, option

_ENABLE = "hoodie.metadata.enable"


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


METADATA_GROUPS = (MetadataOptions,)
