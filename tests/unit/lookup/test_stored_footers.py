"""The bloom index takes filters and key ranges from the metadata table where options ask for it."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hoodie.errors import MetadataTableIgnored
from hoodie.lookup.stored_footers import stored_footers
from hoodie.model.files import BaseFile
from hoodie.reading.slices.base_file_reader import footer_of
from hoodie.storage import WrappedStorage
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from support.metadata_tables import METADATA
from unit.metadata.test_metadata_keeping import INDEXES, TABLE

BLOOM = {
    **{key: value for key, value in TABLE.items() if "partitionpath" not in key},
    "hoodie.index.type": "BLOOM",
    "hoodie.bloom.index.use.metadata": "true",
    "hoodie.parquet.small.file.limit": "0",
}
OFF = {"hoodie.bloom.index.use.metadata": "false"}


class Opened(WrappedStorage):
    """Notes the data files that are opened."""

    def __init__(self, inner: MemoryStorage) -> None:
        super().__init__(inner)
        self.paths: list[str] = []

    def observe(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if name in ("open_input", "read", "read_range") and path.endswith(".parquet"):
            self.paths.append(path)
        return call()


def batch(*keys: str, ts: int = 1) -> pa.Table:
    return pa.table({"id": keys, "city": ["oslo"] * len(keys), "ts": pa.array([ts] * len(keys), pa.int64())})


def table(**options: str) -> ArrowTable:
    """Of three base files: of a and k, of b and l, of c and m."""
    made = ArrowTable.create(MemoryStorage(), {**BLOOM, **options})
    for keys in ("ak", "bl", "cm"):
        made.bulk_insert(batch(*keys))
    return made


def bases(made: ArrowTable) -> list[BaseFile]:
    return [slice_.base for slice_ in made.slices() if slice_.base is not None]


@pytest.mark.parametrize("filters", ["DYNAMIC_V0", "SIMPLE"])
def test_the_metadata_table_says_what_the_footers_say(filters: str) -> None:
    made = table(**INDEXES, **{"hoodie.bloom.index.filter.type": filters})
    stored = stored_footers(made.state(), bases(made))
    assert len(stored) == 3
    for file in bases(made):
        ours, theirs = stored[file.path], footer_of(made.storage, file)
        assert (ours.min_key, ours.max_key, ours.rows) == (theirs.min_key, theirs.max_key, theirs.rows)
        assert ours.bloom_text == theirs.bloom_text
        assert ours.bloom(file.path) == theirs.bloom(file.path)


def test_files_that_cannot_hold_the_keys_are_not_opened() -> None:
    """All key ranges overlap; filters tell them apart."""
    start = table(**INDEXES)
    opened = {}
    for how in ({}, OFF):
        storage = Opened(start.storage.copy())  # type: ignore[attr-defined]
        made = ArrowTable(storage, {**start.options, **how})
        before = {base.path for base in bases(made)}
        storage.paths.clear()
        assert made.upsert(batch("b", "new", ts=2)).metadata.updated == 1
        opened[bool(how)] = len(before.intersection(storage.paths))
        assert sorted(made.snapshot()["id"].to_pylist()) == sorted(["a", "k", "b", "l", "c", "m", "new"])
    assert opened == {False: 1, True: 3}


def test_without_statistics_the_filters_alone_are_taken() -> None:
    made = table(**{"hoodie.metadata.index.bloom.filter.enable": "true"})
    stored = stored_footers(made.state(), bases(made))
    assert [(footer.min_key, footer.max_key) for footer in stored.values()] == [(None, None)] * 3
    assert made.upsert(batch("b", "new", ts=2)).metadata.updated == 1
    assert len(made.snapshot()) == 7


def test_footers_are_read_where_the_metadata_table_has_no_filters_or_is_damaged() -> None:
    made = table()
    assert stored_footers(made.state(), bases(made)) == {}
    assert made.upsert(batch("b", ts=2)).metadata.updated == 1
    made = table(**INDEXES)
    logs = [entry.name for entry in made.storage.list(f"{METADATA}bloom_filters") if ".log." in entry.name]
    for path in (f"{METADATA}bloom_filters/{name}" for name in logs):
        made.storage.write(path, made.storage.read(path)[:-30])
    with pytest.warns(MetadataTableIgnored):
        assert stored_footers(made.state(), bases(made)) == {}
