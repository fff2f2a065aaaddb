"""Which file slices a filter can find rows in, by what their partition paths say of the partition columns."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from hoodie.keygen.keygen import (
    FieldKind,
    KeyGenerator,
    partition_texts,
    partition_values,
    stored_key_generator,
    unescape_path,
)
from hoodie.keygen.time_units import folder_bounds
from hoodie.model.files import FileSlice
from hoodie.reading.filters.predicate import ANY, Bounds, Tests, may_pass


def slices_that_may_pass(
    slices: Iterable[FileSlice], tests: Tests, schema: pa.Schema, properties: Mapping[str, str]
) -> Iterator[FileSlice]:
    """The slices but those of partitions whose value of a partition column no row that passes has.

    Columns of text, whole numbers, booleans and dates are looked at, and times whose folders are units of time, as
    `partition_by="day(at)"` makes them; not those of other time-based paths.
    properties  of the table
    """
    if tests == ANY:
        yield from slices
        return
    keygen = stored_key_generator(properties)
    passing: dict[str, bool] = {}
    for slice_ in slices:
        path = slice_.group.partition
        if path not in passing:
            passing[path] = _may_pass(path, tests, schema, keygen)
        if passing[path]:
            yield slice_


def _may_pass(path: str, tests: Tests, schema: pa.Schema, keygen: KeyGenerator) -> bool:
    if keygen.hive_style and not keygen.url_encode and unescape_path(path) != path:
        return True  # Spark SQL escapes such paths, other writers do not: "%41" is what it says, or "A"
    bounds = _times(path, schema, keygen)
    for field, text in zip(keygen.partition_fields, partition_values(path, keygen), strict=True):
        if field.kind is FieldKind.SIMPLE and text is not None and field.name in schema.names:
            scalar = _value(text, schema.field(field.name).type)
            if scalar is not None:
                bounds[field.name] = Bounds(scalar.as_py(), scalar.as_py(), 0)
    return may_pass(tests, bounds.get)


def _times(path: str, schema: pa.Schema, keygen: KeyGenerator) -> dict[str, Bounds]:
    """The times that the rows of a folder have, where its name is a unit of time."""
    unit = None if keygen.timestamp is None else keygen.timestamp.partition_unit
    times: dict[str, Bounds] = {}
    if unit is None:
        return times
    for field, text in zip(keygen.partition_fields, partition_texts(path, keygen), strict=True):
        if field.kind is not FieldKind.TIMESTAMP or text is None or field.name not in schema.names:
            continue
        kind, bounds = schema.field(field.name).type, folder_bounds(text, unit)
        if bounds is not None and pa.types.is_timestamp(kind) and kind.unit == "us":
            low, high = (bound if kind.tz is None else bound.replace(tzinfo=dt.UTC) for bound in bounds)
            times[field.name] = Bounds(low, high)  # a null is in the folder of 1970
    return times


def _value(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """The one value that a path holds; None where its text does not say for certain."""
    types = pa.types
    if not (types.is_string(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_date32(kind)):
        return None
    try:
        scalar = pa.scalar(text).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return scalar if scalar.cast(pa.string()).as_py() == text else None
