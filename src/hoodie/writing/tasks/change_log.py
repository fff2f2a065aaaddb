"""The change log beside a new version of a base file: what the merge did to each row.

Source: docs/format/cdc.md 2, 3 and 8 (HoodieCDCLogger).
"""

from contextlib import ExitStack
from types import TracebackType
from typing import Self

import pyarrow as pa

from hoodie.commit.markers import MarkerKind, marker_path
from hoodie.config.table import LoggedImages
from hoodie.errors import InstantNotFound
from hoodie.formats.log.blocks import encode_block
from hoodie.formats.log.change_data import AFTER, BEFORE, COLUMNS, KEY, OP, TS, cdc_block, cdc_schema
from hoodie.merge.base import Merged
from hoodie.merge.row_changes import added_changes, image_type, merged_changes
from hoodie.model.files import FileGroupId, LogFile, change_log_name
from hoodie.model.meta import RECORD_KEY
from hoodie.storage.protocol import OutputFile
from hoodie.writing.tasks.base_file import WriteSpec, open_marked, take_back_if_over

#: The columns of changes that the columns of a block are.
_FROM = {OP: OP, KEY: RECORD_KEY, BEFORE: BEFORE, AFTER: AFTER}


class ChangeLogWriter:
    """The change log of one rewrite: changes in the order of the file, then inserts. The file is made when a block is
    full, or at the end. Leaving the `with` block by an error leaves no file.
    """

    def __init__(self, spec: WriteSpec, images: LoggedImages, group: FileGroupId, token: str) -> None:
        """token  of the base file"""
        self._spec = spec
        self._marker = MarkerKind.CREATE if spec.layout.version.logs_of_writes else MarkerKind.APPEND
        name = change_log_name(group.file_id, spec.instant, token)
        self._file = LogFile(group, spec.instant, 1, token, 0, name, cdc=True)
        self._image = image_type(spec.schema)
        self._images = images
        self._schema = cdc_schema(spec.avro_schema, images)
        self._waiting: list[pa.Table] = []
        self._bytes = self._written = 0
        self._stack = ExitStack()
        self._sink: OutputFile | None = None
        self._unneeded = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._stack.__exit__(kind, error, trace)
            if self._sink is not None and isinstance(error, InstantNotFound):  # the base file's writer found it
                self._spec.storage.delete(marker_path(self._spec.instant, self._file.path, self._marker))
            return
        with self._stack:  # if this fails, the output is told, and takes the file away
            if not self._unneeded:
                self._flush()
        if self._sink is None:
            return
        if self._unneeded:  # blocks were full before that was known; the marker goes with the write
            self._spec.storage.delete(self._file.path)
            self._written = 0
            return
        take_back_if_over(self._spec, self._file.path, self._marker)

    def merged(self, stored: pa.Table, merged: Merged) -> None:
        """What a merge did to a batch of stored rows."""
        self._add(merged_changes(stored, merged, self._image))

    def inserted(self, rows: pa.Table) -> None:
        """Rows with new keys."""
        self._add(added_changes(rows, self._image))

    def end(self, rows: int, inserted: int) -> None:
        """After the last row: of a file that is empty, or of inserts alone, Hudi logs nothing: the file tells it. Where
        all rows came late and lost, the log is without changes: without one Hudi refuses each range of the commit.

        rows      in the new file, copied ones included
        inserted  of them, rows with new keys
        """
        self._unneeded = rows in (0, inserted)
        if not (self._written or self._waiting):
            self._waiting.append(added_changes(self._spec.schema.empty_table(), self._image))

    @property
    def stats(self) -> dict[str, int] | None:
        """Path and bytes of the change log, after the `with` block; None: there is none."""
        return {self._file.path: self._written} if self._written else None

    def _add(self, changes: pa.Table) -> None:
        if changes.num_rows:
            self._waiting.append(changes)
            self._bytes += changes.nbytes
        if self._bytes >= self._spec.logs.block_size:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        if self._sink is None:
            self._sink = self._stack.enter_context(open_marked(self._spec, self._file.path, self._marker))
        changes = pa.concat_tables(self._waiting)
        data = encode_block(cdc_block(self._spec.instant, self._schema, self._columns(changes)))
        self._sink.write(data)
        self._written += len(data)
        self._waiting, self._bytes = [], 0

    def _columns(self, changes: pa.Table) -> pa.Table:
        times = pa.repeat(self._spec.instant, changes.num_rows)
        return pa.table({name: times if name == TS else changes.column(_FROM[name]) for name in COLUMNS[self._images]})
