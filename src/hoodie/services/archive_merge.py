"""Small archive files become larger ones, so that the archive of a long life is a few dozen files.

An archive file is a run of blocks, so that several are one when their bytes stand one behind the other. The run takes
the name of its newest file, whole, before the others go: a reader sees entries twice for a moment, and none is ever
missing.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.config.services import ArchiveOptions
from hoodie.config.table import TableConfig
from hoodie.storage.protocol import Storage, rewrite
from hoodie.timeline.archive import archive_files


def merge_archive_files(storage: Storage, config: TableConfig, how: ArchiveOptions) -> str:
    """Merge the oldest files that are next to each other and alike in size, if there are enough of them.

    returns  the path of the merged file; "" when there is nothing to do
    """
    if not how.merge:
        return ""
    files = dict(reversed(archive_files(storage, config).items()))  # the oldest first
    if len(files) < how.merge_files:
        return ""
    sizes = {entry.name: entry.size for entry in storage.list(config.history_folder)}
    chosen = _run({path: sizes.get(path.rpartition("/")[2], 0) for path in files.values()}, how)
    if not chosen:
        return ""
    try:
        data = [storage.read(path) for path in chosen]
    except FileNotFoundError:  # another process has merged them
        return ""
    rewrite(storage, chosen[-1], b"".join(data))
    for path in chosen[:-1]:
        storage.discard(path)
    return chosen[-1]


def _run(sizes: Mapping[str, int], how: ArchiveOptions) -> list[str]:
    """The oldest run of as many files as are merged at once, below the limit together, none of them ten times another:
    so each byte is written again a few times only, however long the table lives."""
    paths = list(sizes)
    for start in range(len(paths) - how.merge_files + 1):
        run = paths[start : start + how.merge_files]
        of_run = [sizes[path] for path in run]
        if sum(of_run) <= how.merge_limit and max(of_run) < 10 * max(min(of_run), 1):
            return run
    return []
