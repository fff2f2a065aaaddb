"""The partition `files`: which files each partition path of the table has.

Source: docs/format/metadata-table.md 4.2; pinned by the metadata tables of real Hudi in tests/fixtures.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.metadata.encode import column_in_one_piece, encoded_records
from hoodie.metadata.keys import ALL_PARTITIONS, MetadataPartition
from hoodie.metadata.partitions.kind import Building, InitialContent, PartitionKind
from hoodie.metadata.record_schema import STORED_SCHEMA


def file_list_cells(records: pa.Table, file_name: str = "", schema: str = STORED_SCHEMA) -> tuple[pa.Array, pa.Array]:
    """Rows and values of cells, one for each list: string[n] and binary[n].

    records    entries of lists, of the schema `records.FILES`
    file_name  of the base file that they are for; "": they are for a log block
    schema     that they are written by, in Avro
    """
    records = records.sort_by([("row", "ascending"), ("name", "ascending")])
    encoded = column_in_one_piece(records, "row").dictionary_encode()
    rows = encoded.dictionary
    counts = np.bincount(np.asarray(encoded.indices, np.int64), minlength=len(rows))
    if file_name and pc.index(rows, ALL_PARTITIONS).as_py() < 0:  # of a table without partitions: an empty list
        rows = pa.concat_arrays([rows, pa.array([ALL_PARTITIONS])])
        counts = np.append(counts, 0)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    infos = pa.StructArray.from_arrays(
        [column_in_one_piece(records, "size"), column_in_one_piece(records, "deleted")],
        fields=[pa.field("size", pa.int64(), False), pa.field("isDeleted", pa.bool_(), False)],
    )
    lists = pa.MapArray.from_arrays(pa.array(offsets), column_in_one_piece(records, "name"), infos)
    kinds = pc.if_else(pc.equal(rows, ALL_PARTITIONS), pa.scalar(1, pa.int32()), pa.scalar(2, pa.int32()))
    return rows, encoded_records({"type": kinds, "filesystemMetadata": lists}, file_name, len(rows), schema)


def _first_content(building: Building) -> InitialContent:
    return InitialContent(1, [building.files.records()], _itself)


def _itself(records: pa.Table) -> Iterator[pa.Table]:
    yield records


FILES = PartitionKind(
    partition=MetadataPartition.FILES,
    prefix="files",
    records=lambda change: change.files.records(),
    first=_first_content,
    cells=file_list_cells,
)
