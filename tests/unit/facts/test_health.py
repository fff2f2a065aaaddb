"""How a table is, for those who watch many."""

from collections.abc import Collection

import pytest

from hoodie.facts import health as health_module
from hoodie.facts.health import health
from hoodie.storage.protocol import Entry
from hoodie.storage.wrapped import WrappedStorage
from hoodie.table.properties import PROPERTIES
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.trips import TRIPS


def test_a_table_whose_folder_cannot_be_listed_keeps_its_name() -> None:
    class Closed(WrappedStorage):
        def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, list[Entry]]:
            raise PermissionError(13, "no permission", "oslo")

    storage = MemoryStorage()
    ArrowTable.create(storage, TRIPS)
    told = health(Closed(storage), Settings.of({}))
    assert (told.up, told.name, told.error) == (False, "trips", "AccessDenied")


def test_settings_that_are_damaged_are_not_read_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads them waits a second for a writer that may be changing them."""
    storage = MemoryStorage()
    ArrowTable.create(storage, TRIPS)
    storage.write(PROPERTIES, storage.read(PROPERTIES).replace(b"checksum=", b"checksum=1"))
    monkeypatch.setattr(health_module, "look", None)
    told = health(storage, Settings.of({}))
    assert (told.up, told.error, told.worst) == (False, "CorruptFile", "down")
    assert [(found.severity, found.fault) for found in told.findings] == [("ERROR", "wrong checksum")]
    assert "repair with --checksum" in told.problem
