"""Whether the table can still be read as of an instant, after cleaning and archiving.

Without this check a read of cleaned files would give fewer rows, and say nothing.
"""

import warnings
from collections.abc import Collection

from hoodie.config.services import policy_text
from hoodie.errors import InvalidInput, NoRowsYet
from hoodie.model.files import BaseFile, FileGroupId, parse_data_file
from hoodie.model.instant import Action
from hoodie.storage.protocol import split
from hoodie.table.replacement import refuse_before
from hoodie.table.state import TableState
from hoodie.timeline.archive import newest_archived, replaced_in_archive
from hoodie.timeline.cleanings import cleanings
from hoodie.timeline.completions import history_files
from hoodie.view.slices import FileSystemView, merged_slices


def require_kept(
    state: TableState, view: FileSystemView, as_of: str, partitions: Collection[str] | None = None
) -> None:
    """Refuse an instant as of which files are gone that a reader would need.

    view        of the partitions that are to be read
    as_of       instant, inclusive
    partitions  those partitions; None: all
    Raises  InvalidInput naming a file that cleaning removed, and the earliest instant that it left; or when the instant
            is older than the active timeline; CorruptFile. Warns NoRowsYet when it is older than the first commit
    Cleans that are archived are looked at when commits that are older stayed on the timeline.
    """
    timeline = state.timeline
    refuse_before(state.config, as_of, "read as of")
    if as_of >= timeline.newest_commit:
        return
    first = timeline.commits[0].requested
    if as_of < first and timeline.layout == 1 and state.storage.list(state.config.history_folder):
        raise InvalidInput(
            f"as of {as_of} the table cannot be read: its active timeline begins at {first}, and what was before is "
            f"archived. Take a later instant. {_policy(state)}"
        )
    if as_of < first and (timeline.layout == 1 or not history_files(state.storage, state.config.history_folder)):
        warnings.warn(NoRowsYet(state.config.name, as_of, first), stacklevel=2)
        return
    saved = [savepoint.requested for savepoint in timeline.completed({Action.SAVEPOINT})]
    if as_of in saved:
        return  # it keeps what is needed; of a compaction that was completed later, not the new base file
    before = max((time for time in saved if time < as_of), default="")
    if before and as_of < timeline.first_commit:
        archived = newest_archived(state.storage, state.config, timeline.first_commit)
        if archived > before:
            raise InvalidInput(
                f"as of {as_of} the table cannot be read: commits after the savepoint {before}, up to {archived}, are "
                f"archived. Take {before}, or {timeline.first_commit} or a later instant."
            )
    missing = _cleaned_file(state, view, as_of, partitions)
    if missing:
        path, earliest = missing
        then = f"Take {earliest} or a later instant" if earliest else "Take a later instant"
        raise InvalidInput(
            f"as of {as_of} the table can no longer be read: cleaning removed {path}. {then}. {_policy(state)}"
        )


def _policy(state: TableState) -> str:
    return (
        f"Cleaning keeps {policy_text(state.config.properties)} unless its writers say otherwise: "
        "create_table(keep=...), or hoodie.cleaner.policy among their options."
    )


def _cleaned_file(
    state: TableState, view: FileSystemView, as_of: str, partitions: Collection[str] | None
) -> tuple[str, str] | None:
    """A file that a reader as of then would need, and the earliest instant that cleaning left."""
    slices = {group: slice_.base_instant for group, slice_ in merged_slices(view, as_of).items()}
    completions = state.timeline.completions() if state.timeline.layout == 2 else {}
    paths = paths_in(view)
    missing: dict[FileGroupId, str] = {}
    earliest = ""
    for cleaning in cleanings(state.storage, state.config, state.timeline, as_of):
        earliest = max(earliest, cleaning.earliest)
        if cleaning.earliest and cleaning.earliest <= as_of:
            continue  # it left what reads as of then need; the overwrites of what it took may be archived
        for path in sorted(cleaning.files - paths):
            partition, name = split(path)
            file = parse_data_file(partition, name, 0) if partitions is None or partition in partitions else None
            if file is None or file.group in missing:
                continue
            if isinstance(file, BaseFile):
                instant = end = file.instant
            else:  # in layout 2 of the newest slice that began before its commit completed; it may go before the base
                instant, end = file.base_instant, completions.get(file.base_instant, file.base_instant)
            replaced = view.replaced.get(file.group, "~")
            if slices.get(file.group, "") <= end and instant <= as_of < replaced:
                missing[file.group] = path
    if missing:
        for group in replaced_in_archive(state.storage, state.config, missing, as_of):
            del missing[group]
    return (next(iter(missing.values())), earliest) if missing else None


def paths_in(view: FileSystemView) -> set[str]:
    """The paths of all data files of a view."""
    bases = {base.path for files in view.groups.values() for base in files.bases}
    return bases | {log.path for files in view.groups.values() for log in (*files.logs, *files.changes)}
