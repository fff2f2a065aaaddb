"""The doctor on tables that Hudi wrote: it has nothing to say of those that are as they should be."""

from __future__ import annotations

import pytest

from hoodie.doctor.examine import Fault, examine
from hoodie.doctor.repair import repair
from hoodie.recovery.rollback import rollback
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from support.nightly import by_day
from support.oracles import fixture_names

#: A write whose completed file was taken away is in it, on purpose.
UNFINISHED = "mor_inflight"


@pytest.mark.parametrize("name", by_day(fixture_names(), fixture_names()[::2].__contains__))
def test_a_real_table_is_healthy(fixture_table, name):
    found = examine(LocalStorage(fixture_table(name)), grace=0)
    assert [finding.fault for finding in found] == ([Fault.HOLLOW] if name == UNFINISHED else [])


def test_a_write_of_hudi_without_completed_file_and_markers_is_rolled_back_on_request(fixture_table):
    storage = LocalStorage(fixture_table(UNFINISHED))
    assert repair(storage, grace=0, dry_run=False) == ()
    (finding,) = examine(storage, grace=0)
    assert "`hoodie rollback` takes it back" in finding.advice
    rollback(storage, Settings.of({}), "20261121034551101")
    assert examine(storage, grace=0) == ()
