"""The folded rows of a slice's logs, found by key: in memory, or past a limit in files on local disk.

Keys are found by a sorted array of 64-bit hashes, 12 bytes a row, which stays in memory; the rows of a match are then
taken from where they lie. So a base file is merged in one pass, its rows in their order, however large the logs are.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from hoodie.config.read import MergeOptions
from hoodie.formats.parquet.hashed_keys import HashedKeys, Hashes64, key_hashes
from hoodie.merge.base import Incoming
from hoodie.merge.log_merge import LogMerge, Versions
from hoodie.merge.rows import Positions, as_array, as_mask, pick
from hoodie.merge.rules import MergeRule
from hoodie.model.meta import RECORD_KEY

#: Columns beside the rows, named as no column of a table is: with a dot.
_MASKS = ("hoodie.deleted", "hoodie.after_delete")
_FEWEST, _MOST = 8, 256  # files that rows are spread over; each is open while they are


class LogRows:
    """Incoming rows that can be asked for the rows of given keys."""

    def __init__(self, parts: Sequence[pa.Table], hashes: Sequence[Hashes64], versions: bool = False) -> None:
        """
        parts   rows with the columns of `_MASKS`; mapped from files or in memory
        hashes  of the keys of each part. All in a part are less than all in the next one
        versions  as in `Incoming`: a key may be there several times
        """
        self._parts, self._versions = parts, versions
        self._starts = np.cumsum([0, *(part.num_rows for part in parts)])
        self._all = _incoming(parts[0], versions) if len(parts) == 1 else None
        self._hashed = HashedKeys(hashes)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def keys(self) -> int:
        """How many different keys there are."""
        return self._hashed.different if self._versions else len(self)

    def find(self, keys: pa.Array | pa.ChunkedArray) -> Positions:
        """int64[...], rising: where the rows with these keys are, and others: one with another key of equal hash; all,
        when they are no more than the keys, so that finding some would cost more than to look at all.

        keys  no nulls
        """
        if self._all is not None and len(self) <= len(keys):
            return np.arange(len(self))
        return self._hashed.find(keys)

    def take(self, positions: Positions) -> Incoming:
        """The rows at rising positions."""
        if self._all is not None and len(positions) == len(self):
            return self._all
        bounds = np.searchsorted(positions, self._starts)
        taken = [
            part.take(pa.array(positions[low:high] - start))
            for part, start, low, high in zip(self._parts, self._starts, bounds, bounds[1:], strict=False)
            if high > low
        ]
        return _incoming(pa.concat_tables(taken) if taken else self._parts[0].slice(0, 0), self._versions)

    def parts(self) -> Iterator[tuple[slice, Incoming]]:
        """All rows by part, each with the positions that it takes."""
        for part, start in zip(self._parts, self._starts, strict=False):
            yield slice(int(start), int(start) + part.num_rows), _incoming(part, self._versions)


class LogFold:
    """Folds versions, fed in the order of their arrival, in memory as long as they fit.

    Used as a context: rows on disk go with it.
    """

    def __init__(self, schema: pa.Schema, rule: MergeRule, options: MergeOptions) -> None:
        """schema: of the rows to come, `_hoodie_record_key` among them."""
        self._schema, self._rule, self._options = schema, rule, options
        self.merge = LogMerge(schema, rule)
        self._files = ExitStack()
        self._spill: _Spill | None = None
        # Folding copies what it folds; so no more than half is held before.
        self._most = max(1, options.max_bytes // 2)
        self.largest = 0  # bytes of rows held at a time

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self._files.__exit__(kind, raised, at)

    def add(self, versions: Versions, share: float) -> None:
        """Versions that came after all before.

        share  in (0, 1]: of the logs' bytes that have been added, these included. Tells how much is still to come
        """
        if self._spill is not None:
            self._spill.add(versions)
            self.largest = max(self.largest, self._spill.nbytes)
            return
        self.merge.add(versions)
        self.largest = max(self.largest, self.merge.nbytes)
        if self.merge.nbytes > self._most:
            total = self.merge.nbytes / share
            self.merge.fold()
            # Rows that were replaced are gone. Unless that helped a good deal it would be tried again and again.
            if self.merge.nbytes > self._most // 2:
                folder = tempfile.TemporaryDirectory(prefix="hoodie-merge-", dir=self._options.spill_folder or None)
                self._files.enter_context(folder)
                files = min(max(_FEWEST, int(4 * total / self._most)), _MOST)
                self._spill = _Spill(Path(folder.name), self.merge.take(), files, self._most // 2)

    def finish(self) -> LogRows:
        """All rows, folded. They are there until the context ends."""
        if self._spill is None:
            rows = self.merge.finish()
            return LogRows([_with_masks(rows)], [key_hashes(rows.keys)], rows.versions)
        parts, hashes = [], []
        for merge in self._spill.folded(lambda: LogMerge(self._schema, self._rule)):
            self.largest = max(self.largest, merge.nbytes)
            incoming = merge.finish()
            hashes.append(key_hashes(incoming.keys))
            parts.append(self._files.enter_context(self._spill.spilled_rows(_with_masks(incoming))))
        return LogRows([_table(part) for part in parts], hashes, self._rule.keeps_versions)


class _Spill:
    """Versions spread over files by the hash of their keys: all versions of a key are in one file, in their order."""

    def __init__(self, folder: Path, first: Versions, files: int, buffer: int) -> None:
        """
        first   versions, folded, that all later ones come after
        files   how many; rounded up to a power of two
        buffer  bytes of rows that wait to be spread together
        """
        self._folder, self._buffer = folder, buffer
        self._bits = (files - 1).bit_length()
        self._schema = _with_masks(first).schema
        self._paths = [folder / f"versions-{number}" for number in range(1 << self._bits)]
        self._writers = [pa.ipc.new_stream(str(path), self._schema) for path in self._paths]
        self._waiting: list[pa.Table] = []
        self._file_count = 0
        self.nbytes = 0  # of the rows that wait
        step = max(1, first.rows.num_rows * buffer // max(1, first.rows.nbytes))
        for start in range(0, first.rows.num_rows, step):  # spreading copies, so not all at once
            masks = (
                None if mask is None else mask[start : start + step] for mask in (first.deleted, first.after_delete)
            )
            self.add(Versions(first.rows.slice(start, step), *masks))

    def add(self, versions: Versions) -> None:
        """Versions as they came: folding them among themselves first would give other rows (`LogMerge.take`)."""
        rows = _with_masks(versions)
        self._waiting.append(rows)
        self.nbytes += rows.nbytes
        if self.nbytes >= self._buffer:
            self._spread()

    def folded(self, merge_of: Callable[[], LogMerge]) -> Iterator[LogMerge]:
        """The versions of each file, folded; the file is removed."""
        self._spread()
        for writer in self._writers:
            writer.close()
        for path in self._paths:
            merge = merge_of()
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
                for batch in stream:
                    rows = _incoming(pa.Table.from_batches([batch]))
                    merge.add(Versions(rows.rows, rows.deleted, rows.after_delete))
            path.unlink()
            yield merge

    def spilled_rows(self, rows: pa.Table) -> pa.MemoryMappedFile:
        """The rows in a file of their own, mapped into memory: the system keeps as much of it there as fits."""
        path = str(self._folder / f"rows-{self._file_count}")
        self._file_count += 1
        with pa.ipc.new_file(path, self._schema) as writer:
            writer.write_table(rows)
        return pa.memory_map(path)

    def _spread(self) -> None:
        if not self._waiting:
            return
        rows = pa.concat_tables(self._waiting)
        self._waiting, self.nbytes = [], 0
        number = (key_hashes(rows.column(RECORD_KEY)) >> np.uint64(64 - self._bits)).astype(np.int64)
        order = np.argsort(number, kind="stable")
        bounds = np.searchsorted(number[order], np.arange(len(self._writers) + 1))
        rows = pick([rows], order)
        for writer, low, high in zip(self._writers, bounds, bounds[1:], strict=False):
            if high > low:
                writer.write_table(rows.slice(low, high - low))


def _with_masks(versions: Versions | Incoming) -> pa.Table:
    rows = versions.rows
    for name, mask in zip(_MASKS, (versions.deleted, versions.after_delete), strict=True):
        rows = rows.append_column(name, pa.array(np.zeros(rows.num_rows, np.bool_) if mask is None else mask))
    return rows


def _incoming(rows: pa.Table, versions: bool = False) -> Incoming:
    deleted, after_delete = (mask if mask.any() else None for mask in map(as_mask, map(rows.column, _MASKS)))
    rows = rows.drop_columns(list(_MASKS)).combine_chunks()
    return Incoming(
        rows, as_array(rows.column(RECORD_KEY)), deleted=deleted, after_delete=after_delete, versions=versions
    )


def _table(file: pa.MemoryMappedFile) -> pa.Table:
    return pa.ipc.open_file(file).read_all()
