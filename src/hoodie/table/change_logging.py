"""Have the writers of a table that is there log change data from now on."""

from dataclasses import replace

from hoodie.config.table import CDC, CDC_MODE, require_writable
from hoodie.errors import TableMismatch, WriteConflict
from hoodie.merge.payloads import KNOWN_PAYLOADS
from hoodie.model.instant import Action
from hoodie.storage.protocol import Storage
from hoodie.table.properties import update_properties
from hoodie.table.settings import Writers
from hoodie.table.state import load_state


def log_change_data(storage: Storage, writers: Writers, images: str = "") -> None:
    """Turn `hoodie.table.cdc.enabled` on, under the table's lock where there is one.

    images  `hoodie.table.cdc.supplemental.logging.mode`; "": the table's own, else the default
    Raises  TableMismatch when the table has logged other images before: readers take all logs to be of one mode.
            WriteConflict while a write is under way, which would commit without a log. UnsupportedTable on a table that
            is not written here, or a mode that nobody knows. Nothing has changed then
    """
    with writers.lock_on(storage):
        state = load_state(storage)
        config = replace(state.config, cdc=True, cdc_mode=images or state.config.cdc_mode)
        require_writable(config, KNOWN_PAYLOADS)
        stored = state.config.properties.get(CDC_MODE)
        if stored is not None and config.logged_images is not state.config.logged_images:
            raise TableMismatch(
                f"{config.name}: {CDC_MODE} is {state.config.logged_images.value!r} in the table, not {images!r}, and "
                "stays so: readers take all its change logs to hold the same images"
            )
        if state.config.cdc:
            return
        pending = state.timeline.pending((Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT))
        if pending:
            raise WriteConflict(
                f"{config.name}: {len(pending)} writes are under way, the first at {pending[0].requested}, and would "
                "commit without a change log: turn change data on once they have ended. What a dead writer left, the "
                "next write rolls back"
            )
        update_properties(storage, {CDC: "true", CDC_MODE: config.logged_images.value})
