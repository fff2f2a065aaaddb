"""A table to look at, without what only reads of rows need."""

from hoodie.config.table import TableConfig, from_properties
from hoodie.storage.protocol import Storage
from hoodie.table.properties import load_properties
from hoodie.timeline.load import load_timeline
from hoodie.timeline.timeline import Timeline


def look(storage: Storage) -> tuple[TableConfig, Timeline]:
    """Settings and active timeline, of tables that cannot be read as well. Raises TableNotFound; CorruptFile"""
    config = from_properties(load_properties(storage))
    return config, load_timeline(storage, config)


def look_at_metadata_table(storage: Storage) -> tuple[TableConfig, Timeline]:
    """As `look`, of a metadata table: its base files are HFiles, and only its timeline is of interest."""
    config = from_properties({**load_properties(storage), "hoodie.table.base.file.format": "PARQUET"})
    return config, load_timeline(storage, config)
