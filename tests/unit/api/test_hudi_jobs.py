"""Jobs of Hudi's data source run as they are: the same options, the rows that they mean."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.config.options import as_text
from hoodie.errors import InvalidInput, InvalidOption, NoRowsYet, TableNotFound
from hoodie.timeline.points import query_instant
from support.hudi_jobs import JOBS, Job
from support.oracles import META
from support.trips import table_options

COLUMNS = ("id", "name", "city", "qty", "ts")
FIRST = [(1, "a", "oslo", 1, 10), (2, "b", "rome", 2, 10), (3, "c", "oslo", 3, 10)]
LATER = [(1, "a", "oslo", 1, 5), (2, "b", "rome", 2, 20), (4, "d", "rome", 4, 20)]


def batch(rows: Sequence[tuple[Any, ...]], columns: Sequence[str] = COLUMNS) -> pa.Table:
    return pa.table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))


def rows_of(found: hoodie.Rows, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in columns) for row in found.to_arrow().to_pylist())


def options_of(job: Job, path: str) -> dict[str, Any]:
    return {key: value.format(path=path) if isinstance(value, str) else value for key, value in job.options.items()}


@pytest.mark.parametrize(
    "job",
    [job for job in JOBS if not job.refused and "deleted" not in job.name],
    ids=lambda job: job.name,
)
def test_a_job_writes_and_reads_its_table(job: Job, tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    options = options_of(job, path)
    hoodie.hudi.write(batch(FIRST), path, options, mode=job.mode)
    hoodie.hudi.write(batch(LATER), path, options)
    rows = hoodie.hudi.read(path, {**options, "hoodie.datasource.query.type": "snapshot"})
    assert {"_hoodie_record_key", *COLUMNS} <= set(rows.schema.names)
    found = rows_of(rows, "id", "ts")
    operation = options.get("hoodie.datasource.write.operation", "upsert")
    if operation == "bulk_insert":
        assert found == sorted((row[0], row[4]) for row in [*FIRST, *LATER])
    elif "1.x" in job.name:  # by event time the older version of row 1 loses
        assert found == [(1, 10), (2, 20), (3, 10), (4, 20)]
    elif "without duplicates" in job.name:
        assert found == [(1, 10), (2, 10), (3, 10), (4, 20)]
    else:
        assert found == [(1, 5), (2, 20), (3, 10), (4, 20)]


@pytest.mark.parametrize("job", [job for job in JOBS if job.refused], ids=lambda job: job.name)
def test_a_job_that_is_refused_writes_nothing(job: Job, tmp_path: Path) -> None:
    path = tmp_path / "stock"
    with pytest.raises(InvalidOption):
        hoodie.hudi.write(batch(FIRST), str(path), job.options)
    assert not path.exists()


def test_a_job_that_deletes_takes_its_keys_away(tmp_path: Path) -> None:
    upsert, delete = JOBS[0], next(job for job in JOBS if "deleted" in job.name)
    path = str(tmp_path / "stock")
    hoodie.hudi.write(batch(FIRST), path, upsert.options)
    hoodie.hudi.write(batch(FIRST[:1]), path, delete.options)
    assert rows_of(hoodie.hudi.read(path), "id") == [(2,), (3,)]


def test_another_path_in_the_options_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    df = batch(FIRST)
    with pytest.raises(InvalidOption, match="give one path"):
        hoodie.hudi.write(df, path, {**JOBS[0].options, "path": str(tmp_path / "other")})
    with pytest.raises(TableNotFound):
        hoodie.open_table(path)


def test_overwrite_puts_another_table_in_place_unless_a_savepoint_forbids(tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    hoodie.hudi.write(batch(FIRST), path, {**JOBS[0].options, "hoodie.index.type": "BLOOM"})
    other = table_options("names", "name", partition="letter", ordering="seen")
    rows = batch([("a", "x", 1), ("a", "x", 2), ("b", "y", 1)], ("name", "letter", "seen"))
    hoodie.hudi.write(rows, path, other, mode="OVERWRITE")
    found = hoodie.hudi.read(path)
    assert set(found.schema.names) == {*META, "name", "letter", "seen"}
    assert rows_of(found, "name", "seen") == [("a", 2), ("b", 1)]  # upserts combine the batch
    hoodie.hudi.write(rows, path, {**other, "hoodie.datasource.write.operation": "insert"}, mode="overwrite")
    table = hoodie.open_table(path)
    assert table.snapshot().count() == 3  # inserts do not
    kept = table.savepoint().instant
    with pytest.raises(InvalidInput, match=f"has savepoints .{kept}"):
        hoodie.hudi.write(rows, path, other, mode="overwrite")
    rows_alone = {"hoodie.datasource.write.operation": "insert_overwrite_table"}
    hoodie.hudi.write(rows.slice(0, 1), path, {**other, **rows_alone}, mode="overwrite")
    assert table.snapshot().count() == 1
    with pytest.raises(InvalidOption, match="take mode append"):
        hoodie.hudi.write(rows, path, {**other, "hoodie.datasource.write.operation": "delete"}, mode="overwrite")


def test_an_overwrite_whose_rows_are_bad_leaves_the_table(tmp_path: Path) -> None:
    path = str(tmp_path / "stock")
    hoodie.hudi.write(batch(FIRST), path, JOBS[0].options)
    bad = pa.table({"name": pa.array([None], pa.string()), "letter": ["x"]})
    other = {"hoodie.table.name": "names", "hoodie.datasource.write.recordkey.field": "name"}
    for rows in (bad, bad.drop_columns(["name"])):
        with pytest.raises(InvalidInput):
            hoodie.hudi.write(rows, path, other, mode="overwrite")
    assert hoodie.hudi.read(path).count() == 3
    hoodie.hudi.write(batch(LATER), path, JOBS[0].options)
    assert hoodie.hudi.read(path).count() == 4


@pytest.mark.parametrize("zone", [None, dt.UTC])
def test_a_datetime_among_options_is_that_moment_and_not_the_end_of_its_second(zone: dt.tzinfo | None) -> None:
    moment = dt.datetime(2024, 1, 31, 12, 30, 45, tzinfo=zone)
    assert query_instant(as_text(moment)) == query_instant(moment)


def test_times_and_properties_files(tmp_path: Path) -> None:
    path, props = str(tmp_path / "stock"), tmp_path / "job.properties"
    props.write_text("".join(f"{key}={value}\n" for key, value in JOBS[0].options.items()), encoding="utf-8")
    first = hoodie.hudi.write(batch(FIRST), path, props=props).instant
    hoodie.hudi.write(batch(LATER), path, props=str(props))
    moment = dt.datetime.strptime(first, "%Y%m%d%H%M%S%f").replace(tzinfo=dt.UTC)
    for point in (moment, moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")):
        assert hoodie.hudi.read(path, {"as.of.instant": point}).count() == 3
        begin = {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": point,
        }
        assert hoodie.hudi.read(path, begin, props=props).count() == 3
    table = hoodie.open_table(path)
    assert table.as_of(moment).count() == 3
    assert table.changes(moment).count() == 3
    with pytest.warns(NoRowsYet, match="has no rows yet: its first commit is"):
        assert table.as_of(dt.date(2001, 1, 1)).count() == 0


@pytest.mark.parametrize(("version", "kept"), [(6, 5), (8, 1), (9, 1)])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_column_ts_orders_by_default_in_hudi_0_15_and_the_last_row_wins_in_hudi_1(
    tmp_path: Path, version: int, kept: int, replaced: bool
) -> None:
    options = {"hoodie.datasource.write.recordkey.field": "id"}
    hoodie.hudi.write(
        pa.table({"id": ["a"], "ts": [9]}), tmp_path / "t", options | {"hoodie.write.table.version": version}
    )
    if replaced:
        hoodie.hudi.write(pa.table({"id": ["a"], "ts": [9]}), tmp_path / "t", options, mode="overwrite")
    hoodie.hudi.write(pa.table({"id": ["a", "a"], "ts": [5, 1]}), tmp_path / "t", options)
    assert hoodie.open_table(tmp_path / "t").to_arrow(columns=["ts"]).to_pydict() == {"ts": [kept]}
