"""A table whose metadata table is kept here has the same rows in hudi-rs, with its metadata table on."""

from pathlib import Path

import pyarrow as pa
import pytest
from hudi import HudiReadOptions, HudiTableBuilder

from hoodie.metadata.validate import validate_metadata
from hoodie.reading.row_keys import read_keys
from hoodie.storage.local import LocalStorage
from hoodie.testing.tables import ArrowTable
from support.nightly import covering
from support.oracles import assert_same_rows
from unit.metadata.test_metadata_keeping import INDEXES, KINDS, TABLE, rows

#: All partitions that are kept, beside the file lists.
_ALL = {**INDEXES, "hoodie.metadata.record.index.enable": "true", "hoodie.index.type": "RECORD_INDEX"}


@pytest.mark.parametrize(("indexes", "kind"), covering({"file lists": {}, "all partitions": _ALL}, list(KINDS)))
def test_hudi_rs_reads_the_same_rows(kind: str, indexes: dict[str, str], tmp_path: Path) -> None:
    options = {
        **TABLE,
        **KINDS[kind],
        **indexes,
        "hoodie.table.services.enabled": "true",
        "hoodie.metadata.compact.max.delta.commits": "3",
        "hoodie.cleaner.commits.retained": "2",
    }
    table = ArrowTable.create(LocalStorage(tmp_path), options)
    for ts in range(1, 7):
        table.upsert(rows(("a", "oslo"), (f"k{ts}", "rome"), ts=ts))
    table.delete(rows(("k2", "rome")))
    state = table.state()
    told = validate_metadata(state.storage, state.config, state.timeline, read_keys=read_keys)
    assert told.problems == ()
    built = HudiTableBuilder.from_base_uri(str(tmp_path)).with_hudi_option("hoodie.metadata.enable", "true").build()
    read = pa.concat_tables(
        [pa.Table.from_batches([b]) for b in built.read(HudiReadOptions())], promote_options="permissive"
    )
    assert_same_rows(read, table.snapshot(), ignore=["_hoodie_file_name"])
    assert len(state.config.metadata_partitions) == (4 if indexes else 1)
    newest = built.read(HudiReadOptions(filters=[("ts", ">=", "6")]))  # files are left out by what it knows of columns
    assert sorted(key for batch in newest for key in batch.column("id").to_pylist()) == ["a", "k6"]
