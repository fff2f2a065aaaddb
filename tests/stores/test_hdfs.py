"""What is HDFS' own: name services and settings of Hadoop, permissions, servers that restart or are gone."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from hoodie import open_table
from hoodie.errors import AccessDenied, InvalidOption, NameTooLong, StorageFailed, StorageUnavailable
from hoodie.storage import storage_for
from hoodie.storage.faults import fault_of, typed_errors
from hoodie.testing.tables import ArrowTable
from support.hdfs import Hdfs, write_conf
from support.servers import free_port
from support.undoing import COW, FIRST, MOR, SECOND, batch, read, upsert

pytestmark = pytest.mark.stores

#: What a process reads that knows HDFS by HADOOP_CONF_DIR alone.
_READ = """
import sys, hoodie
print(sorted(hoodie.open_table(sys.argv[1]).snapshot().to_arrow().column("id").to_pylist()))
"""


@pytest.fixture
def uri(hdfs: Hdfs) -> str:
    return f"hdfs://{hdfs.address}/own/{uuid4().hex}"


def test_a_name_service_of_hadoop_conf_dir_is_found_and_its_dead_namenode_passed_over(
    hdfs: Hdfs, uri: str, tmp_path: Path
) -> None:
    ArrowTable.create(storage_for(uri), COW)
    upsert(storage_for(uri), FIRST)
    write_conf(
        tmp_path,
        {"fs.defaultFS": "hdfs://lake"},
        {
            "dfs.nameservices": "lake",
            "dfs.ha.namenodes.lake": "nn1,nn2",
            "dfs.namenode.rpc-address.lake.nn1": f"127.0.0.1:{free_port()}",  # nobody is there
            "dfs.namenode.rpc-address.lake.nn2": hdfs.address,
            "dfs.client.failover.proxy.provider.lake": (
                "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
            ),
        },
    )
    path = uri.partition(hdfs.address)[2]
    for name in (f"hdfs://lake{path}", f"hdfs://{path}"):
        command = [sys.executable, "-c", _READ, name]
        environment = {**os.environ, "HADOOP_CONF_DIR": str(tmp_path)}
        said = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
        assert said.stdout.splitlines()[-1:] == ["['a', 'b', 'c']"], said.stderr
    by_option = open_table(f"hdfs://lake{path}", storage_options={"config_dir": str(tmp_path)}).snapshot().to_arrow()
    assert sorted(by_option.column("id").to_pylist()) == ["a", "b", "c"]


def test_a_name_service_without_settings_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(name, raising=False)
    for uri in ("hdfs://nobodys-service/trips", "hdfs:///trips"):
        with pytest.raises(InvalidOption, match=r"HADOOP_CONF_DIR"):
            storage_for(uri)


def test_a_namenode_that_nobody_runs_is_unavailable() -> None:
    settings = {"dfs.client.failover.max.attempts": "1", "dfs.client.failover.sleep.base.millis": "10"}
    with pytest.raises(OSError, match="refused") as raised:
        storage_for(f"hdfs://127.0.0.1:{free_port()}/trips", settings).list()
    assert type(fault_of(raised.value)) is StorageUnavailable


def test_a_user_without_permission_reads_and_cannot_write_and_nothing_is_published(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ArrowTable.create(storage_for(uri), MOR)
    upsert(storage_for(uri), FIRST)
    before = storage_for(uri).list_tree()
    monkeypatch.setenv("HADOOP_USER_NAME", "guest")
    storage = storage_for(uri)
    with pytest.raises(AccessDenied, match="guest"), typed_errors():
        upsert(storage, SECOND)
    assert storage.list_tree() == before
    assert read(storage) == FIRST


def test_a_name_longer_than_hdfs_takes_is_a_typed_error(uri: str) -> None:
    storage = storage_for(uri)
    with pytest.raises(OSError, match="component") as raised:
        storage.write("n" * 300, b"")
    assert type(fault_of(raised.value)) is NameTooLong


@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_a_namenode_that_restarts_under_a_write_delays_it(hdfs: Hdfs, uri: str, options: dict[str, str]) -> None:
    storage = storage_for(uri)
    ArrowTable.create(storage, options)
    upsert(storage, FIRST)

    def restart() -> None:
        hdfs.namenode.stop()
        hdfs.namenode.start()

    restarted = threading.Timer(0.7, restart)
    restarted.start()
    try:
        upsert(storage, SECOND)
    finally:
        restarted.join()
    assert read(storage) == {**FIRST, **SECOND}


def test_a_write_fails_whole_while_no_datanode_runs(hdfs: Hdfs, uri: str) -> None:
    storage = storage_for(uri)
    ArrowTable.create(storage, COW)
    upsert(storage, FIRST)
    hdfs.datanode.stop()
    try:
        with pytest.raises(OSError, match=r".") as raised:
            ArrowTable(storage, COW).upsert(batch(SECOND))
        assert isinstance(raised.value, StorageFailed) or fault_of(raised.value)
    finally:
        hdfs.datanode.start()
    assert read(storage) == FIRST
    upsert(storage, SECOND)
    assert read(storage) == {**FIRST, **SECOND}


def test_a_file_of_several_blocks_is_read_whole_and_in_pieces(uri: str) -> None:
    storage = storage_for(uri, {"dfs.blocksize": "1048576"})
    data = os.urandom(5 << 20)
    with storage.open_output("big") as file:
        for begin in range(0, len(data), 300_000):
            file.write(data[begin : begin + 300_000])
    assert storage.read("big") == data
    assert storage.read_range("big", (2 << 20) - 5, (2 << 20) + 5) == data[(2 << 20) - 5 : (2 << 20) + 5]
    with storage.open_input("big") as file:
        file.seek(-7, 2)
        assert file.read(100) == data[-7:]
        file.seek((3 << 20) - 3)
        assert file.read(9) == data[(3 << 20) - 3 : (3 << 20) + 6]
        assert pa.PythonFile(file).size() == len(data)
