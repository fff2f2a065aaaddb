"""Creating exclusively over a network that loses answers, through drivers as S3's and Azure's."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hoodie.errors import InvalidInput, UnsupportedTable
from hoodie.storage import FsspecStorage
from hoodie.storage.fsspec_store import driver_for
from hoodie.storage.object_stores import Azure, ObjectStore

PATH = "/bucket/instant"


class Store(MemoryFileSystem):
    """A store that keeps metadata, and fails as it is told: one word for each put.

    "lost": it happens, the answer does not arrive; "cut": nothing happens; "repeated": the driver itself repeats a lost
    put and hears of its own object; "rival": as "cut", and another creates meanwhile; "late": "cut", then it happens
    after the caller looked.
    """

    cachable = False

    def __init__(self, *faults, rival=b"rival"):
        super().__init__(skip_instance_cache=True)
        self.store, self.pseudo_dirs = {}, [""]  # its own, not that of the class
        self.faults, self.rival = list(faults), rival
        self.puts, self.marks, self.late = 0, {}, None

    def pipe_file(self, path, value, mode="overwrite", Metadata=None, **_):
        self.puts += 1
        if self.late:
            self._put(*self.late)
            self.late = None
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "rival":
            self._put(path, self.rival, {"hoodie-create": "another"})
        if fault == "late":
            self.late = (path, value, Metadata)
        if fault in ("cut", "rival", "late"):
            raise TimeoutError("read timed out")
        if self.exists(path):
            raise FileExistsError(path)
        self._put(path, value, Metadata)
        if fault == "lost":
            raise ConnectionError("connection reset")
        if fault == "repeated":
            raise FileExistsError(path)

    def _put(self, path, value, metadata):
        MemoryFileSystem.pipe_file(self, path, value)
        self.marks[path] = metadata or {}

    def metadata(self, path):
        if not self.exists(path):
            raise FileNotFoundError(path)
        return self.marks[path]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)


@pytest.mark.parametrize("data", [b"", b"content"])
@pytest.mark.parametrize("faults", [[], ["lost"], ["repeated"], ["cut"], ["cut", "cut", "lost"], ["late"]])
def test_with_a_mark_a_lost_answer_is_a_success(data, faults):
    store = Store(*faults)
    ObjectStore(store, marks="Metadata").create(PATH, data)
    assert store.cat_file(PATH) == data


@pytest.mark.parametrize("data", [b"", b"content"])
@pytest.mark.parametrize("faults", [["rival"], ["cut", "rival"]])
def test_with_a_mark_a_rival_wins_even_with_equal_content(data, faults):
    store = Store(*faults, rival=data)
    with pytest.raises(FileExistsError):
        ObjectStore(store, marks="Metadata").create(PATH, data)


@pytest.mark.parametrize("faults", [[], ["lost"], ["cut"], ["cut", "lost"], ["late"]])
def test_without_a_mark_equal_content_is_ours(faults):
    store = Store(*faults)
    ObjectStore(store).create(PATH, b"content")
    assert store.cat_file(PATH) == b"content"


def test_without_a_mark_an_empty_file_in_doubt_is_anothers():
    with pytest.raises(FileExistsError):
        ObjectStore(Store("lost")).create(PATH, b"")


def test_without_a_mark_a_plain_refusal_is_never_ours():
    store = Store()
    store._put(PATH, b"content", None)
    with pytest.raises(FileExistsError):
        ObjectStore(store).create(PATH, b"content")


@pytest.mark.parametrize("marks", ["", "Metadata"])
def test_an_outcome_that_stays_unknown_is_the_stores_error(marks):
    store = Store(*["cut"] * 20)
    with pytest.raises(TimeoutError):
        ObjectStore(store, marks=marks).create(PATH, b"content")
    assert 1 < store.puts < 10
    assert not store.exists(PATH)


def test_a_refusal_is_not_tried_again():
    class Locked(Store):
        def pipe_file(self, *_, **__):
            self.puts += 1
            raise PermissionError("access denied")

    store = Locked()
    with pytest.raises(PermissionError):
        ObjectStore(store).create(PATH, b"content")
    assert store.puts == 1


def test_an_unknown_driver_does_not_create():
    driver = driver_for(object())
    with pytest.raises(UnsupportedTable, match="only if it is absent"):
        driver.create(PATH, b"")


@pytest.mark.parametrize("name", ["a\\b", "a?/b", "c/a?"])
def test_a_name_that_azure_would_change_is_refused(name):
    assert not Azure(MemoryFileSystem()).takes(f"container/table/{name}")
    assert Azure(MemoryFileSystem()).takes("container/table/q?r/%20")


def test_a_name_that_the_driver_would_cut_is_refused(monkeypatch):
    storage = FsspecStorage("memory://cut/t")
    monkeypatch.setattr(storage.fs, "_strip_protocol", lambda path: path.partition("#")[0])
    with pytest.raises(InvalidInput, match="cannot address"):
        storage.write("p/a#b", b"")
    storage.write("p/a", b"")


def test_a_folders_own_object_is_no_file_in_it(monkeypatch):
    """S3's console and Hadoop make an empty object "folder/"; drivers list it beside the folder's files."""
    storage = FsspecStorage("memory://marked/t")
    storage.write("p/f", b"1")
    listed, found = storage.fs.ls, storage.fs.find
    own = {"name": "/marked/t/p", "size": 0, "type": "directory"}
    monkeypatch.setattr(
        storage.fs, "ls", lambda path, **how: [own, *listed(path, **how)] if path[-1] == "p" else listed(path, **how)
    )
    monkeypatch.setattr(
        storage.fs,
        "find",
        lambda path, **how: {"/marked/t/p/": own | {"name": "/marked/t/p/", "type": "file"}} | found(path, **how),
    )
    assert [entry.name for entry in storage.list("p")] == ["f"]
    assert {folder: [entry.name for entry in entries] for folder, entries in storage.list_tree().items()} == {
        "p": ["f"]
    }
