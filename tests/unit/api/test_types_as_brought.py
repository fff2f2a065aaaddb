"""Columns that files and data frames bring in another type than the table's, and what pandas gets of a table."""

import datetime as dt
import io
import pickle
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.errors import ColumnBecomesText, ColumnLeftOut, InvalidInput, SchemaMismatch
from support.nightly import covering

COLUMNS = {
    "id": pa.int64(), "n": pa.int64(), "i": pa.int32(), "x": pa.float64(), "b": pa.bool_(), "s": pa.string(),
    "d": pa.date32(), "m": pa.decimal128(10, 2), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"),
}  # fmt: skip
FIRST: dict[str, list[Any]] = {
    "id": [1, 2], "n": [2**53 + 1, None], "i": [7, None], "x": [0.5, None], "b": [True, None], "s": ["a", None],
    "d": [dt.date(2024, 1, 31), None], "m": [None, None], "at": [None, None], "local": [None, None],
}  # fmt: skip
NOON = dt.datetime(2024, 1, 31, 12)


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable[Rows]:
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id")
    table.upsert(pa.table(FIRST, schema=pa.schema(COLUMNS)))
    return table


def values(table: HoodieTable[Rows], column: str) -> list[Any]:
    found: list[Any] = table.snapshot(columns=list({"id", column})).to_arrow().sort_by("id").column(column).to_pylist()
    return found


def written(table: HoodieTable[Rows], options: Any = None, **columns: Any) -> Any:
    return table.upsert(pa.table(columns), missing="keep", options=options)


def test_pandas_rows_go_round_with_all_their_digits(table: HoodieTable[Rows]):
    frame = table.snapshot(columns=list(COLUMNS)).to_pandas()
    assert [str(frame[name].dtype) for name in ("id", "n", "i", "b")] == ["int64", "Int64", "Int32", "boolean"]
    assert list(frame.columns) == list(COLUMNS)
    frame["n"] = frame["n"] + 1
    frame.loc[1, "b"] = False
    table.upsert(frame)
    assert values(table, "n") == [2**53 + 2, None]
    assert values(table, "b") == [True, False]
    assert table.schema.equals(pa.schema(COLUMNS))
    plain = table.snapshot(columns=["n"]).to_pandas(types_mapper={pa.int64(): pd.ArrowDtype(pa.int64())}.get)
    assert str(plain["n"].dtype) == "int64[pyarrow]"


def test_columns_asked_for_twice_come_twice_to_pandas(table: HoodieTable[Rows]):
    rows = table.snapshot(columns=["n", "id", "n"])
    assert rows.to_pandas().equals(pd.concat([table.to_pandas(columns=[name]) for name in ("n", "id", "n")], axis=1))
    assert table.to_pandas(columns=["n", "n"]).dtypes.astype(str).tolist() == ["Int64", "Int64"]


NESTED = {
    "list": pa.array([[2**53 + 1, None], None]),
    "lists": pa.array([[[1], [None]], []], pa.list_(pa.list_(pa.int32()))),
    "struct": pa.array([{"a": 2**53 + 1, "b": None}, None], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "empty": pa.array([[], []], pa.list_(pa.string())),
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_values_go_round_through_pandas(tmp_path: Path, name: str):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    rows = pa.table({"id": [1, 2], "v": NESTED[name]})
    table.upsert(rows)
    table.upsert(table.to_pandas())
    assert table.to_arrow().sort_by("id").equals(rows)


def test_nested_values_that_tell_no_type_are_of_the_tables(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    kind = pa.struct([("a", pa.int64()), ("m", pa.map_(pa.string(), pa.list_(pa.int32())))])
    table.upsert(pa.table({"id": [1], "v": pa.array([{"a": 1, "m": [("k", [1])]}], kind), "l": [["x"]]}))
    untyped = pa.struct([("a", pa.null()), ("m", pa.map_(pa.string(), pa.list_(pa.null())))])
    table.upsert(pa.table({"id": [1], "v": pa.array([{"a": None, "m": [("k", [])]}], untyped), "l": [[]]}))
    assert table.to_arrow().to_pylist() == [{"id": 1, "v": {"a": None, "m": [("k", [])]}, "l": []}]
    with pytest.raises(SchemaMismatch, match=r"column v\.new is void"):
        table.upsert(pa.table({"id": [1], "v": [{"new": None}], "l": [[]]}))


def test_objects_of_polars_are_refused_and_not_stored_as_addresses(table: HoodieTable[Rows]):
    frame = pl.DataFrame({"id": [1], "u": [uuid.uuid4()], "s": ["a"]})
    with pytest.raises(SchemaMismatch, match=r"u of type Object: cast them to string, .*map_elements\(str"):
        table.upsert(frame, missing="keep")
    cast = frame.with_columns(u=pl.Series([str(value) for value in frame["u"]]))
    assert table.upsert(cast, missing="keep").updated == 1


def test_what_is_no_batch_of_rows_says_what_to_do(table: HoodieTable[Rows]):
    frame = table.to_pandas()
    with pytest.raises(SchemaMismatch, match=r"no table of Arrow's: a Series is one column: write rows\.to_frame\(\)"):
        table.upsert(frame["id"])
    with pytest.raises(InvalidInput, match=r"expected rows, not LazyFrame.*Collect it: rows\.collect\(\)"):
        table.upsert(pl.from_pandas(frame[["id"]]).lazy())
    with pytest.raises(InvalidInput, match=r"expected rows, not list.*pyarrow\.Table\.from_pylist\(rows\)"):
        table.upsert(frame[["id"]].to_dict("records"))
    with pytest.raises(InvalidInput, match=r"expected rows, not dict.*pyarrow\.table\(rows\)"):
        table.upsert(frame[["id"]].to_dict("list"))
    with pytest.raises(SchemaMismatch, match="column 'id' has no value, and is of its key"):
        table.upsert(pd.DataFrame({"id": [None, None]}), missing="keep")


def test_whole_doubles_fit_whole_numbers(table: HoodieTable[Rows]):
    assert written(table, id=[1.0, 3.0], n=[4.0, None], i=[5.0, 6.0]).inserted == 1
    assert (values(table, "id"), values(table, "n"), values(table, "i")) == ([1, 2, 3], [4, None, None], [5, None, 6])
    assert table.schema.equals(pa.schema(COLUMNS))
    assert table.delete(pd.DataFrame({"id": [3.0, float("nan")]}).dropna()).deleted == 1
    assert table.get(pa.table({"id": [2.0]})).rows.count() == 1


def test_whole_numbers_of_pandas_fit_keys_of_a_smaller_type(tmp_path: Path):
    kinds = {"id": pa.int32(), "p": pa.int32(), "ts": pa.int32(), "n": pa.int32()}
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="p", ordering="ts")
    table.upsert(pa.table({"id": [1, 2], "p": [1, 1], "ts": [1, 1], "n": [1, 2]}, schema=pa.schema(kinds)))
    frame = table.to_pandas().astype({"id": "int64", "p": "int64", "ts": "int64"})
    assert table.upsert(frame.assign(n=pd.Series([3, 4], dtype="int32"))).updated == 2
    assert table.get(frame[["id", "p"]]).rows.count() == 2
    batches = [
        pa.record_batch({"id": [key], "p": [1], "ts": [2], "n": pa.array([5], pa.int32())}) for key in (1, 2**31)
    ]
    with pytest.raises(
        SchemaMismatch, match="column id is int in the table, which does not hold the bigint value 2147"
    ):
        table.upsert(pa.RecordBatchReader.from_batches(batches[0].schema, batches))
    with pytest.raises(SchemaMismatch, match="the type of a key, partition or ordering column stays: cast it to int"):
        table.upsert(batches[1])
    assert table.schema.equals(pa.schema(kinds))
    assert values(table, "n") == [3, 4]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"i": [True]}, "column i is int in the table and boolean in the batch: cast it to int"),
        ({"x": [2**53 + 1]}, "column x is double in the table, which does not hold the bigint value 9007199254740993"),
        ({"x": pa.array([2**63], pa.uint64())}, "not hold the unsigned bigint value 9223372036854775808"),
        ({"d": ["2024-01-31"]}, "date in the table and string .*: cast it to date, or .* hoodie.write.read.text=true"),
        ({"d": [NOON]}, "d is date in the table and timestamp_ntz .*: cast it to date, in pandas by .dt.date"),
        ({"at": [NOON]}, r"at is timestamp .*: cast it to timestamp, in pandas by .dt.tz_localize\(its zone\)"),
        ({"local": [NOON.replace(tzinfo=dt.UTC)]}, r"cast it to timestamp_ntz, in pandas by .dt.tz_convert\(None\)"),
        ({"b": [1]}, "column b is boolean in the table and bigint in the batch: cast it to boolean"),
    ],
)
def test_other_values_are_refused_and_the_cast_is_named(table: HoodieTable[Rows], columns: Any, words: str):
    with pytest.raises(SchemaMismatch, match=words):
        written(table, id=[1], **columns)
    assert len(table.history()) == 1


@pytest.mark.parametrize(
    ("column", "kind"),
    [([1.5], pa.float64()), ([float("nan")], pa.float64()), ([1e19], pa.float64()), (["7"], pa.string())],
)
def test_a_column_of_whole_numbers_grows_to_values_that_are_none(table: HoodieTable[Rows], column: Any, kind: Any):
    written(table, id=[1], n=column)
    assert table.schema.field("n").type == kind
    assert str(values(table, "n")[0]) == str(column[0])


def test_a_column_that_becomes_text_is_warned_of_once_and_comes_back_by_a_rollback(table: HoodieTable[Rows]):
    with pytest.warns(ColumnBecomesText, match="column 'n' of table 't' was bigint and is string from this write on"):
        told = written(table, id=[1], n=["seven"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnBecomesText)
        written(table, id=[2], n=["eight"])
        with pytest.raises(ColumnBecomesText):
            written(table, id=[1], x=["nine"])
    assert [instant.requested for instant, _ in table.history()][1] == told.instant
    table.rollback(table.history()[0][0].requested)
    table.rollback(told.instant)
    assert table.schema.field("n").type == pa.int64()


def test_whole_numbers_fit_doubles_as_far_as_these_hold_each(table: HoodieTable[Rows]):
    written(table, id=[1, 2], x=[2**53, -(2**53)])
    assert values(table, "x") == [2.0**53, -(2.0**53)]


@pytest.mark.parametrize(
    ("name", "kind"),
    covering(
        [name for name in COLUMNS if name != "id"],
        [pa.null(), pa.float64(), pa.string(), pa.int64(), pa.duration("us")],
    ),
)
def test_a_column_without_values_fits_any(table: HoodieTable[Rows], name: str, kind: pa.DataType):
    written(table, id=[1], **{name: pa.nulls(1, kind)})
    assert values(table, name) == [None, None]
    assert table.schema.equals(pa.schema(COLUMNS))


def test_a_value_that_comes_later_in_a_stream_is_looked_at_too(table: HoodieTable[Rows]):
    schema = pa.schema([("id", pa.int64()), ("d", pa.string()), ("n", pa.float64())])

    def batches(day: str | None, number: float) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([], kind) for kind in schema.types], schema=schema)
        yield pa.record_batch([[1], pa.nulls(1, pa.string()), [3.0]], schema=schema)
        yield pa.record_batch([[2], pa.array([day], pa.string()), [number]], schema=schema)

    def write(day: str | None, number: float) -> None:
        table.upsert(pa.RecordBatchReader.from_batches(schema, batches(day, number)), missing="keep")

    for bad in (("2024-01-31", 4.0), (None, 4.5)):
        with pytest.raises(SchemaMismatch, match=r"does not hold the .* of the batch: cast the column"):
            write(*bad)
    assert len(table.history()) == 1
    write(None, 4.0)
    assert (values(table, "d"), values(table, "n")) == ([None, None], [3, 4])


def test_text_is_read_as_a_date_where_that_is_asked(table: HoodieTable[Rows]):
    options = {"hoodie.write.read.text": True}
    written(table, options, id=[1, 2], d=["2024-02-29", None], n=[" 12 ", None], m=["1.005", None], b=["false", "yes"])
    assert values(table, "d") == [dt.date(2024, 2, 29), None]
    assert (values(table, "n"), values(table, "b")) == ([12, None], [False, True])
    assert [str(value) for value in values(table, "m")] == ["1.01", "None"]
    with pytest.raises(SchemaMismatch, match=r"column d is date .* does not hold the string value '29\.2\.'"):
        written(table, options, id=[1], d=["29.2."])


def test_a_column_without_a_type_is_left_out_with_a_notice(tmp_path: Path, table: HoodieTable[Rows]):
    new = hoodie.create_table(str(tmp_path / "new"), name="new", record_key="id")
    with pytest.warns(ColumnLeftOut, match="table 'new': column 'note' has no value.*Cast it to have it written"):
        new.upsert(pl.DataFrame({"id": [1], "note": [None]}))
    assert new.schema.names == ["id"]
    with pytest.warns(ColumnLeftOut, match="column 'more'"):
        written(table, id=[3], more=pa.nulls(1))
    assert table.schema.names == list(COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new.upsert(pl.DataFrame({"id": [1], "note": ["x"]}))
        new.upsert(pl.DataFrame({"id": [2], "note": [None]}))
    with pytest.raises(SchemaMismatch, match="id"):
        new.upsert(pa.table({"id": pa.nulls(1), "note": ["x"]}))


def test_an_empty_frame_whose_types_pandas_made_up_makes_no_key_a_number(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    empty = pd.DataFrame({"id": [], "n": []})
    with pytest.raises(SchemaMismatch, match=r"'id' has no value.*give the column a type"):
        table.upsert(empty)
    table.upsert(empty.astype({"id": "string", "n": "float64"}))
    table.upsert(pa.table({"id": ["a"], "n": [0.5]}))
    assert table.to_arrow().schema.types == [pa.string(), pa.float64()]
    for no_rows in (empty, pd.read_csv(io.StringIO("id,n\n"))):
        assert table.upsert(no_rows).inserted == 0
        assert table.delete(no_rows[["id"]]).deleted == 0
        with pytest.raises(SchemaMismatch, match="'id' has no value"):
            table.insert_overwrite_table(no_rows)
    assert table.to_arrow().to_pylist() == [{"id": "a", "n": 0.5}]


@pytest.mark.parametrize("view", [pa.list_view, pa.large_list_view])
def test_list_views_are_written_into_lists_that_are_there(tmp_path: Path, view: Any) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="k")
    table.upsert(pa.table({"k": ["a"], "v": pa.array([[1]], pa.list_(pa.int32()))}))
    brought = pa.table({"k": ["a", "b", "c"], "v": pa.array([[1, 2], None, []], view(pa.int32()))})
    assert table.upsert(brought).updated == 1
    assert table.to_arrow().sort_by("k").column("v").to_pylist() == [[1, 2], None, []]


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        (pd.period_range("2024", periods=1), "cast it to string, in pandas by astype"),
        (pd.interval_range(0, 1, 1), "cast it to string, in pandas by astype"),
        (pa.RunEndEncodedArray.from_arrays([1], ["a"]), "decode it, by pyarrow.compute.run_end_decode"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())), "cast it to boolean"),
    ],
)
def test_what_no_table_holds_is_told_with_a_cast(tmp_path: Path, column: Any, advice: str) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="k")
    columns = {"k": [1], "v": column}
    with pytest.raises(SchemaMismatch, match=f"column v is .*: {advice}"):
        table.upsert(pa.table(columns) if isinstance(column, pa.Array) else pd.DataFrame(columns))


def test_what_has_rows_but_is_none_is_told_with_the_way(table: HoodieTable[Rows], tmp_path: Path):
    batch = pa.table({"id": [1]}).to_batches()[0]
    data = pyarrow.dataset.dataset(pa.table({"id": [1]}))
    for rows, way in (
        (data, r"rows\.scanner\(\)\.to_reader\(\)"),
        (data.scanner(), r"rows\.to_reader\(\)"),
        (iter([batch]), r"RecordBatchReader\.from_batches"),
        ([batch], r"RecordBatchReader\.from_batches"),
        (tmp_path / "t.parquet", r"pyarrow\.parquet\.read_table"),
        ([{"id": 1}], r"pyarrow\.Table\.from_pylist"),
        (table, r"rows\.snapshot\(\)"),
    ):
        with pytest.raises(InvalidInput, match=way):
            table.upsert(rows)
    with pytest.raises(InvalidInput, match=r"the list of keys holds .* pyarrow\.Table\.from_pylist"):
        table.delete([{"id": 1}])


def test_rows_that_are_pickled_say_what_to_send(table: HoodieTable[Rows]):
    assert pickle.loads(pickle.dumps(table)).count() == 2
    with pytest.raises(InvalidInput, match=r"rows are not pickled: send the table"):
        pickle.dumps(table.snapshot())


def test_a_frame_with_a_category_of_no_value_is_asked(table: HoodieTable[Rows]):
    frame = pa.table({"id": [2], "c": pa.nulls(1).dictionary_encode()})
    assert table.delete(where="id in (select id from f where c is null)", frames={"f": frame}).deleted == 1
    merge = table.merge(frame, "target.id = source.id or target.s = source.c")
    assert merge.when_matched_delete().execute().deleted == 0


def test_bytes_of_one_length_within_columns_go_round_by_pandas(tmp_path: Path):
    structs = pa.array([{"a": b"abc"}, None], pa.struct([("a", pa.binary(3))]))
    rows = pa.table({"id": [1, 2], "s": structs, "l": pa.array([[b"abc", None], None], pa.list_(pa.binary(3)))})
    table = hoodie.create_table(str(tmp_path / "bytes"), name="t", record_key="id")
    table.upsert(rows)
    assert table.upsert(table.to_pandas()).updated == 2
    assert table.to_arrow().to_pylist() == rows.to_pylist()


def test_lists_of_times_keep_their_zone_in_pandas(tmp_path: Path):
    moment = dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)
    rows = pa.table({"id": [1, 2], "l": pa.array([[moment, None], None], pa.list_(pa.timestamp("us", "UTC")))})
    table = hoodie.create_table(str(tmp_path / "times"), name="t", record_key="id")
    table.upsert(rows)
    frame = table.to_pandas()
    assert frame["l"].tolist()[0][0] == moment
    assert table.upsert(frame).updated == 2
    assert table.to_arrow().to_pylist() == rows.to_pylist()


def nested(numbers: pa.DataType, *values: Any) -> pa.Table:
    pair = pa.struct([("k", numbers), ("t", pa.string())])
    columns = [
        pa.array([[*values], None], pa.list_(numbers)),
        pa.array([{"k": values[0], "t": "u"}, None], pair),
        pa.array([[("a", values[0])], None], pa.map_(pa.string(), numbers)),
        pa.array([[{"k": values[0], "t": None}], []], pa.list_(pair)),
    ]
    return pa.table([pa.array([1, 2]), *columns], ["id", "l", "s", "m", "p"])


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("kept", "brought"), [(pa.int64(), pa.float64()), (pa.int32(), pa.float32()), (pa.float64(), pa.int64())]
)
def test_numbers_within_lists_fit_as_those_of_columns_do(tmp_path: Path, table_type: str, kept: Any, brought: Any):
    table = hoodie.create_table(tmp_path, name="t", record_key="id", table_type=table_type)
    table.upsert(nested(kept, 1, 2, None))
    columns = table.schema
    table.upsert(nested(brought, 3, None, 2**20))
    assert table.schema.equals(columns)
    assert table.to_arrow().sort_by("id").to_pylist() == nested(kept, 3, None, 2**20).to_pylist()


def test_fractions_within_lists_of_whole_numbers_are_refused(tmp_path: Path):
    table = hoodie.create_table(tmp_path, name="t", record_key="id")
    table.upsert(nested(pa.int64(), 1))
    with pytest.raises(SchemaMismatch, match=r"column l\.element is bigint in the table and double in the batch"):
        table.upsert(nested(pa.float64(), 1.5))
    later = pa.concat_tables([nested(pa.float64(), 1.0), nested(pa.float64(), 2.5)]).set_column(
        0, "id", pa.array([3, 4, 5, 6])
    )
    with pytest.raises(SchemaMismatch, match=r"column l\.element is bigint .* does not hold the double value 2\.5"):
        table.upsert(later)
    assert table.count() == 2


def test_what_lies_below_nulls_need_not_fit(tmp_path: Path):
    """Nanoseconds, and fractions, that no reader sees."""
    hidden, offsets = pa.array([True, False]), pa.array([0, 1, 2], pa.int32())
    nanos = pa.array([1, 2000], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    fractions = pa.array([0.5, 2.0])

    def rows(times: pa.Array, numbers: pa.Array) -> pa.Table:
        columns = {
            "id": pa.array([1, 2]),
            "s": pa.StructArray.from_arrays([times], ["x"], mask=hidden),
            "l": pa.ListArray.from_arrays(offsets, times, mask=hidden),
            "m": pa.MapArray.from_arrays(offsets, pa.array(["a", "b"]), times, mask=hidden),
            "n": pa.StructArray.from_arrays([numbers], ["x"], mask=hidden),
        }
        return pa.table(columns)

    table = hoodie.create_table(tmp_path, name="t", record_key="id")
    table.upsert(rows(nanos, pa.array([1, 2])))
    table.upsert(rows(nanos, fractions))
    moment = dt.datetime(1970, 1, 1, 0, 0, 0, 2, dt.UTC)
    assert table.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "s": None, "l": None, "m": None, "n": None},
        {"id": 2, "s": {"x": moment}, "l": [moment], "m": [("b", moment)], "n": {"x": 2}},
    ]
    with pytest.raises(SchemaMismatch, match="times in nanoseconds do not fit"):
        table.upsert(pa.table({"id": [1], "l": pa.array([[1]], pa.list_(pa.timestamp("ns", "UTC")))}))


def test_columns_of_several_levels_are_told_how_to_become_one(table: HoodieTable[Rows]):
    frame = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("id", ""), ("v", "x")]))
    with pytest.raises(SchemaMismatch, match=r"columns have 2 levels, such as \('id', ''\), .*'_'\.join"):
        table.upsert(frame)


def test_sparse_columns_of_pandas_are_told_how_to_become_dense(table: HoodieTable[Rows]):
    frame = pd.DataFrame({"id": [7, 8], "x": pd.arrays.SparseArray([0.0, 1.5])})
    with pytest.raises(SchemaMismatch, match=r"frame\.astype\(\{'x': frame\['x'\]\.dtype\.subtype\}\)"):
        table.upsert(frame, missing="keep")
    assert table.upsert(frame.astype({"x": frame["x"].dtype.subtype}), missing="keep").inserted == 2


def test_values_of_pandas_that_arrow_does_not_hold_are_told_with_their_column(table: HoodieTable[Rows]):
    for value, problem in (
        (2**64, "column n: .*too large.* decimal"),
        ("\ud800", "column n: .*surrogates not allowed"),
    ):
        frame = pd.DataFrame({"id": [7, 8], "n": pd.Series([value, None], dtype=object)})
        with pytest.raises(SchemaMismatch, match=problem) as refusal:
            table.upsert(frame, missing="keep")
        assert str(refusal.value).isprintable()


def test_keys_come_as_categories_of_polars(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(pa.table({"id": ["a", "b", "c"]}))
    assert table.delete(pl.Series(["a", "a"], dtype=pl.Categorical)).deleted == 1
    assert table.get(pl.Series(["b", "x"], dtype=pl.Enum(["b", "x"]))).rows.to_arrow().to_pylist() == [{"id": "b"}]


def test_keys_of_bytes_come_from_polars(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(pa.table({"id": [b"x", b"\xff"]}))
    for keys in (pl.Series([b"x"]), pl.DataFrame({"id": [b"x"]}), pa.array([b"x"], pa.large_binary())):
        assert table.get(keys).rows.to_arrow().to_pylist() == [{"id": b"x"}]
    assert table.delete(table.to_polars()["id"]).deleted == 2


def test_maps_of_views_fit_maps_of_texts(tmp_path: Path):
    """Arrow takes and filters no maps whose values are views."""
    table = hoodie.create_table(tmp_path, name="t", record_key="id")
    pairs = [[("x", {"n": 0, "t": "z"})], [("a", {"n": 1, "t": "u"})], None, [("b", {"n": 2, "t": None}), ("c", None)]]

    def rows(number: pa.DataType, text: pa.DataType) -> pa.Table:
        kind = pa.map_(pa.string(), pa.struct([("n", number), ("t", text)]))
        return pa.table({"id": [0, 1, 2, 3], "m": pa.array(pairs, kind)}).slice(1)

    table.upsert(rows(pa.int64(), pa.string()))
    table.upsert(rows(pa.float64(), pa.string_view()))
    assert table.to_arrow().sort_by("id").column("m").to_pylist() == pairs[1:]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("column", ["id", "s", "tags"])
def test_text_that_is_not_utf_8_is_refused_before_anything_is_written(tmp_path: Path, table_type: str, column: str):
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type=table_type)
    good: dict[str, Any] = {"id": ["a", "b"], "s": ["x", "y"], "tags": [["x"], ["y"]]}
    table.upsert(pa.table(good))
    files = sorted(tmp_path.rglob("*"))
    text = pa.array([b"ok", b"caf\xe9"]).view(pa.string())
    bad = pa.ListArray.from_arrays([0, 1, 2], text) if column == "tags" else text
    with pytest.raises(SchemaMismatch, match=f"column {column}: .*UTF8.*or as binary; nothing was written"):
        table.upsert(pa.table({**good, column: bad}))
    assert sorted(tmp_path.rglob("*")) == files


def test_a_null_in_a_column_that_the_batch_says_has_none_is_named(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64(), nullable=False)])
    with pytest.raises(SchemaMismatch, match="column n takes no nulls and 1 of its values are null"):
        table.upsert(pa.table({"id": [1, 2], "n": [1, None]}, schema=schema))
