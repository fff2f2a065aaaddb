"""Arguments of calls: what is none of theirs is refused in words, before anything is done."""

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hoodie
from hoodie.api.arrow.rows import Rows
from hoodie.api.table import HoodieTable
from hoodie.errors import InvalidInput, InvalidOption

ROWS = pa.table({"id": [1, 2], "fare": [1.5, 2.5]})


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable[Rows]:
    table = hoodie.create_table(tmp_path / "t", record_key="id", table_type="MERGE_ON_READ")
    table.upsert(ROWS)
    table.upsert(ROWS)
    return table


Call = Callable[[Any], object]


@pytest.mark.parametrize("value", ["no", "false", 0, None, np.int64(1)])
@pytest.mark.parametrize(
    ("flag", "call"),
    [
        ("optimized", lambda table, value: table.snapshot(optimized=value)),
        ("cdc", lambda table, value: table.changes("earliest", cdc=value)),
        ("archived", lambda table, value: table.history(archived=value)),
        ("dry_run", lambda table, value: table.rollback(dry_run=value)),
        ("rows", lambda table, value: table.check(rows=value)),
    ],
)
def test_a_flag_is_true_or_false(
    table: HoodieTable[Rows], flag: str, call: Callable[[Any, Any], object], value: Any
) -> None:
    with pytest.raises(InvalidInput, match=f"{flag}=.*: expected True or False"):
        call(table, value)
    assert len(table.history()) == 2


def test_true_of_numpy_is_a_flag_and_meta_may_be_none(table: HoodieTable[Rows]):
    assert table.snapshot(optimized=np.True_, meta=None).schema.names == ["id", "fare"]
    with pytest.raises(InvalidInput, match="meta='no'"):
        table.to_arrow(meta="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda table: table.merge(ROWS).when_matched_update(None).execute(), "takes columns with their values"),
        (lambda table: table.merge(ROWS).when_not_matched_by_source_update(None).execute(), r"and not None\.?$"),
        (lambda table: table.merge(ROWS).when_matched_update("fare"), r"when_matched_update_all\(\) takes all"),
        (lambda table: table.merge(ROWS).when_not_matched_insert(["fare"]), "takes columns with their values"),
        (lambda table: table.merge(ROWS, source_name=None), "source_name=None"),
        (lambda table: table.update({"fare": 1}, name=1), "name=1"),
        (lambda table: table.check(grace="1"), "grace='1': expected a number of seconds"),
        (lambda table: table.repair(grace=None), "grace=None: expected a number of seconds"),
        (lambda table: table.check(grace=-1), "expected a number of seconds"),
        (lambda table: table.check(engine=["trino"]), r"engine \['trino'\]: expected one of"),
        (lambda table: table.stream_upsert("s", operation=["upsert"]), r"operation \['upsert'\]: a stream can"),
        (
            lambda table: table.snapshot().to_duckdb("trips.db"),
            "connection='trips.db': expected a connection of DuckDB",
        ),
        (
            lambda table: table.schedule_compaction(
                {"a": "\udcff"}, options={"hoodie.compact.inline.max.delta.commits": 1}
            ),
            "no Unicode text",
        ),
        (lambda table: table.savepoint(comment="\udcff"), "no Unicode text"),
        (lambda table: table.lock(1), "1 is not a valid lock name"),
        (lambda table: table.lock("a/b"), "'a/b' is not a valid lock name"),
        (lambda table: table.savepoint(comment=None), "comment=None"),
        (lambda table: table.schedule_compaction({"a": 1}), "extra_metadata={'a': 1}: expected a dict of texts"),
        (lambda table: table.snapshot().head("1"), "head.'1'.: expected a number of rows"),
        (lambda table: table.snapshot().head(-1), "head.-1.: expected a number of rows"),
        (lambda table: table.as_of(pd.NaT), "NaT is not a point in time"),
        (lambda table: table.changes(pd.NaT), "NaT is not a point in time"),
        (lambda table: hoodie.on_commit(None), "a callback is a function, and not None"),
        (lambda table: hoodie.on_failure("f"), "a callback is a function, and not 'f'"),
        (lambda table: hoodie.open_table(""), "the path of the table is empty"),
        (lambda table: hoodie.open_table(storage="/tmp/t"), "'/tmp/t' is a path: give it first"),
        (lambda table: hoodie.open_table(storage={"key": "x"}), "storage=dict: expected a hoodie.storage.Storage"),
        (lambda table: hoodie.open_table(table.path, storage_options={1: "x"}), "storage_options=.*by name"),
        (lambda table: hoodie.open_table(table.path, storage_options=np.array([1, 2])), "storage_options=.*by name"),
        (lambda table: table.get([1], columns="id"), r"columns='id': expected a list, such as \['id'\]"),
        (lambda table: table.get([1], columns=1), "columns=1: expected a list of names"),
        (lambda table: table.get([1], columns=[1]), r"columns=\[1\]: expected a list of names"),
        (lambda table: table.delete(where="id = 9", name=["t"]), r"name=\['t'\]: expected what the condition calls"),
        (lambda table: table.insert_overwrite(ROWS, partitions=["../x"]), r"'\.\./x' is not a path inside a table"),
    ],
)
def test_what_is_no_argument_of_a_call_is_refused(table: HoodieTable[Rows], call: Call, problem: str):
    with pytest.raises(InvalidInput, match=problem):
        call(table)
    assert len(table.history()) == 2


@pytest.mark.parametrize("options", [["a"], "a=b", {1: 2}, {Path("a"): 1}, False, pd.NA, np.array([1, 2])])
def test_options_are_a_dict_by_text(table: HoodieTable[Rows], options: Any):
    calls: list[Callable[[], object]] = [
        lambda: table.upsert(ROWS, options=options),
        lambda: table.upsert(ROWS, missing="null", options=options),
        lambda: table.report(options=options),
        lambda: hoodie.open_table(table.path, options=options),
        lambda: hoodie.hudi.read(table.path, options),
    ]
    for call in calls:
        with pytest.raises(InvalidOption, match=r"expected a dict|an option is named by text"):
            call()


def test_the_path_of_a_properties_file_is_one(table: HoodieTable[Rows]):
    with pytest.raises(InvalidOption, match="props=1: expected the path"):
        hoodie.hudi.read(table.path, props=1)  # type: ignore[call-overload]


@pytest.mark.parametrize("key", [pd.Index(["id"]), pl.col("id"), np.array(["id"]), {"id"}, 0, False])
def test_the_columns_of_a_key_are_a_list_of_names(tmp_path: Path, key: Any):
    with pytest.raises(InvalidInput, match="expected a column, or a list of columns"):
        hoodie.create_table(tmp_path / "new", record_key=key)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"record_key": ""}, "one without a name: leave it out for none"),
        ({"record_key": ["id", " "]}, "one without a name"),
        ({"record_key": "id,,no"}, "one without a name"),
        ({"record_key": ["id", "id"]}, "'id' is there twice"),
        ({"partition_by": [""]}, "partition_by=.* one without a name"),
        ({"partition_by": ["a", "a"]}, "partition_by=.* 'a' is there twice"),
        ({"ordering": [""]}, "ordering=.* one without a name"),
        ({"record_key": "id", "name": 1}, "name=1: expected what engines and messages call the table, as text"),
    ],
)
def test_names_that_are_none_make_no_table(tmp_path: Path, arguments: dict[str, Any], problem: str):
    with pytest.raises(InvalidInput, match=problem):
        hoodie.create_table(tmp_path / "new", **arguments)
    assert not (tmp_path / "new").exists()


def test_a_span_and_a_day_of_numpy_are_taken(table: HoodieTable[Rows]):
    assert table.check(grace=dt.timedelta(hours=1)) == table.check(grace=np.float64(3600)) == ()
    assert table.check(grace=float("inf")) == table.repair(grace=float("inf")) == ()
    assert table.changes(np.datetime64("2020-01-01")).count() == 2


def test_a_number_of_rows_may_be_larger_than_any_table(table: HoodieTable[Rows]):
    assert table.snapshot().head(2**70).num_rows == 2


def test_a_partition_outside_of_the_table_leaves_nothing_behind(tmp_path: Path):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="fare")
    table.upsert(ROWS)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput, match="is not a path inside a table"):
        table.insert_overwrite(ROWS, partitions=["/"])
    assert sorted(tmp_path.rglob("*")) == files
