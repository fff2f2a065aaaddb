"""A table whose rows are merged by a Python class of the user's own: recorded at creation, loaded only when named."""

import sys
import types
from collections.abc import Iterator, Mapping
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.config.options import Options
from hoodie.config.read import ReadSettings
from hoodie.errors import InvalidOption, TableMismatch
from hoodie.reading.snapshot import read_table
from hoodie.table.create import create
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.trips import table_options

MERGER = "own_table_mergers:Sum"
OPTION = "hoodie.datasource.write.record.merger.impls"
OPTIONS = {
    **table_options("accounts", "id", ordering="ts"),
    "hoodie.parquet.small.file.limit": "0",
}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


class Sum:
    """Adds amounts up. Not idempotent: a row counted twice shows."""

    def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        at = newer.schema.get_field_index("amount")
        return newer.set_column(at, newer.schema.field(at), pc.add(older["amount"], newer["amount"]))


@pytest.fixture(autouse=True)
def module() -> Iterator[types.ModuleType]:
    made = types.ModuleType("own_table_mergers")
    made.Sum = Sum  # type: ignore[attr-defined]
    sys.modules["own_table_mergers"] = made
    yield made
    del sys.modules["own_table_mergers"]


def made(table_type: str, **options: str) -> ArrowTable:
    own = {"hoodie.datasource.write.table.type": table_type, **options}
    return ArrowTable.create(MemoryStorage(), {**OPTIONS, **own})


def batch(*rows: tuple[str, int]) -> pa.Table:
    count = len(rows)
    amounts = pa.array([row[1] for row in rows], pa.int64())
    return pa.table({"id": [row[0] for row in rows], "ts": pa.array(range(count), pa.int64()), "amount": amounts})


def amounts(table: ArrowTable, options: Mapping[str, str] | None = None) -> dict[str, int]:
    rows = read_table(
        table.state(), settings=ReadSettings.read(Options({OPTION: MERGER} if options is None else options))
    ).to_pylist()
    found = {row["id"]: row["amount"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("table_type", TYPES)
def test_it_merges_rows_of_a_batch_of_the_log_and_of_the_table(table_type: str):
    table = made(table_type, **{OPTION: MERGER})
    table.upsert(batch(("a", 1), ("b", 10), ("a", 2)))
    assert amounts(table) == {"a": 3, "b": 10}
    table.upsert(batch(("a", 4), ("c", 100), ("a", 8)))
    table.upsert(batch(("a", 16), ("b", 20)))
    assert amounts(table) == {"a": 31, "b": 30, "c": 100}


@pytest.mark.parametrize("table_type", TYPES)
def test_the_table_records_it_with_a_strategy_of_its_own(table_type: str):
    properties = made(table_type, **{OPTION: MERGER}).state().config.properties
    assert properties["hoodie.compaction.record.merger.python.class"] == MERGER
    strategy = properties["hoodie.compaction.record.merger.strategy"]
    assert UUID(strategy)
    assert strategy == made(table_type, **{OPTION: MERGER}).state().config.merge_strategy
    assert strategy != made("MERGE_ON_READ").state().config.merge_strategy


@pytest.mark.parametrize("table_type", TYPES)
def test_it_is_not_loaded_unless_the_caller_names_it(table_type: str, module: types.ModuleType):
    table = made(table_type, **{OPTION: MERGER})
    table.upsert(batch(("a", 1)))
    del module.Sum
    for options in ({}, {OPTION: "own_table_mergers:Other"}):
        stranger = ArrowTable(table.storage, options)
        with pytest.raises(InvalidOption, match=rf"'{MERGER}'.*pass {OPTION}={MERGER}"):
            stranger.upsert(batch(("a", 1)))
    with pytest.raises(InvalidOption, match="cannot be imported"):
        table.upsert(batch(("a", 1)))
    assert len(table.state().timeline.instants) == 1


def test_a_read_that_merges_logs_names_it_too():
    table = made("MERGE_ON_READ", **{OPTION: MERGER})
    table.upsert(batch(("a", 1)))
    assert amounts(table, {}) == {"a": 1}  # no logs: nothing is merged
    table.upsert(batch(("a", 1)))
    with pytest.raises(InvalidOption, match=f"pass {OPTION}={MERGER}"):
        amounts(table, {})


def test_a_merger_for_a_table_that_has_none_is_refused():
    table = made("MERGE_ON_READ")
    with pytest.raises(InvalidOption, match="the table has no merger of its own"):
        table.upsert(batch(("a", 1)), options={OPTION: MERGER})


def test_a_table_has_one_merger_for_life():
    table = made("MERGE_ON_READ", **{OPTION: MERGER})
    create(table.storage, {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ", OPTION: MERGER})
    other = {**OPTIONS, "hoodie.datasource.write.table.type": "MERGE_ON_READ", OPTION: "collections:Counter"}
    with pytest.raises(InvalidOption, match="no method merge"):
        create(table.storage, other)
    sys.modules["own_table_mergers"].Other = Sum  # type: ignore[attr-defined]
    with pytest.raises(TableMismatch, match=r"python\.class is 'own_table_mergers:Sum' in the table"):
        create(table.storage, {**other, OPTION: "own_table_mergers:Other"})


@pytest.mark.parametrize("named", ["own_table_mergers:Missing", "nowhere:Sum", f"{MERGER},own_table_mergers:Other"])
def test_a_table_is_not_created_with_a_merger_that_cannot_be(named: str):
    storage = MemoryStorage()
    with pytest.raises(InvalidOption):
        create(storage, {**OPTIONS, OPTION: named})
    assert storage.snapshot() == {}


def test_hudis_merger_by_payload_class_is_the_default_and_other_java_classes_are_refused():
    table = made("MERGE_ON_READ", **{OPTION: "org.apache.hudi.common.model.HoodieAvroRecordMerger"})
    table.upsert(batch(("a", 1)))
    assert "hoodie.compaction.record.merger.python.class" not in table.state().config.properties
    with pytest.raises(InvalidOption, match="OverwriteWithLatestMerger cannot be run here"):
        table.upsert(batch(("a", 1)), options={OPTION: "org.apache.hudi.common.model.OverwriteWithLatestMerger"})
