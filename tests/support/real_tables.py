"""Tables by real Hudi whose files tests damage: in memory, as paths and contents."""

import io
import zipfile
from functools import cache

import pyarrow as pa

from hoodie.reading.snapshot import read_table
from hoodie.table.properties import PROPERTIES
from hoodie.table.state import load_state
from hoodie.testing.storage import MemoryStorage
from support.oracles import TABLES

NAMES = (
    "hudi-0.15/cow_clustering",
    "hudi-0.15/cow_insert_overwrite",
    "hudi-0.15/cow_savepoint",
    "hudi-0.15/cow_archived",
    "hudi-0.15/mor_compacted",
    "hudi-0.15/mor_deletes",
    "hudi-0.15/mor_parquet_log_blocks",
    "hudi-0.15/mor_pending_compaction",
    "hudi-0.15/mor_rolled_back",
    "hudi-0.15/mor_types",
    "hudi-tables/v8_mor_avro_8_inserts_3_updates_1_delete",
    "hudi-tables/v9_cow_txns",
)


@cache
def files_of(name: str) -> dict[str, bytes]:
    """The files of a real table, relative to its base path."""
    with zipfile.ZipFile(io.BytesIO((TABLES / f"{name}.zip").read_bytes())) as archive:
        paths = [path for path in archive.namelist() if "__MACOSX" not in path and not path.endswith("/")]
        root = next(path for path in paths if path.endswith(PROPERTIES))[: -len(PROPERTIES)]
        return {path[len(root) :]: archive.read(path) for path in paths if path.startswith(root)}


@cache
def right_rows(name: str) -> pa.Table:
    return read_table(load_state(MemoryStorage(files_of(name))))
