"""Deleted keys, as the content of a delete block, from and to Arrow columns.

Each key carries an ordering value and the Java class it had in its writer: a merge compares it with a row's ordering
value only if that has the same class, so the class is kept as a column of its own. Content: int32 version 3, int32
length, and one Avro array of records; big-endian.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hoodie.errors import CorruptLogBlock, SchemaMismatch, UnsupportedTable
from hoodie.formats.avro import nodes
from hoodie.formats.avro.bytes import Cells, Cursors, Malformed, Pieces, fail_where, to_numpy
from hoodie.formats.avro.decimals import BytesDecimal

_VERSION = 3
_HEAD = struct.Struct(">ii")
_DECIMAL = pa.decimal128(30, 15)


class OrderingClass(IntEnum):
    """The Java class of an ordering value. The value is its branch in the format's union."""

    NULL = 0  # never write it: other readers fail on it
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    DATE = 8
    DECIMAL = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12  # of table version 9: the values of several ordering fields


#: One ordering value: its class, and a value in the column that `ORDERING_COLUMN` gives for that.
ORDERING_VALUE = pa.struct(
    [
        ("ordering_class", pa.int8()),
        ("ordering_integer", pa.int64()),  # also 0 and 1, epoch days, microseconds
        ("ordering_real", pa.float64()),
        ("ordering_text", pa.string()),
        ("ordering_bytes", pa.binary()),
        ("ordering_decimal", _DECIMAL),
    ]
)
_ARRAY = pa.list_(pa.field("element", ORDERING_VALUE, nullable=False))
#: A delete block's columns. The values of several ordering fields are in `ordering_array`.
DELETES = pa.schema(
    [("record_key", pa.string()), ("partition", pa.string()), *ORDERING_VALUE, ("ordering_array", _ARRAY)]
)
ORDERING_COLUMN = {
    OrderingClass.BOOLEAN: "ordering_integer",
    OrderingClass.INT: "ordering_integer",
    OrderingClass.LONG: "ordering_integer",
    OrderingClass.FLOAT: "ordering_real",
    OrderingClass.DOUBLE: "ordering_real",
    OrderingClass.BYTES: "ordering_bytes",
    OrderingClass.STRING: "ordering_text",
    OrderingClass.DATE: "ordering_integer",
    OrderingClass.DECIMAL: "ordering_decimal",
    OrderingClass.TIME_MICROS: "ordering_integer",
    OrderingClass.TIMESTAMP_MICROS: "ordering_integer",
    OrderingClass.ARRAY: "ordering_array",
}
_VALUES = DELETES.names[3:]
_SINGLE: tuple[nodes.Node, ...] = (
    nodes.Null(),
    nodes.Boolean(),
    nodes.Integer(pa.int32()),
    nodes.Integer(pa.int64()),
    nodes.FixedWidth(pa.float32(), 4),
    nodes.FixedWidth(pa.float64(), 8),
    nodes.Bytes(pa.binary()),
    nodes.Bytes(pa.string()),
    nodes.Integer(pa.int32()),
    BytesDecimal(_DECIMAL),
    nodes.Integer(pa.int64()),
    nodes.Integer(pa.int64()),
)

#: An empty list: file groups of a metadata table begin with it, and each look-up of keys meets it.
_NO_KEYS = b"\0"


def decode_deletes(content: bytes | memoryview, path: str = "", offset: int = 0) -> pa.Table:
    """The keys that a delete block deletes, in its order: a table of schema DELETES.

    content  of a DELETE block; `path` and `offset` say where it lies, for errors
    Raises   CorruptLogBlock on malformed bytes; UnsupportedTable on the Java-serialised versions 1 and 2
    Source   Hudi's HoodieDeleteBlock; pinned by tests/vectors/delete_block_ordering.json
    """
    size = len(content)
    if size < _HEAD.size:
        raise CorruptLogBlock(path, f"a delete block's content of {size} bytes", offset)
    version, length = _HEAD.unpack_from(content)
    if version in (1, 2) or version > _VERSION:
        raise UnsupportedTable(
            f"{path} at byte {offset}: delete block version {version}; only version {_VERSION} is read "
            "(1 and 2 are Java objects of Hudi before 0.14). Compact the table with the Hudi that wrote it."
        )
    if version != _VERSION or length != size - _HEAD.size:
        raise CorruptLogBlock(path, f"delete block version {version}, {length} bytes in a content of {size}", offset)
    if content[_HEAD.size :] == _NO_KEYS:
        return DELETES.empty_table()
    try:
        lists, after = _LIST.read(Cells(memoryview(content)[_HEAD.size :]), np.zeros(1, np.int64))
    except Malformed as error:
        raise CorruptLogBlock(path, error.problem, offset + _HEAD.size + error.at) from error
    if after[0] != length:
        raise CorruptLogBlock(path, f"a delete block of {length} bytes, of which {after[0]} are its keys", offset)
    key, partition, ordering = lists.values.flatten()
    return pa.Table.from_arrays([key, partition, *ordering.flatten()], schema=DELETES)


def encode_deletes(deletes: pa.Table) -> bytes:
    """The content of a delete block: the bytes that Hudi writes for these rows.

    deletes  a table of schema DELETES, such as `deletes_of` makes
    Raises   SchemaMismatch on another schema, or an ordering value that its class does not have
    """
    if deletes.schema.names != DELETES.names:
        raise SchemaMismatch(f"deletes have columns {DELETES.names}, not {deletes.schema.names}")
    key, partition, *ordering = (column.combine_chunks() for column in deletes.cast(DELETES).columns)
    fields = list(DELETES)[2:]
    rows = pa.StructArray.from_arrays(
        [key, partition, pa.StructArray.from_arrays(ordering, fields=fields)], fields=list(_LIST.item.arrow)
    )
    pieces = Pieces(1)
    _LIST.write(pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows), pieces)
    payload: bytes = pieces.join()[0].as_py()
    return _HEAD.pack(_VERSION, len(payload)) + payload


def deletes_of(
    record_key: pa.Array, partition: pa.Array, *ordering: pa.Array | None, ordering_class: OrderingClass | None = None
) -> pa.Table:
    """Keys to delete, as a table of schema DELETES.

    ordering        values of each ordering field. None, or no field: key-only deletes, which win over every earlier
                    row: they carry the integer 0, as do rows with a null in one of the fields
    ordering_class  the Java class of the values of a single field in the table's other rows; None: the usual one of
                    their type
    Raises          SchemaMismatch if the values do not fit the class
    """
    rows = len(record_key)
    columns = dict.fromkeys(_VALUES)
    classes = np.full(rows, int(OrderingClass.INT), np.int8)
    columns["ordering_integer"] = pa.array(np.zeros(rows, np.int64))
    fields = [values for values in ordering if values is not None and not pa.types.is_null(values.type)]
    if fields and len(fields) == len(ordering):
        is_valid = reduce(pc.and_, (values.is_valid() for values in fields))
        chosen, values = (
            _single_ordering(fields[0], ordering_class) if len(fields) == 1 else _several_orderings(fields, is_valid)
        )
        classes[is_valid.to_numpy(zero_copy_only=False)] = chosen
        name = ORDERING_COLUMN[chosen]
        columns["ordering_integer"] = pc.if_else(is_valid, None, columns["ordering_integer"])
        columns[name] = values if name != "ordering_integer" else pc.coalesce(values, columns[name])
    arrays = [record_key, partition, pa.array(classes)]
    arrays += [pa.nulls(rows, DELETES.field(name).type) if columns[name] is None else columns[name] for name in _VALUES]
    return pa.table(arrays, names=DELETES.names).cast(DELETES)


def _single_ordering(values: pa.Array, ordering_class: OrderingClass | None) -> tuple[OrderingClass, pa.Array]:
    chosen = usual_class(values.type) if ordering_class is None else ordering_class
    return chosen, _as_stored(values, chosen).cast(DELETES.field(ORDERING_COLUMN[chosen]).type)


def _several_orderings(fields: Sequence[pa.Array], has_values: pa.Array) -> tuple[OrderingClass, pa.Array]:
    """The values of several fields as one list a row; null where a field has none."""
    parts = [_as_structs(values.filter(has_values)) for values in fields]
    rows, number = len(parts[0]), len(parts)
    # Row by row: the first field's, the second's, and so on.
    turns = np.arange(rows * number).reshape(number, rows).T.ravel()
    elements = pa.concat_arrays(parts).take(pa.array(turns))
    valid = has_values.to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(valid) * number])
    offsets = pa.array(ends.astype(np.int32), mask=np.append(~valid, False))
    return OrderingClass.ARRAY, pa.ListArray.from_arrays(offsets, elements, type=_ARRAY)


def _as_structs(values: pa.Array) -> pa.StructArray:
    chosen, stored = _single_ordering(values, None)
    columns = {ORDERING_COLUMN[chosen]: stored}
    arrays = [pa.array(np.full(len(values), int(chosen), np.int8))]
    arrays += [columns.get(field.name, pa.nulls(len(values), field.type)) for field in list(ORDERING_VALUE)[1:]]
    return pa.StructArray.from_arrays(arrays, fields=list(ORDERING_VALUE))


def usual_class(kind: pa.DataType) -> OrderingClass:
    """The class that Hudi 0.15 with default options gives the ordering values of a column.

    A timestamp is its long (it is a timestamp only with `consistent.logical.timestamp.enabled`).
    Raises SchemaMismatch for a type that cannot order rows
    """
    types = pa.types
    for members, chosen in (
        ((types.is_boolean,), OrderingClass.BOOLEAN),
        ((types.is_int8, types.is_int16, types.is_int32, types.is_time32), OrderingClass.INT),
        ((types.is_int64, types.is_timestamp, types.is_time64), OrderingClass.LONG),
        ((types.is_float32,), OrderingClass.FLOAT),
        ((types.is_float64,), OrderingClass.DOUBLE),
        ((types.is_string, types.is_large_string), OrderingClass.STRING),
        ((types.is_binary, types.is_large_binary, types.is_fixed_size_binary), OrderingClass.BYTES),
        ((types.is_date32,), OrderingClass.DATE),
        ((types.is_decimal,), OrderingClass.DECIMAL),
    ):
        if any(member(kind) for member in members):
            return chosen
    raise SchemaMismatch(f"a column of type {kind} cannot order rows")


def without_ordering(deletes: pa.Table) -> pa.ChunkedArray:
    """bool[n]: the deletes that win over every earlier row, because their ordering value is the integer 0."""
    integer = pc.equal(deletes["ordering_class"], pa.scalar(int(OrderingClass.INT), pa.int8()))
    return pc.and_(integer, pc.fill_null(pc.equal(deletes["ordering_integer"], 0), False))


def _as_stored(values: pa.Array, chosen: OrderingClass) -> pa.Array:
    """The values as the type that the class stores."""
    types = pa.types
    try:
        if types.is_temporal(values.type):
            if chosen is OrderingClass.TIMESTAMP_MICROS and types.is_timestamp(values.type):
                values = values.cast(pa.timestamp("us", values.type.tz))
            elif chosen is OrderingClass.TIME_MICROS and types.is_time(values.type):
                values = values.cast(pa.time64("us"))
            narrow = types.is_date32(values.type) or types.is_time32(values.type)
            values = values.cast(pa.int32() if narrow else pa.int64())
        return values.cast(_SINGLE[chosen].arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(f"ordering values of type {values.type} are no {chosen.name}: {error}") from error


class _Ordering(nodes.Node):
    """A union of wrappers, as a struct of the class and the columns its values may be in."""

    def __init__(self, arrow: pa.StructType, branches: Sequence[tuple[OrderingClass, nodes.Node]]) -> None:
        self.arrow = arrow
        self._classes_of = np.array([int(chosen) for chosen, _ in branches], np.int8)
        self._nodes = [node for _, node in branches]

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        branches, after = self._branches(cells, at)
        kinds = {field.name: field.type for field in self.arrow}
        parts_by_name: dict[str, list[tuple[NDArray[np.int64], pa.Array]]] = {name: [] for name in self.arrow.names[1:]}
        for one in np.unique(branches).tolist():
            rows = np.flatnonzero(branches == one)
            values, after[rows] = self._nodes[one].read(cells, after[rows])
            if self._classes_of[one] != OrderingClass.NULL:
                name = ORDERING_COLUMN[OrderingClass(self._classes_of[one])]
                parts_by_name[name].append((rows, values.cast(kinds[name])))
        columns = [pa.array(self._classes_of[branches])]
        columns += [_spread(parts, len(at), kinds[name]) for name, parts in parts_by_name.items()]
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow)), after

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        branches, after = self._branches(cells, at)
        for one in np.unique(branches).tolist():
            rows = np.flatnonzero(branches == one)
            after[rows] = self._nodes[one].skip(cells, after[rows])
        return after

    def skip_one(self, cells: Cells, at: int) -> int:
        one, after = cells.varint(at)
        if not 0 <= one < len(self._nodes):
            raise Malformed(f"an ordering value of unknown class {one}", at)
        return self._nodes[one].skip_one(cells, after)

    def write(self, values: pa.Array, out: Pieces) -> None:
        columns = dict(zip(self.arrow.names, values.flatten(), strict=True))
        classes = to_numpy(columns["ordering_class"], "i1").astype(np.int64)
        if columns["ordering_class"].null_count or ((classes < 0) | (classes > self._classes_of.max())).any():
            raise SchemaMismatch("a delete whose ordering_class is null or unknown")
        out.varints(classes)
        parts, rows_of = [], []
        for one in np.unique(classes).tolist():
            rows = np.flatnonzero(classes == one)
            pieces = type(out)(len(rows))
            if one != OrderingClass.NULL:
                node = self._nodes[one]
                stored = columns[ORDERING_COLUMN[OrderingClass(one)]].take(pa.array(rows))
                node.write(stored if one == OrderingClass.ARRAY else _as_stored(stored, OrderingClass(one)), pieces)
            parts.append(pieces.join())
            rows_of.append(rows)
        if parts:
            order = np.empty(len(classes), np.int64)
            order[np.concatenate(rows_of)] = np.arange(len(classes))
            out.binary(parts[0] if len(parts) == 1 else pa.concat_arrays(parts).take(pa.array(order)))

    def _branches(self, cells: Cells, at: Cursors) -> tuple[NDArray[np.int64], Cursors]:
        branches, after = cells.varints(at)
        fail_where((branches < 0) | (branches >= len(self._nodes)), "an ordering value of unknown class", at)
        return branches, after


def _spread(parts: list[tuple[NDArray[np.int64], pa.Array]], count: int, kind: pa.DataType) -> pa.Array:
    """The parts' values at their rows, null elsewhere."""
    if not parts:
        return pa.nulls(count, kind)
    values = pa.concat_arrays([part for _, part in parts])
    place = np.full(count, -1, np.int64)
    place[np.concatenate([rows for rows, _ in parts])] = np.arange(len(values))
    return values.take(pa.array(place, mask=place < 0))


_TEXT = nodes.Nullable(nodes.Bytes(pa.string()), 0)
_BRANCHES = [(OrderingClass(number), node) for number, node in enumerate(_SINGLE)]
_ELEMENT = _Ordering(
    ORDERING_VALUE, [*_BRANCHES, (OrderingClass.DATE, nodes.Integer(pa.int32()))]
)  # java.time.LocalDate
_SEVERAL = (OrderingClass.ARRAY, nodes.Nullable(nodes.Items(_ARRAY, _ELEMENT), 0))
_ORDERING = _Ordering(pa.struct(list(DELETES)[2:]), [*_BRANCHES, _SEVERAL])
_RECORD = nodes.Record((("recordKey", _TEXT), ("partitionPath", _TEXT), ("orderingVal", _ORDERING)))
_LIST = nodes.Items(pa.list_(pa.field("element", _RECORD.arrow, nullable=False)), _RECORD)
