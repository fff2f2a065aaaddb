"""The option of the metadata table that other writers keep."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataOptions:
    """What becomes of a metadata table."""

    enable: bool = option(
        "hoodie.metadata.enable",
        True,
        "Reads: list files from the metadata table, and leave files out by its column statistics, where the table has "
        "one that is up to date; false: list the storage. Writes: false removes the metadata table of another writer "
        "first, as this library does not maintain one; otherwise a write to such a table is refused.",
    )


METADATA_GROUPS = (MetadataOptions,)
