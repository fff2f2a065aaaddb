"""Compound keys whose parts hold what separates them: two rows are never merged because their keys read alike."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput

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
