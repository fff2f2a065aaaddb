"""Compound keys whose parts hold what separates them: two rows are never merged because their keys read alike."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput
from support.nightly import covering

#: One record key each: "a:x,b:y,b:z", "a:1,b:__null__", "a:__empty__,b:2".
PAIRS = [
    (("x", "y,b:z"), ("x,b:y", "z")),
    (("1", None), ("1", "__null__")),
    (("", "2"), ("__empty__", "2")),
]
SPILLED = {"hoodie.spark.driver.max.batch.bytes": 1}


def rows(*keys: tuple[str | None, str | None], n: int = 0) -> pa.Table:
    a, b = zip(*keys, strict=True)
    return pa.table({"a": pa.array(a), "b": pa.array(b), "ts": pa.array([1] * len(a)), "n": pa.array([n] * len(a))})


def make(path: Path, kind: str, **options: str) -> hoodie.HoodieTable[hoodie.Rows]:
    return hoodie.create_table(
        str(path / "t"), name="t", record_key="a,b", ordering="ts", table_type=kind, options=options
    )


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("options", [{}, SPILLED], ids=["in memory", "spilled"])
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_keys_that_read_alike_are_refused_and_nothing_changes(
    tmp_path: Path, kind: str, options: dict[str, str], one: tuple[str, str], other: tuple[str, str]
) -> None:
    table = make(tmp_path, kind)
    with pytest.raises(InvalidInput, match=r"\(a = .*\) and \(a = .*\) have one record key"):
        table.upsert(rows(one, ("k", "k"), other), options=options)
    assert table.count() == 0
    table.upsert(rows(one, ("k", "k")))
    for _ in range(2):
        with pytest.raises(InvalidInput, match="have one record key"):
            table.upsert(rows(other, n=1), options=options)
        assert sorted(table.snapshot().to_arrow().column("n").to_pylist()) == [0, 0]
        result = table.upsert(rows(one, ("k", "k")), options=options)  # on Merge-on-Read the key is in a log now
        assert (result.inserted, result.updated) == (0, 2)


@pytest.mark.parametrize("options", [{}, SPILLED], ids=["in memory", "spilled"])
def test_a_key_that_only_a_log_holds_is_compared(tmp_path: Path, options: dict[str, str]) -> None:
    table = make(tmp_path, "MERGE_ON_READ", **{"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"})
    table.upsert(rows(PAIRS[0][0]))
    with pytest.raises(InvalidInput, match=r"\(a = 'x', b = 'y,b:z'\)"):
        table.upsert(rows(PAIRS[0][1]), options=options)
    assert table.snapshot().to_arrow().column("a").to_pylist() == ["x"]


def test_nulls_and_separators_of_one_key_stay_allowed(tmp_path: Path) -> None:
    table = make(tmp_path, "COPY_ON_WRITE")
    batch = rows(("1", None), (None, "1"), ("", "2"), ("a,b:", "x"), ("x:y,z", "p,q"))
    for inserted in (5, 0):
        assert table.upsert(batch).inserted == inserted
    assert table.delete(batch).deleted == 5


@pytest.mark.parametrize(
    ("kind", "options", "index"),
    covering(
        ["COPY_ON_WRITE", "MERGE_ON_READ"], {"in memory": {}, "spilled": SPILLED}, ["SIMPLE", "GLOBAL_SIMPLE", "BUCKET"]
    ),
)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_delete_of_a_key_that_reads_alike_is_refused_and_deletes_nothing(
    tmp_path: Path, kind: str, options: dict[str, str], index: str, one: tuple[str, str], other: tuple[str, str]
) -> None:
    buckets = {"hoodie.index.type": index, "hoodie.bucket.index.num.buckets": "1"}
    table = make(tmp_path, kind, **buckets)
    table.upsert(rows(one, ("k", "k")))
    with pytest.raises(InvalidInput, match="have one record key"):
        table.delete(rows(other, ("k", "k")), options=options)
    with pytest.raises(InvalidInput, match="have one record key"):
        table.delete(rows(one, other).select(["b", "a"]), options=options)
    assert table.count() == 2
    stored = table.snapshot(filters=f"a = '{one[0]}'").to_arrow()
    assert table.delete(stored, options=options).deleted == 1  # rows of a read come with their keys
    assert table.delete(rows(("k", "k")).select(["a", "b"]), options=options).deleted == 1
    assert table.count() == 0


@pytest.mark.parametrize("options", [{}, SPILLED], ids=["in memory", "spilled"])
def test_a_delete_in_a_partitioned_table_takes_partition_and_key_columns(
    tmp_path: Path, options: dict[str, str]
) -> None:
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="a,b", partition_by="p", ordering="ts")
    there = rows(("1", "2"), PAIRS[0][0], ("3", "4")).append_column("p", pa.array(["x", "x", "y"]))
    table.upsert(there)
    with pytest.raises(InvalidInput, match="have one record key"):
        table.delete(rows(PAIRS[0][1]).append_column("p", pa.array(["x"])), options=options)
    assert table.delete(there.select(["p", "b", "a"]).slice(1), options=options).deleted == 2
    assert table.snapshot().to_arrow().column("a").to_pylist() == ["1"]


@pytest.mark.parametrize("options", [{}, SPILLED], ids=["in memory", "spilled"])
@pytest.mark.parametrize("operation", ["insert", "bulk_insert"])
def test_an_insert_refuses_keys_that_read_alike_in_its_batch(
    tmp_path: Path, operation: str, options: dict[str, str]
) -> None:
    table = make(tmp_path, "COPY_ON_WRITE")
    for sorting in ("NONE", "GLOBAL_SORT"):
        with pytest.raises(InvalidInput, match="have one record key"):
            getattr(table, operation)(
                rows(*PAIRS[0], ("k", "k")), options={**options, "hoodie.bulkinsert.sort.mode": sorting}
            )
    assert table.count() == 0


def test_an_insert_into_a_small_file_refuses_a_key_that_reads_like_one_of_its_rows(tmp_path: Path) -> None:
    table = make(tmp_path, "COPY_ON_WRITE")
    table.upsert(rows(PAIRS[0][0]))
    with pytest.raises(InvalidInput, match="have one record key"):
        table.insert(rows(PAIRS[0][1]))
    assert table.insert(rows(PAIRS[0][0])).inserted == 1  # the same key twice is what an insert allows
    assert table.count() == 2
