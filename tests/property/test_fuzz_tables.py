"""Real tables with any one file damaged: an error of ours or rows, in time; and the doctor says what became of it.

What the format has no check for may read as other rows: a bit of a value turned over, a setting that is another one.
Where a damage cannot change what readers see, the rows must be the right ones.
"""

import io
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.doctor.examine import Fault, Severity, examine
from hoodie.doctor.repair import repair
from hoodie.errors import DamagedLog, HoodieError, MetadataTableDropped, MetadataTableIgnored
from hoodie.formats.parquet.base_footer import read_footer
from hoodie.formats.parquet.bloom import BloomKind, add_keys, decode, empty_filter, encode, might_contain
from hoodie.metadata.keys import FOLDER
from hoodie.reading.snapshot import read_table
from hoodie.storage.protocol import Storage
from hoodie.table.properties import BACKUP, PROPERTIES, load_properties
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.metadata_fresh import KEPT
from support.nightly import nightly, scaled
from support.real_tables import NAMES, files_of, right_rows
from support.timestamp_tables import LABELS, NUMBER, Witnesses, declared, in_micros, label_of, make_table
from support.timestamp_tables import OPTIONS as TIMES_OPTIONS
from support.trips import table_options

#: Each example reads a table and examines it twice.
FEW = settings(max_examples=scaled(6, 50))
_LIMIT = 30  # seconds that one example may take


@contextmanager
def in_time() -> Iterator[None]:
    """Fail an example that hangs."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"not over after {_LIMIT} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(_LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@st.composite
def damaged(draw: st.DrawFn, data: bytes, other: bytes) -> bytes:
    """The bytes with something done to them. other: what may be spliced in"""
    at = draw(st.integers(0, max(0, len(data) - 1)))
    end = min(len(data), at + draw(st.integers(1, 64)))
    match draw(st.sampled_from(["flip", "byte", "cut", "head", "remove", "insert", "splice", "repeat", "zero"])):
        case "flip":
            places = draw(st.lists(st.integers(0, max(0, 8 * len(data) - 1)), min_size=1, max_size=4))
            made = bytearray(data or b"\0")
            for place in places:
                made[place // 8 % len(made)] ^= 1 << place % 8
            return bytes(made)
        case "byte":
            return data[:at] + draw(st.binary(min_size=1, max_size=4)) + data[at + 1 :]
        case "cut":
            return data[:at]
        case "head":
            return data[at:]
        case "remove":
            return data[:at] + data[end:]
        case "insert":
            return data[:at] + draw(st.binary(min_size=1, max_size=16)) + data[at:]
        case "splice":
            return data[:at] + other[draw(st.integers(0, max(0, len(other) - 1))) :]
        case "repeat":
            return data[:end] + data[at:]
        case _:
            return data[:at] + bytes(end - at) + data[end:]


def draw_damage(data: st.DataObject, kind: Callable[[str], bool]) -> tuple[str, str, MemoryStorage]:
    """A real table with one file of a kind damaged: its name, the file, its storage."""
    name = data.draw(st.sampled_from([n for n in NAMES if any(map(kind, files_of(n)))]))
    files = files_of(name)
    paths = sorted(path for path in files if kind(path))
    path, other = data.draw(st.sampled_from(paths)), data.draw(st.sampled_from(paths))
    return name, path, MemoryStorage({**files, path: data.draw(damaged(files[path], files[other]))})


def read(storage: Storage) -> pa.Table | None:
    """What a snapshot reader sees; None: an error of ours. Any other error fails."""
    with in_time(), warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedLog)
        try:
            load_properties(storage, sleep=lambda seconds: None)  # the readers' own wait for a writer
            rows = read_table(load_state(storage))
            rows.validate()  # texts left out: nothing in the format tells that a value is no UTF-8 any more
            return rows
        except HoodieError:
            return None


def see_doctor(storage: MemoryStorage) -> tuple[Any, ...] | None:
    """What the doctor finds; None: an error of ours. A repair does not fail otherwise, either."""
    with in_time():
        try:
            found = examine(storage, grace=0)
            repair(storage.copy(), dry_run=False, grace=0)
        except HoodieError:
            return None
        return found


def is_settings(path: str) -> bool:
    return path == PROPERTIES


def is_commit(path: str) -> bool:
    return path.startswith(".hoodie/") and path.endswith((".commit", ".deltacommit", ".replacecommit"))


def is_plan(path: str) -> bool:
    return path.startswith(".hoodie/") and path.endswith(("compaction.requested", "replacecommit.requested"))


def is_service(path: str) -> bool:
    """Instants that a snapshot reader passes by: cleans, rollbacks, savepoints, profiles of writes."""
    return path.startswith(".hoodie/") and path.endswith(
        (".clean", ".clean.requested", ".clean.inflight", ".rollback", ".rollback.requested", ".savepoint", ".inflight")
    )


def is_log(path: str) -> bool:
    return ".log." in path and not path.startswith(".hoodie/")


def is_base(path: str) -> bool:
    return path.endswith(".parquet") and not path.startswith(".hoodie/")


def is_history(path: str) -> bool:
    return "/history/" in path or "/archived/" in path


@given(st.data())
@pytest.mark.parametrize("kind", [is_settings, is_commit, is_plan, is_log, is_base, is_history])
@FEW
def test_a_table_with_a_damaged_file_is_read_or_refused(kind, data):
    _, _, storage = draw_damage(data, kind)
    read(storage)
    see_doctor(storage)


@given(st.data())
@FEW
def test_damage_to_what_readers_pass_by_changes_no_rows(data):
    name, _, storage = draw_damage(data, is_service)
    rows = read(storage)
    assert rows is None or rows.equals(right_rows(name))
    assert see_doctor(storage) is not None


@given(st.data())
@FEW
def test_the_doctor_finds_a_data_file_of_another_length(data):
    name, path, storage = draw_damage(data, lambda path: is_base(path) or is_log(path))
    assert examine(MemoryStorage(files_of(name)), rows=False, grace=0) == ()
    if storage.size(path) == len(files_of(name)[path]) or not named(name, path):
        return
    found = see_doctor(storage)
    assert found is not None
    if is_log(path) and storage.size(path) > len(files_of(name)[path]) and read(storage) == right_rows(name):
        return  # a writer may have died there
    assert any(f.severity is Severity.ERROR and f.where == path for f in found)


@cache
def named(name: str, path: str) -> bool:
    """Whether a commit of the active timeline tells the size of a file: without it there is nothing to compare."""
    storage = MemoryStorage({p: data for p, data in files_of(name).items() if p != path})
    gone = {f.where for f in examine(storage, rows=False, grace=0) if f.fault is Fault.MISSING}
    storage.write(path, b"")
    return path in gone | {f.where for f in examine(storage, rows=False, grace=0) if f.fault is Fault.SIZE}


@given(st.data())
@FEW
def test_a_backup_of_the_settings_makes_up_for_damage_to_them(data):
    name = data.draw(st.sampled_from(NAMES))
    files = files_of(name)
    whole = files[PROPERTIES]
    cut = data.draw(st.integers(0, len(whole) - 1))
    storage = MemoryStorage({**files, PROPERTIES: whole[:cut], BACKUP: whole})
    before = load_properties(MemoryStorage(files))
    torn = load_properties(storage, sleep=lambda seconds: None)
    # The settings of before, or (cut between two lines) those that are there; never half a value.
    assert torn.items() <= before.items()
    assert torn == before or whole[cut - 1 : cut] == b"\n"


OPTIONS = {
    **table_options("t", "id", ordering="ts"),
    "hoodie.index.type": "BLOOM",
    "hoodie.spark.driver.threads": "1",
}


@cache
def own_table(kind: str, kept: bool = False) -> dict[str, bytes]:
    """A table with three commits, as this library writes it. kept: it has a metadata table"""
    options = {**OPTIONS, **(KEPT if kept else {}), "hoodie.datasource.write.table.type": kind}
    table = ArrowTable.create(MemoryStorage(), options)
    for number in range(3):
        table.upsert(pa.table({"id": ["a", f"k{number}"], "ts": [number, 1]}))
    snapshot: dict[str, bytes] = table.storage.snapshot()  # type: ignore[attr-defined]
    return snapshot


@given(st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]), st.data())
@FEW
def test_a_write_to_a_damaged_table_succeeds_or_is_refused(kind, data):
    files = own_table(kind)
    path = data.draw(st.sampled_from(sorted(files)))
    storage = MemoryStorage({**files, path: data.draw(damaged(files[path], files[path]))})
    with in_time():
        try:
            load_properties(storage, sleep=lambda seconds: None)
            ArrowTable(storage, OPTIONS).upsert(pa.table({"id": ["a", "new"], "ts": [9, 9]}))
        except HoodieError:
            return
    rows = read(storage)
    if rows is not None and path != PROPERTIES:
        assert pc.any(pc.equal(rows.column("_hoodie_record_key"), "new")).as_py()


@pytest.mark.parametrize("count", [4, nightly(80)])
def test_a_damaged_metadata_table_costs_no_rows(count):
    @given(st.sampled_from(["COPY_ON_WRITE", "MERGE_ON_READ"]), st.data())
    @settings(max_examples=count)
    def run(kind, data):
        whole = MemoryStorage(own_table(kind, kept=True))
        path = data.draw(st.sampled_from([path for path in whole.snapshot() if path.startswith(f"{FOLDER}/")]))
        storage = whole.copy()
        storage.write(path, data.draw(damaged(whole.read(path), whole.read(path))))
        with in_time(), warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadataTableIgnored)
            warnings.simplefilter("ignore", MetadataTableDropped)
            for filters in (None, [("ts", ">", 1)]):
                rows, expected = (read_table(load_state(one), filters=filters) for one in (storage, whole))
                assert rows.equals(expected)
            ArrowTable(storage, {**OPTIONS, **KEPT}).upsert(pa.table({"id": ["a", "new"], "ts": [9, 9]}))
            for filters, keys in ((None, ["a", "k0", "k1", "k2", "new"]), ([("ts", ">", 1)], ["a", "new"])):
                rows = read_table(load_state(storage), filters=filters)
                assert sorted(rows.column("id").to_pylist()) == keys

    run()


_FOOTERS = ["", "timestamp-millis", "timestamp-micros", "local-timestamp-millis", "local-timestamp-micros", "long", "{"]


def times_of(storage: Storage) -> dict[str, int | None]:
    rows = read_table(load_state(storage))
    return dict(zip(rows.column("id").to_pylist(), in_micros(rows, "at"), strict=True))


@given(st.data())
@FEW
@pytest.mark.filterwarnings("ignore::hoodie.errors.ContradictoryTimestamps")
def test_contradicting_units_are_the_same_before_and_after_a_write(data):
    """Whatever witnesses say: a value is one of the two that it can be, and rewriting its file does not change it."""
    local = data.draw(st.booleans())
    word = ("local-" if local else "") + "timestamp-" + data.draw(st.sampled_from(["millis", "micros"]))
    labels = [label for label in LABELS if label == "none" or label.startswith("local") == local]
    witnesses = st.builds(Witnesses, st.sampled_from(labels), st.sampled_from(_FOOTERS))
    said = dict(zip("abc", data.draw(st.lists(witnesses, min_size=3, max_size=3)), strict=True))
    numbers = data.draw(st.lists(st.none() | st.integers(-(2**45), 2**45) | st.just(NUMBER), min_size=1, max_size=4))
    storage = MemoryStorage()
    make_table(storage, word, said, numbers)
    cut = 1000 if word.endswith("millis") else 1
    before = times_of(storage)
    for key, value in before.items():
        number = numbers[int(key.partition("-")[2])]
        assert value in (None if number is None else number * 1000, None if number is None else number // cut * cut)
    stamp = pa.array([NUMBER * 1000], pa.int64()).view(pa.timestamp("us", None if local else "UTC"))
    part = data.draw(st.sampled_from("abc"))
    result = ArrowTable(storage, TIMES_OPTIONS).upsert(
        pa.table({"id": [f"{part}-0"], "part": [part], "seq": [2], "at": stamp})
    )
    assert times_of(storage) == {**before, f"{part}-0": NUMBER * 1000}
    assert declared(storage)["at"] == word
    (written,) = (path for path in storage.snapshot() if is_base(path) and result.instant in path)
    assert label_of(storage, written, "at") == word.replace("timestamp-", "").replace("-", " ")


KEYS = pa.array([f"key-{number}" for number in range(40)])


@given(st.data())
def test_a_damaged_filter_is_refused_or_a_filter(data):
    kind = data.draw(st.sampled_from(list(BloomKind)))
    text = encode(add_keys(empty_filter(kind, 10, 0.01), KEYS, 30)).encode()
    with in_time():
        try:
            made = decode(data.draw(damaged(text, text)).decode("latin-1"), kind.value, "p")
            assert len(might_contain(made, KEYS)) == len(KEYS)
            add_keys(made, KEYS[:3], 30)
        except HoodieError:
            return


@given(st.data())
def test_a_damaged_footer_of_a_real_file_is_refused_or_a_footer(data):
    files = files_of(data.draw(st.sampled_from(["hudi-0.15/mor_types", "hudi-tables/v9_cow_txns"])))
    base = files[data.draw(st.sampled_from(sorted(filter(is_base, files))))]
    at = len(base) - int.from_bytes(base[-8:-4], "little") - 8
    tail = base[at:]
    with in_time():
        try:
            footer = read_footer(io.BytesIO(base[:at] + data.draw(damaged(tail, tail))), "p")
            if (bloom := footer.bloom("p")) is not None:
                might_contain(bloom, KEYS)
        except HoodieError:
            return
