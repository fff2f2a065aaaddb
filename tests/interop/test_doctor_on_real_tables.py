"""The doctor on tables that Hudi wrote: it has nothing to say of those that are as they should be."""

from __future__ import annotations

import pytest

from hoodie.doctor.examine import Fault, examine
from hoodie.doctor.repair import repair
from hoodie.storage.local import LocalStorage
from support.nightly import by_day
from support.oracles import fixture_names

#: A write that died is in it, on purpose.
UNFINISHED = "mor_inflight"


@pytest.mark.parametrize("name", by_day(fixture_names(), fixture_names()[::2].__contains__))
def test_a_real_table_is_healthy(fixture_table, name):
    found = examine(LocalStorage(fixture_table(name)), grace=0)
    assert [finding.fault for finding in found] == ([Fault.STALE] if name == UNFINISHED else [])


def test_a_write_of_hudi_that_died_is_found_and_rolled_back(fixture_table):
    storage = LocalStorage(fixture_table(UNFINISHED))
    (remedy,) = repair(storage, grace=0)
    assert remedy.target == "20261121034551101"
    assert [finding.fault for finding in examine(storage, grace=0)] == [Fault.STALE]  # that was the dry run
    assert repair(storage, grace=0, dry_run=False) == (remedy,)
    assert examine(storage, grace=0) == ()
