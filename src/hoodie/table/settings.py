"""All options of a write, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.config.compaction import inline_compaction
from hoodie.config.options import read_options
from hoodie.config.read import MergerOptions
from hoodie.config.services import SERVICE_GROUPS
from hoodie.config.sync import check_sync
from hoodie.config.write import BloomOptions, EngineOptions, FileSizing, LogOptions, WriteOptions
from hoodie.table.concurrency import Writers


@dataclass(frozen=True, slots=True)
class Settings:
    """All options of a write."""

    sizing: FileSizing
    logs: LogOptions
    bloom: BloomOptions
    write: WriteOptions
    engine: EngineOptions
    mergers: tuple[str, ...]  # import paths of the user's own code that may be loaded
    given: Mapping[str, str]  # as they were given: an index has options of its own
    writers: Writers

    @classmethod
    def read(cls, options: Mapping[str, str]) -> Settings:
        """Raises InvalidOption on a malformed value, or on two that exclude each other."""
        inline_compaction(options)
        for group in SERVICE_GROUPS:
            read_options(group, options)
        check_sync(options)
        return cls(
            read_options(FileSizing, options),
            read_options(LogOptions, options),
            read_options(BloomOptions, options),
            read_options(WriteOptions, options),
            read_options(EngineOptions, options),
            read_options(MergerOptions, options).mergers,
            dict(options),
            Writers.read(options),
        )
