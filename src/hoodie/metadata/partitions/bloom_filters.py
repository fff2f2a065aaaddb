"""The partition `bloom_filters`: the filters over the record keys of base files, as their footers have them.

Source: docs/format/metadata-table.md 4.4 and 7.4; pinned by the metadata tables of real Hudi in tests/fixtures.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.formats.parquet.base_footer import stored_filter_text
from hoodie.metadata.encode import record_cells
from hoodie.metadata.keys import MetadataPartition, bloom_filter_key
from hoodie.metadata.partitions.data_files import added_files, deleted_base_files, of_footers, shares_of
from hoodie.metadata.partitions.kind import Building, Change, InitialContent, PartitionKind, where_defined
from hoodie.metadata.records import BLOOM_FILTERS as SCHEMA
from hoodie.metadata.records import deleted_records
from hoodie.model.files import BaseFile
from hoodie.model.table_version import VERSIONS
from hoodie.storage.protocol import Storage


def _records(change: Change) -> pa.Table:
    bases, _ = added_files(change.files)
    records = [] if change.commit is None else [*_filters(change.storage, bases, change.instant)]
    deleted = deleted_base_files(change.files)
    if VERSIONS[change.config.version].defines_indexes:
        keys = pa.array(map(_key, deleted), pa.string())
        stored = pa.Table.from_pylist(records, schema=SCHEMA)
        return pa.concat_tables([stored, deleted_records(keys, MetadataPartition.BLOOM_FILTERS)])
    none = {"type": "", "instant": change.instant, "filter": b"", "deleted": True}
    records += [{"row": _key(file), **none} for file in deleted]
    return pa.Table.from_pylist(records, schema=SCHEMA)


def _first_content(building: Building) -> InitialContent:
    bases, _ = added_files(building.files)
    stored = partial(_stored_filters, building.storage, building.instant)
    return InitialContent(building.options.bloom_filter_groups, shares_of(bases), stored)


def _stored_filters(storage: Storage, instant: str, files: list[BaseFile]) -> Iterator[pa.Table]:
    yield pa.Table.from_pylist([*_filters(storage, files, instant)], schema=SCHEMA)


def _filters(storage: Storage, files: list[BaseFile], instant: str) -> Iterator[dict[str, object]]:
    """The filters of the files that have one."""
    for file, stored in zip(files, of_footers(storage, files, _stored_filter), strict=True):
        if stored is not None:
            text, code = stored
            yield {"row": _key(file), "type": code, "instant": instant, "filter": text, "deleted": False}


def _stored_filter(file: BaseFile, footer: pq.FileMetaData) -> tuple[bytes, str] | None:
    return stored_filter_text(footer)


def _key(file: BaseFile) -> str:
    return bloom_filter_key(file.group.partition, file.name)


def _differences(building: Building, records: pa.Table) -> Iterator[str]:
    """Base files whose filter is another than that of their footer, or none: Hudi fails on one that is missing."""
    bases, _ = added_files(building.files)
    rows, filters = (records.column(name).to_pylist() for name in ("row", "filter"))
    stored = dict(zip(rows, filters, strict=True))
    for file, footer in zip(bases, of_footers(building.storage, bases, _stored_filter), strict=True):
        if footer is not None and stored.get(_key(file)) != footer[0]:
            problem = "is not that of its footer" if _key(file) in stored else "is missing"
            yield f"the filter of {file.path} in {MetadataPartition.BLOOM_FILTERS} {problem}"


BLOOM_FILTERS = PartitionKind(
    partition=MetadataPartition.BLOOM_FILTERS,
    prefix="bloom-filters",
    records=_records,
    first=_first_content,
    cells=partial(record_cells, MetadataPartition.BLOOM_FILTERS),
    differences=_differences,
    deletes_apart=where_defined,
)
