"""`HoodieTable.examine`, `repair` and `lock`: the doctor and the locks for those who hold a table."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFile, LockLost
from hoodie.storage import LocalStorage
from hoodie.testing.tables import ArrowTable
from support.trips import table_options

OPTIONS = table_options("t", "id", partition="city")
LOCKED = {"hoodie.write.lock.provider": "InProcessLockProvider"}


@pytest.fixture
def path(tmp_path):
    table = ArrowTable.create(LocalStorage(tmp_path / "t"), OPTIONS)
    table.upsert(pa.table({"id": ["a", "b"], "city": ["oslo", "rome"]}))
    return tmp_path / "t"


def test_a_table_is_examined_and_repaired(path):
    table = hoodie.open_table(str(path))
    assert table.check() == table.repair() == ()
    metafile = path / "oslo" / ".hoodie_partition_metadata"
    metafile.unlink()
    (finding,) = table.check(rows=False)
    assert (finding.severity.name, finding.where) == ("ERROR", "oslo")
    assert table.repair(dry_run=True) == (finding.remedy,)
    assert not metafile.exists()
    assert table.repair(options=LOCKED) == (finding.remedy,)
    assert metafile.exists()
    assert table.check() == ()


def test_a_table_that_cannot_be_opened_is_examined_all_the_same(path):
    (path / ".hoodie" / "hoodie.properties").write_bytes(b"hoodie.table.name=t\nhoodie.table.checksum=1\n")
    with pytest.raises(CorruptFile):
        hoodie.open_table(str(path))
    assert hoodie.HoodieTable(str(path)).check()[0].severity.name == "ERROR"


def test_a_lock_of_a_table_keeps_another_out_until_it_is_released(path):
    one, other = (hoodie.open_table(str(path), options=LOCKED) for _ in range(2))
    with one.lock("nightly") as held:
        held.check()
        assert not other.lock("nightly").acquire(0)
        assert other.lock().acquire(0)  # the writers' own lock is another one
    with pytest.raises(LockLost):
        held.check()
    assert other.lock("nightly").acquire(0)
