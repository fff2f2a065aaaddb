"""A call that is refused changes nothing, not even what would be removed of the metadata table before it begins."""

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie.errors import HoodieError
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.savepoint import delete_savepoint
from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from support.hudi_1_tables import unpack
from support.lake import files_of

Refused = Callable[[Storage, Settings], object]
#: Hudi keeps statistics in the metadata table, which go with the first write here.
TABLE = "v8_mor_compaction_pending"
NEVER = "20200101000000000"


def roll_back_the_first(storage: Storage, settings: Settings) -> object:
    return rollback(storage, settings, load_state(storage).timeline.commits[0].requested)


CALLS: dict[str, tuple[str, Refused]] = {
    "rollback of an old commit": (TABLE, roll_back_the_first),
    "rollback of none": (TABLE, lambda storage, settings: rollback(storage, settings, NEVER)),
    "restore": (TABLE, lambda storage, settings: restore(storage, settings, NEVER)),
    "savepoint": (TABLE, lambda storage, settings: make_savepoint(storage, settings, NEVER)),
    "delete a savepoint": (TABLE, lambda storage, settings: delete_savepoint(storage, settings, NEVER)),
    "compaction of copies": ("v8_cow_part", schedule_compaction),
}


@pytest.mark.parametrize("options", [{}, {"hoodie.metadata.enable": "false"}], ids=["", "without metadata"])
@pytest.mark.parametrize("name", CALLS)
def test_a_refused_call_changes_nothing(name: str, options: dict[str, str], tmp_path: Path) -> None:
    table, call = CALLS[name]
    folder = unpack(table, tmp_path)
    before = files_of(folder)
    with pytest.raises(HoodieError):
        call(LocalStorage(folder), Settings.of(options))
    after = files_of(folder)
    assert sorted(before.keys() ^ after.keys()) == []
    assert after == before
