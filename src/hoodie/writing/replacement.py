"""An overwrite that replaces the whole table: rows, columns and settings. Design: docs/design/overwrite.md."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoodie.config.table import REPLACED, from_properties
from hoodie.errors import InvalidInput
from hoodie.metadata.keeping.drop import drop_metadata
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage
from hoodie.table.create import table_properties, warn_of_new_table
from hoodie.table.replacement import NOT_YET, let_wait, settle, taking_over
from hoodie.table.settings import Settings
from hoodie.table.state import TableState, load_state
from hoodie.writing.finish import abandoned_on_error
from hoodie.writing.write import Write, start, writable_state


@dataclass(frozen=True, slots=True)
class Replacement:
    """A table that takes another's place.

    state       the table as it will be, to check the batch against: its timeline goes on, no column is known yet
    properties  its settings
    """

    state: TableState
    properties: Mapping[str, str]

    def start(self, write: Write) -> Write:
        """Take the instant of the replace commit, and let the new settings wait for it.

        Raises InvalidInput when a savepoint or a planned compaction forbids it; as `write.start`
        """
        write = start(write)
        storage, transaction = write.storage, write.begun
        with abandoned_on_error(write), transaction.writers.lock_on(storage):
            old = load_state(storage)
            _refuse_kept(old)
            if old.config.has_metadata_table:  # of a table whose settings go: the next write can build it anew
                drop_metadata(storage)
                old = load_state(storage)
            let_wait(storage, transaction.time, self.properties)
        # What goes follows from the table as it is; its own settings say where that lies.
        return replace(write, transaction=replace(transaction, state=old))

    def finish(self) -> None:
        """Put the new settings in place, after the commit. If it dies before, the next write does it."""
        settle(self.state.storage, load_state(self.state.storage).config)


def replacement(storage: Storage, settings: Settings) -> Replacement:
    """A table with the options of a write, as if none were there, in place of the one that is.

    Raises InvalidOption as for a new table; UnsupportedTable when the one that is there is not one to write;
           InvalidInput when a savepoint or a planned compaction forbids it, or one of the tables has no partitions
    """
    current = writable_state(storage, settings)
    _refuse_kept(current)
    new_properties = table_properties(settings.options, version=current.layout.version)
    warn_of_new_table(new_properties)
    properties = taking_over(new_properties, current.config.properties)
    config = from_properties({**properties, REPLACED: NOT_YET})
    if bool(config.partition_by) != bool(current.config.partition_by) and current.timeline.commits:
        had, gets = ("no partitions", "some") if config.partition_by else ("partitions", "none")
        raise InvalidInput(
            f"{current.config.name} has {had}, and the table in its place would have {gets}: readers do not look for "
            "partitions within a partition, so that they would miss the rows of one of the two. Delete the folder "
            "first, or choose another path."
        )
    return Replacement(TableState(storage, config, current.timeline), properties)


def _refuse_kept(current: TableState) -> None:
    if savepoints := [instant.requested for instant in current.timeline.completed({Action.SAVEPOINT})]:
        raise InvalidInput(
            f"{current.config.name} has savepoints ({', '.join(savepoints)}), and an overwrite replaces the whole "
            "table: nothing would be left to go back to. Delete them first (table.delete_savepoint), or write with the "
            "operation insert_overwrite_table, which replaces the rows alone."
        )
    if planned := [instant.requested for instant in current.timeline.pending_compactions]:
        raise InvalidInput(
            f"{current.config.name} has planned compactions ({', '.join(planned)}), which are of the table that an "
            "overwrite replaces. Run them first (table.compact)."
        )
