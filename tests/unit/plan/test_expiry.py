"""Which partitions have expired, by the times of their last writes."""

from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.instant import time_before
from hoodie.services.expiry import expired_before, newest_in_names


def test_a_partition_expires_once_its_last_write_is_older_than_the_days_it_is_kept() -> None:
    now = "20240131120000000"
    before = time_before(now, days=30)
    assert before == "20240101120000000"
    times = {"old": "20240101115959999", "just": "20240101120000000", "new": now}
    assert expired_before(times, before, 1000) == ("old",)


def test_the_oldest_go_first_where_more_have_expired_than_one_commit_takes() -> None:
    times = {"b": "20200102000000000", "a": "20200103000000000", "c": "20200101000000000"}
    assert expired_before(times, "20240101000000000", 2) == ("c", "b")


def test_days_that_reach_before_all_time_expire_nothing() -> None:
    for days in (30_000, 4_000_000):
        assert time_before("20240131120000000", days=days) == ""
    assert expired_before({"a": "00000000000001"}, "", 10) == ()


def test_the_names_of_bases_and_of_logs_named_after_their_commit_tell_of_writes() -> None:
    one, other = FileGroupId("a", "f1"), FileGroupId("a", "f2")
    slices = [
        FileSlice(one, "20240101000000000", BaseFile(one, "20240101000000000", "0-0-0", 1, "f1.parquet")),
        FileSlice(other, "20240102000000000", None, (LogFile(other, "20240105000000000", 1, "", 1, ".f2.log.1"),)),
    ]
    assert newest_in_names(slices) == {"a": "20240105000000000"}
    assert newest_in_names(slices[:1]) == newest_in_names([FileSlice(one, "20240101000000000", None)])
