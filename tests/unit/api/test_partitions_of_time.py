"""Tables partitioned by a unit of time, writes of very many small files, and columns that no table can have."""

import datetime as dt
import uuid
import warnings
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HudiCannotRead, InvalidInput, SchemaMismatch, SmallFiles, TableMismatch
from support.oracles import read_hudi_rs

START = dt.datetime(2024, 1, 30, 22, tzinfo=dt.UTC)


def readings(count: int, step: dt.timedelta, zone: bool = True) -> pa.Table:
    times = [START + step * number for number in range(count)]
    kind = pa.timestamp("us", "UTC" if zone else None)
    cities = ["oslo", "rome"] * count
    return pa.table({"id": range(count), "city": cities[:count], "at": pa.array(times, kind)})


def folders(path: Path) -> list[str]:
    return sorted(str(found.parent.relative_to(path)) for found in path.rglob(".hoodie_partition_metadata"))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    ("unit", "step", "names"),
    [
        ("year", dt.timedelta(days=300), ["2024", "2025"]),
        ("month", dt.timedelta(days=20), ["2024-01", "2024-02", "2024-03"]),
        ("day", dt.timedelta(hours=2), ["2024-01-30", "2024-01-31"]),
        ("hour", dt.timedelta(minutes=61), ["2024-01-30-22", "2024-01-30-23", "2024-01-31-00"]),
    ],
)
def test_a_unit_of_time_makes_the_folders_and_leaves_them_out(
    tmp_path: Path, table_type: str, unit: str, step: dt.timedelta, names: list[str]
) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", partition_by=f"{unit}(at)", table_type=table_type)
    rows = readings(3, step)
    assert table.upsert(rows).inserted == 3
    assert table.upsert(rows).updated == 3
    assert folders(tmp_path) == names
    assert table.to_arrow().sort_by("id") == rows
    last = rows["at"][2].as_py()
    late = table.scan(filters=f"at >= '{last:%Y-%m-%d %H:%M:%S}'")
    assert late.partitions == (names[-1],)
    assert late.rows().to_arrow()["id"].to_pylist() == [2]
    assert table.scan(filters=[("at", "<=", START)]).partitions == (names[0],)
    assert table.count(filters=[("at", "<=", START)]) == 1
    assert table.info().partition_by == (f"{unit}(at)",)
    assert f"partitioned by {unit}(at)" in table._repr_html_()
    assert table.delete(where=f"at >= '{last:%Y-%m-%d %H:%M:%S}'").deleted == 1


def test_a_unit_stands_beside_other_columns_and_keys(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key=["id", "city"], partition_by=["city", "day(at)"])
    rows = readings(4, dt.timedelta(days=1), zone=False)
    assert table.upsert(rows).inserted == 4
    assert table.upsert(rows.slice(1, 2)).updated == 2
    assert folders(tmp_path) == ["oslo/2024-01-30", "oslo/2024-02-01", "rome/2024-01-31", "rome/2024-02-02"]
    scan = table.scan(filters="city = 'rome' and at < '2024-02-01'")
    assert scan.partitions == ("rome/2024-01-31",)
    assert scan.rows().to_arrow()["id"].to_pylist() == [1]


def test_hudi_rs_reads_a_table_partitioned_by_time(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", partition_by="day(at)")
    table.upsert(readings(5, dt.timedelta(days=1)))
    theirs = read_hudi_rs(tmp_path)
    assert theirs.select(["id", "city", "at"]).sort_by("id") == table.to_arrow().sort_by("id")


def test_times_that_are_null_are_found_wherever_their_folder_is(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", partition_by="day(at)")
    table.upsert(pa.table({"id": [1, 2], "at": pa.array([None, START], pa.timestamp("us", "UTC"))}))
    assert table.to_arrow(filters="at is null")["id"].to_pylist() == [1]
    assert table.to_arrow(filters="at > '2000-01-01'")["id"].to_pylist() == [2]


@pytest.mark.parametrize("unit", ["year", "month", "day", "hour"])
def test_times_before_1970_are_found_to_the_microsecond(tmp_path: Path, unit: str) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", partition_by=f"{unit}(at)")
    ends = [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC), START.replace(hour=0)]
    times = [end - dt.timedelta(microseconds=before) for end in ends for before in (-1, 0, 1, 999, 1000, 1001)]
    table.upsert(pa.table({"id": range(len(times)), "at": pa.array(times, pa.timestamp("us", "UTC"))}))
    for number, at in enumerate(times):
        assert table.to_arrow(filters=f"at = '{at:%Y-%m-%d %H:%M:%S.%f}'")["id"].to_pylist() == [number], at
    assert table.delete(where=f"at < '{ends[0]:%Y-%m-%d}' and at >= '1969-12-31 23:59:59.999999'").deleted == 1


def test_a_column_that_is_no_time_is_refused_by_the_first_batch(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", partition_by="day(at)")
    for values in (pa.array([dt.date(2024, 1, 1)]), pa.array([1]), pa.array(["2024-01-01"])):
        with pytest.raises(SchemaMismatch, match=r"partition column 'at' is .*: cast it to timestamp"):
            table.upsert(pa.table({"id": [1], "at": values}))
    with pytest.raises(SchemaMismatch, match="partition column 'at' is missing"):
        table.upsert(pa.table({"id": [1], "ad": [START]}))
    assert table.history() == []
    for other in ("at", "hour(at)"):
        with pytest.raises(TableMismatch):
            hoodie.create_table(tmp_path, name="t", record_key="id", partition_by=other)
    assert hoodie.create_table(tmp_path, name="t", record_key="id", partition_by="day(at)").path == str(tmp_path)


def test_arguments_that_name_no_columns_are_refused_and_none_is_none(tmp_path: Path) -> None:
    for wrong in ({"record_key": 5}, {"partition_by": ["city", 5]}, {"partition_by": {"city": 1}}):
        with pytest.raises(InvalidInput, match=r"=.*: expected a column, or a list of columns"):
            hoodie.create_table(tmp_path / "t", **{"record_key": "id", **wrong})  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by=None)  # type: ignore[arg-type]
    assert table.info().partition_by == ()


def test_columns_that_no_table_can_have_are_refused_when_it_is_made(tmp_path: Path) -> None:
    for named in ({"record_key": "Kunden Nr"}, {"partition_by": "day(Straße)"}, {"ordering": "ts-1"}):
        with pytest.raises(InvalidInput, match=r"needs another name.*; rename it, such as to"):
            hoodie.create_table(tmp_path / "t", **{"record_key": "id", **named})  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    with pytest.raises(SchemaMismatch, match=r"column 'größe\.cm' needs another name.* such as to 'groesse_cm'"):
        table.upsert(pd.DataFrame({"id": [1], "größe.cm": [1.0]}))


def test_a_column_of_a_type_that_no_table_has_comes_with_its_cast(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id")
    cases = {
        "time: cast it to string": pa.array([dt.time(1)]),
        "interval: cast it to string, or to bigint": pa.array([1], pa.duration("s")),
        r"unsigned bigint: cast it to decimal\(20,0\)": pa.array([1], pa.uint64()),
        "uuid: cast it to string": pa.array([uuid.uuid4().bytes], pa.uuid()),
    }
    for words, column in cases.items():
        with pytest.raises(SchemaMismatch, match=f"column x is {words}"):
            table.upsert(pa.table({"id": [1], "x": column}))
    with pytest.raises(SchemaMismatch, match="column x is uuid"):
        table.upsert(pd.DataFrame({"id": [1], "x": [uuid.uuid4()]}))


def test_a_batch_that_makes_hundreds_of_partitions_says_what_to_do(tmp_path: Path) -> None:
    table = hoodie.create_table(tmp_path, name="t", record_key="id", partition_by="day(at)")
    with pytest.warns(SmallFiles, match=r"makes 201 partitions of 1 rows each.*coarser than day\(at\)"):
        table.upsert(readings(201, dt.timedelta(days=1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SmallFiles)
        assert table.upsert(readings(201, dt.timedelta(days=1))).updated == 201


def test_a_bucket_index_whose_buckets_get_a_handful_of_rows_says_what_to_do(tmp_path: Path) -> None:
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 64}
    table = hoodie.create_table(tmp_path, name="t", record_key="id", options=options)
    warnings.simplefilter("error", SmallFiles)
    with pytest.raises(SmallFiles, match=r"files of \d rows each.*fewer buckets \(hoodie.bucket.index.num.buckets"):
        table.upsert(readings(300, dt.timedelta(days=1)))
    assert table.count() == 0
    few = hoodie.create_table(
        tmp_path / "few", name="few", record_key="id", options={**options, "hoodie.bucket.index.num.buckets": 4}
    )
    assert few.upsert(readings(20, dt.timedelta(days=1))).inserted == 20


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("partition_by", ["day(at)", ["city", "month(at)"]], ids=str)
@pytest.mark.parametrize("engine", ["SIMPLE", "CONSISTENT_HASHING"])
def test_a_bucket_index_is_one_of_folders_of_time_as_well(table_type, partition_by, engine, tmp_path: Path) -> None:
    if engine == "CONSISTENT_HASHING" and table_type == "COPY_ON_WRITE":
        pytest.skip("that engine is for Merge-on-Read tables")
    options = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": 2,
        "hoodie.index.bucket.engine": engine,
    }
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by=partition_by, table_type=table_type, options=options
    )
    rows = readings(20, dt.timedelta(hours=2))
    assert table.upsert(rows).inserted == 20
    assert hoodie.open_table(tmp_path / "t").upsert(rows).updated == 20
    assert table.count() == 20


@pytest.mark.parametrize("version", [6, 8])
def test_a_new_table_whose_times_hudi_0_15_does_not_know_is_told_of(tmp_path: Path, version: int) -> None:
    prefix = "hoodie.keygen.timebased."
    options = {"hoodie.datasource.write.keygenerator.type": "TIMESTAMP", "hoodie.write.table.version": version}
    options |= {prefix + "timestamp.type": "EPOCHMICROSECONDS", prefix + "output.dateformat": "yyyy"}
    scalar = {prefix + "timestamp.type": "SCALAR", prefix + "timestamp.scalar.time.unit": "MICROSECONDS"}
    rows = pa.table({"id": ["a"], "at": [1_700_000_000_000_000]})
    partitions = []
    for name, changed in (("own", {}), ("scalar", scalar)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = hoodie.create_table(
                tmp_path / name, record_key="id", partition_by="at", options={**options, **changed}
            )
        told = [warning.category for warning in caught]
        assert told == ([HudiCannotRead] if name == "own" and version == 6 else [])
        table.insert(rows)
        partitions.append({file.group.partition for file in table.file_slices()})
    assert partitions == [{"2023"}] * 2
