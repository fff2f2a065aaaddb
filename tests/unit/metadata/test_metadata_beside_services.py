"""The metadata table beside what changes a table as a whole: each time it tells what a build of the files does."""

import io
import zipfile
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.doctor.examine import examine
from hoodie.doctor.findings import Fault
from hoodie.errors import InvalidInput
from hoodie.services.clean import clean
from hoodie.services.downgrade import downgrade
from hoodie.services.expiry import expire_partitions
from hoodie.services.metadata_table import create_metadata_table
from hoodie.services.upgrade import upgrade
from hoodie.table.properties import PROPERTIES
from hoodie.table.settings import Settings
from hoodie.testing.storage import Crash, CrashAfter, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.instants import aged
from support.metadata_fresh import KEPT, check_kept
from support.nightly import by_day, covering, nightly
from support.trips import TRIPS, WRITES, rows
from torture.crash import TABLE, batch, rows_of_now

FIXTURES = Path(__file__).parents[2] / "fixtures"
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
RETAIN_ONE = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}
pytestmark = pytest.mark.filterwarnings("ignore::hoodie.errors.HoodieWarning")


@pytest.mark.parametrize("name", [nightly("tables/hudi-0.15/cow_clustering"), "hudi-1.x/v9_cow_clustering"])
def test_it_is_built_of_a_table_that_hudi_clustered_and_follows_writes_and_cleaning(name: str) -> None:
    with zipfile.ZipFile(io.BytesIO((FIXTURES / f"{name}.zip").read_bytes())) as archive:
        files = {path: archive.read(path) for path in archive.namelist() if not path.endswith("/")}
    root = next(path for path in files if path.endswith(PROPERTIES))[: -len(PROPERTIES)]
    storage = MemoryStorage({path[len(root) :]: data for path, data in files.items()})
    assert create_metadata_table(storage, Settings.of(KEPT))
    table = ArrowTable(storage, KEPT)
    some = table.snapshot().slice(0, 3)
    table.upsert(some)
    assert check_kept(storage)
    table.insert_overwrite(some)
    clean(storage, Settings.of(RETAIN_ONE))
    assert check_kept(storage)


@pytest.mark.parametrize("kind", TYPES)
def test_it_follows_the_expiry_of_partitions(kind: str) -> None:
    storage = MemoryStorage()
    plain = {**TRIPS, **WRITES, "hoodie.datasource.write.table.type": kind, "hoodie.clean.automatic": "false"}
    options = {**plain, **KEPT}
    table = ArrowTable.create(storage, plain)
    old = table.upsert(rows("a", "b", city="oslo")).instant
    table.upsert(rows("c", city="rome"))
    storage = aged(storage, [old], 40)
    assert create_metadata_table(storage, Settings.of(KEPT))
    expired = expire_partitions(storage, Settings.of({**options, "hoodie.partition.ttl.strategy.days.retain": "30"}))
    assert expired.partitions == ("oslo",)
    assert check_kept(storage)
    ArrowTable(storage, options).upsert(rows("d", city="oslo"))
    clean(storage, Settings.of({**options, **RETAIN_ONE}))
    assert check_kept(storage)
    assert set(ArrowTable(storage).snapshot().column("id").to_pylist()) == {"c", "d"}


@pytest.mark.parametrize(("kind", "to"), by_day(product(TYPES, (8, 9)), {("MERGE_ON_READ", 9)}.__contains__))
def test_an_upgrade_and_a_downgrade_leave_none_and_the_next_write_builds_what_is_built(kind: str, to: int) -> None:
    options = {**TABLE, **KEPT, "hoodie.datasource.write.table.type": kind}
    table = ArrowTable.create(MemoryStorage(), options)
    table.upsert(batch({"a": ("oslo", 1, "one"), "b": ("rome", 1, "one")}))
    table.upsert(batch({"a": ("oslo", 2, "two"), "c": ("rome", 2, "two")}))
    assert check_kept(table.storage)
    upgrade(table.storage, Settings.read(table.options), to)
    assert not check_kept(table.storage)
    table.upsert(batch({"b": ("rome", 3, "three")}))
    assert not check_kept(table.storage)  # an upgraded table gets none: see docs/metadata.md
    downgrade(table.storage, Settings.read(table.options), 6)
    assert not check_kept(table.storage)
    table.upsert(batch({"d": ("oslo", 4, "four")}))
    assert check_kept(table.storage)
    assert {key: row[2] for key, row in rows_of_now(table).items()} == {
        "a": "two",
        "b": "three",
        "c": "two",
        "d": "four",
    }


@pytest.mark.parametrize(("kind", "version"), by_day(product(TYPES, "89"), {("COPY_ON_WRITE", "9")}.__contains__))
def test_a_downgrade_removes_that_of_a_later_version(kind: str, version: str) -> None:
    options = {**TABLE, **KEPT, "hoodie.datasource.write.table.type": kind}
    table = ArrowTable.create(MemoryStorage(), {**options, "hoodie.write.table.version": version})
    table.upsert(batch({"a": ("oslo", 1, "one"), "b": ("rome", 1, "one")}))
    table.upsert(batch({"a": ("oslo", 2, "two")}))
    assert check_kept(table.storage)
    downgrade(table.storage, Settings.read(table.options), 6)
    assert not check_kept(table.storage)
    table = ArrowTable(table.storage, options)
    table.upsert(batch({"b": ("rome", 3, "three")}))
    assert check_kept(table.storage)


@pytest.mark.parametrize(
    ("kind", "version"), by_day(product(TYPES, "689"), {(TYPES[0], "9"), (TYPES[1], "6")}.__contains__)
)
def test_files_that_a_pending_clean_removes_are_no_difference(kind: str, version: str) -> None:
    options = {**TABLE, **KEPT, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    made = ArrowTable.create(MemoryStorage(), options)
    for ts in range(1, 4):
        made.insert_overwrite(batch({"a": ("oslo", ts, "one"), "b": ("rome", ts, "one")}))
    cleaning = Settings.of({**options, **RETAIN_ONE})
    deaths = 0
    for calls in range(int(version) % 2, 30, 2):  # the versions take turns
        storage = CrashAfter(made.storage.copy(), calls)
        try:
            clean(storage, cleaning)
        except Crash:
            deaths += 1
            assert [f for f in examine(storage.inner, grace=0) if f.fault is Fault.LISTS] == []
            assert clean(storage.inner, cleaning) is not None
            assert check_kept(storage.inner)
        else:
            break
    assert deaths >= 5


def _as_of(table: ArrowTable, instant: str) -> pa.Table | InvalidInput:
    """The rows then, or why they are refused."""
    try:
        return table.as_of(instant)
    except InvalidInput as refusal:
        return refusal


@pytest.mark.parametrize(
    ("version", "metadata", "written"),
    covering(
        "69",
        {"metadata table": KEPT, "none": {}},
        [*((kind, "insert_overwrite") for kind in TYPES), (TYPES[0], "upsert")],
    ),
)
def test_a_read_of_the_past_beside_a_pending_clean_has_its_rows_or_names_the_cleaning(
    version: str, metadata: dict[str, str], written: tuple[str, str]
) -> None:
    kind, write = written
    options = {**TABLE, **metadata, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    made = ArrowTable.create(MemoryStorage(), options)
    instants = [getattr(made, write)(batch({"a": ("oslo", ts, f"{ts}")})).instant for ts in range(1, 5)]
    before = made.as_of(instants[0])
    refused = 0
    for calls in range(30):
        storage = CrashAfter(made.storage.copy(), calls)
        try:
            clean(storage, Settings.of({**options, **RETAIN_ONE}))
        except Crash:
            table = ArrowTable(storage.inner, options)
            assert table.snapshot().column("note").to_pylist() == ["4"]
            now = _as_of(table, instants[0])
            assert now == before or "cleaning" in str(now)
            refused += isinstance(now, InvalidInput)
        else:
            break
    assert refused
