import errno
import os

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import MissingFile, StorageFull
from hoodie.storage import LocalStorage, is_temporary, local
from hoodie.storage.faults import fault_of


@pytest.fixture
def storage(tmp_path):
    return LocalStorage(tmp_path)


def test_a_failed_link_leaves_no_temporary_file(storage, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="hard links"):
        storage.create_new("a/f", b"1")
    assert storage.list("a") == []


def test_a_link_whose_answer_got_lost_counts_as_ours(storage, monkeypatch):
    link = os.link

    def link_twice(source, target):
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    storage.create_new("a/f", b"1")
    assert storage.read("a/f") == b"1"
    assert [entry.name for entry in storage.list("a")] == ["f"]


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_write_keeps_the_old_content(storage, monkeypatch, broken):
    storage.write("f", b"old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def stream():
        with storage.open_output("f") as file:
            file.write(b"new")

    monkeypatch.setattr(os, broken, fail)
    for call in (lambda: storage.write("f", b"new"), stream):
        with pytest.raises(OSError, match="No space"):
            call()
        assert storage.read("f") == b"old"
        assert [entry.name for entry in storage.list()] == ["f"]


def test_a_full_disk_is_told_with_the_file(storage, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(local, "_unsynced", {})
    for write in (storage.create_new, storage.write):
        with pytest.raises(OSError, match=r"No space left on device: '.*/a/b'") as raised:
            write("a/b", b"x")
        assert isinstance(fault_of(raised.value), StorageFull)
    assert storage.list_tree("") == {}


def test_every_published_byte_is_synced_before_its_name(storage, monkeypatch):
    done = []
    for name in ("fsync", "link", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real: (done.append(name), real(*a))[1])
    os.mkdir(os.path.join(storage.root, "d"))
    storage.create_new("d/f", b"1")
    assert done == ["fsync", "link", "fsync"]
    done.clear()
    storage.write("d/f", b"2")
    assert done == ["fsync", "replace", "fsync"]
    done.clear()
    with storage.open_output("d/g") as file:
        file.write(b"3")
    assert done == ["fsync", "replace", "fsync"]


def test_names_that_came_ahead_are_synced_before_the_next_name(storage, monkeypatch):
    done = []
    for name in ("link", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, name=name, real=real: (done.append(name), real(*a))[1])
    sync = local._sync

    def noted(full: str) -> None:
        if not full.endswith(".tmp"):
            done.append(os.path.relpath(full, storage.root))
        sync(full)

    monkeypatch.setattr(local, "_sync", noted)
    for ahead, later in (("a/b/marker", "x/f"), ("x/requested", "x/inflight")):
        storage.create_ahead(ahead, b"")
        assert done == []
        storage.create_new(later, b"1")
        assert done == ([".", "a", "a/b", "link", "x"] if later == "x/f" else ["link", "x"])
        done.clear()
    storage.create_ahead("gone/marker", b"plan")
    storage.delete_tree("gone")
    storage.write("x/g", b"2")
    assert done == ["link", ".", "gone", "replace", "x"]
    with pytest.raises(FileExistsError):
        storage.create_ahead("x/g", b"3")


def test_temporary_names_repeat_nothing_of_the_file(storage, tmp_path):
    with storage.open_output(".group_001.log.1_0-1-2") as file:
        file.write(b"x")
        (name,) = os.listdir(tmp_path)
        assert is_temporary(name)
        assert "log" not in name


def test_new_files_have_ordinary_permissions(storage, tmp_path):
    umask = os.umask(0o022)
    try:
        storage.create_new("empty", b"")
        storage.create_new("new", b"1")
        storage.write("written", b"1")
        with storage.open_output("streamed") as file:
            file.write(b"1")
    finally:
        os.umask(umask)
    assert {name: oct((tmp_path / name).stat().st_mode & 0o777) for name in os.listdir(tmp_path)} == dict.fromkeys(
        ["empty", "new", "written", "streamed"], "0o644"
    )


def test_links_out_of_the_base_path_are_followed_and_a_circle_ends(tmp_path):
    storage = LocalStorage(tmp_path / "base")
    storage.write("a/f", b"1")
    LocalStorage(tmp_path).write("elsewhere/f", b"1")
    os.symlink(tmp_path / "elsewhere", tmp_path / "base" / "linked")
    os.symlink(tmp_path / "elsewhere", tmp_path / "elsewhere" / "again")
    os.symlink(tmp_path / "nowhere", tmp_path / "base" / "a" / "broken")
    assert storage.list_tree().keys() == {"a", "linked"}


def test_links_that_lead_back_are_not_followed(tmp_path):
    storage = LocalStorage(tmp_path / "base")
    storage.write("a/f", b"1")
    for name, target in (("self", "base"), ("around", "."), ("sibling", "base/a")):
        os.symlink(tmp_path / target, tmp_path / "base" / name)
    os.symlink(tmp_path / "base", tmp_path / "base" / "a" / "up")
    os.symlink(tmp_path / "base", tmp_path / "alias")
    for same in (storage, LocalStorage(tmp_path / "alias")):
        assert same.list_tree().keys() == {"a"}


def test_deleting_a_linked_folder_spares_its_target(storage, tmp_path):
    storage.write("a/f", b"1")
    os.mkdir(tmp_path / "b")
    os.symlink(tmp_path / "a", tmp_path / "b" / "link")
    os.symlink(tmp_path / "a", tmp_path / "top")
    storage.delete_tree("b")
    storage.delete_tree("top")
    assert storage.list_tree().keys() == {"a"}


def test_a_folder_that_cannot_be_read_is_no_empty_folder(storage, monkeypatch):
    def refuse(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    for name in ("scandir", "listdir"):
        monkeypatch.setattr(os, name, refuse)
    for call in (storage.list, storage.list_tree, lambda: storage.delete_tree("a")):
        with pytest.raises(PermissionError):
            call()


def test_hadoops_checksum_of_an_earlier_file_goes_however_the_name_is_written_anew(storage):
    def stream() -> None:
        with storage.open_output("a/f") as file:
            file.write(b"new")

    ways = (
        lambda: storage.write("a/f", b"new"),
        lambda: storage.create_new("a/f", b"new"),
        stream,
        lambda: storage.delete("a/f"),
        lambda: storage.discard("a/f"),
    )
    for way in ways:
        storage.delete("a/f")
        storage.write("a/.f.crc", b"crc\0")
        way()
        assert "crc" not in str(storage.list("a"))
    storage.write("a/file", b"")
    assert not storage.delete("a/file/below")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_in_place_of_a_data_file_is_a_missing_file_and_no_wait(tmp_path):
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id")
    table.upsert(pa.table({"id": ["a"], "v": [1]}))
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(MissingFile, match=file.name):
        table.snapshot().to_arrow()
    assert not LocalStorage(tmp_path / "t").exists(file.name)
