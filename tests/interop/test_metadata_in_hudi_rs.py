"""A table whose metadata table is kept here has the same rows in hudi-rs, with its metadata table on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTableBuilder

from hoodie.storage.local import LocalStorage
from hoodie.testing.tables import ArrowTable
from support.oracles import assert_same_rows
from unit.metadata.test_metadata_keeping import KINDS, TABLE, assert_kept, rows


@pytest.mark.parametrize("kind", KINDS)
def test_hudi_rs_reads_the_same_rows(kind: str, tmp_path: Path) -> None:
    options = {
        **TABLE,
        **KINDS[kind],
        "hoodie.table.services.enabled": "true",
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.cleaner.commits.retained": "2",
    }
    table = ArrowTable.create(LocalStorage(tmp_path), options)
    for ts in range(1, 7):
        table.upsert(rows(("a", "oslo"), (f"k{ts}", "rome"), ts=ts))
    table.delete(rows(("k2", "rome")))
    assert_kept(table)
    built = HudiTableBuilder.from_base_uri(str(tmp_path)).with_hudi_option("hoodie.metadata.enable", "true").build()
    read = pa.concat_tables(
        [pa.Table.from_batches([b]) for b in built.read(HudiReadOptions())], promote_options="permissive"
    )
    assert_same_rows(read, table.snapshot(), ignore=["_hoodie_file_name"])
