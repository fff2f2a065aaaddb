"""Text of few values as a dictionary and a number a row: joined and written as it is read."""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def is_encoded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values."""
    return kind.value_type if is_encoded(kind) else kind


def keeping_encoded(schema: pa.Schema, rows: pa.Schema, plain: Collection[str] = ()) -> pa.Schema:
    """The schema with those columns encoded that rows have as the same values, encoded. plain: columns that are not"""
    kinds = {field.name: field.type for field in rows if is_encoded(field.type) and field.name not in plain}
    same = {f.name: kinds[f.name] for f in schema if f.name in kinds and kinds[f.name].value_type == f.type}
    return pa.schema([field.with_type(same.get(field.name, field.type)) for field in schema], schema.metadata)


def decoded_columns(rows: pa.Table) -> list[pa.ChunkedArray]:
    """The columns with their values written out."""
    return [column.cast(plain_type(column.type)) if is_encoded(column.type) else column for column in rows.columns]


def constant(value: str, count: int) -> pa.DictionaryArray:
    """A column of one value."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value]))


def joined_chunks(chunks: Sequence[pa.Array]) -> list[pa.Array]:
    """Chunks of a column, some of them encoded, in one type: all encoded by one dictionary, or none."""
    if not any(is_encoded(chunk.type) for chunk in chunks):
        return list(chunks)
    encoded = [chunk if is_encoded(chunk.type) else chunk.dictionary_encode() for chunk in chunks]
    return list(pa.chunked_array(encoded).unify_dictionaries().chunks)


def joined(parts: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Tables of the same columns end to end; a column that is encoded in one of them is encoded.

    schema  of the rows with their values written out
    """
    columns = []
    for number, field in enumerate(schema):
        chunks = joined_chunks([chunk for part in parts for chunk in part.column(number).chunks])
        columns.append(pa.chunked_array(chunks, chunks[0].type if chunks else field.type))
    return pa.Table.from_arrays(columns, schema=encoded_schema(schema, columns))


def as_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with those columns encoded that the schema has so, and the others written out."""
    columns = [_as(column, field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    return column.dictionary_encode().cast(kind) if is_encoded(kind) else column.cast(kind)


def without_unused_values(rows: pa.Table) -> pa.Table:
    """The rows with dictionaries that hold their values alone: what was deleted is in no new file."""
    columns = [_trimmed(column) if is_encoded(column.type) else column for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = joined_chunks([chunk for chunk in column.chunks if len(chunk)])
    if not chunks:
        return column
    values = chunks[0].dictionary
    if len(values) == 1 and any(chunk.null_count < len(chunk) for chunk in chunks):
        return pa.chunked_array(chunks)
    used = np.zeros(len(values), np.bool_)
    for chunk in chunks:
        indices = chunk.indices
        used |= np.bincount(indices.drop_null() if indices.null_count else indices, minlength=len(values)) > 0
    if used.all():
        return pa.chunked_array(chunks)
    numbers = pa.array((np.cumsum(used) - 1).astype(np.int32))
    fewer = values.filter(pa.array(used))
    return pa.chunked_array(
        [pa.DictionaryArray.from_arrays(pc.take(numbers, chunk.indices), fewer) for chunk in chunks]
    )


def encoded_schema(schema: pa.Schema, columns: Sequence[pa.Array | pa.ChunkedArray]) -> pa.Schema:
    """The schema with those columns encoded that are."""
    kinds = [c.type if is_encoded(c.type) else plain_type(f.type) for f, c in zip(schema, columns, strict=True)]
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)])
