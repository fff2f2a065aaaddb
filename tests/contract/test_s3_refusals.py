"""What stores refuse, or do not do: a write ends in an error that says so, and nothing of it is published."""

import itertools

import pytest

from hoodie.cli.table_search import list_tables
from hoodie.errors import (
    AccessDenied,
    BucketNotFound,
    CredentialsRejected,
    InvalidOption,
    TableNotFound,
    UnsupportedTable,
    WrongRegion,
)
from hoodie.storage import FsspecStorage, object_stores, storage_for
from hoodie.storage.faults import typed_errors
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from support.http_faults import REGION, Choose, Fault, FaultyProxy
from support.nightly import by_day, nightly
from support.undoing import COW, FIRST, SECOND, read, upsert


def puts(fault: Fault, end: str) -> Choose:
    """Each put meets the fault whose path ends so."""
    return lambda method, path: fault if method == "PUT" and path.partition("?")[0].endswith(end) else None


@pytest.mark.parametrize(
    ("fault", "end"),
    by_day(
        itertools.product([Fault.DENIED, Fault.EXPIRED], [".parquet", ".inflight", ".commit"]),
        {(Fault.DENIED, ".commit"), (Fault.EXPIRED, ".inflight")}.__contains__,
    ),
)
def test_a_right_or_token_that_ends_in_the_middle_of_a_write_publishes_nothing(
    storage, server, proxy: FaultyProxy, fault, end
):
    error = {Fault.DENIED: AccessDenied, Fault.EXPIRED: CredentialsRejected}[fault]
    ArrowTable.create(server, COW)
    upsert(server, FIRST)
    before = load_state(server).timeline.commits
    with proxy.faults(puts(fault, end)) as met, pytest.raises(error), typed_errors():
        upsert(storage, SECOND)
    assert met[fault]
    assert load_state(server).timeline.commits == before
    assert read(server) == FIRST
    upsert(server, SECOND)  # the next write rolls back what is left
    assert read(server) == {**FIRST, **SECOND}


@pytest.mark.parametrize("fault", [Fault.MOVED, nightly(Fault.MISSIGNED)])
def test_a_bucket_of_another_region_is_named_with_what_to_set(storage, server, proxy: FaultyProxy, fault):
    ArrowTable.create(server, COW)
    upsert(server, FIRST)
    before = server.list_tree()
    said = rf"the region {REGION}\. Give .*client_kwargs.*region_name.*AWS_DEFAULT_REGION"
    calls = [
        lambda: load_state(storage), storage.list_tree, lambda: storage.exists(".hoodie/hoodie.properties"),
        lambda: storage.create_new("new", b""), lambda: upsert(storage, SECOND),
    ]  # fmt: skip
    for call in calls:
        with proxy.faults(lambda method, path: fault), pytest.raises(WrongRegion, match=said), typed_errors():
            call()
    assert server.list_tree() == before
    with proxy.faults(puts(fault, ".commit")) as met, pytest.raises(WrongRegion, match=said), typed_errors():
        upsert(storage, SECOND)
    assert met[fault]
    assert read(server) == FIRST
    upsert(server, SECOND)
    assert read(server) == {**FIRST, **SECOND}


def test_a_bucket_that_ignores_conditions_is_refused_at_the_first_create(storage, server, proxy, monkeypatch):
    monkeypatch.setattr(object_stores, "_REFUSE_WHAT_EXISTS", set())
    monkeypatch.setattr(proxy, "dropped", frozenset({"if-none-match"}))
    with pytest.raises(UnsupportedTable, match="ignores If-None-Match"):
        ArrowTable.create(storage, COW)
    assert server.list_tree() == {}
    monkeypatch.setattr(proxy, "dropped", frozenset())
    ArrowTable.create(storage, COW)
    upsert(storage, FIRST)
    assert read(server) == FIRST


def test_whether_a_bucket_knows_conditions_is_asked_once_in_a_process(storage, proxy, monkeypatch):
    monkeypatch.setattr(object_stores, "_REFUSE_WHAT_EXISTS", set())
    before = proxy.requests["PUT"]
    for name in "abc":
        storage.create_new(name, b"1")
    assert proxy.requests["PUT"] - before == 4


def test_a_file_that_another_removes_while_the_bucket_is_asked_does_not_speak_against_it(storage, server, monkeypatch):
    monkeypatch.setattr(object_stores, "_REFUSE_WHAT_EXISTS", set())
    puts = object_stores.S3._puts

    def removed_first(driver: object_stores.S3, path: str, data: bytes) -> bool:
        if path.endswith("/lock"):
            server.delete("lock")
        return puts(driver, path, data)

    monkeypatch.setattr(object_stores.S3, "_puts", removed_first)
    storage.create_new("lock", b"mine")
    assert server.list_tree() == {}


def test_a_bucket_that_is_not_there_is_no_empty_table(s3):
    storage = FsspecStorage("s3://no-such-bucket/table", s3)
    with pytest.raises(TableNotFound, match="bucket does not exist"):
        load_state(storage)
    with pytest.raises(BucketNotFound, match=r"bucket does not exist: no-such-bucket\. Check the URI"), typed_errors():
        ArrowTable.create(storage, COW)


def test_a_listing_says_that_the_bucket_is_not_there(s3):
    with pytest.raises(TableNotFound, match="bucket does not exist: no-such-bucket"):
        list_tables(FsspecStorage("s3://no-such-bucket", s3), depth=2)
    with pytest.raises(TableNotFound, match="no such folder, or nothing in it"):
        list_tables(FsspecStorage("s3://contract/nothing", s3), depth=2)


def test_a_store_that_knows_nobody_says_so(s3, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    storage = storage_for("s3://contract/table", {"client_kwargs": s3["client_kwargs"]})
    with pytest.raises(CredentialsRejected), typed_errors():
        load_state(storage)


@pytest.mark.parametrize(
    "wrong", [{"kee": "k"}, {"client_kwargs": {"endpoint": "http://h"}}, {"config_kwargs": {"retrys": 1}}]
)
def test_an_option_that_s3fs_does_not_know_is_named(wrong):
    storage = storage_for("s3://contract/table", {"key": "k", "secret": "s", **wrong})
    with pytest.raises(InvalidOption, match=r"kee|endpoint'|retrys"), typed_errors():
        load_state(storage)
