"""Avro types as nodes that read and write whole columns: one class for each way in which bytes are laid out.

A node reads the values at a vector of cursors into an Arrow array, and writes an Arrow array as pieces of rows.
Nodes are values without state; `compile.compile_schema` makes them from a schema.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hoodie.errors import SchemaMismatch
from hoodie.formats.avro.bytes import (
    Cells,
    Cursors,
    Malformed,
    Pieces,
    fail_where,
    from_numpy,
    offsets_of,
    regroup,
    to_numpy,
)
from hoodie.formats.avro.items import find_items
from hoodie.schema.types import list_of


class Node:
    """One Avro type.

    arrow   the Arrow type of its values
    least   fewest bytes of a value
    width   bytes of every value, None if they vary
    leaves  columns of primitive values below it
    """

    arrow: pa.DataType
    least: int = 1
    width: int | None = None
    leaves: int = 1

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        """The values at the cursors, which ascend, and the cursors after them."""
        raise NotImplementedError

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        """The cursors after the values, in any order of cursors."""
        raise NotImplementedError

    def skip_one(self, cells: Cells, at: int) -> int:
        """As `skip` for one cursor, where a vector would cost more than it saves."""
        raise NotImplementedError

    def write(self, values: pa.Array, out: Pieces) -> None:
        """One piece of each row. Raises SchemaMismatch on nulls, or values that do not fit the type."""
        raise NotImplementedError

    def write_nulls(self, out: Pieces) -> None:
        """As `write` of nulls alone."""
        self.write(pa.nulls(out.rows, self.arrow), out)


def fitting(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values without nulls as `kind`, by lossless steps within one family of types only."""
    if values.null_count:
        raise SchemaMismatch(f"{values.null_count} nulls where the schema says {kind} that is never null")
    other = values.type != kind and len(values) > 0 and not pa.types.is_null(values.type)
    if other and _family(values.type) != _family(kind):
        raise SchemaMismatch(f"values of type {values.type} where the schema says {kind}")
    try:
        fit = values.cast(kind)
        fit.validate(full=True)  # no reader takes bytes that are not UTF-8 for text
        return fit
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        of_type = "" if values.type == kind else f" of type {values.type}"
        raise SchemaMismatch(f"values{of_type} do not fit {kind}: {error}") from error


def _family(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_dictionary(kind):
        return _family(kind.value_type)
    for name, members in (
        ("integer", (types.is_integer,)),
        ("real", (types.is_floating,)),
        ("text", (types.is_string, types.is_large_string, types.is_string_view)),
        ("bytes", (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)),
        ("decimal", (types.is_decimal,)),
        ("date", (types.is_date,)),
        ("time", (types.is_time,)),
        ("timestamp", (types.is_timestamp,)),
    ):
        if any(member(kind) for member in members):
            return name
    return str(kind)


class Null(Node):
    """No bytes."""

    arrow, least, width = pa.null(), 0, 0

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        return pa.nulls(len(at)), at

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        return at

    def skip_one(self, cells: Cells, at: int) -> int:
        return at

    def write(self, values: pa.Array, out: Pieces) -> None:
        if values.null_count != len(values):
            raise SchemaMismatch(f"values of type {values.type} where the schema says null")


class Boolean(Node):
    """One byte, 0 or 1."""

    arrow, width = pa.bool_(), 1

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        values, end = cells.bytes_at(at), self.skip(cells, at)
        fail_where(values > 1, "a boolean that is neither 0 nor 1", at)
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(self.arrow, len(at), [None, pa.py_buffer(bits)]), end

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        return at + 1

    def skip_one(self, cells: Cells, at: int) -> int:
        return cells.forward(at, 1)

    def write(self, values: pa.Array, out: Pieces) -> None:
        out.matrix(fitting(values, self.arrow).to_numpy(zero_copy_only=False).view(np.uint8))


class Integer(Node):
    """A zig-zag varint: int, long, and the dates and times stored as them. logical: the type by which they are"""

    def __init__(self, arrow: pa.DataType, logical: str = "") -> None:
        self.arrow, self.logical = arrow, logical
        self.bits = arrow.bit_width

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        numbers, end = cells.varints(at)
        if self.bits == 32:
            narrow = numbers.astype(np.int32)
            fail_where(narrow != numbers, "an int of more than 32 bits", at)
            return from_numpy(narrow, self.arrow), end
        return from_numpy(numbers, self.arrow), end

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        return cells.varints(at)[1]

    def skip_one(self, cells: Cells, at: int) -> int:
        return cells.varint(at)[1]

    def write(self, values: pa.Array, out: Pieces) -> None:
        out.varints(to_numpy(fitting(values, self.arrow), f"i{self.bits // 8}").astype(np.int64))


class FixedWidth(Node):
    """As many bytes for each value: little-endian float and double, and fixed."""

    def __init__(self, arrow: pa.DataType, width: int) -> None:
        self.arrow, self.width, self.least = arrow, width, width
        self.bytes = width

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        values, end = cells.fixed(at, self.bytes)
        return from_numpy(values, self.arrow) if len(at) else pa.array([], self.arrow), end

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        return at + self.bytes

    def skip_one(self, cells: Cells, at: int) -> int:
        return cells.forward(at, self.bytes)

    def write(self, values: pa.Array, out: Pieces) -> None:
        out.matrix(to_numpy(fitting(values, self.arrow), f"V{self.bytes}").view(np.uint8).reshape(-1, self.bytes))


class Vector(FixedWidth):
    """The numbers of a VECTOR of Hudi 1.2 as bytes. column: the list that they are, which `conform` makes of them"""

    def __init__(self, item: pa.DataType, width: int) -> None:
        super().__init__(pa.binary(width), width)
        self.column = list_of(pa.field("element", item, nullable=False))


class Prefixed(Node):
    """Bytes after their length."""

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        return cells.spans(at)[1]

    def skip_one(self, cells: Cells, at: int) -> int:
        length, at = cells.varint(at)
        return cells.forward(at, length)


class Bytes(Prefixed):
    """string and bytes."""

    def __init__(self, arrow: pa.DataType) -> None:
        self.arrow = arrow

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        begin, end = cells.spans(at)
        values = cells.gather(begin, end)
        if self.arrow == pa.binary():
            return values, end
        try:
            return values.cast(self.arrow), end
        except pa.ArrowInvalid as error:
            valid = [_is_text(value.as_py()) for value in values]  # only on the way to an error
            raise Malformed("a string that is no UTF-8", int(at[valid.index(False)])) from error

    def write(self, values: pa.Array, out: Pieces) -> None:
        data = fitting(values, self.arrow).view(pa.binary())
        out.varints(np.diff(offsets_of(data)).astype(np.int64))
        out.binary(data)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


class Enum(Integer):
    """A symbol, stored as its index."""

    def __init__(self, symbols: tuple[str, ...]) -> None:
        super().__init__(pa.int32())
        self.arrow = pa.string()
        self.symbols = pa.array(symbols, pa.string())

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        index, end = cells.varints(at)
        fail_where((index < 0) | (index >= len(self.symbols)), "an enum index without a symbol", at)
        return self.symbols.take(pa.array(index)), end

    def write(self, values: pa.Array, out: Pieces) -> None:
        index = pc.index_in(fitting(values, self.arrow), value_set=self.symbols)
        if index.null_count:
            raise SchemaMismatch(f"a value that is none of the enum's symbols {self.symbols.to_pylist()}")
        out.varints(to_numpy(index, "i4").astype(np.int64))


class Nullable(Node):
    """A union of null and one type. `null` is the branch of null, None in a union of one type alone."""

    def __init__(self, inner: Node, null: int | None) -> None:
        self.inner, self.null = inner, null
        self.value = 0 if null != 0 else 1
        self.arrow, self.leaves = inner.arrow, inner.leaves

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        valid, at = self._branches(cells, at)
        if valid.all():
            return self.inner.read(cells, at)
        chosen = np.flatnonzero(valid)
        values, at[chosen] = self.inner.read(cells, at[chosen])
        if not len(chosen):
            return pa.nulls(len(at), self.arrow), at
        return values.take(pa.array(np.cumsum(valid) - 1, mask=~valid)), at

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        valid, at = self._branches(cells, at)
        if valid.all():
            return self.inner.skip(cells, at)
        chosen = np.flatnonzero(valid)
        at[chosen] = self.inner.skip(cells, at[chosen])
        return at

    def skip_one(self, cells: Cells, at: int) -> int:
        branch, after = cells.varint(at)
        if branch == self.null:
            return after
        if branch != self.value:
            raise Malformed(f"branch {branch} of a union that has no such branch", at)
        return self.inner.skip_one(cells, after)

    def write(self, values: pa.Array, out: Pieces) -> None:
        if self.null is None or not values.null_count:
            out.constant(2 * self.value)
            self.inner.write(values, out)
            return
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        out.matrix(np.where(valid, 2 * self.value, 2 * self.null).astype(np.uint8))
        count = len(values) - values.null_count
        if count:
            if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
                values = values.cast(self.arrow)  # Arrow cannot filter views
            pieces = type(out)(count)
            self.inner.write(values.drop_null(), pieces)
            out.binary(regroup(pieces.join(), np.concatenate(([0], np.cumsum(valid)))))

    def write_nulls(self, out: Pieces) -> None:
        if self.null is None:
            super().write_nulls(out)
        else:
            out.constant(2 * self.null)

    def _branches(self, cells: Cells, at: Cursors) -> tuple[NDArray[np.bool_], Cursors]:
        branch, after = cells.varints(at)
        valid = branch == self.value
        branches = valid if self.null is None else valid | (branch == self.null)
        fail_where(~branches, "a branch that the union does not have", at)
        return valid, after


class Record(Node):
    """Its fields, one after the other. entries: what the schema says of each beside"""

    def __init__(self, fields: tuple[tuple[str, Node], ...], entries: Sequence[Mapping[str, Any]] = ()) -> None:
        self.fields, self.entries = fields, entries
        self.arrow = pa.struct([pa.field(name, node.arrow, may_be_null(node)) for name, node in fields])
        self.least = sum(node.least for _, node in fields)
        self.leaves = sum(node.leaves for _, node in fields)
        widths = [node.width for _, node in fields]
        self.width = None if None in widths else sum(width or 0 for width in widths)

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        columns, at = self.read_columns(cells, at, None)
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow)), at

    def read_columns(self, cells: Cells, at: Cursors, names: frozenset[str] | None) -> tuple[list[pa.Array], Cursors]:
        """The fields as columns; of the fields that are not among the names only the bytes are passed."""
        columns = []
        for name, node in self.fields:
            if names is None or name in names:
                column, at = node.read(cells, at)
                columns.append(column)
            else:
                at = node.skip(cells, at)
        return columns, at

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        for _, node in self.fields:
            at = node.skip(cells, at)
        return at

    def skip_one(self, cells: Cells, at: int) -> int:
        for _, node in self.fields:
            at = node.skip_one(cells, at)
        return at

    def write(self, values: pa.Array, out: Pieces) -> None:
        if not pa.types.is_struct(values.type) or values.null_count:
            problem = "nulls" if pa.types.is_struct(values.type) else f"values of type {values.type}"
            raise SchemaMismatch(f"{problem} where the schema says {self.arrow}")
        names = [field.name for field in values.type]
        self.write_columns(dict(zip(names, values.flatten(), strict=True)), out)

    def write_columns(self, columns: dict[str, Any], out: Pieces) -> None:
        for name, node in self.fields:
            if name not in columns:
                raise SchemaMismatch(f"column {name!r} of the schema is missing; there are {sorted(columns)}")
            try:
                node.write(columns[name], out)
            except SchemaMismatch as error:
                raise SchemaMismatch(f"column {name!r}: {error}") from error


class Items(Node):
    """array and map: blocks of items, ended by an empty block."""

    def __init__(self, arrow: pa.DataType, item: Node) -> None:
        self.arrow, self.item, self.leaves = arrow, item, item.leaves

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        counts, starts, at = find_items(cells, at, self.item)
        offsets = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=offsets[1:])
        items, _ = self.item.read(cells, starts)
        if pa.types.is_map(self.arrow):
            _ = items.field(0).null_count  # Arrow 24 and 25 end the process where nobody has counted a map's keys yet
        return pa.Array.from_buffers(self.arrow, len(counts), [None, pa.py_buffer(offsets)], children=[items]), at

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        return find_items(cells, at, self.item)[2]

    def skip_one(self, cells: Cells, at: int) -> int:
        while True:
            count, at = cells.varint(at)
            if count == 0:
                return at
            if count < 0:
                _, at = cells.varint(at)
            if abs(count) * max(self.item.least, 1) > cells.size - at:
                raise Malformed("an array or map with more items than bytes", at)
            for _ in range(abs(count)):
                at = self.item.skip_one(cells, at)

    def write(self, values: pa.Array, out: Pieces) -> None:
        types = pa.types
        lists = types.is_list(values.type) or types.is_large_list(values.type) or types.is_fixed_size_list(values.type)
        if not (types.is_map(values.type) if types.is_map(self.arrow) else lists) or values.null_count:
            raise SchemaMismatch(f"values of type {values.type}, or nulls, where the schema says {self.arrow}")
        if types.is_fixed_size_list(values.type):
            values = values.cast(pa.list_(values.type.value_field))
        offsets = values.offsets.to_numpy() if len(values) else np.zeros(1, np.int32)
        first, last = int(offsets[0]), int(offsets[-1])
        if types.is_map(values.type):
            fields = [self.arrow.key_field, self.arrow.item_field.with_type(values.type.item_type)]
            pairs = [values.keys.cast(self.arrow.key_type), values.items]
            items = pa.StructArray.from_arrays(pairs, fields=fields).slice(first, last - first)
        else:
            items = values.values.slice(first, last - first)
        pieces = type(out)(len(items))
        self.item.write(items, pieces)
        counts = np.diff(offsets).astype(np.int64)
        out.varints(counts, counts > 0)
        out.binary(regroup(pieces.join(), offsets - first))
        out.constant(0)


def may_be_null(node: Node) -> bool:
    """Whether a column of this type may hold nulls."""
    return isinstance(node, Null) or (isinstance(node, Nullable) and node.null is not None)


class Union(Node):
    """A union of several types, as a struct with a field for each branch: at most one is not null, and of a null branch
    the whole struct is null."""

    def __init__(self, branches: tuple[tuple[str, Node] | None, ...]) -> None:
        self.branches = branches
        self.members = [branch for branch in branches if branch is not None]
        self.arrow = pa.struct([pa.field(name, node.arrow) for name, node in self.members])
        self.leaves = sum(node.leaves for _, node in self.members)

    def read(self, cells: Cells, at: Cursors) -> tuple[pa.Array, Cursors]:
        branch, after = self._branches(cells, at)
        columns: list[pa.Array] = []
        nulls = np.zeros(len(at), np.bool_)
        for number, member in enumerate(self.branches):
            chosen = branch == number
            if member is None:
                nulls = chosen
                continue
            places = np.flatnonzero(chosen)
            if not len(places):
                columns.append(pa.nulls(len(at), member[1].arrow))
                continue
            values, after[places] = member[1].read(cells, after[places])
            columns.append(values.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen)))
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow), mask=pa.array(nulls)), after

    def skip(self, cells: Cells, at: Cursors) -> Cursors:
        branch, after = self._branches(cells, at)
        for number, member in enumerate(self.branches):
            places = np.flatnonzero(branch == number)
            if member is not None and len(places):
                after[places] = member[1].skip(cells, after[places])
        return after

    def skip_one(self, cells: Cells, at: int) -> int:
        branch, after = cells.varint(at)
        if not 0 <= branch < len(self.branches):
            raise Malformed(f"branch {branch} of a union that has no such branch", at)
        member = self.branches[branch]
        return after if member is None else member[1].skip_one(cells, after)

    def write(self, values: pa.Array, out: Pieces) -> None:
        whole = values.is_valid().to_numpy(zero_copy_only=False)
        chosen = np.full(len(values), -1, np.int64)
        parts, places = [], []
        for number, member in enumerate(self.branches):
            if member is None:
                here = ~whole
                chosen[here] = number
                continue
            name, node = member
            column = values.field(name)
            here = whole & column.is_valid().to_numpy(zero_copy_only=False)
            if (chosen[here] >= 0).any():
                raise SchemaMismatch("a value of two types of a union")
            chosen[here] = number
            if here.any():
                pieces = type(out)(int(here.sum()))
                node.write(column.filter(pa.array(here)), pieces)
                parts.append(pieces.join())
                places.append(np.flatnonzero(here))
        if (chosen < 0).any():
            raise SchemaMismatch("a value of none of the types of a union")
        out.varints(chosen)
        if parts:  # a null has no bytes of its own
            order = np.full(len(values), -1, np.int64)
            order[np.concatenate(places)] = np.arange(sum(map(len, parts)))
            taken = pa.concat_arrays(parts).take(pa.array(order, mask=order < 0))
            out.binary(taken.fill_null(b""))

    def _branches(self, cells: Cells, at: Cursors) -> tuple[Cursors, Cursors]:
        branch, after = cells.varints(at)
        fail_where((branch < 0) | (branch >= len(self.branches)), "a branch that the union does not have", at)
        return branch, after.copy()
