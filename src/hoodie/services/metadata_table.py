"""Building and removing a table's metadata table by call.

Design: docs/design/metadata-table.md.
"""

from collections.abc import Collection

from hoodie.config.table import require_writable
from hoodie.errors import WriteConflict
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.metadata.keeping.build import build, missing_partitions, why_not_built
from hoodie.metadata.keeping.drop import drop_metadata, drop_partitions
from hoodie.metadata.keys import MetadataPartition
from hoodie.reading.row_keys import read_keys
from hoodie.storage.faults import typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import MapItems, Settings
from hoodie.table.state import load_state


@typed_errors()
def create_metadata_table(
    storage: Storage,
    settings: Settings,
    partitions: Collection[str] = (),
    *,
    again: bool = False,
    run: MapItems | None = None,
) -> bool:
    """Build the file lists of a table, and other partitions of its metadata table; False: it has them already.

    settings    `hoodie.write.lock.*` as the table's writers have them; `PartitionOptions` name partitions, too
    partitions  names of more
    again       those are built anew where they are there
    run         carries out what is large, by the options that decide so for writes; None: this process does all
    Raises   UnsupportedTable on a table that is not written; WriteConflict while an instant of the table is pending;
             LockTimeout
    """
    requested = settings.writers.metadata
    everything = {str(MetadataPartition.FILES), *requested.build, *partitions}
    with settings.writers.lock_on(storage):
        state = load_state(storage)
        require_writable(state.config, KNOWN_PAYLOADS)
        old = [name for name in partitions if again and name in state.config.metadata_partitions]
        if not (old or missing_partitions(state.config, everything)):
            return False
        if reason := why_not_built(state.timeline):
            raise WriteConflict(
                f"{state.config.name}: the metadata table cannot be built now: {reason}. Try later; `hoodie check` "
                "says what to do if its process died"
            )
        if old:
            drop_partitions(storage, state.config, old)
            state = state.reload()
        executors = settings.executors(run)
        if not build(storage, state.config, state.timeline, everything, requested.options, read_keys, executors):
            raise WriteConflict(f"{state.config.name}: another writer began while the metadata table was built")
        return True


@typed_errors()
def drop_metadata_table(
    storage: Storage, settings: Settings, partitions: Collection[str] = (), *, dry_run: bool = False
) -> bool:
    """Remove the metadata table, or partitions of it; False: there is none.

    settings    as of `create_metadata_table`
    partitions  names; none: all. Without the file lists nothing stays
    Raises   UnsupportedTable on a table that is not written; LockTimeout
    """
    with settings.writers.lock_on(storage):
        config = load_state(storage).config
        require_writable(config, KNOWN_PAYLOADS)
        named = {*config.metadata_partitions, *config.metadata_inflight}
        if not (named & {*partitions} if partitions else named):
            return False
        if dry_run:
            return True
        if partitions:
            drop_partitions(storage, config, sorted(named & {*partitions}))
        else:
            drop_metadata(storage)
        return True
