"""The index in a real HBase 2.5: what the ordinary suite holds of the stand-in."""

from support.hbase import HBase
from support.reruns import rerun

_TESTS = (
    "tests/unit/testing/test_hbase_server.py",
    "tests/unit/hbase/test_hbase_index.py",
    "tests/unit/hbase/test_hbase_table.py",
    "tests/unit/hbase/test_hbase_recovery.py",
)


def test_what_holds_of_the_stand_in_holds_of_hbase(hbase_2_5: HBase) -> None:
    rerun(_TESTS, {"HOODIE_TEST_HBASE": hbase_2_5.address})
