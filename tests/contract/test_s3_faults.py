"""S3 over a network that loses requests and answers: what the storage promises holds, and so do whole tables on it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tenacity

from hoodie.errors import HoodieError
from hoodie.model.instant import Action
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.storage import Storage, retry
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from support.http_faults import Fault, FaultyProxy, every, first, times_out
from support.nightly import covering
from support.oracles import read_hudi_rs
from support.undoing import COW, FIRST, LATER, MOR, NOW, SECOND, THIRD, batch, newest, opened, read, upsert

PASSING = [Fault.BUSY, Fault.ERROR, Fault.CUT, Fault.LOST, Fault.HANG]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    times_out(monkeypatch)
    monkeypatch.setattr("hoodie.storage.object_stores.time.sleep", lambda seconds: None)
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    monkeypatch.setattr(retry._policy, "wait", tenacity.wait_none())


@pytest.mark.parametrize(("fault", "data"), covering(PASSING, [b"", b"content"]))
def test_a_file_is_created_though_the_request_or_its_answer_is_lost(storage, server, proxy, fault, data):
    with proxy.faults(first(2, fault, "PUT")) as met:
        storage.create_new("f/instant", data)
    assert met[fault]
    assert server.read("f/instant") == data
    with pytest.raises(FileExistsError):
        server.create_new("f/instant", data)


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.CUT, Fault.BUSY])
def test_a_rival_that_was_there_first_stays_however_the_answers_fare(storage, server, proxy, fault):
    for data in (b"", b"equal"):
        path = f"f/{len(data)}"
        server.create_new(path, data)
        with proxy.faults(first(1, fault, "PUT")) as met, pytest.raises(FileExistsError):
            storage.create_new(path, data)
        assert met[fault] == 1
        assert server.read(path) == data


def test_nothing_is_ever_deleted_to_find_out(storage, server, proxy):
    server.create_new("f/instant", b"another's")
    before = proxy.requests["DELETE"]
    with proxy.faults(first(3, Fault.LOST, "PUT")), pytest.raises(FileExistsError):
        storage.create_new("f/instant", b"ours")
    assert proxy.requests["DELETE"] == before
    assert server.read("f/instant") == b"another's"


def test_a_store_that_stays_away_is_an_os_error_and_never_an_empty_answer(storage, server, proxy):
    server.write("f/x", b"1")
    calls = [
        lambda: storage.list("f"), storage.list_tree, lambda: storage.read("f/x"), lambda: storage.exists("f/x"),
        lambda: storage.size("f/x"), lambda: storage.read_range("f/x", 0, 1), lambda: storage.create_new("f/y", b"2"),
        lambda: storage.write("f/x", b"2"), lambda: storage.delete("f/x"), lambda: storage.delete_tree("f"),
        lambda: storage.open_input("f/x").read(),
    ]  # fmt: skip
    for fault in (Fault.BUSY, Fault.CUT):
        with proxy.faults(lambda method, path, fault=fault: fault):
            for call in calls:
                with pytest.raises(OSError, match=r"busy|Connection|Server|reached|Unavailable|closed") as raised:
                    call()
                assert not isinstance(raised.value, FileNotFoundError | FileExistsError)
    assert server.read("f/x") == b"1"
    assert not server.exists("f/y")


@pytest.fixture(autouse=True)
def few_tries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "stays_away" in request.node.name:
        monkeypatch.setattr(retry._policy, "stop", tenacity.stop_after_attempt(2))


@pytest.mark.parametrize("fault", PASSING)
def test_each_call_gets_through_when_the_first_try_fails(storage, server, proxy, fault):
    server.write("f/x", b"0123456789")
    server.write("t/y", b"")
    expected: list[tuple[Any, Any]] = [
        (lambda: [entry.name for entry in storage.list("f")], ["x"]),
        (lambda: list(storage.list_tree("f")), ["f"]),
        (lambda: storage.read("f/x"), b"0123456789"),
        (lambda: storage.read_range("f/x", 2, 4), b"23"),
        (lambda: storage.size("f/x"), 10),
        (lambda: storage.exists("f/x"), True),
        (lambda: storage.exists("f/z"), False),
        (lambda: storage.write("f/z", b"new"), None),
        (lambda: stream(storage, "f/s", b"streamed"), None),
        (lambda: storage.delete("f/z"), True),
        (lambda: storage.delete_tree("t"), None),
    ]
    for call, answer in expected:
        with proxy.faults(first(1, fault)) as met:
            assert call() == answer
        assert met[fault] == 1
    assert server.read("f/s") == b"streamed"


def test_a_file_is_read_on_after_the_connection_broke(storage, server, proxy):
    data = os.urandom(200_000)
    server.write("f/x", data)
    with storage.open_input("f/x") as file, proxy.faults(every(2, Fault.CUT, Fault.BUSY)) as met:
        file.seek(150_000)
        assert file.read(10) == data[150_000:150_010]
        file.seek(0)
        assert file.read() == data
    assert met


@pytest.mark.parametrize("left", [0, 100_000])
def test_a_file_that_became_shorter_than_listed_is_damaged(storage, server, left):
    server.write("f/x", os.urandom(3_000_000))
    (entry,) = storage.list("f")
    file = storage.open_input("f/x", entry.size)
    server.write("f/x", b"x" * left)
    file.seek(-8, 2)
    with pytest.raises(OSError, match=r"f/x ends at byte .* and 3000000 bytes were listed"):
        file.read()


def stream(storage: Storage, path: str, *pieces: bytes) -> None:
    with storage.open_output(path) as file:
        for piece in pieces:
            file.write(piece)


PIECE = os.urandom(1 << 20)


def test_a_long_stream_goes_up_in_parts_and_appears_whole_at_the_end(storage, server):
    with storage.open_output("big") as file:
        for _ in range(18):
            file.write(PIECE)
        assert file.tell() == 18 << 20
        assert not server.exists("big")
    assert server.read("big") == PIECE * 18
    assert [entry.size for entry in server.list()] == [18 << 20]


def test_a_long_stream_whose_completion_got_no_answer_is_there(storage, server, proxy):
    with proxy.faults(first(1, Fault.LOST, "POST", "uploadId=")) as met:
        stream(storage, "big", *[PIECE] * 10)
    assert met[Fault.LOST] == 1
    assert server.read("big") == PIECE * 10


@pytest.mark.parametrize(("fault", "times"), [(Fault.BUSY, 6), (Fault.ERROR, 6), (Fault.CUT, 6), (Fault.HANG, 1)])
def test_a_long_stream_is_completed_however_often_the_store_has_to_be_asked(storage, server, proxy, fault, times):
    with proxy.faults(first(times, fault, "POST", "uploadId=")) as met:
        stream(storage, "big", *[PIECE] * 10)
    assert met[fault] == times
    assert server.read("big") == PIECE * 10


def test_a_long_stream_that_is_never_completed_is_an_error_of_the_system(storage, server, proxy):
    with proxy.faults(first(1000, Fault.ERROR, "POST", "uploadId=")), pytest.raises(OSError, match="oops"):
        stream(storage, "big", *[PIECE] * 10)
    assert server.list() == []


def test_a_long_stream_that_fails_leaves_nothing(storage, server, proxy):
    def run_out() -> None:
        with storage.open_output("big") as file:
            for _ in range(10):
                file.write(PIECE)
            raise ValueError("the rows ran out")

    with pytest.raises(ValueError, match="the rows ran out"):
        run_out()
    with proxy.faults(first(99, Fault.BUSY, "POST", "uploadId=")), pytest.raises(OSError, match="busy"):
        stream(storage, "big", *[PIECE] * 10)
    assert server.list() == []


def test_a_folder_of_many_files_is_listed_page_by_page(storage, server, proxy, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "7")  # S3 gives a thousand at a time
    names = [f"{number:03}" for number in range(20)]
    for name in names:
        server.write(f"many/{name}", b"")
    before = proxy.requests["GET"]
    with proxy.faults(first(1, Fault.BUSY, "GET", "continuation-token")) as met:
        assert [entry.name for entry in storage.list("many")] == names
    assert met[Fault.BUSY] == 1
    assert proxy.requests["GET"] - before >= 3
    assert [entry.name for entry in storage.list_tree()["many"]] == names


# --- whole tables ---


def history(storage: Storage, options: dict[str, str], after: Callable[[int], None]) -> None:
    """Writes of all kinds, a rollback, a compaction, a savepoint and a restore.

    after  called with the number of each step
    """
    ArrowTable.create(storage, options)
    for number, step in enumerate(
        (
            lambda: upsert(storage, FIRST),
            lambda: upsert(storage, SECOND),
            lambda: make_savepoint(storage, Settings.of({})),
            lambda: upsert(storage, THIRD),
            lambda: opened(storage).delete(batch(SECOND)),
            lambda: rollback(storage, Settings.of({})),
            lambda: (
                options is MOR and compact(storage, Settings.of({}), schedule_compaction(storage, Settings.of(NOW)))
            ),
            lambda: opened(storage).insert_overwrite(batch(LATER)),
            lambda: restore(storage, Settings.of({}), first_savepoint(storage)),
            lambda: upsert(storage, LATER),
        )
    ):
        step()
        after(number)


def first_savepoint(storage: Storage) -> str:
    return load_state(storage).timeline.completed({Action.SAVEPOINT})[0].requested


EXPECTED = [
    FIRST,
    (second := {**FIRST, **SECOND}),
    second,
    (third := {**second, **THIRD}),
    {key: row for key, row in third.items() if key not in SECOND},
    third,
    third,
    {**{key: row for key, row in third.items() if row[0] not in ("oslo", "bern")}, **LATER},
    second,
    {**second, **LATER},
]


@pytest.mark.nightly  # beside one call after the other, and threads in test_tables_on_s3
@pytest.mark.parametrize("options", [MOR, COW], ids=["mor", "cow"])
def test_a_whole_history_over_a_bad_network_has_the_rows_it_should(storage, server, proxy, options, tmp_path: Path):
    with proxy.faults(every(9, Fault.BUSY, Fault.LOST, Fault.CUT, Fault.ERROR)) as met:
        history(storage, options, lambda step: check(server, step))
    assert set(met) == {Fault.BUSY, Fault.LOST, Fault.CUT, Fault.ERROR}
    for folder, entries in server.list_tree().items():
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(server.read(path))
    rows = read_hudi_rs(tmp_path).to_pylist()
    assert {row["id"]: (row["city"], row["ts"], row["note"]) for row in rows} == EXPECTED[-1]


def check(storage: Storage, step: int) -> None:
    if step in (4, 6, 8, 9):
        assert read(storage) == EXPECTED[step]


def test_two_writers_over_a_bad_network_never_share_an_instant(storage, server, proxy: FaultyProxy):
    ArrowTable.create(server, COW)
    upsert(server, FIRST)
    path = f".hoodie/{newest(server).requested}.commit"
    before = server.read(path)
    with proxy.faults(every(2, Fault.LOST, Fault.CUT)), pytest.raises(FileExistsError):
        storage.create_new(path, before)
    with proxy.faults(every(3, Fault.LOST)):
        upsert(storage, SECOND)
    with pytest.raises(HoodieError):
        make_savepoint(server, Settings.of({}), "20200101000000000")
    assert read(server) == {**FIRST, **SECOND}
