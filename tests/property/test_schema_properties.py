"""Random schemas: they come back from Avro as they went, and rows move between them without loss."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import HoodieError
from hoodie.formats.avro.schema import from_avro, to_avro
from hoodie.schema.conform import conform
from hoodie.schema.schema import reconcile, stored_form
from support.strategies import leaf_types, stored_values

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(lambda name: not name.startswith("_hoodie"))


def fields(kinds: st.SearchStrategy[pa.DataType], smallest: int = 1) -> st.SearchStrategy[list[pa.Field]]:
    one = st.builds(pa.field, NAMES, kinds, st.booleans())
    return st.lists(one, min_size=smallest, max_size=4, unique_by=lambda field: field.name.lower())


def nest(kinds: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    inner = st.tuples(kinds, st.booleans())
    return st.one_of(
        inner.map(lambda each: pa.list_(pa.field("element", *each))),
        inner.map(lambda each: pa.map_(pa.string(), pa.field("value", *each))),
        fields(kinds).map(pa.struct),
    )


KINDS = st.recursive(leaf_types(), nest, max_leaves=5)
SCHEMAS = fields(KINDS).map(pa.schema)

NARROWER = {pa.int64(): pa.int32(), pa.float64(): pa.float32()}


def samples(kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array(["0", "1" if kind.scale < kind.precision else "0"])
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.array(["", "é"])
    if kind == pa.bool_():
        return pa.array([False, True])
    return pa.array([0, -1], pa.int32()) if kind == pa.date32() else pa.array([0, 1])


def small_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Few of a type: what counts is where the nulls and the empties are."""
    return st.sampled_from(samples(kind).cast(kind).to_pylist())


def narrow(field: pa.Field) -> pa.Field:
    """The field as an older file may have it: smaller numbers, fewer fields in its structs, stricter about nulls."""
    kind = field.type
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(narrow(kind.value_field)))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(pa.string(), narrow(kind.item_field)))
    if pa.types.is_struct(kind):
        kept = [narrow(child) for index, child in enumerate(kind) if index == 0 or not child.nullable]
        return field.with_type(pa.struct(kept))
    return field.with_type(NARROWER.get(kind, kind))


def filled(value: Any, kind: pa.DataType) -> Any:
    """The value with null for the struct fields that it lacks."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {child.name: filled(value.get(child.name), child.type) for child in kind}
    if pa.types.is_list(kind):
        return [filled(each, kind.value_type) for each in value]
    if pa.types.is_map(kind):
        return [(key, filled(each, kind.item_type)) for key, each in value]
    return value


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, st.text(max_size=8))
def test_a_schema_comes_back_from_avro_as_it_went(schema: pa.Schema, table_name: str) -> None:
    text = to_avro(schema, table_name)
    assert from_avro(text, "f").equals(schema, check_metadata=True)
    fastavro.parse_schema(json.loads(text))  # no name is defined twice


@settings(max_examples=60, deadline=None)
@given(SCHEMAS)
def test_a_schema_takes_itself_and_its_older_self_in_unchanged(schema: pa.Schema) -> None:
    older = pa.schema([narrow(field) for field in schema])
    assert stored_form(schema) == schema
    assert reconcile(schema, schema) == schema
    assert reconcile(schema, older) == schema


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rows_of_an_older_schema_keep_their_values_in_the_newer_one(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    older = pa.schema([narrow(field) for field in schema])
    row = st.fixed_dictionaries(
        {field.name: stored_values(field.type, field.nullable, small_values) for field in older}
    )
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    table = pa.Table.from_pylist(rows, schema=older)
    skip = data.draw(st.integers(0, len(rows) - 1))
    moved = conform(table.slice(skip), schema)
    moved.validate(full=True)
    assert moved.schema == schema
    assert moved.to_pylist() == [
        {each.name: filled(row[each.name], each.type) for each in schema} for row in rows[skip:]
    ]
    file = io.BytesIO()
    pq.write_table(moved, file, store_schema=False, store_decimal_as_integer=False)
    assert conform(pq.read_table(file), schema).to_pylist() == moved.to_pylist()


def complaint(text: str) -> str:
    """What is said about a text that is no schema; any other error than ours passes through."""
    try:
        from_avro(text, "f")
    except HoodieError as error:
        return str(error)
    return "f: a schema"


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_damaged_avro_schema_raises_nothing_but_our_errors(data: st.DataObject) -> None:
    text = to_avro(data.draw(SCHEMAS), "t")
    at = data.draw(st.integers(0, len(text) - 1))
    cut = data.draw(st.integers(0, 6))
    word = data.draw(
        st.sampled_from(["", "0", "null", '"', "[", "]", "{", "}", ":", ",", "-1", "1e9", '"fixed"', "true"])
    )
    damaged = text[:at] + word + text[at + cut :]
    assert "f:" in complaint(damaged)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 50), st.sampled_from(["int", "record", "fixed", "R", "null"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["type", "name", "namespace", "fields", "items", "values", "size", "logicalType", "precision", "scale"]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(JSON)
def test_any_json_is_a_schema_or_an_error_of_ours(node: Any) -> None:
    for candidate in (node, {"type": "record", "name": "R", "fields": [{"name": "c", "type": node}]}):
        assert "f:" in complaint(json.dumps(candidate))
