"""The files of a table as its metadata table lists them.

Source: docs/format/metadata-table.md 4.2 and 5.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile
from hoodie.metadata.keys import ALL_PARTITIONS, MetadataPartition, partition_id, partition_path
from hoodie.metadata.read import ALL, Wanted, read_records
from hoodie.metadata.table import MetadataTable
from hoodie.storage.protocol import Entry, check_path
from hoodie.view.load import Folders


def listed_folders(table: MetadataTable, partitions: Collection[str] | None = None) -> Folders:
    """The files of the data table, by partition path.

    partitions  those to list: of others nothing is read where the file lists are large; None: all
    Raises      as `read_records`; CorruptFile on a list without the partitions, or with names that are no file's
    """
    if partitions is None:
        records = read_records(table, MetadataPartition.FILES, ALL)
    else:
        keys = frozenset({ALL_PARTITIONS, *(partition_id(check_path(partition)) for partition in partitions)})
        records = read_records(table, MetadataPartition.FILES, Wanted(keys))
    is_list = pc.equal(records.column("row"), ALL_PARTITIONS)
    named = set(records.filter(is_list).column("name").to_pylist())
    if partitions is not None:
        named &= {partition_id(partition) for partition in partitions}
    files = records.filter(pc.invert(is_list)).sort_by([("row", "ascending"), ("name", "ascending")])
    where = f"{table.storage.root}/{MetadataPartition.FILES}"
    if len(files) and (pc.any(pc.match_substring(files.column("name"), "/")).as_py()):
        raise CorruptFile(where, "lists a file whose name is a path")
    if len(files) and pc.min(files.column("size")).as_py() < 0:
        raise CorruptFile(where, "lists a file of negative size")
    return Folders({partition_path(row): entries for row, entries in _by_row(files).items() if row in named})


def _by_row(files: pa.Table) -> dict[str, list[Entry]]:
    """The entries of each list. files: sorted by list"""
    entries: dict[str, list[Entry]] = {}
    rows, names, sizes = (files.column(name).to_pylist() for name in ("row", "name", "size"))
    for row, name, size in zip(rows, names, sizes, strict=True):
        entries.setdefault(row, []).append(Entry(name, size, 0))
    return entries
