"""An index of a user's own comes from the options of a write, its answers are checked; others are chosen by rule."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from hoodie.errors import HoodieError, InvalidInput, InvalidOption, TableMismatch, UnsupportedTable
from hoodie.index.bucket import bucket_of
from hoodie.table.choose_index import choose_index
from hoodie.table.semantics import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id,line",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.spark.near.threads": "1",
}
ROWS = pa.table({"id": ["a", "b"], "line": [1, 2], "city": ["oslo", "bern"], "ts": [1, 1]})
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}


def made(**options: str) -> ArrowTable:
    return ArrowTable.create(MemoryStorage(), {**OPTIONS, **options})


@pytest.mark.parametrize(
    ("index", "problem"),
    [
        ("own_indexes:too_many", "partitions has 3 rows for 1 keys, too many"),
        ("own_indexes:too_few", "partitions has 0 rows for 1 keys, too few"),
        ("own_indexes:no_index", r"made str, expected a hoodie\.index\.contract\.Index"),
        ("own_indexes:not_callable", "is str, expected a function"),
        ("own_indexes:not_there", "cannot be imported"),
        ("no_such_module:make", "cannot be imported"),
        ("own_indexes", "expected an import path such as"),
        ("org.apache.hudi.index.simple.HoodieSimpleIndex", "name the index by its type"),
    ],
)
def test_an_index_that_does_not_keep_the_contract_is_refused(index: str, problem: str) -> None:
    table = made()
    table.upsert(ROWS)
    before = table.snapshot()
    with pytest.raises(HoodieError, match=problem) as raised:
        table.upsert(ROWS.slice(0, 1), {"hoodie.index.class": index})
    assert isinstance(raised.value, (InvalidInput, InvalidOption))
    assert table.snapshot().equals(before)


def test_an_index_is_never_loaded_because_a_table_asks_for_it() -> None:
    table = made(**{"hoodie.index.class": "own_indexes:exact"})
    assert "own_indexes" not in table.storage.read(".hoodie/hoodie.properties").decode()
    assert chosen(ArrowTable(table.storage), {}) == ("SIMPLE", "the default")


def chosen(table: ArrowTable, options: Mapping[str, str]) -> tuple[str, str]:
    found = choose_index(table.state(), Settings.read(options))
    return found.index.name, found.why


def test_an_index_that_is_not_named_is_the_tables_own() -> None:
    assert chosen(made(), {}) == ("SIMPLE", "the default")
    assert chosen(made(), {"hoodie.index.type": "BLOOM"}) == ("BLOOM", "hoodie.index.type names it")
    recorded = made(**{"hoodie.index.type": "GLOBAL_BLOOM"})
    assert chosen(recorded, {}) == ("GLOBAL_BLOOM", "the table was created with it")
    assert chosen(recorded, {"hoodie.index.type": "SIMPLE"})[0] == "SIMPLE"
    of_buckets = made()
    of_buckets.upsert(ROWS, BUCKET)
    assert chosen(of_buckets, {"hoodie.bucket.index.num.buckets": "4"}) == (
        "BUCKET",
        "the table's files are those of buckets",
    )


def test_a_table_that_was_created_for_buckets_keeps_their_number() -> None:
    table = made(**BUCKET)
    later = ArrowTable(table.storage)
    later.upsert(ROWS)
    assert {bucket_of(slice_.group.file_id) is not None for slice_ in later.slices()} == {True}
    with pytest.raises(TableMismatch, match=r"num\.buckets=8: trips has 4 buckets, for good"):
        later.upsert(ROWS, {"hoodie.bucket.index.num.buckets": "8"})
    with pytest.raises(TableMismatch, match=r"hash\.field=line: trips has id,line, for good"):
        later.upsert(ROWS, {"hoodie.bucket.index.hash.field": "line"})
    with pytest.raises(UnsupportedTable, match="are those of a bucket index"):
        later.upsert(ROWS, {"hoodie.index.type": "BLOOM"})


def test_a_hash_field_outside_the_record_key_is_refused_when_the_table_is_made() -> None:
    with pytest.raises(InvalidOption, match=r"city is not in the record key of trips, which is id, line"):
        made(**BUCKET, **{"hoodie.bucket.index.hash.field": "city"})


def test_rows_are_dealt_out_by_the_hash_fields() -> None:
    table = made(**BUCKET, **{"hoodie.bucket.index.hash.field": "line"})
    rows = pa.table({"id": list("abcdef"), "line": [7] * 6, "city": ["oslo"] * 6, "ts": [1] * 6})
    table.upsert(rows)
    assert len(table.slices()) == 1
    assert table.upsert(rows).updated == 6


def test_two_file_groups_of_one_bucket_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(**BUCKET)
    table.upsert(ROWS)
    monkeypatch.setattr("hoodie.index.bucket._by_bucket", lambda *_: {})  # as a writer that does not look
    table.upsert(ROWS)
    monkeypatch.undo()
    with pytest.raises(UnsupportedTable, match="has two file groups"):
        table.upsert(ROWS)


def test_the_other_engine_is_refused_by_what_it_keeps() -> None:
    table = made(**BUCKET)
    table.storage.create_new(".hoodie/.bucket_index/consistent_hashing_metadata/oslo/0.hashing_meta", b"{}")
    with pytest.raises(UnsupportedTable, match="CONSISTENT_HASHING"):
        table.upsert(ROWS)
