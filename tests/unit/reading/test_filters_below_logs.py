"""Base files whose rows no filter can keep are passed by below logs, where a log's row wins in any case."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CorruptFile

CONDITIONS: dict[str, Callable[[int], bool]] = {
    "v > 100": lambda v: v > 100,
    "v < 100": lambda v: v < 100,
    "v >= 30": lambda v: v >= 30,
    "v = 200 or v = 20": lambda v: v in (20, 200),
    "v != 10": lambda v: v != 10,
    "v is null": lambda v: False,
    "not v > 100": lambda v: v <= 100,
}


def _with_logs(
    path: Path, ordering: str | None, *batches: tuple[list[int], list[int], list[int]]
) -> hoodie.HoodieTable:
    """A Merge-on-Read table of (ids, ordering values, values), the first of them in its base file."""
    options = {"hoodie.compact.inline": "false"}
    named = {"ordering": ordering} if ordering else {}
    table = hoodie.create_table(path, record_key="id", table_type="MERGE_ON_READ", options=options, **named)
    for ids, times, values in batches:
        table.upsert(pa.table({"id": ids, "ts": times, "v": values}))
    return table


@pytest.mark.parametrize("ordering", [None, "ts"])
def test_a_base_file_is_read_below_logs_only_where_its_rows_may_count(ordering: str | None, tmp_path: Path) -> None:
    table = _with_logs(tmp_path, ordering, ([1, 2, 3], [9, 9, 9], [10, 20, 30]), ([2], [1], [200]), ([4], [1], [400]))
    table.delete([3])
    rows = {1: 10, 2: 20, 4: 400} if ordering else {1: 10, 2: 200, 4: 400}
    for condition, keeps in CONDITIONS.items():
        read = table.to_arrow(columns=["id"], filters=condition).column("id").to_pylist()
        assert sorted(read) == [number for number, value in rows.items() if keeps(value)], condition
    (base,) = (file for slice_ in table.file_slices() for file in [slice_.base] if file is not None and slice_.logs)
    data = (tmp_path / base.path).read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    (tmp_path / base.path).write_bytes(data[:4] + bytes(len(data) - footer - 4) + data[-footer:])
    if ordering:  # a late row may lose to the one in the base file
        with pytest.raises(CorruptFile):
            table.to_arrow(filters="v > 100")
    else:
        assert sorted(table.to_arrow(filters="v > 100").column("id").to_pylist()) == [2, 4]
    with pytest.raises(CorruptFile):
        table.to_arrow(filters="v > 10")
