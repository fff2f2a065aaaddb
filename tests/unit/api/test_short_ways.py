"""Calls of a notebook with nothing in the way: frames of a table, results as instants, lists of keys, what is shown."""

import datetime as dt
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.errors import HoodieError, InvalidInput, SchemaMismatch
from hoodie.model.meta import META_COLUMNS
from tests.support.untouched import untouched

COLUMNS = ["id", "city", "fare"]


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable[Rows]:
    return hoodie.create_table(str(tmp_path / "t"), name="trips", record_key="id")


def rows(*values: tuple[int, str, float]) -> pa.Table:
    return pa.table({name: [row[at] for row in values] for at, name in enumerate(COLUMNS)})


def test_a_table_gives_its_rows_as_frames_without_the_columns_of_hudi(table: HoodieTable[Rows]):
    table.upsert(rows((1, "oslo", 1.0), (2, "rome", 2.0)))
    assert table.to_arrow().sort_by("id") == rows((1, "oslo", 1.0), (2, "rome", 2.0))
    assert list(table.to_pandas(filters="fare > 1").columns) == COLUMNS
    assert table.to_polars(columns=["fare"])["fare"].sum() == 3.0
    assert table.to_arrow(meta=True).schema.names == table.snapshot(meta=True).schema.names
    assert table.lazy().filter(pl.col("id") == 2).collect()["city"].to_list() == ["rome"]
    assert table.dataset().to_table(columns=["id"], filter=pc.field("fare") < 2).to_pydict() == {"id": [1]}


def test_rows_in_arrow_have_nothing_of_the_footers_of_files(table: HoodieTable[Rows]):
    table.upsert(rows((1, "oslo", 1.0), (2, "rome", 2.0)))
    assert table.to_arrow().schema.metadata is None
    assert table.changes("earliest", filters="fare > 1").to_arrow().schema.metadata is None


def test_the_result_of_a_write_is_an_instant(table: HoodieTable[Rows]):
    first = table.upsert(rows((1, "oslo", 1.0)))
    second = table.upsert(rows((2, "rome", 2.0)))
    third = table.delete([1])
    assert table.as_of(first).count() == 1
    assert table.as_of(second).count() == 2
    assert table.changes(first).count() == table.changes(first, second).count() == 1
    assert table.snapshot(optimized=True, as_of=second).count() == 2
    assert len(table.scan(as_of=first).slices) == 1
    assert table.as_of(third).count() == 1


def test_an_instant_of_the_history_is_a_point_in_time(table: HoodieTable[Rows]):
    table.upsert(rows((1, "oslo", 1.0)))
    table.upsert(rows((2, "rome", 2.0)))
    (_, _), (first, _) = table.history()
    assert table.as_of(first).count() == table.changes(first).count() == 1


def test_numbers_are_seconds_or_milliseconds_since_1970(table: HoodieTable[Rows]):
    first = table.upsert(rows((1, "oslo", 1.0)))
    table.upsert(rows((2, "rome", 2.0)))
    moment = dt.datetime.strptime(first.instant, "%Y%m%d%H%M%S%f").replace(tzinfo=dt.UTC).timestamp()
    for number in (moment, round(moment * 1000)):
        assert table.as_of(number).count() == table.changes(number).count() == 1
    assert table.as_of(int(moment) + 3600).count() == 2
    for number in (0, int(first.instant), float("nan"), True):
        with pytest.raises(InvalidInput, match="not a point in time"):
            table.as_of(number)


def test_what_names_an_instant_is_taken_where_one_is_to_be_named(table: HoodieTable[Rows]):
    table.upsert(rows((1, "oslo", 1.0)))
    second = table.upsert(rows((2, "rome", 2.0)))
    kept = table.savepoint(second)
    third = table.upsert(rows((3, "bern", 3.0)))
    table.upsert(rows((4, "bonn", 4.0)))
    assert table.as_of(kept).count() == 2
    assert table.rollback(table.history()[0][0]).target > third.instant
    assert table.rollback(third).target == third.instant
    table.upsert(rows((5, "bonn", 4.0)))
    assert table.restore(kept).savepoint == table.restore(second, dry_run=True).savepoint == second.instant
    table.delete_savepoint(table.history()[0][0])
    assert table.savepoints() == []


@pytest.mark.parametrize("wrong", [1, "", dt.datetime(2024, 1, 31), np.str_, [], b"20240131120000000"])
def test_what_names_no_instant_is_refused(table: HoodieTable[Rows], wrong: Any):
    table.upsert(rows((1, "oslo", 1.0)))
    for call in (table.rollback, table.savepoint, table.restore, table.delete_savepoint, table.compact):
        with pytest.raises(InvalidInput, match=f"{call.__name__} does not take .*expected an instant as text"):
            call(wrong)
    with pytest.raises(InvalidInput, match="restore does not take None: expected an instant"):
        table.restore(None)  # type: ignore[arg-type]
    for call in (table.rollback, table.as_of, table.changes):
        with pytest.raises(InvalidInput, match=r"entries are pairs: history\(\)\[0\]\[0\]"):
            call(table.history()[0])  # type: ignore[operator]


def test_the_client_takes_what_names_an_instant(table: HoodieTable[Rows]):
    client = hoodie.hudi.HoodieWriteClient(table.path, {"hoodie.auto.commit": "false"})
    result = client.upsert(rows((1, "oslo", 1.0)), client.start_commit())
    client.rollback(client.commit(result, result))
    assert table.count() == 0
    with pytest.raises(InvalidInput, match="upsert does not take None"):
        client.upsert(rows((1, "oslo", 1.0)), None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not a str"):
        client.commit("20240131120000000", "20240131120000000")  # type: ignore[arg-type]


def test_a_list_is_the_keys_of_a_key_of_one_column(table: HoodieTable[Rows], tmp_path: Path):
    table.upsert(rows((1, "oslo", 1.0), (2, "rome", 2.0), (3, "bern", 3.0)))
    assert table.get([3, 1, 9], columns=["id"]).rows.to_arrow().sort_by("id").to_pydict() == {"id": [1, 3]}
    assert table.delete([1, 9]).deleted == 1
    assert table.delete([]).deleted == 0
    assert table.delete(where=[("fare", ">", 2.5)]).deleted == 1
    with pytest.raises(InvalidInput, match="the list of keys holds what 'id'"):
        table.delete(["one"])
    with pytest.raises(InvalidInput, match=r"keys are a list, also where it is one: \[3\]"):
        table.get(3)
    two = hoodie.create_table(str(tmp_path / "two"), name="two", record_key=["id", "city"])
    two.upsert(rows((1, "oslo", 1.0)))
    with pytest.raises(InvalidInput, match="the key of two is made of id, city"):
        two.get([1])
    parts = hoodie.create_table(str(tmp_path / "parts"), name="parts", record_key="id", partition_by="city")
    parts.upsert(rows((1, "oslo", 1.0)))
    with pytest.raises(
        SchemaMismatch, match=r"finds a key within its partition only.* or name the rows by a condition \(scan\(filters"
    ):
        parts.get([1])
    anywhere = {"hoodie.index.type": "GLOBAL_SIMPLE"}
    assert parts.delete([1], options=anywhere).deleted == 1


@pytest.mark.parametrize(
    "keys",
    [
        *((1, 9), {1, 9}, range(2), [1.0], np.array([1, 9]), pa.array([1]), pa.chunked_array([[1], [9]])),
        *(pd.Series([1, 9], index=[5, 6]), pd.Series([1, None], dtype="Int64").dropna(), pl.Series([1.0, 9.0])),
    ],
)
def test_a_column_is_the_keys_of_a_key_of_one_column(table: HoodieTable[Rows], keys: Any):
    table.upsert(rows((1, "oslo", 1.0), (2, "rome", 2.0)))
    assert table.get(keys).rows.to_arrow()["id"].to_pylist() == [1]
    assert table.delete(keys).deleted == 1


@pytest.mark.parametrize(
    "keys",
    [
        *([1.5], np.array([1.5]), pl.Series([1.5]), [2**70], [True], np.array([True]), ["1"], pd.Series(["1"])),
        *(pd.Series(["1"], dtype="category"), [dt.date(2024, 1, 1)], [None], np.array([np.nan]), [float("nan")]),
    ],
)
def test_keys_of_another_kind_delete_nothing(table: HoodieTable[Rows], keys: Any):
    table.upsert(rows((1, "oslo", 1.0)))
    with pytest.raises(InvalidInput, match=r"what 'id' .int64. does not|null or empty"):
        table.delete(keys)
    assert table.count() == 1


def test_columns_of_a_read_are_a_list_and_another_spelling_is_named(table: HoodieTable[Rows]):
    table.upsert(rows((1, "oslo", 1.0)))
    with pytest.raises(InvalidInput, match=r"columns='fare': expected a list, such as \['fare'\]"):
        table.to_arrow(columns="fare")
    with pytest.raises(InvalidInput, match=r"no column 'FARE'\. Did you mean 'fare'"):
        table.to_arrow(columns=["FARE"])


@pytest.mark.parametrize("wrong", [0, True, [["fare"]], [None], pl.col("fare"), b"fare"])
def test_what_is_no_list_of_names_is_refused(table: HoodieTable[Rows], wrong: Any):
    table.upsert(rows((1, "oslo", 1.0)))
    with pytest.raises(InvalidInput, match="expected a list of names"):
        table.to_arrow(columns=wrong)
    with pytest.raises(InvalidInput, match="expected partition paths in a list"):
        table.snapshot(partitions=wrong).to_arrow()


def test_a_result_says_how_long_it_took_and_not_who_did_it(table: HoodieTable[Rows], tmp_path: Path):
    logged = hoodie.create_table(
        tmp_path / "logged", record_key="id", partition_by="city", table_type="MERGE_ON_READ",
        options={"hoodie.compact.inline": "false", "hoodie.compact.inline.max.delta.commits": 1},
    )  # fmt: skip
    for fare in (1.0, 2.0):
        logged.upsert(rows((1, "oslo", fare)))
    logged.schedule_compaction()
    assert "driver" not in str(logged.explain_upsert(rows((1, "oslo", 3.0))))
    results = [table.upsert(rows((1, "oslo", 1.0))), table.update({"fare": 2}), table.delete([1])]
    results += [logged.compact(), logged.delete_partitions(["oslo"])]
    for result in results:
        assert result is not None
        assert "driver" not in str(result)
        assert str(result).endswith(" s")
        assert sum(result.seconds.values()) > 0


def test_the_type_of_a_new_table_may_be_an_option_and_contradictions_make_none(tmp_path: Path):
    logged = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.recordkey.field": "id"}
    assert hoodie.create_table(tmp_path / "t", options=logged).info().table_type == "MERGE_ON_READ"
    for argument in ({"table_type": "COPY_ON_WRITE"}, {"record_key": "day"}):
        with pytest.raises(InvalidInput, match="leave one of them out"):
            hoodie.create_table(tmp_path / "other", options=logged, **argument)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_notebook_shows_what_a_table_is_and_its_first_rows(tmp_path: Path, table_type: str):
    table = hoodie.create_table(
        str(tmp_path / "t"), name="a<b", record_key="id", partition_by="city", ordering="fare", table_type=table_type
    )
    assert "no commit yet" in table._repr_html_()
    table.upsert(rows(*((at, "oslo", float(at)) for at in range(30))))
    newest = table.upsert(rows((1, "oslo", 99.0)))
    html = table._repr_html_()
    files = "30 rows" if table_type == "COPY_ON_WRITE" else "1 base file, 1 log file"
    for part in ("a&lt;b: ", "key id, partitioned by city, ordered by fare, 3 columns", files, newest.instant):
        assert part in html
    assert html.count("<tr>") == 11
    assert "<th>fare double</th>" in html
    shown = table.snapshot(columns=["id", "city"])._repr_html_()
    assert "<th>city string</th>" in shown
    assert shown.count("<tr>") == 11


def test_a_notebook_shows_why_a_table_cannot_be_read(table: HoodieTable[Rows], tmp_path: Path):
    (tmp_path / "t" / ".hoodie" / "hoodie.properties").write_text("")
    assert "hoodie.properties" in table._repr_html_()


def test_dates_beyond_pythons_calendar_are_shown(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert(pa.table({"id": [1], "day": pa.array([-800_000], pa.int32()).cast(pa.date32())}))
    assert "<td>-0221-09-04</td>" in table._repr_html_()
    assert "<td>-0221-09-04</td>" in table.snapshot()._repr_html_()


def test_dates_beyond_pythons_calendar_are_times_in_pandas(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    days = pa.array([-800_000, 3_000_000, None], pa.int32()).cast(pa.date32())
    near = pa.array([-719_162, 2_932_896, None], pa.int32()).cast(pa.date32())
    table.insert(pa.table({"id": [1, 2, 3], "day": days, "near": near}))
    frame = table.to_pandas()
    assert list(frame.columns) == ["id", "day", "near"]
    assert frame["day"].astype("int64").tolist()[:2] == [-800_000 * 86_400_000, 3_000_000 * 86_400_000]
    assert frame["day"].isna().tolist() == [False, False, True]
    assert frame["near"].tolist() == [dt.date.min, dt.date.max, None]


def test_values_of_all_types_are_shown(tmp_path: Path):
    table = hoodie.create_table(str(tmp_path / "t"), name="t", record_key="id")
    table.upsert(
        pa.table({"id": [1], "d": [dt.date(2024, 1, 31)], "s": [{"a": [1, None]}], "n": pa.nulls(1, pa.int64())})
    )
    html = table._repr_html_()
    assert "2024-01-31" in html
    assert "<td></td>" in html


def test_every_read_has_the_columns_of_hudi_when_it_asks_for_them(table: HoodieTable[Rows]):
    first = table.upsert(rows((1, "oslo", 1.0)))
    table.upsert(rows((2, "rome", 2.0)))
    reads = {
        "snapshot": lambda **meta: table.snapshot(**meta),
        "filtered": lambda **meta: table.snapshot(filters="fare > 1 and _hoodie_commit_time > '2'", **meta),
        "scan": lambda **meta: table.scan(**meta).rows(),
        "as_of": lambda **meta: table.as_of(first, **meta),
        "changes": lambda **meta: table.changes(first, **meta),
        "get": lambda **meta: table.get([1], **meta).rows,
    }
    for name, read in reads.items():
        assert read().schema.names == COLUMNS, name
        assert read().to_arrow().num_rows == read().count() > 0, name
        assert read(meta=True).schema.names == [*META_COLUMNS, *COLUMNS], name
        assert read(meta=True).to_arrow().select(COLUMNS) == read().to_arrow(), name
    assert table.scan().schema.names == COLUMNS
    assert table.snapshot(columns=["_hoodie_record_key"]).to_arrow().num_columns == 1
    assert hoodie.hudi.read(table.path).schema.names == [*META_COLUMNS, *COLUMNS]
    assert table.upsert(table.snapshot(meta=True)).updated == 2


def test_change_data_tells_the_operation_whatever_is_asked(tmp_path: Path):
    options = {"hoodie.table.cdc.enabled": True}
    logged = hoodie.create_table(str(tmp_path / "logged"), name="logged", record_key="id", options=options)
    logged.upsert(rows((1, "oslo", 1.0), (2, "rome", 2.0)))
    logged.delete([1])
    for meta in (None, False, True):
        changes = logged.changes("earliest", cdc=True, meta=meta).to_arrow()
        assert changes.schema.names == ["op", "ts_ms", "before", "after"]
        assert sorted(changes["op"].to_pylist()) == ["d", "i", "i"]


def test_a_key_that_is_the_index_of_a_frame_is_named(table: HoodieTable[Rows]):
    frame = rows((1, "oslo", 1.0)).to_pandas().set_index("id")
    with pytest.raises(SchemaMismatch, match=r"'id' is missing.* index id is not written: .*reset_index\(\)"):
        table.upsert(frame)
    assert table.upsert(frame.reset_index()).inserted == 1
    nothing = rows((2, "rome", 2.0)).to_pandas().drop(columns="id")
    with pytest.raises(SchemaMismatch, match=r"'id' is missing\.$"):
        table.upsert(nothing)


@pytest.mark.parametrize("ordering", [["ts"], ("ts", "n"), [], None])
def test_the_ordering_may_be_a_list_as_the_key_may(tmp_path: Path, ordering: Any):
    options = {"hoodie.write.table.version": 9}  # of several ordering columns
    table = hoodie.create_table(str(tmp_path / "t"), record_key="id", ordering=ordering, options=options)
    table.upsert(pa.table({"id": [1], "ts": [2], "n": [1], "v": ["new"]}))
    table.upsert(pa.table({"id": [1], "ts": [1], "n": [1], "v": ["late"]}))
    assert table.to_arrow()["v"].to_pylist() == ["new" if ordering else "late"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"ordering": 5}, "ordering=5: expected a column, or a list of columns"),
        ({"table_type": None}, "table_type=None: expected COPY_ON_WRITE or MERGE_ON_READ"),
        ({"options": ["hoodie.index.type"]}, "expected a dict, such as"),
    ],
)
def test_arguments_of_another_kind_are_refused(tmp_path: Path, wrong: dict[str, Any], words: str):
    with pytest.raises(HoodieError, match=words):
        hoodie.create_table(str(tmp_path / "t"), **{"record_key": "id", **wrong})
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("frames", [pd.DataFrame({"id": [1]}), pa.table({"id": [1]}), ["rows"], "rows"])
def test_frames_without_a_name_are_refused(table: HoodieTable[Rows], frames: Any):
    table.upsert(rows((1, "oslo", 1.0)))
    with pytest.raises(InvalidInput, match="expected rows by their names"):
        table.delete(where="id in (select id from f)", frames=frames)
    twice = pa.table([[1], [2]], names=["id", "id"])
    with pytest.raises(InvalidInput, match="frame 'f' has the column 'id' twice"):
        table.delete(where="id in (select id from f)", frames={"f": twice})
    assert table.count() == 1


def test_numbers_beyond_64_bits_are_refused(table: HoodieTable[Rows]):
    with pytest.raises(SchemaMismatch, match="the DataFrame makes no table"):
        table.upsert(pd.DataFrame({"id": [2**64], "city": ["oslo"], "fare": [1.0]}))


def test_a_table_without_a_key_says_how_rows_are_named(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", name="t")
    table.upsert(pa.table({"v": [1, 2, 3]}))
    with pytest.raises(InvalidInput, match=r"t has no record key: give rows with _hoodie_record_key and .*not a list"):
        table.delete([1])
    named = table.snapshot(meta=True, filters="v = 1").to_arrow()
    assert table.delete(named.select(["_hoodie_record_key", "_hoodie_partition_path"])).deleted == 1
    assert table.delete(where="v = 2").deleted == 1
    assert table.to_arrow().to_pylist() == [{"v": 3}]


def keyed(folder: Path, keys: pa.Array) -> HoodieTable[Rows]:
    table = hoodie.create_table(folder, name="keyed", record_key="id")
    table.upsert(pa.table({"id": keys, "n": list(range(len(keys)))}))
    return table


@pytest.mark.parametrize(
    ("stored", "keys"),
    [
        (pa.array([1, 2]), [np.float32(1.5)]),
        (pa.array([1, 2]), [Decimal("1.5")]),
        (pa.array([1, 2]), [np.True_]),
        (pa.array([1, 2]), [b"1"]),
        (pa.array([1.0, 2.0]), [True]),
        (pa.array([dt.date(2024, 1, 1)]), [dt.datetime(2024, 1, 1, 5)]),
        (pa.array([dt.date(2024, 1, 1)]), pd.to_datetime(["2024-01-01 05:00"])),
        (pa.array([dt.date(2024, 1, 1)]), [19723]),
        (pa.array([dt.datetime(2024, 1, 1)]), [pd.Timestamp("2024-01-01 00:00:00.000000001")]),
        (pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]), [dt.datetime(2024, 1, 1)]),
        (pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]), [np.datetime64("2024-01-01T00:00")]),
        (pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]), pd.to_datetime(["2024-01-01"])),
        (pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]), [dt.date(2024, 1, 1)]),
        (pa.array([dt.datetime(2024, 1, 1)]), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]),
        (pa.array([Decimal("1.6")]), [1.55]),
        (pa.array([Decimal("1.6")]), np.array([1.55])),
    ],
    ids=lambda value: f"{value!r}"[:30],
)
def test_a_key_that_its_column_cannot_hold_is_not_taken_for_another(tmp_path: Path, stored: pa.Array, keys: Any):
    table = keyed(tmp_path / "t", stored)
    for call in (table.get, table.absent, table.delete):
        with pytest.raises(InvalidInput, match="the list of keys holds what 'id'"):
            call(keys)
    assert table.count() == len(stored)


@pytest.mark.parametrize(
    ("stored", "keys"),
    [
        (pa.array([1, 2]), {1: "one"}.keys()),
        (pa.array([1, 2]), {"one": 1}.values()),
        (pa.array([1, 2]), deque([1])),
        (pa.array([1, 2]), [Decimal(1)]),
        (pa.array([1, 2]), [np.float32(1.0), 1]),
        (pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]), [pd.Timestamp("2024-01-01")]),
        (pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]), [np.datetime64("2024-01-01")]),
        (pa.array([Decimal("1.5"), Decimal("2.5")]), [1.5]),
        (pa.array(["a", "b"]), [b"a"]),
        (pa.array([b"a", b"b"]), [bytearray(b"a")]),
    ],
    ids=lambda value: f"{value!r}"[:30],
)
def test_keys_come_in_any_list_and_in_what_their_column_holds(tmp_path: Path, stored: pa.Array, keys: Any):
    table = keyed(tmp_path / "t", stored)
    assert table.get(keys).rows.to_arrow()["n"].to_pylist() == [0]
    table.delete(iter(list(keys)))
    assert table.to_arrow()["n"].to_pylist() == [1]


AWARE, NAIVE = dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1)
OTHER_TIMES = [
    (AWARE, NAIVE, "times without a zone"),
    (NAIVE, AWARE, "times with a zone"),
    (AWARE, NAIVE.date(), "dates"),
    (NAIVE, NAIVE.date(), "dates"),
    (NAIVE.date(), NAIVE, "times"),
]


@pytest.mark.parametrize(("stored", "key", "problem"), OTHER_TIMES)
@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])
def test_frames_of_keys_are_of_the_kind_of_time_that_their_column_holds(
    tmp_path: Path, stored: Any, key: Any, problem: str, frame: Callable[[dict[str, list[Any]]], Any]
):
    table = keyed(tmp_path / "t", pa.array([stored]))
    for call in (table.get, table.absent, table.delete, hoodie.hudi.HoodieReadClient(tmp_path / "t").tag_location):
        with untouched(
            table, f"do not fit the table: column 'id' has {problem}, and the table's", error=SchemaMismatch
        ):
            call(frame({"id": [key]}))
    assert table.get(frame({"id": [stored]})).rows.to_arrow()["n"].to_pylist() == [0]


def test_times_that_make_folders_are_of_the_kind_that_their_column_holds(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", name="t", record_key="id", partition_by=["at"])
    table.upsert(pa.table({"id": [1], "at": [AWARE]}))
    with pytest.raises(SchemaMismatch, match="column 'at' has times without a zone"):
        table.delete(pa.table({"id": [1], "at": [NAIVE]}))
    assert table.delete(pa.table({"id": [1], "at": [AWARE]})).deleted == 1


@pytest.mark.parametrize("key", [b"1", 1.5, Decimal(1), dt.date(2024, 1, 1), np.int64(1)])
def test_one_key_is_a_list_as_well(table: HoodieTable[Rows], key: Any):
    with pytest.raises(InvalidInput, match="keys are a list, also where it is one"):
        table.get(key)


@pytest.mark.parametrize("key", [None, pd.NaT, float("nan")])
def test_a_null_is_no_key(tmp_path: Path, key: Any):
    for stored in (pa.array([1]), pa.array([dt.date(1, 1, 1)]), pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)])):
        table = keyed(tmp_path / str(stored.type), stored)
        for call in (table.get, table.delete):
            with pytest.raises(InvalidInput, match="1 rows have a record key that is null or empty"):
                call([key])


@pytest.mark.parametrize("stored", [pa.timestamp("us", "UTC"), pa.timestamp("us")])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_frames_of_keys_may_have_times_in_another_unit(tmp_path: Path, stored: pa.DataType, unit: str):
    table = keyed(tmp_path / "t", pa.array([NAIVE, NAIVE.replace(month=2)]).cast(stored))
    keys = pd.DataFrame({"id": pa.array([NAIVE], pa.timestamp(unit, stored.tz)).to_pandas()})
    assert table.get(keys).rows.to_arrow()["n"].to_pylist() == [0]
    assert table.absent(keys).count() == 0
    assert table.delete(keys).deleted == 1
    assert table.to_arrow()["n"].to_pylist() == [1]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_keys_beyond_the_times_that_a_table_holds_are_refused(tmp_path: Path, unit: str):
    table = keyed(tmp_path / "t", pa.array([NAIVE]))
    keys = pd.DataFrame({"id": np.array(["300000-01-01"], f"M8[{unit}]")})
    for call in (table.get, table.absent, table.delete):
        with pytest.raises(SchemaMismatch, match="column 'id' has times beyond the year 294000"):
            call(keys)


def test_refused_keys_name_table_columns_and_the_way_by_a_condition(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path / "trips", record_key=["a", "b"])
    table.upsert(pa.table({"a": [1], "b": [2], "day": [dt.date(2020, 1, 1)]}))
    nothing = pa.array([None], pa.int64())
    with pytest.raises(InvalidInput, match=r"null or empty: a, b of table 'trips'\. Filter them out"):
        table.upsert(pa.table({"a": nothing, "b": nothing, "day": [dt.date(2020, 1, 1)]}))
    with pytest.raises(SchemaMismatch, match=r"'b' is missing.*delete\(where=…\)"):
        table.delete(pa.table({"a": [1]}))
    with pytest.raises(InvalidInput, match=r"made of a, b: .*delete\(where=…\)"):
        table.delete([1])
    frame = pd.DataFrame({"a": [1], "b": [2], "day": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(SchemaMismatch, match=r"cast it to date, in pandas by \.dt\.date"):
        table.upsert(frame)
    assert table.upsert(frame.assign(day=frame["day"].dt.date)).updated == 1
