"""Hive 3.1.3 with Hudi's input formats reads synced tables by name: all entries, logs merged; jobs and fetches."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from support.engine_cases import CASES
from support.hive3 import Hive
from support.query_cases import DATABASE, Synced, expected, shown, synced

#: Java alone, without Hadoop's native libraries, reads no zstd.
_CODEC = {"hoodie.parquet.compression.codec": "gzip"}
_COUNTED = {"cow_plain": "cow_plain", "mor_plain_rt": "mor_plain"}
Answer = list[list[str]]


@dataclass(frozen=True, slots=True)
class Lake:
    """All cases, and what one session of Hive answered.

    rows    entry -> the rows of a query of all columns
    counts  entry -> the answer of `count(*)`, which runs as a job
    rome    entry -> the rows of a query with a filter on the partition column
    usual   the answer of the count of `cow_plain` with Hive's own input format
    """

    tables: dict[str, Synced]
    rows: dict[str, Answer]
    counts: dict[str, Answer]
    rome: dict[str, Answer]
    usual: Answer


@pytest.fixture(scope="module")
def lake(hive: Hive, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The tables of the tests that run."""
    folder, asked = tmp_path_factory.mktemp("lake"), set(_COUNTED.values())
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.path == request.path and hasattr(item, "callspec"):
            asked.add(item.callspec.params.get("name", ""))
    tables = {
        name: synced(replace(case, options={**case.options, **_CODEC}), folder, hive.uri)
        for name, case in CASES.items()
        if name in asked
    }
    entries = {entry: table for table in tables.values() for entry in table.entries()}
    queries = {f"rows {entry}": _query_all(entry, table.columns) for entry, table in entries.items()}
    for entry in _COUNTED:
        queries[f"count {entry}"] = f"select count(*) from {entry}"
        queries[f"rome {entry}"] = f"select id from {entry} where city = 'rome'"
    answers = dict(zip(["", *queries], hive.query(f"use {DATABASE}", *queries.values()), strict=True))
    usual = hive.query(f"use {DATABASE}", "select count(*) from cow_plain", settings={})[1]
    parts = {
        kind: {name.split()[1]: answer for name, answer in answers.items() if name.startswith(kind)}
        for kind in ("rows", "count", "rome")
    }
    return Lake(tables, parts["rows"], parts["count"], parts["rome"], usual)


@pytest.mark.parametrize("name", CASES)
def test_hive_reads_the_rows_of_every_entry(lake: Lake, name: str) -> None:
    table = lake.tables[name]
    types = [table.snapshot.schema.field(column).type for column in table.columns]
    for entry, rows in table.entries().items():
        theirs = [[_value(text, kind) for text, kind in zip(row, types, strict=True)] for row in lake.rows[entry]]
        assert shown(theirs, types) == expected(rows, table.columns), entry


@pytest.mark.parametrize("entry", _COUNTED)
def test_a_job_counts_the_latest_rows(lake: Lake, entry: str) -> None:
    snapshot = lake.tables[_COUNTED[entry]].snapshot
    assert lake.counts[entry] == [[str(snapshot.num_rows)]]
    rome = [row["id"] for row in snapshot.to_pylist() if row["city"] == "rome"]
    assert sorted(key for (key,) in lake.rome[entry]) == sorted(rome)


def test_the_usual_input_format_counts_all_file_versions(lake: Lake) -> None:
    """Why docs/engines/hive.md says that Hudi's has to be set."""
    [[count]] = lake.usual
    assert int(count) > lake.tables["cow_plain"].snapshot.num_rows


def _query_all(entry: str, columns: Sequence[str]) -> str:
    names = ", ".join(f"`{name}`" for name in columns)
    return f"select {names} from {entry}"


def _value(text: str, kind: pa.DataType) -> Any:
    """The value of a text of Hive's command line."""
    if text == "NULL":
        return None
    if pa.types.is_binary(kind):
        return b64encode(text.encode()).decode()
    plain = pa.types.is_string(kind) or pa.types.is_date(kind) or pa.types.is_decimal(kind) or pa.types.is_nested(kind)
    return text if plain else json.loads(text)
