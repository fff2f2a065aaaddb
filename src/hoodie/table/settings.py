"""All options of a write, typed."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.compaction import inline_compaction
from hoodie.config.options import Options
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
    given: Options  # as they were given: an index has options of its own
    writers: Writers

    @classmethod
    def read(cls, options: Options) -> Settings:
        """Raises InvalidOption on a malformed value, or on two that exclude each other."""
        inline_compaction(options)
        for group in SERVICE_GROUPS:
            options.read(group)
        check_sync(options)
        return cls(
            options.read(FileSizing),
            options.read(LogOptions),
            options.read(BloomOptions),
            options.read(WriteOptions),
            options.read(EngineOptions),
            options.read(MergerOptions).mergers,
            options,
            Writers.read(options),
        )
