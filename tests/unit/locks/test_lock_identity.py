"""A table has one lock, however its path is written."""

from pathlib import Path

import pytest

from hoodie.config.locks import LockProvider
from hoodie.config.options import Options
from hoodie.locks.choose import table_identity
from hoodie.locks.zookeeper import ZooKeeperLock
from hoodie.storage import LocalStorage, WrappedStorage
from hoodie.table.settings import Writers
from hoodie.testing.storage import MemoryStorage

ONE_TRY = {"hoodie.write.lock.wait_time_ms": "0", "hoodie.write.lock.client.num_retries": "0"}
PROVIDER = "hoodie.write.lock.provider"


class At(WrappedStorage):
    """A storage under another URI."""

    def __init__(self, inner: MemoryStorage, root: str) -> None:
        super().__init__(inner)
        self._root = root

    @property
    def root(self) -> str:
        return self._root


@pytest.mark.parametrize("provider", [LockProvider.IN_PROCESS, LockProvider.FILE_SYSTEM, LockProvider.STORAGE])
def test_a_table_behind_a_symbolic_link_has_the_lock_of_the_table(provider: LockProvider, tmp_path: Path) -> None:
    (tmp_path / "real" / "trips").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    options = {PROVIDER: provider, **ONE_TRY}
    linked = Writers.read(Options(options)).lock_on(LocalStorage(tmp_path / "link" / "trips"))
    with Writers.read(Options(options)).lock_on(LocalStorage(tmp_path / "real" / "trips")):
        assert not linked.acquire(0)
    assert linked.acquire(0)
    linked.release()


@pytest.mark.parametrize("provider", [LockProvider.IN_PROCESS, LockProvider.FILE_SYSTEM, LockProvider.STORAGE])
def test_s3_and_s3a_are_one_lock(provider: LockProvider) -> None:
    store, options = MemoryStorage(), {PROVIDER: provider, **ONE_TRY}
    other = Writers.read(Options(options)).lock_on(At(store, "s3a://bucket/trips/"))
    with Writers.read(Options(options)).lock_on(At(store, "s3://bucket/trips")):
        assert not other.acquire(0)


def test_what_is_one_store_has_one_name_and_what_is_not_has_two() -> None:
    assert table_identity("s3a://bucket/a/b/") == table_identity("S3://bucket/a/b") == "s3://bucket/a/b"
    assert table_identity("hdfs://Name-Node:8020/a") == "hdfs://name-node:8020/a"
    names = {"s3://bucket/a", "s3://bucket/A", "s3://bucket2/a", "gs://bucket/a", "/bucket/a", "s3://bucket/a//b"}
    assert len({table_identity(name) for name in names}) == len(names)


def path_in_zookeeper(provider: LockProvider, root: str) -> str:
    options = {
        PROVIDER: provider,
        "hoodie.write.lock.zookeeper.url": "localhost:1",
        "hoodie.write.lock.zookeeper.base_path": "/hudi",
        "hoodie.write.lock.zookeeper.lock_key": "Trips",
    }
    lock = Writers.read(Options(options)).lock_on(At(MemoryStorage(), root)).attempt.__self__  # type: ignore[attr-defined]
    assert isinstance(lock, ZooKeeperLock)
    return lock.path


def test_a_lock_in_zookeeper_lies_where_hudis_writers_look_or_by_the_tables_one_name() -> None:
    for root in ("s3a://bucket/trips", "s3://bucket/other"):
        assert path_in_zookeeper(LockProvider.ZOOKEEPER, root) == "/hudi/Trips"
    made = {path_in_zookeeper(LockProvider.ZOOKEEPER_IMPLICIT, f"{scheme}://bucket/trips") for scheme in ("s3", "s3a")}
    assert len(made) == 1
    assert path_in_zookeeper(LockProvider.ZOOKEEPER_IMPLICIT, "s3://bucket/other") not in made
