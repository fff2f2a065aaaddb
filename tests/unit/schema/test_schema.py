"""Which columns a batch may have, and how a table's schema grows with it."""

import pyarrow as pa
import pytest

from hoodie.errors import SchemaMismatch
from hoodie.formats.avro.schema import from_avro, to_avro
from hoodie.schema.schema import AVRO_DEFAULT, GROWN, reconcile, stored_form, with_meta_fields, without_meta_fields
from hoodie.schema.types import TIMESTAMP, TIMESTAMP_NTZ, spark_name

INT, LONG, FLOAT, DOUBLE, STRING, BINARY = (
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
)


def one(kind: pa.DataType, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("c", kind, nullable)])


def items(kind: pa.DataType, nullable: bool = True) -> pa.DataType:
    return pa.list_(pa.field("element", kind, nullable))


def values(kind: pa.DataType) -> pa.DataType:
    return pa.map_(STRING, kind)


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


WIDENINGS = [(INT, LONG), (INT, DOUBLE), (FLOAT, DOUBLE)]
REFUSALS = [
    (STRING, BINARY),
    (INT, pa.bool_()),
    (pa.date32(), TIMESTAMP),
    (TIMESTAMP, TIMESTAMP_NTZ),
    (LONG, TIMESTAMP),
    (INT, pa.decimal128(20, 2)),
    (STRING, struct(x=INT)),
    (items(INT), values(INT)),
    (INT, items(INT)),
]


@pytest.mark.parametrize(("narrow", "wide"), WIDENINGS)
def test_a_wider_batch_widens_the_column_and_a_narrower_one_fits_it(narrow: pa.DataType, wide: pa.DataType) -> None:
    assert reconcile(one(narrow), one(wide)) == one(wide)
    assert reconcile(one(wide), one(narrow)) == one(wide)
    assert reconcile(one(items(narrow)), one(items(wide))) == one(items(wide))
    assert reconcile(one(values(narrow)), one(values(wide))) == one(values(wide))
    assert reconcile(one(struct(x=narrow)), one(struct(x=wide))) == one(struct(x=wide))


@pytest.mark.parametrize(("left", "right"), REFUSALS)
def test_types_that_reinterpret_values_are_refused_both_ways(left: pa.DataType, right: pa.DataType) -> None:
    for table, batch in ((left, right), (right, left)):
        with pytest.raises(SchemaMismatch) as caught:
            reconcile(one(table), one(batch))
        assert f"column c is {spark_name(table)} in the table and {spark_name(batch)} in the batch" in str(caught.value)


@pytest.mark.parametrize(
    ("narrow", "wide"), [(LONG, DOUBLE), (LONG, FLOAT), (INT, FLOAT), (INT, STRING), (FLOAT, STRING), (DOUBLE, STRING)]
)
def test_a_column_grows_as_hudi_lets_it_and_says_so(narrow: pa.DataType, wide: pa.DataType) -> None:
    grown = reconcile(one(narrow), one(wide))
    assert grown == one(wide)
    assert GROWN in grown.field("c").metadata
    assert reconcile(one(wide), one(narrow)) == one(wide)
    assert GROWN not in (reconcile(one(wide), one(narrow)).field("c").metadata or {})
    assert GROWN in reconcile(grown, one(wide)).field("c").metadata, "the mark stays"
    assert GROWN in from_avro(to_avro(grown, "t"), "t").field("c").metadata
    for table, batch in ((narrow, wide), (wide, narrow)):
        for nested in (items, values, lambda kind: struct(x=kind)):
            with pytest.raises(SchemaMismatch):
                reconcile(one(nested(table)), one(nested(batch)))
        with pytest.raises(SchemaMismatch, match="column c is"):
            reconcile(one(table), one(batch), pinned=["c"])


def test_the_default_of_a_column_that_becomes_text_is_text() -> None:
    table = pa.schema([pa.field("c", INT, metadata={AVRO_DEFAULT: b"5"})])
    schema = reconcile(table, one(STRING))
    assert from_avro(to_avro(schema, "t"), "t").field("c").metadata[AVRO_DEFAULT] == b'"5"'


def test_a_decimal_takes_in_fewer_digits_and_never_grows() -> None:
    table = one(pa.decimal128(10, 2))
    for fits in (pa.decimal128(10, 2), pa.decimal128(5, 2), pa.decimal128(8, 0), pa.decimal128(9, 1)):
        assert reconcile(table, one(fits)) == table
    for more in (pa.decimal128(11, 2), pa.decimal128(10, 3), pa.decimal128(9, 0), pa.decimal128(38, 10)):
        with pytest.raises(SchemaMismatch, match=r"decimal\(10,2\) in the table"):
            reconcile(table, one(more))


def test_new_nullable_columns_are_appended_at_every_level_and_order_is_the_tables() -> None:
    table = pa.schema([("b", STRING), ("a", struct(y=INT, x=INT)), ("l", items(struct(p=INT)))])
    batch = pa.schema([("n", INT), ("a", struct(x=LONG, z=STRING, y=INT)), ("l", items(struct(q=DOUBLE, p=INT)))])
    assert reconcile(table, batch) == pa.schema(
        [
            ("b", STRING),
            ("a", struct(y=INT, x=LONG, z=STRING)),
            ("l", items(struct(p=INT, q=DOUBLE))),
            ("n", INT),
        ]
    )


def test_a_new_column_takes_nulls_as_older_rows_have_none_of_it() -> None:
    batch = pa.schema([("c", INT), pa.field("n", INT, nullable=False)])
    assert reconcile(one(INT), batch).field("n") == pa.field("n", INT)


def test_a_missing_column_must_take_nulls_or_have_a_default() -> None:
    strict = pa.field("s", INT, nullable=False)
    with pytest.raises(SchemaMismatch, match="column s is missing"):
        reconcile(pa.schema([pa.field("c", INT), strict]), one(INT))
    with_default = pa.schema([pa.field("c", INT), strict.with_metadata({AVRO_DEFAULT: "0"})])
    assert reconcile(with_default, one(INT)).equals(with_default, check_metadata=True)


def test_a_column_becomes_nullable_with_the_batch_but_never_the_other_way() -> None:
    assert reconcile(one(INT, nullable=False), one(INT)).field("c").nullable
    assert reconcile(one(INT), one(INT, nullable=False)).field("c").nullable
    assert not reconcile(one(INT, nullable=False), one(INT, nullable=False)).field("c").nullable
    assert reconcile(one(items(INT, False)), one(items(INT))) == one(items(INT))


def test_a_pinned_column_keeps_type_and_nullability() -> None:
    table = one(INT, nullable=False)
    assert reconcile(table, one(INT), pinned=["c"]) == table
    assert reconcile(one(LONG), one(INT), pinned=["c"]) == one(LONG)
    with pytest.raises(SchemaMismatch, match=r"int in the table and bigint in the batch; the type of a key"):
        reconcile(table, one(LONG), pinned=["c"])
    nested = pa.schema([("s", struct(ts=INT))])
    with pytest.raises(SchemaMismatch, match=r"column s\.ts"):
        reconcile(nested, pa.schema([("s", struct(ts=LONG))]), pinned=["s.ts"])


def test_one_message_names_every_column_that_does_not_fit() -> None:
    table = pa.schema([("price", INT), ("tags", items(STRING)), ("at", struct(zone=STRING))])
    batch = pa.schema([("price", pa.bool_()), ("tags", items(INT)), ("at", struct(zone=BINARY)), ("Price", INT)])
    with pytest.raises(SchemaMismatch) as caught:
        reconcile(table, batch.remove(3))
    for words in ("price is int in the table and boolean", "tags.element is string", "at.zone is string", "binary in"):
        assert words in str(caught.value)
    with pytest.raises(SchemaMismatch, match="price occurs more than once"):
        reconcile(table, batch)


def test_names_that_differ_in_case_only_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column Price is price in the table; rename it"):
        reconcile(pa.schema([("price", INT)]), pa.schema([("Price", INT)]))
    with pytest.raises(SchemaMismatch, match=r"column s\.X is s\.x in the table"):
        reconcile(pa.schema([("s", struct(x=INT))]), pa.schema([("s", struct(X=INT))]))


@pytest.mark.parametrize("name", ["a b", "a-b", "a.b", "1a", "größe", "", "$x"])
def test_a_name_that_avro_readers_refuse_is_refused(name: str) -> None:
    with pytest.raises(SchemaMismatch, match="needs another name"):
        stored_form(pa.schema([(name, INT)]))
    with pytest.raises(SchemaMismatch, match="needs another name"):
        stored_form(pa.schema([("s", pa.struct([(name, INT)]))]))


def test_the_tables_own_names_are_refused_but_not_the_flags_a_batch_may_carry() -> None:
    allowed = pa.schema([("_hoodie_is_deleted", pa.bool_()), ("_hoodie_operation", STRING)])
    assert stored_form(allowed) == allowed
    for name in ("_hoodie_record_key", "_hoodie_file_name", "_hoodie_new"):
        with pytest.raises(SchemaMismatch, match=f"{name} has a name that is the table's own; drop it"):
            stored_form(pa.schema([(name, STRING)]))


def test_types_that_cannot_be_stored_are_all_named_in_one_message() -> None:
    bad = {
        "a": (pa.duration("us"), "interval"),
        "b": (pa.null(), "void"),
        "c": (pa.map_(INT, INT), "map<int,int>: the keys of a map must be strings"),
        "d": (pa.dense_union([pa.field("x", INT)]), "union"),
        "e": (pa.float16(), "half float"),
        "f": (pa.uint64(), "unsigned bigint"),
        "g": (pa.month_day_nano_interval(), "interval"),
        "h": (pa.timestamp("ns"), "timestamp_ntz in nanoseconds"),
        "i": (pa.decimal256(40, 2), "decimal(40,2)"),
        "j": (pa.time64("us"), "time"),
        "k": (pa.struct([]), "a struct without fields"),
        "m": (pa.decimal128(5, -2), "decimal(5,-2)"),
    }
    with pytest.raises(SchemaMismatch) as caught:
        stored_form(pa.schema([(name, kind) for name, (kind, _) in bad.items()] + [("fine", INT)]))
    for name, (_, words) in bad.items():
        assert f"column {name} is {words}" in str(caught.value)
    assert "fine" not in str(caught.value)
    with pytest.raises(SchemaMismatch, match=r"column s\.x\.element\.value is void"):
        stored_form(pa.schema([("s", struct(x=items(values(pa.null()))))]))


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        (pa.int8(), INT),
        (pa.int16(), INT),
        (pa.uint16(), INT),
        (pa.uint32(), LONG),
        (pa.large_string(), STRING),
        (pa.dictionary(INT, STRING), STRING),
        (pa.timestamp("ms", "Europe/Berlin"), TIMESTAMP),
        (pa.timestamp("s"), TIMESTAMP_NTZ),
        (pa.date64(), pa.date32()),
        (pa.decimal64(10, 2), pa.decimal128(10, 2)),
        (pa.large_list(pa.int8()), items(INT)),
        (pa.map_(pa.large_string(), pa.field("v", pa.int16(), False)), pa.map_(STRING, pa.field("value", INT, False))),
    ],
)
def test_a_column_is_stored_in_one_form(kind: pa.DataType, stored: pa.DataType) -> None:
    assert stored_form(one(kind, nullable=False)) == one(stored, nullable=False)
    assert stored_form(one(struct(x=kind))) == one(struct(x=stored))


def test_a_batch_in_another_layout_fits_the_table() -> None:
    assert reconcile(one(LONG), one(pa.int8())) == one(LONG)
    assert reconcile(one(STRING), one(pa.dictionary(INT, pa.large_string()))) == one(STRING)


def test_meta_columns_come_first_once() -> None:
    full = with_meta_fields(one(INT))
    assert full.names[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert full.names[5:] == ["c"]
    assert with_meta_fields(full) == full
    assert without_meta_fields(full) == one(INT)
