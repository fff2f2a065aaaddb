"""What the metadata table says of base files, in place of their footers: bloom filters and key ranges.

Source: docs/format/metadata-table.md 6 (bloom index). Only `hoodie.bloom.index.use.metadata` asks for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hoodie.formats.parquet.base_footer import BaseFooter
from hoodie.metadata.keys import MetadataPartition, bloom_filter_key, column_stats_key
from hoodie.metadata.read import RecordSelection, read_records
from hoodie.metadata.table import MetadataTable, open_metadata
from hoodie.metadata.trusted import ignore, read_or_warn
from hoodie.model.files import BaseFile
from hoodie.model.meta import RECORD_KEY
from hoodie.table.state import TableState


def stored_footers(state: TableState, files: Sequence[BaseFile]) -> Mapping[str, BaseFooter]:
    """What is known of keys in some base files, by path; the footers of others are to be read.

    returns  without files that have no filter there; none at all where the table keeps none
    Warns    MetadataTableIgnored when the metadata table is out of date or damaged
    """
    if not files or str(MetadataPartition.BLOOM_FILTERS) not in state.config.metadata_partitions:
        return {}
    table = open_metadata(state.storage, state.config, state.timeline)
    if table is None:
        return {}
    if problem := table.problem():
        ignore(state.storage, problem)
        return {}
    return read_or_warn(table, lambda table: _footers(table, files)) or {}


def _footers(table: MetadataTable, files: Sequence[BaseFile]) -> dict[str, BaseFooter]:
    filters = _records(
        table, MetadataPartition.BLOOM_FILTERS, [bloom_filter_key(file.group.partition, file.name) for file in files]
    )
    statistics: dict[str, dict[str, Any]] = {}
    if MetadataPartition.COLUMN_STATS in table.ready:
        keys = [column_stats_key(RECORD_KEY, file.group.partition, file.name) for file in files]
        statistics = _records(table, MetadataPartition.COLUMN_STATS, keys)
    footers = {}
    for file in files:
        stored = filters.get(bloom_filter_key(file.group.partition, file.name))
        if stored is not None:
            key_stats = statistics.get(column_stats_key(RECORD_KEY, file.group.partition, file.name), {})
            footers[file.path] = BaseFooter(
                min_key=_text(key_stats.get("min")),
                max_key=_text(key_stats.get("max")),
                bloom_text=stored["filter"].decode("latin-1"),
                bloom_code=stored["type"],
                rows=key_stats.get("values") or 0,
            )
    return footers


def _records(table: MetadataTable, partition: MetadataPartition, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    records = read_records(table, partition, RecordSelection(frozenset(keys)))
    return {record["row"]: record for record in records.to_pylist()}


def _text(bound: Mapping[str, Any] | None) -> str | None:
    return None if bound is None else bound["StringWrapper"]
