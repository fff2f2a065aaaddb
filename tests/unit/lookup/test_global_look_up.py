"""What a look-up in all partitions refuses, and what `explain_upsert` says of the index."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import KeyInTwoPartitions


def table(path: Path, table_type: str = "COPY_ON_WRITE", **options: str) -> hoodie.HoodieTable:
    return hoodie.create_table(path, record_key="id", partition_by="p", table_type=table_type, options=options)


def rows(*keys: int, partition: str = "0") -> pa.Table:
    return pa.table({"id": pa.array(keys, pa.int64()), "p": [partition] * len(keys)})


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_key_in_two_partitions_is_named_and_can_be_deleted(tmp_path: Path, table_type: str) -> None:
    one = table(tmp_path / "t", table_type, **{"hoodie.index.type": "GLOBAL_SIMPLE"})
    one.insert(rows(1, 2, 3))
    one.insert(rows(3, partition="1"))
    before = one.history()
    with pytest.raises(KeyInTwoPartitions, match=r"'3' in '0', '1'|'3' in '1', '0'"):
        one.upsert(rows(2, 3))
    assert one.history() == before
    assert one.delete(rows(3)).deleted == 2
    one.upsert(rows(2, 3))
    assert sorted(one.to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_explain_says_which_index_and_why(tmp_path: Path) -> None:
    table(tmp_path / "t", **{"hoodie.index.type": "BUCKET"})
    again = hoodie.open_table(tmp_path / "t")
    assert "index BUCKET (the table was created with it)" in str(again.explain_upsert(rows(1)))
    plain = table(tmp_path / "u")
    assert "index SIMPLE (the default)" in str(plain.explain_upsert(rows(1)))
    named = plain.explain_upsert(rows(1), options={"hoodie.index.type": "GLOBAL_BLOOM"})
    assert "index GLOBAL_BLOOM (hoodie.index.type names it)" in str(named)
