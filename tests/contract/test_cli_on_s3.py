"""The command line on tables of an object store: options for the driver, globs, and an export there."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from hoodie import open_table
from hoodie.display import progress
from hoodie.storage import FsspecStorage
from support.compacting import fill
from support.lake import Terminal


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints does not depend on how long it takes on a busy machine."""
    monkeypatch.setattr(progress, "_write_lines", lambda: None)


@pytest.fixture
def lake(s3: dict[str, Any]) -> str:
    """The URI of a folder with the table `a`."""
    uri = f"s3://contract/{uuid4().hex}"
    fill(FsspecStorage(f"{uri}/a", s3))
    return uri


@pytest.fixture
def given(s3: dict[str, Any]) -> list[str]:
    """The driver's options as words."""
    options = {**s3, "client_kwargs": json.dumps(s3["client_kwargs"])}
    return [word for key, value in options.items() for word in ("--storage-option", f"{key}={value}")]


def test_tables_of_a_bucket_are_found_looked_at_and_exported(
    lake: str, given: list[str], s3: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hoodie = Terminal(capsys)
    assert [line["path"] for line in hoodie.result("ls", lake, *given)["tables"]] == [f"{lake}/a"]
    assert hoodie.document("show", f"{lake}/*", *given)["tables"][0]["path"] == f"{lake}/a"
    rows = hoodie.result("query", f"{lake}/a", *given, "--meta")["rows"]
    expected = open_table(f"{lake}/a", storage_options=s3).snapshot(meta=True).to_arrow()
    assert rows == [list(row.values()) for row in expected.to_pylist()]
    done = hoodie.result("export", f"{lake}/a", "--to", f"{lake}/out", "--meta", *given)
    assert (done["files"], done["rows"]) == (["part-00000.parquet"], 4)
    there = FsspecStorage(f"{lake}/out", s3)
    assert [entry.name for entry in there.list()] == ["_SUCCESS", "part-00000.parquet"]
    with there.open_input("part-00000.parquet") as file:
        assert pq.read_table(file).equals(expected)
    local = hoodie.result("export", f"{lake}/a", "--to", tmp_path / "out", *given)
    assert local["rows"] == 4
    assert hoodie.result("doctor", f"{lake}/a", *given)["healthy"]


def test_options_of_the_driver_come_among_the_others_too(
    lake: str, given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = given[1::2]
    options = [word for pair in pairs for word in ("--option", f"hoodie.storage.{pair}")]
    props = tmp_path / "hoodie.properties"
    props.write_text("".join(f"hoodie.storage.{pair}\n" for pair in pairs))
    for words in (options, ["--props", str(props)], ["--option", "hoodie.storage.key=x", *given]):
        assert Terminal(capsys).result("stats", f"{lake}/a", *words)["file_groups"] == 3


def test_a_glob_in_the_bucket_s_name_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, err = Terminal(capsys).both("info", "s3://con*/a", *given, status=2)
    assert "a glob may not stand in the bucket" in err


@pytest.mark.parametrize("path", ["s3://contract/nowhere", "s3://contract/*"])
def test_a_store_that_does_not_answer_is_one_line(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--storage-option", "key=AKIANOBODY", "--storage-option", "secret=a-secret-of-nobody", "--storage-option"]
    words += ['client_kwargs={"endpoint_url": "http://127.0.0.1:9"}', "--storage-option"]
    words += ['config_kwargs={"retries": {"total_max_attempts": 1}, "connect_timeout": 1}']
    _, err = Terminal(capsys).both("show", path, *words, status=3)
    assert len(err.splitlines()) == 1
    assert "127.0.0.1:9" in err
    assert "It may pass: call again later" in err
    assert "secret" not in err
