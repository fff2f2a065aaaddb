"""Writes beside a clustering that Hudi has planned: what they put into its file groups would be lost with these."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hoodie.errors import WriteConflict
from hoodie.model.files import FileGroupId
from hoodie.model.instant import Action, State
from hoodie.storage import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.testing.storage import Dying, MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.clusterings import PLAN, WITHDRAW, plan_clustering
from support.nightly import covering
from support.trips import TRIPS
from support.undoing import FIRST, SECOND, Rows, batch, data_files, dying, read

COW = {**TRIPS, "hoodie.spark.driver.threads": "1"}
MOR = {**COW, "hoodie.datasource.write.table.type": "MERGE_ON_READ"}
SPILLED = {"hoodie.spark.driver.max.batch.bytes": "1"}
NEW: Rows = {"x": ("oslo", 5, "new"), "y": ("bern", 5, "new")}
INDEXES = ("SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "BUCKET")
Act = Callable[[ArrowTable], object]

ACTS: Mapping[str, Act] = {
    "upsert": lambda table: table.upsert(batch(SECOND)),
    "delete": lambda table: table.delete(batch(SECOND)),
    "insert_overwrite": lambda table: table.insert_overwrite(batch(SECOND)),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(batch(NEW)),
    "delete_partitions": lambda table: table.delete_partitions(["oslo"]),
    "a table in its place": lambda table: table.replace(batch(NEW), {**COW, **table.options}),
}


def clustered(
    options: Mapping[str, str] = COW, partitions: tuple[str, ...] = ("oslo", "rome"), *, inflight: bool = False
) -> ArrowTable:
    """A table with rows, and a clustering of the file groups of some partitions that nobody has carried out."""
    table = ArrowTable.create(MemoryStorage(), options)
    table.upsert(batch(FIRST))
    plan_clustering(table.storage, partitions, inflight=inflight)
    return table


def planned_groups(table: ArrowTable) -> dict[FileGroupId, object]:
    return {s.group: (s.base, s.logs) for s in table.slices()}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("options", [COW, MOR], ids=["cow", "mor"])
def test_a_write_into_a_file_group_under_a_pending_clustering_is_refused(options: Mapping[str, str], act: str) -> None:
    table = clustered(options)
    files = data_files(table.storage)
    with pytest.raises(WriteConflict, match=f"clustering {PLAN} is to replace file groups? .*oslo/.*run_clustering"):
        ACTS[act](table)
    assert read(table.storage) == FIRST
    assert data_files(table.storage) == files
    (pending,) = table.state().timeline.pending_replaces
    assert pending.requested == PLAN


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("inflight", [False, True])
def test_the_plan_is_rolled_back_first_where_options_say_so(act: str, inflight: bool) -> None:
    table = clustered(MOR, inflight=inflight)
    plain = ArrowTable.create(MemoryStorage(), MOR)
    plain.upsert(batch(FIRST))
    ACTS[act](plain)
    ACTS[act](ArrowTable(table.storage, {**table.options, **WITHDRAW}))
    assert read(table.storage) == read(plain.storage)
    timeline = table.state().timeline
    assert not [i for i in timeline.instants if i.requested == PLAN]
    assert [i.state for i in timeline.instants if i.action is Action.ROLLBACK] == [State.COMPLETED]
    assert not [path for path in data_files(table.storage) if PLAN in path]


@pytest.mark.parametrize(
    ("route", "index", "kind"), covering({"in memory": {}, "spilled": SPILLED}, INDEXES, {"cow": COW, "mor": MOR})
)
def test_whatever_finds_the_key_its_group_is_refused_and_new_keys_keep_out(
    kind: Mapping[str, str], index: str, route: Mapping[str, str]
) -> None:
    table = clustered({**kind, **route, "hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1"})
    before = planned_groups(table)
    with pytest.raises(WriteConflict, match=PLAN):
        table.upsert(batch(SECOND))
    with pytest.raises(WriteConflict, match=PLAN):
        table.delete(batch(SECOND))
    if index == "BUCKET":  # the key decides on the group
        with pytest.raises(WriteConflict, match=PLAN):
            table.upsert(batch(NEW))
        table.upsert(batch({"y": NEW["y"]}))
        assert read(table.storage) == {**FIRST, "y": NEW["y"]}
    else:
        table.upsert(batch(NEW))
        table.insert(batch({"z": ("oslo", 6, "new")}))
        assert read(table.storage) == {**FIRST, **NEW, "z": ("oslo", 6, "new")}
    after = planned_groups(table)
    assert {group: after[group] for group in before} == before


@pytest.mark.parametrize(("route", "kind"), covering({"in memory": {}, "spilled": SPILLED}, {"cow": COW, "mor": MOR}))
def test_a_write_by_the_hbase_index_is_refused_and_the_entries_stay_right(
    kind: Mapping[str, str], route: Mapping[str, str]
) -> None:
    from hoodie.testing.hbase import HBaseServer  # tests run without the package, too

    with HBaseServer() as server:
        name = server.create_table()
        table = clustered({**kind, **route, **server.options(name)})
        entries = server.dump(name)
        for act in (table.upsert, table.delete):
            with pytest.raises(WriteConflict, match=PLAN):
                act(batch(SECOND))
            assert read(table.storage) == FIRST
            assert server.dump(name) == entries
        with pytest.raises(WriteConflict, match=PLAN):
            table.insert_overwrite(batch(SECOND))  # puts where rows would go, which counts once it is published
        assert read(table.storage) == FIRST
        table.upsert(batch(NEW))
        assert read(table.storage) == {**FIRST, **NEW}
        ArrowTable(table.storage, {**table.options, **WITHDRAW}).upsert(batch(SECOND))
        assert read(table.storage) == {**FIRST, **NEW, **SECOND}


def test_other_file_groups_are_written_beside_a_pending_clustering() -> None:
    table = clustered(COW, ("oslo",))
    table.upsert(batch({"c": SECOND["c"]}))
    table.delete_partitions(["rome"])
    assert read(table.storage) == {key: row for key, row in FIRST.items() if row[0] == "oslo"}


def test_a_writer_that_dies_while_it_withdraws_a_plan_loses_nothing() -> None:
    def upsert(storage: Storage) -> None:
        ArrowTable(storage, {**COW, **WITHDRAW}).upsert(batch(SECOND))

    storage = clustered(inflight=True).storage
    assert isinstance(storage, MemoryStorage)
    for died in dying(Dying.BEFORE, storage, upsert)[:-1]:
        assert read(died) in (FIRST, {**FIRST, **SECOND})
        upsert(died)
        assert read(died) == {**FIRST, **SECOND}
        assert not died.exists(f"oslo/f-0_1-1-1_{PLAN}.parquet")


def test_a_plan_of_the_real_hudi_protects_its_file_groups(fixture_table: Callable[[str], Path]) -> None:
    path = fixture_table("cow_clustering")
    timeline = path / ".hoodie"
    (clustering,) = (name.name.split(".")[0] for name in timeline.glob("*.replacecommit"))
    for name in [*timeline.glob(f"{clustering}.replacecommit"), *timeline.glob("20261121034700092.*")]:
        name.unlink()  # it is not carried out yet, and what came later is not there
    table = ArrowTable(LocalStorage(str(path)), {"hoodie.spark.driver.threads": "1"})
    row = table.snapshot().slice(0, 1)
    with pytest.raises(WriteConflict, match=clustering):
        table.upsert(row)
    before = {slice_.group for slice_ in table.slices()}
    table.upsert(row.set_column(row.schema.get_field_index("id"), "id", [["new"]]))
    assert len({slice_.group for slice_ in table.slices()} - before) == 1
    table.upsert(row, WITHDRAW)
    assert table.snapshot().num_rows == 241
