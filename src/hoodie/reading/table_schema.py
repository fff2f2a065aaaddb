"""The columns that a table has: as its commits declare them, else as its newest file has them.

Source: docs/format/commit-metadata.md (`extraMetadata.schema`).
"""

import pyarrow as pa

from hoodie.formats.avro.schema import user_columns
from hoodie.formats.parquet.base_footer import columns_of_file, read_file_metadata
from hoodie.model.files import BaseFile
from hoodie.schema.schema import stored_form, with_meta_fields, without_meta_fields
from hoodie.storage.protocol import Storage
from hoodie.table.state import TableState, declared_schema
from hoodie.view.slices import FileSystemView, latest_base_files

_AVRO_IN_FOOTER = b"parquet.avro.schema"


def table_schema(state: TableState, view: FileSystemView, as_of: str | None = None) -> pa.Schema:
    """The user's columns: as commits or the table's settings declare them (`declared_schema`), else of the newest file;
    none of a table that was never written.

    Raises  CorruptFile
    """
    declared = declared_schema(state, as_of)
    if declared is not None:
        return declared
    files = latest_base_files(view).values()
    if not files:
        return pa.schema([])
    return _file_schema(state.storage, max(files, key=lambda file: (file.instant, file.name)))


def read_schema(state: TableState, view: FileSystemView | None = None, as_of: str | None = None) -> pa.Schema:
    """The columns that a read as of an instant (None: now) gives: meta columns first where the table has them.

    view  None: of no files, so that commits and settings alone tell
    """
    schema = table_schema(state, view or FileSystemView(state.timeline), as_of)
    return with_meta_fields(schema) if state.config.meta_fields else schema


def _file_schema(storage: Storage, file: BaseFile) -> pa.Schema:
    with storage.open_input(file.path, file.size) as source:
        metadata = read_file_metadata(source, file.path)
    if text := (metadata.metadata or {}).get(_AVRO_IN_FOOTER):
        return user_columns(text.decode("utf-8", "replace"), file.path)
    return stored_form(without_meta_fields(columns_of_file(metadata, file.path)))
