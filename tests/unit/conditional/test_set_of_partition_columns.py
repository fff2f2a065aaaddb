"""A merge that sets a partition column: to the value that a row has already, or to another one."""

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidInput


def test_a_merge_may_set_a_partition_column_to_its_own_value(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", partition_by="city", spark=None)
    table.insert(pa.table({"id": [1, 2], "city": ["oslo", "rome"], "v": ["a", "b"]}))
    values = {"v": "source.v", "city": "source.city"}
    changes = pa.table({"id": [1], "city": ["oslo"], "v": ["new"]})
    assert table.merge(changes, "target.id = source.id").when_matched_update(values).execute().updated == 1
    moves = pa.table({"id": [1], "city": ["bern"], "v": ["moved"]})
    with pytest.raises(InvalidInput, match="another partition"):
        table.merge(moves, "target.id = source.id").when_matched_update(values).execute()
    rows = table.snapshot().to_arrow().select(["id", "city", "v"]).sort_by("id").to_pylist()
    assert rows == [{"id": 1, "city": "oslo", "v": "new"}, {"id": 2, "city": "rome", "v": "b"}]
    with pytest.raises(InvalidInput, match="record key"):
        table.merge(moves, "target.city = source.city").when_matched_update({"id": "source.id + 1"}).execute()


def test_a_merge_may_set_its_key_to_the_equal_one_whatever_else_the_condition_says(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", partition_by="city", spark=None)
    table.insert(pa.table({"id": [1, 2], "city": ["oslo", "rome"], "v": ["a", "b"]}))
    changes = pa.table({"id": [1, 2], "city": ["oslo", "rome"], "v": ["new", "newer"]})
    values = {"id": "source.id", "v": "source.v"}
    for number, condition in enumerate(
        ("target.id = source.id AND target.city = 'oslo'", "(source.id <=> target.id AND source.v = 'new')")
    ):
        merge = table.merge(changes, condition).when_matched_update({**values, "v": f"concat(source.v, {number})"})
        assert merge.execute().updated == 1
    rows = table.snapshot().to_arrow().select(["id", "v"]).sort_by("id").to_pylist()
    assert rows == [{"id": 1, "v": "new1"}, {"id": 2, "v": "b"}]
    for condition in ("target.id = source.id OR target.city = 'oslo'", "target.id = source.id + 1"):
        with pytest.raises(InvalidInput, match="record key"):
            table.merge(changes, condition).when_matched_update(values).execute()
