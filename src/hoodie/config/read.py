"""The options of reads."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.options import GiB, option


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeOptions:
    """How much memory a task takes to merge the logs of a file slice into its base file."""

    max_bytes: int = option(
        "hoodie.memory.merge.max.size",
        1 * GiB,
        "Rows of logs that a merge holds at a time; what is more waits on local disk.",
        expected="bytes, such as 1073741824",
        check=lambda size: size > 0,
    )
    spill_folder: str = option(
        "hoodie.memory.spillable.map.path",
        "",
        "Local folder for rows that wait on disk; not set: the system's folder for temporary files.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergerOptions:
    """Code of the user's own that reads and writes may load to merge rows."""

    mergers: tuple[str, ...] = option(
        "hoodie.datasource.write.record.merger.impls",
        (),
        "Import path, `package.module:Class`, of a Python class that decides which version of a row wins, in place of "
        "the payload class. Recorded in the table when it is created, and named again by each write, and each read "
        "that merges rows: code is never loaded because a table's files ask for it.",
    )


READ_GROUPS = (MergeOptions, MergerOptions)
