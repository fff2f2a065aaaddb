"""HDFS without a server: a client in this process stands for hdfs-native. tests/stores has the real ones."""

import builtins
import errno
import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
import tenacity

from hoodie.errors import CredentialsRejected, InvalidInput, InvalidOption, NameTooLong, StorageFull, StorageUnavailable
from hoodie.storage import HdfsStorage, hdfs, retry, storage_beside, storage_for
from hoodie.storage.faults import fault_of
from hoodie.storage.hdfs import hdfs_faults
from hoodie.testing.storage_suite import StorageSuite
from support.hdfs_client import HdfsClient, PanicException

ROOT = "hdfs://nn:8020/lake/trips"
JAVA = "org.apache.hadoop"


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, HdfsClient]:
    """The file systems by URI."""
    made: defaultdict[str, HdfsClient] = defaultdict(HdfsClient)
    monkeypatch.setattr(hdfs, "_client", lambda url, options: made[url])
    return made


@pytest.fixture
def client(clients: Mapping[str, HdfsClient]) -> HdfsClient:
    return clients["hdfs://nn:8020"]


class TestHdfsStorage(StorageSuite):
    @pytest.fixture
    def storage(self, clients: Mapping[str, HdfsClient]) -> HdfsStorage:
        return HdfsStorage(ROOT)

    def refuses(self, name: str) -> bool:
        return ":" in name


@pytest.mark.parametrize(
    ("uri", "file_system", "path"),
    [
        ("hdfs://nn:8020/lake", "hdfs://nn:8020", "/lake/f"),
        ("HDFS://service/a#b/c?d;e/%20/", "hdfs://service", "/a#b/c?d;e/%20/f"),
        ("hdfs:///lake", "hdfs://", "/lake/f"),
        ("hdfs://nn:8020", "hdfs://nn:8020", "/f"),
        ("viewfs://cluster/lake", "viewfs://cluster", "/lake/f"),
    ],
)
def test_a_uri_of_hdfs_is_taken_apart_and_nothing_is_decoded(clients, uri, file_system, path):
    storage = storage_for(uri)
    assert isinstance(storage, HdfsStorage)
    assert storage.root == uri.rstrip("/")
    storage.write("f", b"1")
    assert list(clients[file_system].files) == [path]
    assert [entry.name for entry in storage.list() if not entry.is_dir] == ["f"]


def test_a_rename_whose_answer_got_lost_is_a_success(client):
    client.loses = 1
    HdfsStorage(ROOT).create_new("f", b"content")
    assert client.files == {"/lake/trips/f": b"content"}


def test_a_rename_to_a_taken_name_fails_and_clears_up(client, monkeypatch):
    storage = HdfsStorage(ROOT)
    storage.write("f", b"other")
    monkeypatch.setattr(storage, "_status", early(storage._status))  # the look before comes too early
    with pytest.raises(FileExistsError):
        storage.create_new("f", b"content")
    assert client.files == {"/lake/trips/f": b"other"}


def early(look: Any) -> Any:
    """The first answer is that there is nothing."""
    first = [True]

    def status(full: str) -> Any:
        return None if first and first.pop() else look(full)

    return status


def test_a_write_that_fails_leaves_no_temporary_file(client, monkeypatch):
    def fails(source: str, target: str, overwrite: bool = False) -> None:
        raise RuntimeError(f'RPCError("{JAVA}.hdfs.protocol.NSQuotaExceededException", "too many")')

    monkeypatch.setattr(client, "rename", fails)
    storage = HdfsStorage(ROOT)
    for call in (storage.create_new, storage.write):
        with pytest.raises(OSError, match="too many"):
            call("f", b"content")
    assert client.files == {}


def stream(storage: HdfsStorage) -> None:
    with storage.open_output("s") as file:
        file.write(b"streamed")


@pytest.mark.parametrize("breaks", [1, 3])
@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda storage: [entry.name for entry in storage.list("t")], ["x"]),
        (lambda storage: list(storage.list_tree()), ["", "t"]),
        (lambda storage: storage.read("f"), b"0123456789"),
        (lambda storage: storage.read_range("f", 2, 4), b"23"),
        (lambda storage: storage.open_input("f").read(3), b"012"),
        (lambda storage: storage.size("f"), 10),
        (lambda storage: storage.exists("f"), True),
        (lambda storage: storage.create_new("n", b"new"), None),
        (lambda storage: storage.write("f", b"0123456789"), None),
        (stream, None),
        (lambda storage: storage.delete("f"), True),
        (lambda storage: storage.delete_tree("t"), None),
    ],
)
def test_each_call_gets_through_though_the_connection_breaks(client, monkeypatch, call, answer, breaks):
    monkeypatch.setattr(retry._policy, "wait", tenacity.wait_none())
    storage = HdfsStorage(ROOT)
    storage.write("f", b"0123456789")
    storage.write("t/x", b"")
    client.breaks = breaks
    assert call(storage) == answer
    assert client.breaks == 0
    assert not any(path.endswith(".tmp") for path in client.files)


def test_a_namenode_that_nobody_reaches_is_not_tried_again(client, monkeypatch):
    asked = []

    def refuses(path: str) -> None:
        asked.append(path)
        raise OSError("Connection refused (os error 111)")

    monkeypatch.setattr(client, "get_file_info", refuses)
    with pytest.raises(ConnectionRefusedError):
        HdfsStorage(ROOT).exists("f")
    assert len(asked) == 1  # the client itself tried for minutes


def test_a_long_stream_is_not_kept_in_memory(client):
    piece = bytes(range(256)) * 4096
    with HdfsStorage(ROOT).open_output("big") as file:
        for _ in range(10):
            file.write(piece)
        assert file.tell() == 10 << 20
        assert sum(map(len, client.files.values())) >= 9 << 20
        assert "/lake/trips/big" not in client.files
    assert client.files == {"/lake/trips/big": piece * 10}


def test_a_folder_is_not_deleted_as_a_file(client):
    client.create("/lake/trips/folder/f")
    client.delete("/lake/trips/folder/f")
    assert not HdfsStorage(ROOT).delete("folder")
    assert "/lake/trips/folder" in client.folders


@pytest.mark.parametrize(
    ("raised", "fault"),
    [
        (RuntimeError(f'RPCError("{JAVA}.hdfs.FSLimitException$PathComponentTooLongException", "x")'), NameTooLong),
        (RuntimeError(f'RPCError("{JAVA}.DSQuotaExceededException", "full\\n\\tat {JAVA}.X")'), StorageFull),
        (RuntimeError(f'RPCError("{JAVA}.hdfs.server.namenode.SafeModeException", "not yet")'), StorageUnavailable),
        (RuntimeError('SASLError("no common mechanism")'), CredentialsRejected),
        (RuntimeError("GSSAPIError(GSS_S_NO_CRED, 1, \"No credentials cache found\")"), CredentialsRejected),
        (OSError("Connection refused (os error 111)"), StorageUnavailable),
    ],
)  # fmt: skip
def test_what_the_client_raises_is_a_fault_that_says_what_to_do(raised, fault):
    with pytest.raises(OSError, match=r".") as error, hdfs_faults():
        raise raised
    found = error.value if isinstance(error.value, fault) else fault_of(error.value)
    assert type(found) is fault
    assert "\tat" not in str(error.value)


@pytest.mark.parametrize("kind", [FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError])
def test_a_class_of_python_stays_and_the_stack_of_java_goes(kind):
    with pytest.raises(kind, match=r"no such thing$") as error, hdfs_faults():
        raise kind("no such thing\n\tat org.apache.hadoop.X\n")
    assert error.value.errno


def test_a_panic_of_the_client_is_an_error_that_callers_see():
    with pytest.raises(OSError, match="past end") as error, hdfs_faults():
        raise PanicException("Cannot read past end of the file")
    assert error.value.errno == errno.EIO


def test_without_hdfs_native_the_message_says_what_to_install(monkeypatch):
    whole = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "hdfs_native":
            raise ImportError(name)
        return whole(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidOption, match=r"pip install 'hoodie\[hdfs\]'"):
        storage_for(ROOT)


def test_options_are_settings_of_hadoop_and_a_few_of_the_client_s(monkeypatch):
    given: list[Any] = []

    def client(url: str, settings: dict[str, str], **named: str) -> None:
        given.append((url, settings, named))

    monkeypatch.setitem(sys.modules, "hdfs_native", type("Module", (), {"Client": staticmethod(client)}))
    options = {"dfs.client.retries": 3, "dfs.client.fast": True, "dfs.text": "a", "kerberos_principal": "me@REALM"}
    storage_for(ROOT, options)
    settings = {"dfs.client.retries": "3", "dfs.client.fast": "true", "dfs.text": "a"}
    assert given == [("hdfs://nn:8020", settings, {"kerberos_principal": "me@REALM"})]
    with pytest.raises(InvalidOption, match=r"as text: dfs\.client\.retries$") as raised:
        storage_for(ROOT, {"dfs.client.retries": ["hidden"], "kerberos_keytab": "/etc/hidden"})
    assert "hidden" not in str(raised.value)


def test_a_name_with_a_colon_is_refused_with_what_to_set(clients):
    with pytest.raises(InvalidInput, match=r"partitionpath\.urlencode"):
        HdfsStorage(ROOT).write("time=12:30/f", b"")
    with pytest.raises(InvalidInput, match="no ':' in a name"):
        HdfsStorage("hdfs://nn:8020/lake/a:b")


def test_a_path_beside_a_table_on_hdfs_has_its_options(clients):
    storage = HdfsStorage(ROOT, {"dfs.client.failover.max.attempts": "3"})
    beside = storage_beside(storage, "hdfs://nn:8020/other")
    assert isinstance(beside, HdfsStorage)
    assert beside.options_for("hdfs://x/") == {"dfs.client.failover.max.attempts": "3"}
    assert "kerb" not in repr(HdfsStorage(ROOT, {"kerberos_keytab": "/etc/kerb"}))
