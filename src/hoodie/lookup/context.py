"""What a look-up of keys goes by: the table at one moment, its index, and the files that this index looks at."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie.config.metadata import MetadataOptions
from hoodie.config.options import Options
from hoodie.config.table import TableType
from hoodie.index.contract import ByFile, ByKey, Index
from hoodie.lookup.index_choice import choose_index, refuse_groups_of_logs
from hoodie.lookup.log_only_keys import compacted_logs, with_log_only_keys
from hoodie.lookup.record_index import for_reads
from hoodie.reading.slices.reader import slice_reader
from hoodie.schema.schema import with_meta_fields
from hoodie.table.settings import Settings
from hoodie.table.state import TableFiles, TableState, declared_schema


@dataclass(frozen=True, slots=True)
class LookupContext:
    """A table whose keys can be looked up, by a write or by a read.

    schema   the user's columns; of a write those after it
    reading  options of the read that looks keys up; None: a write does
    instead  the index where the record index that it asks turns out to be of no use; None: it asks none
    """

    state: TableState
    settings: Settings
    index: Index
    why: str  # it is this index
    schema: pa.Schema
    reading: Options | None = None
    instead: Index | None = None

    @property
    def by_file(self) -> bool:
        """Whether keys are looked up in base files; else the index itself says where they are."""
        return isinstance(self.index.look_up, ByFile)

    @property
    def names_new(self) -> bool:
        """Whether the index names a file group for new keys, too."""
        return isinstance(self.index.look_up, ByKey) and self.index.look_up.names_new

    @property
    def is_certain(self) -> bool:
        """Whether a key is for certain in the file groups that the index names."""
        return self.by_file and self.state.config.type is TableType.COPY_ON_WRITE

    def files(self, partitions: Collection[str]) -> TableFiles:
        """The files of some partitions; with a global index that looks into files, of all.

        Raises   UnsupportedTable when a file group holds keys where the index does not look; as `TableState.files`
        """
        files = self.state.files(None if self.by_file and self.index.is_global else partitions, self.reading)
        if self.by_file:
            refuse_groups_of_logs(files, self.index)
            if late := compacted_logs(self.state, files.compacted):
                reader = slice_reader(self.state, with_meta_fields(self.schema), options=self.settings.given)
                files = with_log_only_keys(files, late, reader)
        return files

    def with_partitions(self, files: TableFiles, partitions: Collection[str]) -> TableFiles:
        """The files, those of further partitions included."""
        missing = set(partitions) - files.slices.keys()
        if not missing:
            return files
        more = self.state.files(missing, self.reading)
        return replace(
            files,
            slices={**files.slices, **more.slices},
            bases={**files.bases, **more.bases},
            unmarked=files.unmarked | more.unmarked,
        )


def lookup_for_read(state: TableState, settings: Settings, reading: Options) -> LookupContext:
    """How a read looks keys up: by the index that the table's writers use.

    reading  options of the read
    Raises   as `choose_index`
    """
    chosen = choose_index(state, settings)
    index = for_reads(chosen.index, state) if reading.read(MetadataOptions).enable else chosen.index
    declared = declared_schema(state)
    schema = pa.schema([]) if declared is None else declared
    instead = None if index is chosen.index else chosen.index
    return LookupContext(state, settings, index, chosen.why, schema, reading, instead)
