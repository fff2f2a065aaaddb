"""The logs of tables that Hudi wrote, folded and merged into their base files, give the rows that Hudi reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.formats.java.properties import parse_properties
from hoodie.formats.log.blocks import BlockKind, read_blocks
from hoodie.formats.log.content import data_rows
from hoodie.formats.log.delete_block import decode_deletes
from hoodie.merge.base import BaseMerge
from hoodie.merge.log_merge import LogMerge
from hoodie.merge.payloads import table_rule
from hoodie.model.files import BaseFile, FileGroupId, LogFile, parse_data_file
from hoodie.schema.conform import conform
from support.oracles import assert_same_rows, expected_rows

# Tables whose newest slices are the snapshot: no replaced, rolled back or pending file group.
TABLES = [
    "mor_bucket_index",
    "mor_compacted",
    "mor_complex_key_hive_style",
    "mor_deletes",
    "mor_event_time",
    "mor_logs",
    "mor_nonpartitioned",
    "mor_parquet_log_blocks",
    "mor_types",
    "v6_mor_avro_8_inserts_1_update",
    "v6_mor_avro_8_inserts_3_deletes",
    "v6_mor_parquet_log_simplekeygen",
]


@pytest.mark.parametrize("name", TABLES)
def test_a_real_slice_merges_into_the_rows_that_hudi_reads(fixture_table: Callable[[str], Path], name: str) -> None:
    root = fixture_table(name)
    merged = pa.concat_tables(merged_slices(root), promote_options="permissive")
    assert_same_rows(merged, expected_rows(name), ignore=["_hoodie_file_name"])


def merged_slices(root: Path) -> Iterator[pa.Table]:
    """The rows of the newest slice of each file group."""
    properties = root / ".hoodie" / "hoodie.properties"
    rule = table_rule(parse_properties(properties.read_bytes(), str(properties)))
    groups: dict[FileGroupId, list[BaseFile | LogFile]] = defaultdict(list)
    for path in root.rglob("*"):
        partition = path.parent.relative_to(root).as_posix().removeprefix(".")
        found = parse_data_file(partition, path.name, path.stat().st_size)
        if found is not None:
            groups[found.group].append(found)
    for files in groups.values():
        base = max((file for file in files if isinstance(file, BaseFile)), key=lambda file: file.instant)
        logs = [file for file in files if isinstance(file, LogFile) and file.base_instant == base.instant]
        stored = pq.read_table(root / base.path, partitioning=None)
        log = LogMerge(stored.schema, rule, fold_rows=7)
        for file in sorted(logs, key=lambda file: file.order):
            for block in read_blocks((root / file.path).read_bytes(), file.path):
                if block.kind is BlockKind.DELETE:
                    log.add(log.tombstones(decode_deletes(block.content, file.path), file.path))
                else:
                    log.add(log.records(conform(data_rows(block, file.path), stored.schema)))
        merge = BaseMerge(log.finish(), rule)
        yield from (merge.batch(batch) for batch in stored.to_batches(max_chunksize=20))
        yield merge.inserts()
