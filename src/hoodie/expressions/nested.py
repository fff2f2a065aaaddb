"""Values within others: elements of lists, values of maps, fields of structs, and how many there are."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput
from hoodie.expressions.casts import cast
from hoodie.expressions.compare import comparator
from hoodie.expressions.kinds import BOOL, INT, NULL, TEXT, common_kind, evaluated_kind, is_integer
from hoodie.expressions.terms import Block, Term, computed, elementwise
from hoodie.schema.leaves import list_offsets, map_parts
from hoodie.schema.types import is_list

_ITEM = ("", "")


def value_within(value: Term, key: Term) -> Term | None:
    """`value[key]`: the element of a list at a place from 0 on, a value of a map, a field of a struct; None: there is
    no such thing. As in Spark a place beyond the list is an error, and a key that is not there is null."""
    if is_list(value.kind):
        return _element(value, key, first=0) if is_integer(key.kind) or key.kind == NULL else None
    if arrow.is_map(value.kind):
        as_text = value.kind.key_type == TEXT and not arrow.is_nested(key.kind)
        return _value(value, cast(key, TEXT) if as_text else key)
    return field(value, key.literal) if isinstance(key.literal, str) else None


def element_at(value: Term, key: Term) -> Term | None:
    """The same with places from 1 on, and from -1 on backwards; None of a struct."""
    if is_list(value.kind):
        fits = key.kind == NULL or (is_integer(key.kind) and key.kind.bit_width <= INT.bit_width)
        return _element(value, key, first=1) if fits else None
    return _value(value, key) if arrow.is_map(value.kind) else None


def field(value: Term, name: str) -> Term | None:
    """The field of a struct, in whichever case its name is written; None: there is none."""
    if not arrow.is_struct(value.kind):
        return None
    names = [child.name for child in value.kind]
    places = [at for at, one in enumerate(names) if one == name] or [
        at for at, one in enumerate(names) if one.lower() == name.lower()
    ]
    if not places:
        return None
    kind = evaluated_kind(value.kind.field(places[0]).type)
    return computed(kind, elementwise(lambda rows: pc.struct_field(rows, places[:1]).cast(kind)), value)


def size(value: Term, *, of_maps: bool = True) -> Term | None:
    """How many elements a list has, or pairs a map; null of null."""
    if is_list(value.kind):
        return computed(INT, elementwise(lambda rows: pc.list_value_length(rows).cast(INT)), value)
    if value.kind == NULL:
        return cast(value, INT)
    if not (of_maps and arrow.is_map(value.kind)):
        return None

    def lengths(rows: pa.Array) -> pa.Array:
        counts = np.diff(map_parts(rows)[0].to_numpy()).astype(np.int32)
        return pa.array(counts, INT, mask=np.asarray(rows.is_null()))

    return computed(INT, elementwise(lengths), value)


def _in_turns(of: tuple[pa.Array, ...]) -> tuple[pa.Array, pa.Array]:
    """Where the values of each row begin, and the values: those of the first row, of the second, and so on."""
    count, places = len(of[0]), np.arange(len(of) * len(of[0]))
    offsets = pa.array(np.arange(0, len(places) + 1, len(of)), INT)
    return offsets, pa.concat_arrays(of).take(pa.array(places.reshape(len(of), count).T.ravel()))


def make_list(of: Sequence[Term], kind: pa.DataType) -> Term:
    """`array`, of values of one type."""
    return computed(pa.list_(kind), elementwise(lambda *values: pa.ListArray.from_arrays(*_in_turns(values))), *of)


def make_map(keys: Sequence[Term], key_kind: pa.DataType, items: Sequence[Term]) -> Term | None:
    """`map`; None: such keys are none."""
    if arrow.is_nested(key_kind) or arrow.is_floating(key_kind):
        return None

    def run(*values: pa.Array) -> pa.Array:
        of_keys, of_items = values[: len(keys)], values[len(keys) :]
        for row in zip(*(one.to_pylist() for one in of_keys), strict=True):
            if None in row or len({*row}) < len(row):
                raise InvalidInput(f"map: of the keys {', '.join(map(repr, row))} one is null, or is there twice")
        return pa.MapArray.from_arrays(*_in_turns(of_keys), _in_turns(of_items)[1])

    return computed(pa.map_(key_kind, items[0].kind), elementwise(run), *keys, *items, fails=True)


def make_struct(names: Sequence[str], of: Sequence[Term]) -> Term:
    """`struct` and `named_struct`."""
    kind = pa.struct([(name, term.kind) for name, term in zip(names, of, strict=True)])
    return computed(kind, elementwise(lambda *values: pa.StructArray.from_arrays(values, fields=[*kind])), *of)


def contains(value: Term, element: Term) -> Term | None:
    """`array_contains`: null of a list that has nulls and not the element."""
    if not is_list(value.kind) or arrow.is_nested(value.kind.value_type):
        return None
    kind = common_kind(evaluated_kind(value.kind.value_type), element.kind)
    if kind is None or element.kind == NULL or (value.kind.value_type == TEXT) != (element.kind == TEXT):
        return None
    compare, items = (
        comparator("=", kind),
        Term(evaluated_kind(value.kind.value_type), lambda block: block.column(_ITEM)),
    )

    def run(rows: pa.Array, elements: pa.Array) -> pa.Array:
        lengths = np.diff(list_offsets(rows).to_numpy())
        row_of = np.repeat(np.arange(len(rows)), lengths)
        values = cast(items, kind).run(Block(len(row_of), lambda name: rows.flatten().cast(items.kind)))
        equal = compare(values, elements.take(pa.array(row_of)))
        hits = np.bincount(row_of, np.asarray(pc.fill_null(equal, False)), len(rows)) > 0
        unknown = np.bincount(row_of, np.asarray(equal.is_null()), len(rows)) > 0
        nulls = np.asarray(pc.or_(rows.is_null(), elements.is_null())) | (unknown & ~hits)
        return pa.array(hits, BOOL, mask=nulls)

    return computed(BOOL, elementwise(run), value, cast(element, kind))


def _element(value: Term, key: Term, *, first: int) -> Term:
    kind = evaluated_kind(value.kind.value_type)
    index = cast(key, pa.int64())

    def run(rows: pa.Array, places: pa.Array) -> pa.Array:
        valid = np.asarray(pc.and_(rows.is_valid(), places.is_valid()))
        at = places.fill_null(first).to_numpy(zero_copy_only=False) - first
        offsets = list_offsets(rows).to_numpy()
        lengths = np.diff(offsets)
        if first:
            at = np.where(at < -first, at + first + lengths, at)  # -1 is the last one
        outside = valid & ((at < 0) | (at >= lengths))
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            raise InvalidInput(
                f"there is no element {places[row].as_py()} in a list of {lengths[row]}, whose first one is {first}: "
                "compare size(…) before it, such as by if(…)"
            )
        return rows.flatten().take(pa.array(offsets[:-1] + at, mask=~valid)).cast(kind)

    return computed(kind, elementwise(run), value, index, fails=True)


def _value(value: Term, key: Term) -> Term | None:
    kind, key_kind = evaluated_kind(value.kind.item_type), value.kind.key_type
    if arrow.is_nested(key_kind) or common_kind(key_kind, key.kind) != key_kind:
        return None
    equal = comparator("=", key_kind)

    def run(rows: pa.Array, keys: pa.Array) -> pa.Array:
        offsets, map_keys, items = map_parts(rows)
        row_of = np.repeat(np.arange(len(rows)), np.diff(offsets.to_numpy()))
        matches = np.asarray(pc.fill_null(equal(map_keys, keys.take(pa.array(row_of))), False))
        with_key, at = np.unique(row_of[matches], return_index=True)  # the first pair of each
        places = np.full(len(rows), -1, np.int64)
        places[with_key] = np.flatnonzero(matches)[at]
        return items.take(pa.array(places, mask=places < 0)).cast(kind)

    return computed(kind, elementwise(run), value, cast(key, key_kind))
