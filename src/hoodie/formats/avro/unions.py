"""Avro unions of several types, as a struct with a field for each: at most one of them is not null."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie.errors import SchemaMismatch
from hoodie.formats.avro.bytes import Cells, Cursors, Malformed, Pieces
from hoodie.formats.avro.nodes import Node


class Union(Node):
    """Its branches by name; of a null branch the whole struct is null."""

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
        wrong = (branch < 0) | (branch >= len(self.branches))
        if wrong.any():
            raise Malformed("a branch that the union does not have", int(at[int(wrong.argmax())]))
        return branch, after.copy()
