"""The files of a table as its metadata table lists them.

Source: docs/format/metadata-table.md 4.2 and 5.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import repeat
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFile
from hoodie.metadata.encode import column_in_one_piece
from hoodie.metadata.keys import ALL_PARTITIONS, MetadataPartition, partition_id, path_of_name
from hoodie.metadata.read import ALL, RecordSelection, read_records
from hoodie.metadata.table import MetadataTable
from hoodie.storage.protocol import Entry, check_path
from hoodie.view.load import Folders


class FileList(Sequence[Entry]):
    """The files of one partition path, by name. Entries are made as they are asked for: a table may have millions.

    names, sizes  of the files, string[n] and int64[n], in any order
    """

    __slots__ = ("_names", "_sizes")

    def __init__(self, names: pa.Array, sizes: npt.NDArray[np.int64]) -> None:
        self._names, self._sizes = names, sizes

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self) -> Iterator[Entry]:
        return iter(sorted(map(Entry, self._names.to_pylist(), self._sizes.tolist(), repeat(0))))

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> list[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | list[Entry]:
        return list(self)[at]

    def __eq__(self, other: Any) -> bool:
        return list(self) == list(other) if isinstance(other, (FileList, list)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def listed_folders(table: MetadataTable, partitions: Collection[str] | None = None) -> Folders:
    """The files of the data table, by partition path.

    partitions  those to list: of others nothing is read where the file lists are large; None: all
    Raises      as `read_records`; CorruptFile on a list without the partitions, or with names that are no file's
    """
    if partitions is None:
        records = read_records(table, MetadataPartition.FILES, ALL)
    else:
        keys = frozenset({ALL_PARTITIONS, *(partition_id(check_path(partition)) for partition in partitions)})
        records = read_records(table, MetadataPartition.FILES, RecordSelection(keys))
    encoded = column_in_one_piece(records, "row").dictionary_encode()
    rows, of_row = encoded.dictionary.to_pylist(), np.asarray(encoded.indices, np.int64)
    if (of_row[1:] < of_row[:-1]).any():
        order = np.argsort(of_row, kind="stable")
        records, of_row = records.take(pa.array(order)), of_row[order]
    bounds = np.searchsorted(of_row, np.arange(len(rows) + 1)).tolist()
    parts = {row: (bounds[number], bounds[number + 1]) for number, row in enumerate(rows)}
    names, sizes = column_in_one_piece(records, "name"), np.asarray(column_in_one_piece(records, "size"), np.int64)
    begin, end = parts.pop(ALL_PARTITIONS, (0, 0))
    named = set(names.slice(begin, end - begin).to_pylist())
    if partitions is not None:
        named &= {partition_id(partition) for partition in partitions}
    where = f"{table.storage.root}/{MetadataPartition.FILES}"
    for part in (slice(0, begin), slice(end, len(sizes))):  # but for names of partitions
        if pc.any(pc.match_substring(names[part], "/")).as_py():
            raise CorruptFile(where, "lists a file whose name is a path")
        if (sizes[part] < 0).any():
            raise CorruptFile(where, "lists a file of negative size")
    return Folders(
        {
            path_of_name(row): FileList(names.slice(begin, end - begin), sizes[begin:end])
            for row, (begin, end) in sorted(parts.items())
            if row in named
        }
    )
