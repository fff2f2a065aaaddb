"""What every Storage does: one suite, passed whole by each. It needs pytest.

A storage of your own is put to it by a class in your tests:

    from hoodie.testing.storage_suite import StorageSuite

    class TestMyStorage(StorageSuite):
        @pytest.fixture
        def storage(self, tmp_path):
            return MyStorage(tmp_path)

Call `pytest.register_assert_rewrite("hoodie.testing.storage_suite")` in your conftest.py to see values in failures.
"""

import pickle
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import InvalidInput
from hoodie.storage import Storage, is_temporary

SPECIAL_NAMES = [
    "a b", "100%", "%20", "c=d", "x#y", "12:30", "q?r", "[1]", "*", "a;b", "ü漢字🦆", "~", "back\\slash", "'q\"",
    "+&@,!$", ".hidden",
]  # fmt: skip


class StorageSuite:
    """Subclass it under a name that pytest collects, and give it the fixture `storage`: a new, empty storage a test."""

    @pytest.fixture
    def storage(self) -> Storage:
        raise NotImplementedError("a fixture `storage` that gives a new, empty storage")

    def copies_share_files(self, storage: Storage) -> bool:
        """Whether a pickled copy has the same files; False: of files in memory, which go with the copy."""
        return True

    def refuses(self, name: str) -> bool:
        """Whether the store cannot keep a file or folder of this name: calls raise InvalidInput, nothing changes."""
        return False

    def test_a_created_file_reads_back_and_is_alone_in_its_folder(self, storage: Storage) -> None:
        storage.create_new("a/b/c", b"content")
        assert storage.read("a/b/c") == b"content"
        assert storage.size("a/b/c") == 7
        assert storage.exists("a/b/c")
        assert _names(storage, "a/b") == ["c"]

    @pytest.mark.parametrize("data", [b"", b"x", b"\0" * 3_000_000])
    def test_contents_of_any_size_come_back_whole(self, storage: Storage, data: bytes) -> None:
        storage.create_new("new", data)
        storage.write("written", data)
        with storage.open_output("streamed") as file:
            file.write(data)
        for name in ("new", "written", "streamed"):
            assert storage.read(name) == data
            assert storage.size(name) == len(data)
        assert [entry.size for entry in storage.list()] == [len(data)] * 3

    @pytest.mark.parametrize("old", [b"", b"old"])
    @pytest.mark.parametrize("new", [b"", b"new"])
    def test_creating_what_exists_fails_and_leaves_it(self, storage: Storage, old: bytes, new: bytes) -> None:
        storage.create_new("f/x", old)
        with pytest.raises(FileExistsError):
            storage.create_new("f/x", new)
        assert storage.read("f/x") == old
        assert _names(storage, "f") == ["x"]

    @pytest.mark.parametrize("same", [b"", b"same", None])
    def test_of_racing_creators_exactly_one_wins(self, storage: Storage, same: bytes | None) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)  # threads change places within a look and the write after it
        try:
            _race(storage, same)
        finally:
            sys.setswitchinterval(interval)

    def test_a_created_file_is_never_seen_in_part(self, storage: Storage) -> None:
        data = b"0123456789" * 30_000
        seen: set[int] = set()
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                seen.update(entry.size for entry in storage.list("t") if not is_temporary(entry.name))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for n in range(15):
                storage.create_new(f"t/new{n}", data)
                storage.write("t/same", data)
                with storage.open_output(f"t/out{n}") as file:
                    for begin in range(0, len(data), 50_000):
                        file.write(data[begin : begin + 50_000])
        finally:
            stop.set()
            watcher.join()
        assert seen <= {len(data)}
        assert {entry.size for entry in storage.list("t")} == {len(data)}

    def test_write_replaces_the_whole_content(self, storage: Storage) -> None:
        storage.write("f", b"a longer content")
        storage.write("f", b"short")
        assert storage.read("f") == b"short"
        assert _names(storage) == ["f"]

    def test_a_streamed_file_appears_when_its_block_ends(self, storage: Storage) -> None:
        with storage.open_output("p/q/file") as file:
            file.write(b"one")
            file.write(memoryview(b"two"))
            assert file.tell() == 6
            assert not storage.exists("p/q/file")
            assert [name for name in _names(storage, "p/q") if not is_temporary(name)] == []
        assert storage.read("p/q/file") == b"onetwo"
        assert _names(storage, "p/q") == ["file"]

    @pytest.mark.parametrize("size", [10, 7_000_000])
    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_aborted_output_leaves_nothing(self, storage: Storage, size: int, error: type[BaseException]) -> None:
        def write() -> None:
            with storage.open_output("p/file") as file:
                file.write(b"x" * size)
                raise error

        with pytest.raises(error):
            write()
        assert not storage.exists("p/file")
        assert _names(storage, "p") == []

    def test_a_big_file_streams_through_parquet(self, storage: Storage) -> None:
        table = pa.table({"n": range(400_000), "s": [str(n) for n in range(400_000)]})
        with storage.open_output("part/big.parquet") as file:
            pq.write_table(table, file, row_group_size=100_000, compression="none")
        with storage.open_input("part/big.parquet") as file:
            assert pq.ParquetFile(file).read_row_group(3, columns=["n"]).column("n")[0].as_py() == 300_000
        with storage.open_input("part/big.parquet") as file:
            assert pq.read_table(file).equals(table)

    def test_an_input_seeks_and_reads_pieces(self, storage: Storage) -> None:
        storage.write("f", b"0123456789")
        with storage.open_input("f") as one, storage.open_input("f") as other:
            one.seek(4)
            assert other.read(2) == b"01"
            assert one.read(3) == b"456"
            assert one.tell() == 7
            one.seek(-1, 2)
            assert one.read() == b"9"

    def test_an_input_of_a_listed_size_is_the_same_file(self, storage: Storage) -> None:
        data = bytes(range(256)) * 8_000
        storage.write("f/big", data)
        storage.write("f/empty", b"")
        for entry in storage.list("f"):
            expected = data if entry.name == "big" else b""
            for size in (entry.size, None):
                with storage.open_input(f"f/{entry.name}", size) as file:
                    assert file.seek(0, 2) == len(expected)
                    file.seek(len(expected) // 2)
                    assert file.read(1000) == expected[len(expected) // 2 :][:1000]
                    file.seek(0)
                    assert file.read() == expected
        with pytest.raises(FileNotFoundError):
            storage.open_input("f/absent", 10).read()

    @pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 4), (3, 7), (8, 100), (10, 12), (50, 60), (5, 5)])
    def test_a_range_is_cut_at_the_end_of_the_file(self, storage: Storage, start: int, end: int) -> None:
        storage.write("f", b"0123456789")
        assert storage.read_range("f", start, end) == b"0123456789"[start:end]

    @pytest.mark.parametrize(("start", "end"), [(-1, 3), (4, 3)])
    def test_a_range_out_of_order_is_refused(self, storage: Storage, start: int, end: int) -> None:
        storage.write("f", b"0123456789")
        with pytest.raises(ValueError, match="range"):
            storage.read_range("f", start, end)

    def test_an_absent_file_is_not_found(self, storage: Storage) -> None:
        storage.write("folder/other", b"")
        for path in ("absent", "folder/absent", "no/such/folder", "folder"):
            assert not storage.exists(path)
            errors = (FileNotFoundError, IsADirectoryError) if path == "folder" else FileNotFoundError
            with pytest.raises(errors):
                storage.read(path)
            with pytest.raises(errors):
                storage.read_range(path, 0, 5)
        for call in (
            storage.size,
            lambda path: storage.read_range(path, 3, 3),
            lambda path: storage.open_input(path).read(),
        ):
            with pytest.raises(FileNotFoundError):
                call("folder/absent")
        assert not storage.delete("folder/absent")

    def test_a_missing_folder_is_empty(self, storage: Storage) -> None:
        assert storage.list() == []
        assert storage.list("a/b") == []
        assert storage.list_tree() == {}
        assert storage.list_tree("a", skip={"b"}) == {}
        storage.delete_tree("a")

    def test_listing_a_file_is_an_error(self, storage: Storage) -> None:
        storage.write("a/f", b"1")
        with pytest.raises(NotADirectoryError):
            storage.list("a/f")

    def test_a_listing_tells_files_from_folders_and_is_not_recursive(self, storage: Storage) -> None:
        before = time.time_ns() // 1_000_000
        for path in ("z", "a/b/c", "a/d", "ab/e", "0"):
            storage.write(path, path.encode())
        entries = storage.list()
        assert [(entry.name, entry.size, entry.is_dir) for entry in entries] == [
            ("0", 1, False), ("a", 0, True), ("ab", 0, True), ("z", 1, False),
        ]  # fmt: skip
        for entry in entries:
            if not entry.is_dir:
                assert before - 2_000 <= entry.mtime <= time.time_ns() // 1_000_000 + 2_000
        assert [(entry.name, entry.is_dir) for entry in storage.list("a")] == [("b", True), ("d", False)]

    def test_a_tree_lists_each_folder_with_files_and_enters_none_in_it_that_is_skipped(self, storage: Storage) -> None:
        for path in (
            "top",
            "a/b/c/f1",
            "a/b/c/f2",
            "a/g",
            ".hoodie/x",
            ".hoodie/y/z",
            "a/.hoodie/h",
            "ab/i",
            "a/b/skip",
            "skip/j",
        ):
            storage.write(path, b"12")
        tree = storage.list_tree(skip={".hoodie", "skip"})
        assert {folder: [entry.name for entry in entries] for folder, entries in tree.items()} == {
            "": ["top"], "a": ["g"], "a/.hoodie": ["h"], "a/b": ["skip"], "a/b/c": ["f1", "f2"], "ab": ["i"],
        }  # fmt: skip
        assert list(tree) == sorted(tree)
        assert all(
            entry.size == 2 and entry.mtime and not entry.is_dir for entries in tree.values() for entry in entries
        )
        assert list(storage.list_tree(".hoodie", skip={".hoodie"})) == [".hoodie", ".hoodie/y"]
        assert list(storage.list_tree("a/b")) == ["a/b", "a/b/c"]

    def test_deep_folders(self, storage: Storage) -> None:
        deep = "/".join(f"level{n}" for n in range(30))
        storage.create_new(f"{deep}/file", b"x")
        assert storage.read(f"{deep}/file") == b"x"
        assert list(storage.list_tree()) == [deep]
        storage.delete_tree("level0")
        assert storage.list_tree() == {}

    @pytest.mark.parametrize("name", SPECIAL_NAMES)
    def test_a_name_is_taken_as_it_is(self, storage: Storage, name: str) -> None:
        path = f"p={name}/{name}"
        if self.refuses(name):
            for call in (storage.create_new, storage.write):
                with pytest.raises(InvalidInput):
                    call(path, b"new")
            assert _names(storage) == []
            return
        storage.create_new(path, b"new")
        with pytest.raises(FileExistsError):
            storage.create_new(path, b"again")
        storage.write(f"p={name}/other{name}", b"written")
        with storage.open_output(f"p={name}/third{name}") as file:
            file.write(b"streamed")
        assert _names(storage) == [f"p={name}"]
        assert _names(storage, f"p={name}") == sorted([name, f"other{name}", f"third{name}"])
        assert list(storage.list_tree()) == [f"p={name}"]
        assert storage.read(path) == b"new"
        with storage.open_input(path) as file:
            assert file.read() == b"new"
        assert storage.exists(path)
        assert storage.delete(path)
        assert _names(storage, f"p={name}") == sorted([f"other{name}", f"third{name}"])
        storage.delete_tree(f"p={name}")
        assert storage.list_tree() == {}

    def test_names_that_look_like_patterns_delete_only_themselves(self, storage: Storage) -> None:
        for path in ("t/a*/1", "t/ab/2", "t/[a]/3", "t/a/4", "t/a*.f", "t/ab.f"):
            storage.write(path, b"")
        storage.delete_tree("t/a*")
        storage.delete_tree("t/[a]")
        if not self.refuses("?"):
            storage.write("t/?/5", b"")
            storage.delete_tree("t/?")
        assert storage.delete("t/a*.f")
        assert list(storage.list_tree()) == ["t", "t/a", "t/ab"]
        assert [entry.name for entry in storage.list("t") if not entry.is_dir] == ["ab.f"]

    def test_a_deleted_file_is_gone_from_every_view(self, storage: Storage) -> None:
        storage.write("a/x", b"1")
        storage.write("a/y", b"2")
        assert _names(storage, "a") == ["x", "y"]
        assert storage.delete("a/x")
        assert not storage.delete("a/x")
        assert not storage.exists("a/x")
        assert _names(storage, "a") == ["y"]
        assert [entry.name for entry in storage.list_tree()["a"]] == ["y"]
        storage.create_new("a/x", b"3")
        assert storage.read("a/x") == b"3"

    def test_a_deleted_tree_leaves_its_neighbours(self, storage: Storage) -> None:
        for path in ("t/1/a", "t/1/b/c", "t/10/d", "t/1.txt"):
            storage.write(path, b"")
        storage.delete_tree("t/1")
        storage.delete_tree("t/1")
        assert _names(storage, "t") == ["1.txt", "10"]

    @pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", "a//b", "a/", "./a", "a/./b", "..", ".", "a\0b"])
    def test_a_path_that_leaves_the_table_is_refused(self, storage: Storage, path: str) -> None:
        def output() -> None:
            with storage.open_output(path) as file:
                file.write(b"")

        calls: list[Callable[[], object]] = [
            lambda: storage.list(path), lambda: storage.list_tree(path), lambda: storage.read(path), output,
            lambda: storage.read_range(path, 0, 1), lambda: storage.open_input(path), lambda: storage.size(path),
            lambda: storage.exists(path), lambda: storage.create_new(path, b""), lambda: storage.write(path, b""),
            lambda: storage.delete(path), lambda: storage.delete_tree(path),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(InvalidInput):
                call()

    def test_the_base_path_is_no_file_and_is_not_deleted(self, storage: Storage) -> None:
        storage.write("f", b"")
        for call in (storage.read, storage.delete, storage.delete_tree, lambda path: storage.write(path, b"")):
            with pytest.raises(InvalidInput):
                call("")
        assert _names(storage) == ["f"]

    def test_a_pickled_storage_reads_the_same_files(self, storage: Storage) -> None:
        storage.write("a/f", b"before")
        copy = pickle.loads(pickle.dumps(storage))
        assert copy.root == storage.root
        assert copy.read("a/f") == b"before"
        copy.write("a/g", b"after")
        assert copy.read("a/g") == b"after"
        if self.copies_share_files(storage):
            assert storage.read("a/g") == b"after"

    def test_two_storages_of_one_root_see_each_other_at_once(self, storage: Storage) -> None:
        if not self.copies_share_files(storage):
            pytest.skip("its files are its own")
        other = pickle.loads(pickle.dumps(storage))
        for n in range(5):
            assert other.list("d") == storage.list("d")
            storage.create_new(f"d/{n}", b"x")
            assert _names(other, "d") == [str(i) for i in range(n + 1)]
            assert other.exists(f"d/{n}")
        for n in range(5):
            other.delete(f"d/{n}")
            assert not storage.exists(f"d/{n}")
            assert len(_names(storage, "d")) == 4 - n

    def test_many_threads_write_and_read(self, storage: Storage) -> None:
        def work(n: int) -> bytes:
            storage.create_new(f"t/{n % 3}/{n}", str(n).encode())
            storage.list(f"t/{n % 3}")
            return storage.read(f"t/{n % 3}/{n}")

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(60))) == [str(n).encode() for n in range(60)]
        assert sum(len(entries) for entries in storage.list_tree("t").values()) == 60


def _names(storage: Storage, folder: str = "") -> list[str]:
    return [entry.name for entry in storage.list(folder)]


def _race(storage: Storage, same: bytes | None) -> None:
    for round in range(8):
        path = f"race/{round}/instant"
        start = threading.Barrier(6)

        def create(writer: int, path: str = path, start: threading.Barrier = start) -> bytes | None:
            data = f"writer {writer}".encode() * 1000 if same is None else same
            start.wait()
            try:
                storage.create_new(path, data)
            except FileExistsError:
                return None
            return data

        with ThreadPoolExecutor(6) as pool:
            won = [data for data in pool.map(create, range(6)) if data is not None]
        assert won == [storage.read(path)]
        assert _names(storage, f"race/{round}") == ["instant"]
