"""Tables that are opened without a Spark session: what goes in, what comes out, and that PySpark is not needed."""

import datetime as dt
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import ColumnLeftOut, InvalidInput, MissingPackage, SchemaMismatch, TableNotFound, UnsupportedTable
from hoodie.reading import stream
from hoodie.reading.slices.reader import base_batches
from hoodie.storage.local import LocalStorage

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "city": ["oslo", "rome", "oslo", None],
        "ts": pa.array([1, 1, 1, 1], pa.int64()),
        "amount": [1.5, 2.5, -1.0, 4.0],
    }
)


def make(path: Path, **more: object) -> hoodie.HoodieTable[hoodie.Rows]:
    settings = {"record_key": "id", "partition_by": "city", "ordering": "ts", **more}
    return hoodie.create_table(str(path / "t"), name="t", **settings)  # type: ignore[arg-type]


def ids(rows: hoodie.Rows) -> list[int]:
    return sorted(rows.to_arrow().column("id").to_pylist())


WITHOUT_PYSPARK = """
import importlib.abc, sys

class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", "pandas"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
import hoodie, hoodie.errors, pyarrow as pa

table = hoodie.create_table(sys.argv[1], name="t", record_key="id", table_type="MERGE_ON_READ")
rows = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
table.upsert(rows)
first = table.upsert(rows.slice(0, 1))
table.delete(pa.table({"id": [3]}))
assert table.snapshot().to_arrow().num_rows == table.count() == 2
assert table.get(rows.slice(1, 1)).rows.count() == 1
assert table.as_of(first.instant).count() == 3
assert table.changes("earliest").count() == 2
table.compact(table.schedule_compaction(options={"hoodie.compact.inline.max.delta.commits": 1}))
table.savepoint()
table.clean(), table.archive(), table.history(), table.file_slices(), table.info(), table.schema
assert table.check() == ()
assert len(hoodie.open_table(sys.argv[1]).scan().files) == 1
assert hoodie.open_table(path=sys.argv[1]).count() == 2
assert table.update({"v": "upper(v)"}, where="id = 1").updated == 1
assert table.merge(rows.slice(1, 1), "target.v < source.v").when_matched_delete().execute().deleted == 1
assert table.delete(where="v = 'b'").deleted == 1
for call in (lambda: hoodie.spark.local_session(), lambda: hoodie.spark.sql):
    try:
        call()
    except hoodie.errors.MissingPackage as missing:
        assert "pip install 'hoodie[spark]'" in str(missing), missing
    else:
        raise AssertionError(call)
print("fine")
"""


def test_a_table_lives_its_life_where_neither_pyspark_nor_pandas_is_installed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYSPARK, str(tmp_path / "t")], capture_output=True, text=True, check=False
    )
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize(
    "given",
    [
        lambda: ROWS,
        lambda: ROWS.to_reader(max_chunksize=2),
        lambda: ROWS.to_batches()[0],
        lambda: ROWS.to_pandas().set_index("amount", drop=False),
        lambda: pl.from_arrow(ROWS),
        lambda: duckdb.from_arrow(ROWS),
    ],
    ids=["table", "reader", "batch", "pandas", "polars", "duckdb"],
)
def test_all_that_speaks_arrow_is_written_and_read_back(tmp_path: Path, given) -> None:
    table = make(tmp_path)
    assert table.upsert(given()).inserted == 4
    found = table.snapshot(columns=ROWS.column_names).to_arrow().sort_by("id")
    assert found == ROWS
    assert table.delete(given()).deleted == 4
    assert table.count() == 0


def test_the_rows_of_a_table_come_as_whatever_is_asked_for(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(ROWS)
    rows = table.snapshot(columns=["id", "amount"])
    expected = ROWS.select(["id", "amount"])
    assert rows.schema == expected.schema
    assert rows.to_arrow().sort_by("id") == expected
    assert rows.to_pandas().sort_values("id")["amount"].tolist() == expected.column("amount").to_pylist()
    assert rows.to_polars().sort("id").equals(pl.from_arrow(expected))
    assert pl.DataFrame(rows).sort("id").equals(pl.from_arrow(expected))
    relation = rows.to_duckdb()
    assert [relation.aggregate("sum(amount)").fetchall() for _ in range(2)] == [[(7.0,)], [(7.0,)]]
    assert pa.Table.from_batches(rows.to_batches()).sort_by("id") == expected
    assert pa.table(rows).sort_by("id") == expected
    assert rows.count() == len(rows) == 4
    assert make(tmp_path / "other").upsert(table.snapshot()).inserted == 4


def test_a_session_in_the_place_of_the_path_is_refused_by_the_call_as_it_is(tmp_path: Path) -> None:
    session = SimpleNamespace(createDataFrame=None)
    for call in (hoodie.open_table, hoodie.HoodieTable, partial(hoodie.create_table, record_key="id")):
        with pytest.raises(InvalidInput, match=r"able\('trips', spark=spark\)"):
            call(session, "trips")  # type: ignore[operator]
        with pytest.raises(InvalidInput, match=r"able\(path, spark=spark\)"):
            call(session, path=tmp_path)  # type: ignore[operator]
    assert not list(tmp_path.iterdir())


def test_a_table_is_opened_in_a_storage(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "trips")
    hoodie.create_table(storage=storage, record_key="id").upsert(ROWS)
    table = hoodie.open_table(storage=storage)
    assert (table.count(), table.info().name) == (4, "trips")
    with pytest.raises(InvalidInput, match="and a storage: give one of them"):
        hoodie.open_table("trips", storage=storage)
    with pytest.raises(InvalidInput, match="expected the path of a table, not NoneType"):
        hoodie.open_table()


def test_a_scan_gives_the_rows_of_the_table_as_it_was(tmp_path: Path) -> None:
    table = make(tmp_path)
    first = table.upsert(ROWS).instant
    scan = table.scan(columns=["id"], filters="id < 3")
    assert scan.schema.names == ["id"]
    assert "filter on the rows read" in scan.explain() == str(scan)
    table.delete(where="id = 1")
    assert scan.rows().to_arrow().to_pydict() == {"id": [1, 2]}
    assert table.snapshot(columns=["id"], as_of=first).to_arrow() == table.as_of(first, columns=["id"]).to_arrow()


def test_rows_are_asked_for_by_their_keys(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    batch = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(0, 1).set_column(0, "id", pa.array([9], pa.int64()))])
    assert table.get(batch, columns=["id"]).rows.to_arrow().to_pydict() == {"id": [1]}
    assert table.absent(batch).to_arrow() == batch.slice(1)


def test_a_delete_takes_keys_or_a_condition(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    with pytest.raises(InvalidInput, match=r"by name: delete\(where="):
        table.delete(*["id = 1"])
    for named in ({}, {"keys": ROWS, "where": "id = 1"}):
        with pytest.raises(InvalidInput, match="one of them"):
            table.delete(**named)  # type: ignore[arg-type]
    assert table.count() == 4
    assert table.delete(where="true").deleted == 4


def test_what_is_not_rows_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path)
    for bad in ({"id": [1]}, 7, ["a"], object()):
        with pytest.raises(InvalidInput):
            table.upsert(bad)
    for column, kind in ((pa.array([1], pa.duration("s")), "interval"), (pa.array([dt.time(1)]), "time")):
        with pytest.raises(SchemaMismatch, match=kind):
            table.upsert(ROWS.slice(0, 1).append_column("x", column))
    with pytest.raises(SchemaMismatch, match="'city' is missing"):
        table.upsert(ROWS.drop_columns(["city"]))
    with pytest.raises(InvalidInput, match="1 rows have a record key that is null"):
        table.upsert(ROWS.set_column(0, "id", pa.array([1, None, 2, 3], pa.int64())))
    assert table.history() == []
    assert not list((tmp_path / "t").rglob("*.parquet"))
    with pytest.raises(TableNotFound):
        hoodie.open_table(tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="spark=int: expected a SparkSession"):
        hoodie.open_table(str(tmp_path / "t"), spark=3)  # type: ignore[call-overload]


def test_times_in_nanoseconds_are_taken_where_nothing_is_lost(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id")
    moment = pd.Timestamp("2024-01-31 10:00:00.123456")
    table.upsert(pd.DataFrame({"id": [1], "at": pd.Series([moment], dtype="datetime64[ns]")}))
    assert table.snapshot().to_arrow().column("at").to_pylist() == [moment.to_pydatetime()]
    finer = pd.DataFrame({"id": [1], "at": pd.Series([moment + pd.Timedelta(1, "ns")], dtype="datetime64[ns]")})
    with pytest.raises(SchemaMismatch, match="nanoseconds"):
        table.upsert(finer)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_categories_are_text_in_columns_keys_and_partition_paths(tmp_path: Path, table_type: str) -> None:
    table = make(tmp_path, table_type=table_type, options={"hoodie.datasource.write.partitionpath.urlencode": True})
    texts = {"id": [1, 2], "city": ["a/b", "oslo"], "ts": [1, 1], "note": ["x", None], "notes": [["x"], ["y", None]]}
    kinds = {"city": pl.Categorical, "note": pl.Enum(["x", "y"]), "notes": pl.List(pl.Categorical)}
    rows = pl.DataFrame(texts, schema_overrides=kinds)
    assert table.upsert(rows).inserted == 2
    assert table.upsert(rows.to_arrow()).updated == 2
    found = table.snapshot(columns=list(texts)).to_arrow().sort_by("id")
    assert found.to_pylist() == [dict(zip(texts, values, strict=True)) for values in zip(*texts.values(), strict=True)]
    assert found.schema.field("city").type == found.schema.field("note").type == pa.string()
    assert ids(table.get(rows).rows) == [1, 2]
    assert ids(hoodie.hudi.HoodieReadClient(tmp_path / "t").filter_exists(rows)) == []
    assert table.delete(rows).deleted == 2


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_column_without_any_value_is_of_the_tables_type_and_a_new_one_is_left_out(
    tmp_path: Path, table_type: str
) -> None:
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", ordering="ts", table_type=table_type)
    values = {"text": "x", "flag": True, "list": [1], "struct": {"a": 1}, "day": dt.date(2024, 1, 31)}
    table.upsert(pa.Table.from_pylist([{"id": 1, "ts": 1, **values}, {"id": 2, "ts": 1, **values}]))
    empty = pd.DataFrame({"id": [2, 3], "ts": [2, 2], **dict.fromkeys(values, None)})
    assert [pa.types.is_null(field.type) for field in pa.Schema.from_pandas(empty)][2:] == [True] * 5
    done = table.upsert(empty)
    assert (done.updated, done.inserted) == (1, 1)
    found = table.snapshot(columns=["id", *values]).to_arrow().sort_by("id").to_pylist()
    none = dict.fromkeys(values, None)
    assert found == [{"id": 1, **values}, {"id": 2, **none}, {"id": 3, **none}]
    with pytest.warns(ColumnLeftOut, match="column 'new' has no value"):
        table.upsert(empty.assign(new=None))
    assert table.schema.names == ["id", "ts", *values]


def test_rows_that_make_no_arrow_table_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    one = pd.DataFrame({"id": [1, 2], "city": ["oslo", "rome"], "ts": [1, 1]})
    for frame, problem in (
        (one.assign(x=[1, "a"]), "Conversion failed for column x"),
        (one.assign(x=pd.arrays.SparseArray([1, 2])), r"column x\) not supported"),
        (pd.concat([one, one], axis=1), "Duplicate column names"),
        (one["id"], "no table of Arrow's"),
        (pl.DataFrame({"id": [1]}, schema={"id": pl.Int128}), "no table of Arrow's.* of 'id' .Int128.. Cast it"),
        (
            pl.DataFrame({"id": [1], "x": [[1]], "y": [1]}, schema={"id": pl.Int64, "x": pl.List(pl.Int128), "y": int}),
            r"of 'x' \(List\(Int128\)\)\. Cast it",
        ),
    ):
        with pytest.raises(SchemaMismatch, match=problem):
            table.upsert(frame)
    assert table.history() == []


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_rows_of_keys_come_in_the_columns_wanted_however_often(tmp_path: Path, table_type: str) -> None:
    table = make(tmp_path, table_type=table_type)
    table.upsert(ROWS)
    table.upsert(ROWS.slice(0, 1))
    assert table.get(ROWS, columns=["id", "ts", "id"]).rows.to_arrow().column_names == ["id", "ts", "id"]
    assert table.get(ROWS, columns=[]).rows.count() == 4


def test_partitions_that_are_no_list_of_paths_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    assert ids(table.snapshot(partitions=iter(["oslo"]))) == [1, 3]  # type: ignore[arg-type]
    for partitions in ("oslo", [None], [1]):
        with pytest.raises(InvalidInput, match="expected partition paths in a list"):
            table.snapshot(partitions=partitions)  # type: ignore[arg-type]


def test_rows_go_by_a_condition(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.insert(ROWS)
    assert table.delete(where="amount < 0 or city = 'rome'").deleted == 2
    assert ids(table.snapshot()) == [1, 4]
    assert table.delete(where=[("amount", ">", 3.0)]).deleted == 1
    assert table.delete(where="amount > 100").deleted == 0
    with pytest.raises(InvalidInput, match=r"no column 'id'\. The first write of rows brings columns"):
        make(tmp_path / "new").count(filters="id = 1")
    with pytest.raises(InvalidInput, match="no column 'amuont'"):
        table.delete(where="amuont > 1")
    assert ids(table.snapshot()) == [1]


def test_partitions_that_a_filter_rules_out_are_not_read(tmp_path: Path) -> None:
    table = make(tmp_path, options={"hoodie.datasource.write.hive_style_partitioning": True})
    table.insert(ROWS)
    for filters in ("city = 'oslo'", [("city", "=", "oslo")], "city in ('oslo', 'bergen')", "city < 'p' and id < 10"):
        rows = table.snapshot(filters=filters)
        assert rows.scan is not None
        # A null is in a partition that tells nothing of the column.
        assert rows.scan.partitions == ("city=__HIVE_DEFAULT_PARTITION__", "city=oslo")
        assert ids(rows) == [1, 3]
    assert ids(table.snapshot(filters="city is null")) == [4]
    assert "in partitions that the filter rules out" in str(table.scan(filters="city = 'oslo'"))


def test_a_partition_path_that_may_be_escaped_or_not_rules_nothing_out(tmp_path: Path) -> None:
    table = make(tmp_path, options={"hoodie.datasource.write.hive_style_partitioning": True})
    table.insert(ROWS.slice(0, 1).set_column(1, "city", pa.array(["%2F"])))
    assert ids(table.snapshot(filters="city = '%2F'")) == ids(table.snapshot(filters=[("city", "=", "%2F")])) == [1]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_stream_has_the_rows_that_the_whole_has(tmp_path: Path, table_type: str) -> None:
    table = make(tmp_path, table_type=table_type)
    first = table.upsert(ROWS)
    table.upsert(ROWS.slice(0, 2).set_column(2, "ts", pa.array([2, 2], pa.int64())))
    table.delete(ROWS.slice(2, 1))
    condition = "amount > 1 and (city = 'oslo' or city is null)"
    for rows, expected in (
        (table.snapshot(), [1, 2, 4]),
        (table.snapshot(filters=condition), [1, 4]),
        (table.snapshot(columns=["id"], filters=[("amount", ">", 1), ("ts", "=", 2)]), [1, 2]),
        (table.snapshot(columns=["id"], partitions=["oslo"]), [1]),
        (table.as_of(first.instant, filters="amount < 0"), [3]),
        (table.changes(first.instant, columns=["id"], filters="amount < 2"), [1]),
        (table.snapshot(optimized=True, filters="ts = 1"), [4] if table_type == "COPY_ON_WRITE" else [1, 2, 3, 4]),
        (table.snapshot(filters="id > 9"), []),
    ):
        streamed = pa.Table.from_batches(rows.to_batches(), rows.schema)
        assert sorted(streamed.column("id").to_pylist()) == ids(rows) == expected
        assert rows.to_reader().schema == rows.to_arrow().schema == rows.schema
        assert rows.count() == len(expected)


def test_the_first_rows_open_no_more_files_than_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    opened: list[str] = []
    monkeypatch.setattr(stream, "base_batches", lambda *given: (opened.append(given[1].path), base_batches(*given))[1])
    rows = table.snapshot(columns=["id"])
    assert [len(rows.head(count)) for count in (0, 1, 2, 100)] == [0, 1, 2, 4]
    assert rows.head(1).schema == rows.schema
    opened.clear()
    rows.head(1)
    assert len(opened) == 1


def test_row_groups_that_a_filter_rules_out_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hoodie.reading import snapshot
    from hoodie.reading.filters import row_groups
    from hoodie.reading.slices import reader as file_slice_reader

    table = hoodie.create_table(
        tmp_path / "t", name="t", record_key="id", options={"hoodie.parquet.block.size": 16_000}
    )
    many = pa.table({"id": [f"{n:06d}" for n in range(50_000)], "v": range(50_000)})
    table.bulk_insert(many, options={"hoodie.bulkinsert.sort.mode": "GLOBAL_SORT"})
    seen: list[tuple[int, int]] = []

    def counting(parquet, *rest):
        found = row_groups.row_groups(parquet, *rest)
        seen.append((len(found), parquet.num_row_groups))
        return found

    monkeypatch.setattr(file_slice_reader, "row_groups", counting)
    monkeypatch.setattr(snapshot, "row_groups", counting)
    rows = table.snapshot(columns=["v"], filters="v between 100 and 110")
    assert rows.to_arrow().column("v").to_pylist() == list(range(100, 111))
    assert sum(len(batch) for batch in rows.to_batches()) == 11
    assert len(seen) == 2
    for read, there in seen:
        assert there > 3
        assert read == 1


def test_a_scan_names_the_current_files_and_refuses_where_logs_have_rows(tmp_path: Path) -> None:
    table = make(tmp_path, table_type="MERGE_ON_READ")
    table.insert(ROWS)
    table.insert(ROWS.slice(0, 1).set_column(0, "id", pa.array([9])))
    files = hoodie.open_table(table.path).scan().files
    assert len(list(Path(table.path).rglob("*.parquet"))) > len(files) == 3
    assert pl.scan_parquet(list(files)).select("id").collect().sort("id")["id"].to_list() == [1, 2, 3, 4, 9]
    table.upsert(ROWS.slice(0, 1))
    with pytest.raises(UnsupportedTable, match="1 log file would be left out"):
        hoodie.open_table(table.path).scan().files  # noqa: B018
    assert len(hoodie.open_table(table.path).scan(optimized=True).files) == 3


def test_what_a_table_is_can_be_asked(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert len(table.schema) == 0
    table.upsert(ROWS)
    found = table.info()
    assert (found.name, found.table_type, found.record_key, found.partition_by) == (
        "t", "COPY_ON_WRITE", ("id",), ("city",),
    )  # fmt: skip
    assert (found.partitions, found.base_files, found.log_files, found.commits) == (3, 3, 0, 1)
    assert found.bytes == sum(path.stat().st_size for path in Path(table.path).rglob("*.parquet"))
    assert table.schema == found.schema == ROWS.schema
    assert bool(make(tmp_path / "empty"))


def test_a_missing_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(tmp_path)
    table.upsert(ROWS)
    for module, extra, call in (
        ("polars", "polars", lambda: table.snapshot().to_polars()),
        ("duckdb", "duckdb", lambda: table.snapshot().to_duckdb()),
        ("pandas", "pandas", lambda: table.snapshot().to_pandas()),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingPackage, match=rf"pip install 'hoodie\[{extra}\]'"):
            call()


def test_rows_in_arrow_are_written_by_the_options_of_a_hudi_job(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    keys = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.partitionpath.field": "city"}
    first = hoodie.hudi.write(ROWS, path, keys)
    assert first.inserted == 4
    hoodie.hudi.write(ROWS.slice(0, 2), path, {**keys, "hoodie.datasource.write.operation": "delete"})
    assert ids(hoodie.open_table(path).snapshot()) == [3, 4]
    hoodie.hudi.write(ROWS.slice(0, 1), path, keys, mode="overwrite")
    assert ids(hoodie.open_table(path).snapshot()) == [1]
    with pytest.raises(InvalidInput, match="expected rows, not dict"):
        hoodie.hudi.write({"id": [1]}, path, keys)
