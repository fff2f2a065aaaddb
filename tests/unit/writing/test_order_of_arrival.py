"""Of versions with equal ordering values the one that came last wins, however a large batch is staged."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from hoodie.errors import InvalidInput
from hoodie.merge.rows import Positions, key_groups
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.batch import duplicates
from support.nightly import covering
from support.trips import TRIPS

SPILLED = {"hoodie.spark.driver.max.batch.bytes": "1"}
NO_ORDER = {key: value for key, value in TRIPS.items() if "precombine" not in key}


def batch(*rows: tuple[str, str, int]) -> pa.Table:
    ids, cities, numbers = zip(*rows, strict=True)
    notes = [f"{number}" for number in numbers]
    return pa.table({"id": ids, "city": cities, "ts": pa.array([1] * len(rows), pa.int64()), "note": notes})


@pytest.mark.parametrize(
    ("options", "kind", "index"),
    covering(
        [TRIPS, NO_ORDER, {**TRIPS, "hoodie.combine.before.upsert": "false"}],
        ["COPY_ON_WRITE", "MERGE_ON_READ"],
        ["GLOBAL_SIMPLE", "GLOBAL_BLOOM", "SIMPLE", "BUCKET"],
    ),
)
def test_the_row_that_came_last_wins_in_a_spilled_batch(index: str, kind: str, options: Mapping[str, str]) -> None:
    table = ArrowTable.create(
        MemoryStorage(),
        {
            **options,
            **SPILLED,
            "hoodie.datasource.write.table.type": kind,
            "hoodie.index.type": index,
            "hoodie.bucket.index.num.buckets": "2",
        },
    )
    everywhere = index.startswith("GLOBAL")
    for start in (0, 10):  # new keys, then keys that the table has
        # Grouped by partition, rows of rome come before those of oslo.
        table.upsert(
            batch(
                ("x", "rome", start),
                ("a", "oslo", start + 1),
                ("b", "oslo", start + 2),
                ("b", "oslo", start + 3),
                ("a", "rome" if everywhere else "oslo", start + 4),
            )
        )
        found = {row["id"]: (row["city"], row["note"]) for row in table.snapshot().to_pylist()}
        last = ("rome" if everywhere else "oslo", f"{start + 4}")
        assert found == {"x": ("rome", f"{start}"), "a": last, "b": ("oslo", f"{start + 3}")}


def test_rows_of_one_key_are_looked_for_once_in_a_batch_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counted(rows: pa.Table, key_columns: Sequence[str]) -> Positions | None:
        looked.append(rows.num_rows)
        return key_groups(rows, key_columns)

    monkeypatch.setattr(duplicates, "key_groups", counted)
    table = ArrowTable.create(MemoryStorage(), TRIPS)
    for number in (1, 2):
        table.upsert(batch(("a", "oslo", number), ("x", "rome", number), ("a", "oslo", number + 1)))
        assert {row["id"]: row["note"] for row in table.snapshot().to_pylist()} == {
            "a": f"{number + 1}",
            "x": f"{number}",
        }
    assert looked == [3, 3]


@pytest.mark.parametrize("held", [{}, SPILLED], ids=["in memory", "spilled"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_without_an_ordering_value_is_refused_though_its_key_is_unique(
    kind: str, held: Mapping[str, str]
) -> None:
    table = ArrowTable.create(MemoryStorage(), {**TRIPS, **held, "hoodie.datasource.write.table.type": kind})
    rows = batch(("a", "oslo", 1), ("b", "oslo", 2))
    without = rows.set_column(2, "ts", pa.array([1, None], pa.int64()))
    before = table.storage.snapshot()
    with pytest.raises(InvalidInput, match="ordering value"):
        table.upsert(without)
    assert table.storage.snapshot() == before
    table.upsert(rows)
