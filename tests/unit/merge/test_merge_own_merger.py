"""A user's own merger: found by its import path, asked for whole tables, its answers checked."""

import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.errors import InvalidInput, InvalidOption
from hoodie.merge.base import BaseMerge
from hoodie.merge.log_merge import LogMerge
from hoodie.merge.merger import load_merger, merger_rule
from hoodie.writing.batch.duplicates import combine_duplicates
from support.incoming import incoming_rows

SCHEMA = pa.schema([("_hoodie_commit_time", pa.string()), ("_hoodie_record_key", pa.string()), ("n", pa.int64())])


def table(commit: str, **numbers: int) -> pa.Table:
    count = len(numbers)
    return pa.table([[commit] * count, list(numbers), list(numbers.values())], schema=SCHEMA)


class Sum:
    """Adds up; a sum of zero deletes."""

    def merge(self, older: pa.Table, newer: pa.Table) -> tuple[pa.Table, np.ndarray]:
        total = pc.add(older["n"], newer["n"])
        return older.set_column(2, "n", total), pc.equal(total, 0).to_numpy()


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    made = types.ModuleType("own_mergers")
    made.Sum = Sum  # type: ignore[attr-defined]
    sys.modules["own_mergers"] = made
    yield made
    del sys.modules["own_mergers"]


def test_a_merger_decides_against_stored_rows(module: types.ModuleType) -> None:
    merge = BaseMerge(incoming_rows(table("2", a=1, b=-5, x=7)), merger_rule("own_mergers:Sum"))
    out = merge.batch(table("1", a=10, b=5, c=3))
    assert out.to_pylist() == [
        {"_hoodie_commit_time": "2", "_hoodie_record_key": "a", "n": 11},
        {"_hoodie_commit_time": "1", "_hoodie_record_key": "c", "n": 3},
    ]
    assert merge.inserts()["n"].to_pylist() == [7]
    assert (merge.updated, merge.deleted, merge.unchanged) == (1, 1, 1)


def test_a_merger_decides_within_a_batch_and_within_the_log(module: types.ModuleType) -> None:
    rule = merger_rule("own_mergers:Sum")
    rows = pa.concat_tables([table("2", a=1, b=1), table("2", a=2), table("2", a=4)])
    assert combine_duplicates(rows, ("_hoodie_record_key",), rule)["n"].to_pylist() == [7, 1]
    log = LogMerge(SCHEMA, rule)
    log.add(log.records(table("2", a=1, b=5)))
    log.add(log.records(table("3", a=2, b=-5)))
    log.add(log.records(table("4", c=1)))
    incoming = log.finish()
    assert incoming.rows["n"].to_pylist() == [3, -5, 1]
    assert incoming.deleted is not None
    assert incoming.deleted.tolist() == [False, True, False]
    assert incoming.rows["_hoodie_commit_time"].to_pylist() == ["3", "3", "4"]


def test_a_delete_within_a_batch_needs_the_column_that_says_so(module: types.ModuleType) -> None:
    rule = merger_rule("own_mergers:Sum")
    rows = pa.concat_tables([table("2", a=1, b=2), table("2", a=-1)])
    with pytest.raises(InvalidInput, match="_hoodie_is_deleted"):
        combine_duplicates(rows, ("_hoodie_record_key",), rule)
    flagged = rows.append_column("_hoodie_is_deleted", pa.array([None, False, None], pa.bool_()))
    found = combine_duplicates(flagged, ("_hoodie_record_key",), rule)
    assert found["_hoodie_is_deleted"].to_pylist() == [True, False]


def test_a_row_that_the_merger_flags_is_deleted(module: types.ModuleType) -> None:
    class Flag:
        def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
            return newer

    module.Flag = Flag  # type: ignore[attr-defined]
    flagged = table("2", a=1).append_column("_hoodie_is_deleted", pa.array([True]))
    merge = BaseMerge(incoming_rows(flagged), merger_rule("own_mergers:Flag"))
    assert merge.batch(table("1", a=1).append_column("_hoodie_is_deleted", pa.array([False]))).num_rows == 0


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("own_mergers.Sum", "package.module:Class"),
        (":Sum", "package.module:Class"),
        ("own_mergers:Nope", "Nope"),
        ("no_such_module:Sum", "no_such_module"),
        ("own_mergers:NeedsMore", "without arguments"),
        ("own_mergers:CannotMerge", "no method merge"),
    ],
)
def test_a_path_that_names_no_merger_is_refused(module: types.ModuleType, path: str, problem: str) -> None:
    class NeedsMore:
        def __init__(self, more: int) -> None: ...

    module.NeedsMore, module.CannotMerge = NeedsMore, object  # type: ignore[attr-defined]
    with pytest.raises(InvalidOption, match=problem):
        load_merger(path)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda old, new: None, "returned NoneType"),
        (lambda old, new: new.slice(1), "1 rows for 2 pairs"),
        (lambda old, new: new.drop_columns(["n"]), r"missing \['n'\]"),
        (lambda old, new: new.append_column("z", new["n"]), r"unexpected \['z'\]"),
        (lambda old, new: new.append_column("n", new["n"]), r"missing \['n'\]"),
        (lambda old, new: new.set_column(2, "n", new["n"].cast(pa.string())), "'n' became string, expected int64"),
        (lambda old, new: (new, [True]), r"bool\[1\], expected bool\[2\]"),
        (lambda old, new: (new, [1, 0]), r"int64\[2\], expected bool\[2\]"),
    ],
)
def test_an_answer_that_does_not_fit_names_the_merger(
    module: types.ModuleType, answer: Callable[[pa.Table, pa.Table], Any], problem: str
) -> None:
    module.Bad = type("Bad", (), {"merge": lambda self, old, new: answer(old, new)})  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match=f"own_mergers:Bad.*{problem}"):
        merger_rule("own_mergers:Bad").combine(table("1", a=1, b=2), table("2", a=1, b=2))
