"""query, changes and export give the rows that the library's reads give."""

import csv
import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from hoodie import open_table
from hoodie.api.table import create_table
from hoodie.cli import exporting
from hoodie.cli.main import main
from hoodie.cli.rows import filters_of
from hoodie.errors import InvalidInput
from hoodie.reading.filters.selection import kept_rows, read_filter
from support.lake import Terminal, unpacked

USER = ["id", "city", "ts", "note"]


def expected(path: Path, **asked: object) -> list[list[object]]:
    rows = open_table(path).snapshot(columns=USER, **asked).to_arrow()  # type: ignore[arg-type]
    return [list(row.values()) for row in rows.to_pylist()]


def test_query_gives_the_rows_of_a_snapshot(lake: Path, hoodie: Terminal) -> None:
    found = hoodie.result("query", lake / "a")
    assert found == {"columns": USER, "rows": expected(lake / "a"), "more": False}
    meta = hoodie.result("query", lake / "a", "--meta")["columns"]
    assert meta == open_table(lake / "a").snapshot(meta=True).to_arrow().column_names
    few = hoodie.result("query", lake / "a", "--limit", 2, "--columns", "note, id")
    assert few == {"columns": ["note", "id"], "rows": [row[3::-3] for row in expected(lake / "a")[:2]], "more": True}
    assert "the first 2 rows" in hoodie("query", lake / "a", "--limit", 2)[-1]


def test_a_partition_that_is_not_there_is_named(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(lake / "a"), "--partition", "nope", "--partition", "rome", "--filter", "ts > 99"]) == 0
    said = capsys.readouterr()
    assert "no rows" in said.out
    assert "no rows in partitions ['nope'], so nothing of them is read" in said.err


@pytest.mark.parametrize(
    ("words", "filters"),
    [
        (["ts >= 2 -- new"], [("ts", ">=", 2)]),
        (["ts >= 2"], [("ts", ">=", 2)]),
        (["city=oslo"], [("city", "==", "oslo")]),
        (["city in oslo, bern", "ts<2"], [("city", "in", ["oslo", "bern"]), ("ts", "<", 2)]),
        (["note != 'first'"], [("note", "!=", "first")]),
        (["note <> first"], [("note", "!=", "first")]),
    ],
)
def test_query_keeps_rows_that_meet_all_conditions(
    lake: Path, hoodie: Terminal, words: list[str], filters: list[object]
) -> None:
    given = [part for word in words for part in ("--filter", word)]
    rows = hoodie.result("query", lake / "a", *given)["rows"]
    assert rows == expected(lake / "a", filters=filters)
    assert rows


@pytest.mark.parametrize(
    ("words", "filters"),
    [
        (["city = 'oslo' and ts > 1"], "city = 'oslo' and ts > 1"),
        (["city = oslo", "ts > 1 or note = 'first'"], "city = 'oslo' and (ts > 1 or note = 'first')"),
        (["CITY in oslo, bern", "not ts = 1"], "city in ('oslo', 'bern') and ts <> 1"),
        (["city <> 'bern'"], "city <> 'bern'"),
        (["note = city"], "note = city"),
        (["note = null"], "note = null"),
        (["note = 'null'", "ts is not null"], "note = 'null'"),
    ],
)
def test_a_filter_is_the_condition_that_python_takes(
    lake: Path, hoodie: Terminal, words: list[str], filters: str
) -> None:
    given = [part for word in words for part in ("--filter", word)]
    assert hoodie.result("query", lake / "a", *given)["rows"] == expected(lake / "a", filters=filters)


@pytest.mark.parametrize("column", ["d", "f"])
@pytest.mark.parametrize("condition", ["> 5", ">= 9", "<= 9", "< nan", "= nan", "!= nan", "<> 1", "in nan, 1", "= 0.5"])
def test_nan_is_the_greatest_number_as_in_python(tmp_path: Path, hoodie: Terminal, column: str, condition: str) -> None:
    values = pa.array([1.0, 9.0, 0.5, float("nan"), None, float("-inf")])
    table = create_table(tmp_path, record_key="id")
    table.upsert(pa.table({"id": range(6), "d": values, "f": values.cast(pa.float32())}))
    in_sql = condition.replace("nan, 1", "(nan, 1)").replace("nan", "cast('nan' as double)")
    same = [row["id"] for row in table.to_arrow(filters=f"{column} {in_sql}").to_pylist()]
    assert same
    for given in (
        ["--filter", f"{column} {condition}"],
        ["--filter", f"{column} {condition}", "--filter", "id + 0 >= 0"],
    ):
        assert [row[0] for row in hoodie.result("query", tmp_path, *given)["rows"]] == same


@pytest.mark.parametrize(
    ("condition", "in_sql"),
    [
        ("id > 1.5", ""),
        ("id in 1.5, 2", "id in (1.5, 2)"),
        ("id < 3000000000000000000000", ""),
        ("price <= 1.4999", ""),
        ("price <> 1.50001", ""),
        ("price < 1234567890123456.5", ""),
        ("price >= -1e20", "price >= -100000000000000000000"),
    ],
)
def test_a_number_that_the_column_cannot_hold_is_compared(
    tmp_path: Path, hoodie: Terminal, condition: str, in_sql: str
) -> None:
    table = create_table(tmp_path, record_key="id")
    prices = pa.array([Decimal("1.500"), Decimal("1.499"), None], pa.decimal128(12, 3))
    table.upsert(pa.table({"id": [1, 2, 3], "price": prices}))
    same = [row["id"] for row in table.to_arrow(filters=in_sql or condition).to_pylist()]
    assert same
    for given in (["--filter", condition], ["--filter", condition, "--filter", "id + 0 >= 0"]):
        assert [row[0] for row in hoodie.result("query", tmp_path, *given)["rows"]] == same


def test_a_hint_that_is_a_question_is_followed_by_no_full_stop(lake: Path, hoodie: Terminal) -> None:
    assert (
        "Did you mean 'note'? Texts stand" in hoodie.both("query", lake / "a", "--filter", "not noted = 1", status=2)[1]
    )


@pytest.mark.parametrize("word", ["city = oslo and ts > 1", "city = New York", "city", "city = 'oslo' ts"])
def test_a_text_with_more_behind_it_is_never_one_value(lake: Path, hoodie: Terminal, word: str) -> None:
    assert "Texts stand in quotes" in hoodie.both("query", lake / "a", "--filter", word, status=2)[1]


def test_a_list_of_no_columns_is_refused(lake: Path, hoodie: Terminal) -> None:
    for command in ("query", "export"):
        rest = ["--to", lake / "rows"] if command == "export" else []
        assert "names no column" in hoodie.both(command, lake / "a", "--columns", " ,", *rest, status=2)[1]


def test_query_reads_partitions_and_earlier_states(lake: Path, hoodie: Terminal) -> None:
    first = hoodie.result("show", lake / "a")["first"]
    assert hoodie.result("query", lake / "a", "--partition", "rome")["rows"] == expected(
        lake / "a", partitions=["rome"]
    )
    then = hoodie.result("query", lake / "a", "--as-of", first)["rows"]
    assert then == expected(lake / "a", as_of=first)
    assert then != expected(lake / "a")


def test_changes_are_those_of_the_range(lake: Path, hoodie: Terminal) -> None:
    first = hoodie.result("show", lake / "a")["first"]
    found = hoodie.result("changes", lake / "a", "--begin", first)
    rows = open_table(lake / "a").changes(first, columns=USER).to_arrow().to_pylist()
    assert found["rows"] == [list(row.values()) for row in rows]
    assert found["rows"]
    assert len(hoodie.result("changes", lake / "a")["rows"]) == 4
    hoodie("changes", lake / "a", "--begin", "yesterday", status=2)
    for beginning in ("earliest", "Earliest", "000"):
        assert hoodie.result("changes", lake / "a", "--begin", beginning) == hoodie.result("changes", lake / "a")


def test_change_data_is_printed_with_the_rows_before_and_after(tmp_path: Path, hoodie: Terminal) -> None:
    options = {"hoodie.table.cdc.enabled": "true"}
    table = create_table(tmp_path / "t", name="t", record_key="id", options=options)
    first = table.upsert(pa.table({"id": ["a", "b"], "fare": [1.0, 2.0]})).instant
    second = table.upsert(pa.table({"id": ["a"], "fare": [3.0]})).instant
    third = table.delete(pa.table({"id": ["b"]})).instant
    updated = ["u", second, '{"id": "a", "fare": 1.0}', '{"id": "a", "fare": 3.0}']
    deleted = ["d", third, '{"id": "b", "fare": 2.0}', None]
    found = hoodie.result("changes", table.path, "--cdc", "--begin", first)
    assert found == {"columns": ["op", "ts_ms", "before", "after"], "rows": [updated, deleted], "more": False}
    few = hoodie.result("changes", table.path, "--cdc", "--limit", 1, "--filter", "op = u", "--columns", "after,op")
    assert few == {"columns": ["after", "op"], "rows": [[updated[3], "u"]], "more": False}
    lines = hoodie("changes", table.path, "--cdc", "--begin", second, "--format", "csv")
    assert list(csv.reader(lines))[1][:2] == ["d", third]
    structs = ["--option", "hoodie.read.cdc.images=struct"]
    assert hoodie.result("changes", table.path, "--cdc", "--begin", second, *structs)["rows"] == [
        ["d", third, {"id": "b", "fare": 2.0}, None]
    ]
    hoodie("changes", table.path, "--cdc", "--meta", status=2)


def test_change_data_of_a_table_that_logs_none_is_computed_when_asked_for(lake: Path, hoodie: Terminal) -> None:
    first = hoodie.result("show", lake / "a")["first"]
    assert "hoodie.read.cdc.infer" in hoodie.both("changes", lake / "a", "--cdc", status=3)[1]
    computed = ["--cdc", "--begin", first, "--option", "hoodie.read.cdc.infer=true"]
    assert {row[0] for row in hoodie.result("changes", lake / "a", *computed)["rows"]} <= {"i", "u", "d"}


def test_rows_are_printed_as_csv_and_json_and_written_as_parquet(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    import os
    import subprocess
    import sys

    command = [sys.executable, "-m", "hoodie.cli", "query", str(lake / "a"), "--format"]
    ran = subprocess.run([*command, "csv"], capture_output=True, text=True, env={**os.environ})
    assert ran.returncode == 0, ran.stderr
    header, *rows = csv.reader(io.StringIO(ran.stdout))
    assert (header, rows) == (USER, [[str(value) for value in row] for row in expected(lake / "a")])
    for form in ("csv", "json", "parquet"):
        file = tmp_path / f"rows.{form}"
        assert hoodie("query", lake / "a", "--format", form, "--output", file) == [f"4 rows written to {file}"]
    assert pq.read_table(tmp_path / "rows.parquet").equals(open_table(lake / "a").snapshot(columns=USER).to_arrow())
    lines = [json.loads(line) for line in (tmp_path / "rows.json").read_text().splitlines()]
    assert [list(line.values()) for line in lines] == expected(lake / "a")
    hoodie("query", lake / "a", "--format", "parquet", status=2)
    hoodie("query", lake / "a", "--output", tmp_path / "x", status=2)
    hoodie("query", lake / "a", lake / "b", "--format", "csv", status=2)


def test_a_failed_query_leaves_no_file(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    next((lake / "a" / "oslo").glob("*.parquet")).write_bytes(b"PAR1 no parquet")
    hoodie("query", lake / "a", "--format", "csv", "--output", tmp_path / "rows.csv", status=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake"]


@pytest.mark.parametrize("text", ["ts", "ts >", "= 3", "ts >= soon", "nope = 1", "note = \udcff"])
def test_a_malformed_condition_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        filters_of([text], pa.schema([("ts", pa.int64()), ("note", pa.string())]))


@pytest.mark.parametrize(
    "text",
    [
        "length(note) > 2",
        "upper(note) = 'ABC'",
        "ts+1 > 2",
        "-ts < -1",
        "(ts) = 2",
        "ts%2 = 0",
        "`ts` > 1",
        "`TS` in 2,3",
        "2 = ts",
        "3 > ts and ts > 1",
    ],
)
def test_a_comparison_of_an_expression_is_the_one_of_python(text: str) -> None:
    rows = pa.table({"ts": [1, 2], "note": ["a", "abc"]})
    condition = read_filter(filters_of([text], rows.schema), rows.schema)
    assert kept_rows(rows, condition.expression)["ts"].to_pylist() == [2]


@pytest.mark.parametrize(
    "text", ["ts > 1L", "at >= 2024-01-31", "at >= '2024-01-31'", "day = '2024-1-31'", "x > ' 1 '"]
)
def test_a_value_is_read_as_in_python_where_its_column_does_not_read_it(text: str) -> None:
    at = [dt.datetime(2024, 1, day, tzinfo=dt.UTC) for day in (30, 31)]
    rows = pa.table({"ts": [1, 2], "at": pa.array(at, pa.timestamp("us", "UTC")), "x": [1.0, 2.0]})
    rows = rows.append_column("day", rows["at"].cast(pa.date32()))
    condition = read_filter(filters_of([text], rows.schema), rows.schema)
    assert kept_rows(rows, condition.expression)["ts"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.int32(), "7"),
        (pa.bool_(), "true"),
        (pa.date32(), "2026-01-31"),
        (pa.timestamp("us"), "2026-01-31 12:00:00"),
        (pa.timestamp("us", "UTC"), "2026-01-31T12:00:00"),
        (pa.decimal128(10, 2), "7.50"),
    ],
)
def test_a_value_has_the_type_of_its_column(kind: pa.DataType, text: str) -> None:
    schema = pa.schema([("x", kind)])
    ((column, how, value),) = filters_of([f"x <= {text}"], schema) or ()
    assert (column, how) == ("x", "<=")
    assert pa.scalar(value, kind).type == kind
    both = read_filter(filters_of([f"x <= {text}", "x is not null or x is null"], schema), schema)
    assert both is not None
    rows = pa.table({"x": pa.array([value, None], kind)})
    assert kept_rows(rows, both.expression).num_rows == 1


def test_values_of_every_type_have_a_form_in_json(tmp_path: Path, hoodie: Terminal) -> None:
    path = unpacked("cow_types", tmp_path)
    found = hoodie.result("query", path, "--limit", 3)
    assert len(found["rows"]) == 3
    out = hoodie("query", path, "--limit", 3)
    assert len(out) == 5
    _, err = hoodie.both("query", path, "--format", "csv", status=2)
    assert "CSV has no form for nested columns" in err


# --- export ---


def test_an_export_has_the_rows_of_the_snapshot(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    before = sorted(lake.rglob("*"))
    would = hoodie.result("export", lake / "a", "--to", tmp_path / "out", "--dry-run")
    assert would["dry_run"]
    assert not (tmp_path / "out").exists()
    done = hoodie.result("export", lake / "a", "--to", tmp_path / "out" / "deep")
    assert (done["files"], done["rows"]) == (["part-00000.parquet"], 4)
    assert done["as_of"] == hoodie.result("show", lake / "a")["last"]["instant"]
    assert sorted(path.name for path in (tmp_path / "out" / "deep").iterdir()) == ["_SUCCESS", "part-00000.parquet"]
    assert pq.read_table(tmp_path / "out" / "deep" / "part-00000.parquet").equals(
        open_table(lake / "a").snapshot(columns=USER).to_arrow()
    )
    assert sorted(lake.rglob("*")) == before


def test_an_export_to_where_no_folder_can_be_made_is_wrong_usage(lake: Path, hoodie: Terminal) -> None:
    _, err = hoodie.both("export", lake / "a", "--to", "/proc/out", status=2)
    assert err.startswith("hoodie: --to /proc/out: no folder can be made there: ")


def test_several_tables_and_changes_are_exported_as_csv(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    first = hoodie.result("show", lake / "a")["first"]
    words = ["--to", tmp_path / "out", "--format", "csv", "--begin", first]
    found = hoodie.document("export", f"{lake}/*", *words)
    assert [table["result"]["to"] for table in found["tables"]] == [str(tmp_path / "out" / name) for name in "ab"]
    rows = pyarrow.csv.read_csv(tmp_path / "out" / "b" / "part-00000.csv")
    assert rows.equals(open_table(lake / "b").changes(first, columns=USER).to_arrow())


def test_an_export_is_made_of_files_of_bounded_input(
    lake: Path, tmp_path: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "_FILE_BYTES", 1)
    done = hoodie.result("export", lake / "a", "--to", tmp_path / "out")
    assert done["files"] == [f"part-{number:05d}.parquet" for number in range(3)]
    rows = pa.concat_tables(pq.read_table(tmp_path / "out" / name) for name in done["files"])
    assert rows.equals(open_table(lake / "a").snapshot(columns=USER).to_arrow())


@pytest.mark.parametrize("to", ["{}/out", "memory://cli-export/out"], ids=["disk", "store"])
def test_an_export_that_fails_leaves_nothing(
    lake: Path, tmp_path: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch, to: str
) -> None:
    monkeypatch.setattr(exporting, "_FILE_BYTES", 1)
    (broken,) = (lake / "a" / "rome").glob("*.parquet")
    content = broken.read_bytes()
    broken.write_bytes(b"PAR1 no parquet")
    to = to.format(tmp_path)
    hoodie("export", lake / "a", "--to", to, status=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake"]
    broken.write_bytes(content)
    assert hoodie.result("export", lake / "a", "--to", to)["rows"] == 4  # the folder is as if nothing had been
    before = hoodie.both("export", lake / "a", "--to", to, status=2)[1]
    assert "there is something in this folder" in before


def test_an_output_in_a_folder_that_is_not_there_is_named(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    file = tmp_path / "none" / "rows.csv"
    _, err = hoodie.both("query", lake / "a", "--format", "csv", "--output", file, status=2)
    assert f"--output {file}: there is no folder {file.parent}" in err


def test_dates_beyond_pythons_calendar_are_text(tmp_path: Path, hoodie: Terminal) -> None:
    day = pa.array([-800_000], pa.int32()).cast(pa.date32())
    create_table(tmp_path / "t", record_key="id").insert(pa.table({"id": [1], "day": day}))
    assert hoodie.result("query", tmp_path / "t")["rows"] == [[1, "-0221-09-04"]]
    hoodie("query", tmp_path / "t", "--format", "json", "--output", tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == {"id": 1, "day": "-0221-09-04"}


@pytest.mark.parametrize("value", [b"\xff\x00", b"text"])
def test_bytes_are_base64_in_csv_as_in_json(tmp_path: Path, hoodie: Terminal, value: bytes) -> None:
    table = create_table(tmp_path / "t", record_key="id")
    table.upsert(pa.table({"id": [1, 2], "raw": pa.array([value, None], pa.binary())}))
    file = tmp_path / "rows.csv"
    hoodie("query", table.path, "--format", "csv", "--output", file)
    hoodie("export", table.path, "--format", "csv", "--to", tmp_path / "out")
    rows = hoodie.result("query", table.path)["rows"]
    for written in (file, tmp_path / "out" / "part-00000.csv"):
        assert [list(row) for row in csv.reader(written.read_text().splitlines())][1:] == [
            [str(key), text or ""] for key, text in rows
        ]


def test_an_export_into_the_table_by_a_link_is_refused(lake: Path, hoodie: Terminal, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(lake / "a")
    for table, folder in ((lake / "a", tmp_path / "link" / "sub"), (tmp_path / "link", lake / "a" / "sub")):
        _, err = hoodie.both("export", table, "--to", folder, status=2)
        assert "this folder is part of the table" in err
    assert not (lake / "a" / "sub").exists()


@pytest.mark.parametrize("folder", ["sub", "oslo/sub", ".hoodie/sub", "."])
def test_an_export_into_the_table_is_refused(lake: Path, hoodie: Terminal, folder: str) -> None:
    before = sorted(lake.rglob("*"))
    _, err = hoodie.both("export", lake / "a", "--to", lake / "a" / folder, status=2)
    assert "this folder is part of the table" in err
    assert sorted(lake.rglob("*")) == before


@pytest.mark.parametrize("to", ["b/sub", "b/.hoodie/sub"])
def test_an_export_into_another_table_is_refused(lake: Path, hoodie: Terminal, to: str) -> None:
    before = sorted(lake.rglob("*"))
    for tables in ([lake / "a"], [lake / "a", lake / "b"]):
        _, err = hoodie.both("export", *tables, "--to", lake / to, status=2)
        assert "this folder is part of the table" in err
    assert sorted(lake.rglob("*")) == before


def test_an_export_into_another_table_of_a_store_is_refused(hoodie: Terminal) -> None:
    for name in ("a", "b"):
        create_table(f"memory://exported/{name}", record_key="id").upsert(pa.table({"id": [1]}))
    tables = ("memory://exported/a", "memory://exported/b")
    _, err = hoodie.both("export", *tables, "--to", "memory://exported/b/sub", status=2)
    assert "this folder is part of the table" in err
    assert not fsspec.filesystem("memory").exists("exported/b/sub")
