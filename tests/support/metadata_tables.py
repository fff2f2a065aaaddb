"""Metadata tables by real Hudi: data tables with them, their HFiles, and the records that Hudi read of them."""

import io
import json
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.table.properties import PROPERTIES
from hoodie.table.state import TableState
from support.real_tables import files_of

FOLDER = Path(__file__).parents[1] / "fixtures" / "metadata"
METADATA = ".hoodie/metadata/"

#: With every record as Hudi reads it.
WITH_RECORDS = ("mdt_cow", "mdt_mor_1group")
#: Others of table version 6.
OTHERS = (
    "hudi-0.15/cow_metadata_table",
    "hudi-tables/v6_mor_logical_types_metadata_table",
    "hudi-tables/v6_mor_nested_types",
    "hudi-tables/v6_mor_with_services",
)
ALL = (*WITH_RECORDS, *OTHERS)
#: Those whose HFiles HBase wrote.
BY_HBASE = tuple(name for name in ALL if name != "hudi-0.15/cow_metadata_table")


@cache
def table_files(name: str) -> dict[str, bytes]:
    """The files of a table, relative to its base path."""
    if name not in WITH_RECORDS:
        return files_of(name)
    with zipfile.ZipFile(io.BytesIO((FOLDER / f"{name}.zip").read_bytes())) as archive:
        root = next(path for path in archive.namelist() if path.endswith("/" + PROPERTIES) and METADATA not in path)
        root = root[: -len(PROPERTIES)]
        paths = [path for path in archive.namelist() if path.startswith(root) and not path.endswith("/")]
        return {path[len(root) :]: archive.read(path) for path in paths}


@cache
def facts(name: str) -> dict[str, Any]:
    """What Hudi read of a table: `snapshot`, and `metadata_records`."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text()))


def hfiles(name: str) -> Iterator[tuple[str, bytes]]:
    """The HFiles of a table's metadata table: base files, and contents of log blocks."""
    for path, data in sorted(table_files(name).items()):
        if path.startswith(METADATA) and path.endswith(".hfile"):
            yield path, data
        elif path.startswith(METADATA) and ".log." in path and not path.endswith(".crc"):
            for block in read_blocks(data, path):
                if block.kind is BlockKind.HFILE_DATA:
                    yield path, bytes(block.content)


def metadata_of(state: TableState) -> MetadataTable:
    """The metadata table of a table that has one."""
    table = open_metadata(state.storage, state.config, state.timeline)
    assert table is not None
    return table
