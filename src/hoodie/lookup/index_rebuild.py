"""Making an index outside the table anew."""

from __future__ import annotations

from hoodie.config.write import IndexType
from hoodie.errors import InvalidOption
from hoodie.index import own
from hoodie.index.choose import OUTSIDE, make_index
from hoodie.index.contract import Rebuilt
from hoodie.lookup.index_choice import named_index
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state


def rebuild_index(storage: Storage, settings: Settings, *, mend_doubled: bool = False) -> Rebuilt:
    """Put an entry for each row, and remove entries without a row. The table is only read, except with `mend_doubled`.

    settings      of a write, which name the index and say how it is reached
    mend_doubled  delete the rows of keys that are in several file groups, all but the newest of each: by the table's
                  ordering columns, then by the instant that wrote it. One commit
    Raises        InvalidOption when the index keeps nothing outside the table, or cannot be reached by the options;
                  others as the index's own `rebuild`
    """
    state = load_state(storage)
    named = named_index(state, settings.indexes, settings.write.index)
    if named.own:
        index = own.make_own(named.name, settings.given, state.config)
    elif named.name in OUTSIDE or not named.name:
        index = make_index(IndexType(named.name or OUTSIDE[0]), settings.given, state.config)
    else:
        index = None
    if index is None or index.rebuild is None:
        raise InvalidOption(f"the index {named.name} keeps nothing outside the table: there is nothing to rebuild")
    return index.rebuild(storage, mend_doubled)
