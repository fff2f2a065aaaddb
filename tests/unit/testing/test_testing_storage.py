import pickle
import threading

import pytest

from hoodie.storage import WrappedStorage, is_temporary
from hoodie.testing.storage import CountingStorage, Crash, CrashAfter, DelayingStorage, Dying, MemoryStorage


def publish(storage):
    storage.create_new("t/new", b"12345678")
    storage.write("t/old", b"87654321")
    with storage.open_output("t/data") as file:
        file.write(b"abcd")
        file.write(b"efgh")
    storage.delete("t/gone")
    storage.delete_tree("tree")


BEFORE = {"t/old": b"o", "t/gone": b"g", "tree/1": b"1", "tree/2": b"2"}
STEPS = [
    BEFORE,
    BEFORE | {"t/new": b"12345678"},
    BEFORE | {"t/new": b"12345678", "t/old": b"87654321"},
    BEFORE | {"t/new": b"12345678", "t/old": b"87654321", "t/data": b"abcdefgh"},
    {"t/new": b"12345678", "t/old": b"87654321", "t/data": b"abcdefgh", "tree/1": b"1", "tree/2": b"2"},
    {"t/new": b"12345678", "t/old": b"87654321", "t/data": b"abcdefgh"},
]


@pytest.mark.parametrize("writes", range(5))
@pytest.mark.parametrize("dying", Dying)
def test_a_crash_stops_at_its_call_and_stays_dead(writes, dying):
    inner = MemoryStorage(BEFORE)
    storage = CrashAfter(inner, writes, dying)
    with pytest.raises(Crash):
        publish(storage)
    after = inner.snapshot()
    temporary = {path: data for path, data in after.items() if is_temporary(path.rpartition("/")[2])}
    rest = {path: data for path, data in after.items() if path not in temporary}
    if dying is Dying.BEFORE:
        assert after == STEPS[writes]
    elif dying is Dying.AFTER:
        assert after == STEPS[writes + 1]
    else:
        torn = {2: {"t/data": b"abcd"}}.get(writes, {})
        expected = STEPS[writes] | torn
        if writes == 4:
            del expected["tree/1"]
        assert rest == expected
        assert list(temporary.values()) == {0: [b"1234"], 1: [b"8765"]}.get(writes, [])
    for call in (storage.list, lambda: storage.read("t/old"), lambda: publish(storage)):
        with pytest.raises(Crash):
            call()
    assert inner.snapshot() == after


def test_a_crash_that_is_never_reached_changes_nothing():
    inner = MemoryStorage(BEFORE)
    publish(CrashAfter(inner, 5))
    assert inner.snapshot() == STEPS[5]


def test_no_except_exception_survives_a_crash():
    assert not issubclass(Crash, Exception)


def test_an_output_that_fails_by_itself_is_no_write():
    inner = MemoryStorage()
    storage = CrashAfter(inner, 0)

    def write():
        with storage.open_output("f") as file:
            file.write(b"1")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 no message of ours
        write()
    assert inner.snapshot() == {}


def test_calls_are_counted_by_method_and_folder():
    storage = CountingStorage(MemoryStorage(BEFORE))
    publish(storage)
    storage.list("t")
    storage.list()
    assert storage.read("t/old") == b"87654321"
    assert storage.count("list") == 2
    assert storage.count("list", "t") == 1
    assert storage.count("list", "") == 1
    assert storage.count("delete_tree", "tree") == 1
    assert storage.count(folder="t") == 7  # five writes (open_output is two), a list, a read
    assert storage.count() == 9
    storage.reset()
    assert storage.count() == 0


def test_a_delayed_call_lets_another_in_between():
    inner, gate = MemoryStorage(), threading.Event()

    def wait(method, path):
        if method == "create_new":
            gate.wait(10)
        return 0

    lost = []

    def create():
        try:
            DelayingStorage(inner, wait).create_new("f", b"slow")
        except FileExistsError:
            lost.append(True)

    slow = threading.Thread(target=create)
    slow.start()
    inner.create_new("f", b"fast")
    gate.set()
    slow.join()
    assert lost == [True]
    assert inner.read("f") == b"fast"


@pytest.mark.parametrize("wrap", [WrappedStorage, CountingStorage, lambda inner: CrashAfter(inner, 9)])
def test_a_wrapper_pickles_and_hands_everything_on(wrap):
    storage = pickle.loads(pickle.dumps(wrap(MemoryStorage(BEFORE))))
    publish(storage)
    assert storage.inner.snapshot() == STEPS[5]
    assert storage.root == storage.inner.root
    assert list(storage.list_tree("t")) == ["t"]
    assert storage.read_range("t/new", 2, 4) == b"34"
    assert storage.open_input("t/new").read() == b"12345678"
    assert storage.size("t/new") == 8
    assert storage.exists("t/new")


def test_a_wrapped_output_that_raises_leaves_nothing():
    storage = WrappedStorage(MemoryStorage())

    def write():
        with storage.open_output("f") as file:
            file.write(b"1")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        write()
    assert storage.list() == []


def test_a_copy_of_a_memory_storage_is_its_own():
    now = iter(range(1, 100))
    storage = MemoryStorage({"f": b"1"}, clock=lambda: next(now))
    copy = storage.copy()
    storage.write("f", b"2")
    assert copy.snapshot() == {"f": b"1"}
    assert [entry.mtime for entry in copy.list()] == [1]
    assert [entry.mtime for entry in storage.list()] == [2]
