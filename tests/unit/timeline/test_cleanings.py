"""Which files cleans took away, by the timeline and the archive."""

import pytest

from hoodie.services.archive import archive
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.cleanings import cleanings
from support.trips import TRIPS, WRITES, rows


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_clean_that_is_archived_meanwhile_is_told_from_the_archive(version: str) -> None:
    options = {**TRIPS, **WRITES, "hoodie.write.table.version": version, "hoodie.archive.automatic": "false"}
    table = ArrowTable.create(MemoryStorage(), options)
    retain = {"hoodie.clean.commits.retained": "1", "hoodie.clean.automatic": "false"}
    instants = [table.upsert(rows("a")).instant]
    for _ in range(9):
        instants.append(table.upsert(rows("a")).instant)
        table.clean(retain)
    before = table.state()
    limits = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", **retain}
    archive(table.storage, Settings.of({**options, **limits}))
    now = load_state(table.storage)
    assert len(now.timeline.instants) < len(before.timeline.instants)
    for after in ("", instants[0], instants[4]):
        files = [
            {
                path
                for cleaned in cleanings(table.storage, state.config, state.timeline, after)
                for path in cleaned.files
            }
            for state in (before, now)
        ]
        assert files[0] == files[1]
        assert len(files[0]) > 2
