"""Every route on which a metadata table is built gives a large one to the engine that carries tasks out."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import Options
from hoodie.errors import MetadataTableDropped
from hoodie.hudi import HoodieWriteClient
from hoodie.metadata.validate import validate_metadata
from hoodie.reading.row_keys import read_keys
from hoodie.schema.by_id import Add
from hoodie.services.alter_columns import alter_columns
from hoodie.services.expiry import expire_partitions
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from unit.metadata.test_metadata_keeping import rows

ASKED = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "3",
    "hoodie.metadata.index.column.stats.file.group.count": "1",
}
LARGE = {"hoodie.spark.driver.max.batch.bytes": "0"}
Table = hoodie.HoodieTable[Any]


def through_client(table: Table, path: str) -> None:
    client = HoodieWriteClient(path, {**ASKED, **LARGE})
    client.engine = replace(client.engine, run=table.engine.run)
    client.upsert(rows(("c", "oslo"), ts=3), client.start_commit())


def restored(table: Table, path: str) -> None:
    saved = table.savepoint().instant
    table.upsert(rows(("d", "oslo"), ts=4), options=ASKED)
    table.restore(saved, options={**ASKED, **LARGE})


def columns_altered(table: Table, path: str) -> None:
    changes = [Add(("note",), pa.field("note", pa.string()))]
    assert alter_columns(table.storage, changes, Settings.of({**ASKED, **LARGE}), on_read=False, run=table.engine.run)


def expired(table: Table, path: str) -> None:
    options = Options({**ASKED, **LARGE, "hoodie.partition.ttl.strategy.days.retain": "30"})
    later = datetime.now(UTC) + timedelta(days=40)
    assert expire_partitions(table.storage, Settings.read(options), clock=lambda: later, run=table.engine.run).instant


ROUTES: dict[str, Callable[[Table, str], object]] = {
    "delete of partitions": lambda table, path: table.delete_partitions(["rome"], options={**ASKED, **LARGE}),
    "expiry of partitions": expired,
    "write client": through_client,
    "restore": restored,
    "columns": columns_altered,
}


@pytest.mark.parametrize("route", ROUTES)
def test_tasks_build_what_is_large(route: str, tmp_path: Path) -> None:
    counts: list[int] = []

    def run(kernel: Callable[[Any], Any], items: Sequence[Any], /) -> list[Any]:
        counts.append(len(items))
        return [kernel(item) for item in items]

    path = str(tmp_path)
    table = hoodie.create_table(
        path, name="trips", record_key="id", partition_by="city", ordering="ts", table_type="MERGE_ON_READ"
    )
    table.upsert(rows(("a", "oslo"), ("b", "rome")))
    table.upsert(rows(("a", "oslo"), ts=2))  # a log, whose keys building has to merge
    table.engine = replace(table.engine, run=run)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadataTableDropped)
        ROUTES[route](table, path)
    assert counts[-4:] == [1, 1, 1, 3]  # of each partition: shares of the table's files, then its file groups
    state = load_state(LocalStorage(tmp_path))
    assert state.config.metadata_partitions == ("column_stats", "files", "record_index")
    told = validate_metadata(state.storage, state.config, state.timeline, read_keys=read_keys)
    assert told.problems == ()


def test_a_table_is_restored_where_its_metadata_table_cannot_be_built_again(tmp_path: Path) -> None:
    """The savepoint has a key twice, which a record index cannot."""
    table = hoodie.create_table(tmp_path, name="trips", record_key="id", partition_by="city", ordering="ts")
    table.bulk_insert(rows(("a", "oslo")))
    table.bulk_insert(rows(("a", "rome")))
    saved = table.savepoint().instant
    table.delete_partitions(["rome"])
    table.upsert(rows(("b", "oslo")), options=ASKED)
    with pytest.warns(MetadataTableDropped, match="the key 'a' is in rows of"):
        table.restore(saved)
    assert sorted(table.snapshot().to_arrow().column("city").to_pylist()) == ["oslo", "rome"]
    state = load_state(LocalStorage(tmp_path))
    assert not state.config.metadata_partitions
    assert not (tmp_path / ".hoodie" / "metadata").exists()
