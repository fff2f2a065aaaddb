"""Errors are one line with a status, and credentials are in no output."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from hoodie.cli import output_file, secrets
from hoodie.cli.main import OTHER_WORDS, cli, main, other_words
from hoodie.errors import CredentialsRejected
from support.lake import Terminal
from tools.docs.commands_page import commands

COMMANDS = dict(commands(cli))
SECRET = "wJalrXUtnFEMIK7MDENG"


def broken(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fails(*given: Any, **more: Any) -> None:
        raise error

    monkeypatch.setattr("hoodie.facts.summary.summarize", fails)


def test_an_error_is_one_line_and_its_notes_are_in_it(
    lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = CredentialsRejected(13, "refused\nby the store")
    error.add_note("The lock stays.")
    broken(monkeypatch, error)
    out, err = hoodie.both("show", lake / "a", status=3)
    (line,) = err.splitlines()
    assert out == ""
    assert line.startswith("hoodie: refused by the store. The credentials are missing")
    assert line.endswith("The lock stays.")


def test_an_unexpected_error_is_one_line_too_and_debug_shows_where_it_comes_from(
    lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, KeyError("surprise"))
    _, err = hoodie.both("show", lake / "a", status=3)
    assert len(err.splitlines()) == 1
    assert "KeyError: 'surprise'" in err
    assert "--debug" in err
    _, err = hoodie.both("show", lake / "a", "--debug", status=3)
    assert "Traceback (most recent call last)" in err
    assert "in fails" in err


@pytest.mark.parametrize(
    "words",
    [
        ["shw"],
        ["show"],
        ["show", "--nonsense", "table"],
        ["history", "table", "--limit", "-1"],
        ["history", "table", "--action", "dance"],
        ["query", "table", "--as-of", "noon"],
        ["show", "table", "--jobs", "0"],
        ["show", "--from", "/nowhere/tables.txt"],
        ["stats", "table", "--option", "hoodie.cleaner.polcy=1"],
        ["check", "table", "--checksum"],
        ["savepoint"],
        ["completion", "tcsh"],
        [],
    ],
    ids=" ".join,
)
def test_wrong_usage_has_status_2_and_touches_nothing(words: list[str], hoodie: Terminal) -> None:
    out, err = hoodie.both(*words, status=2)
    assert out == ""
    assert err


@pytest.mark.parametrize(
    "words",
    [
        ["query", "a", "--columns", "fare"],
        ["query", "a", "--filter", "fare = 1"],
        ["query", "a", "--filter", "city =="],
        ["rollback", "a", "--instant", "yesterday", "--yes"],
        ["compaction", "validate", "a", "--instant", "x"],
        ["doctor", "a", "--grace", "-1"],
        ["doctor", "a", "--grace", "nan"],
        ["serve", "a", "--every", "nan", "--port", "0"],
        ["serve", "a", "--every", "inf", "--port", "0"],
        ["compaction", "run", "a", "--interval", "nan", "--engine", "local"],
        ["compaction", "run", "a", "--interval", "inf", "--engine", "local"],
        ["savepoint", "create", "a", "--comment", "caf\udce9"],
    ],
    ids=" ".join,
)
def test_what_the_table_does_not_have_is_wrong_usage(
    words: list[str], lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake)
    hoodie(*words, status=2)


def test_wrong_usage_is_a_document_too(hoodie: Terminal) -> None:
    found = hoodie.document("history", "table", "--limit", "x", status=2)
    assert (found["tables"], found["error"]["type"]) == ([], "UsageError")
    assert "'x' is not a valid integer" in found["error"]["message"]


@pytest.mark.parametrize("words", COMMANDS)
def test_wrong_usage_points_to_the_help_of_its_command(words: str, hoodie: Terminal) -> None:
    options = [option for option in COMMANDS[words].params if isinstance(option, click.Option) and not option.is_flag]
    without_value = [["table", option.opts[0]] for option in options]
    for more in [["--nonsense"], *without_value]:
        _, err = hoodie.both(*words.split(), *more, status=2)
        assert err.endswith(f" (see hoodie {words} --help)\n"), more


@pytest.mark.parametrize(
    "words",
    [
        "rollback a --instant yesterday --yes",
        "rollback a b",
        "compaction repair a",
        "clean a",
        "query a --filter",
    ],
)
def test_wrong_usage_that_a_command_finds_points_to_its_help_too(words: str, hoodie: Terminal) -> None:
    command = "compaction repair" if words.startswith("compaction") else words.split()[0]
    _, err = hoodie.both(*words.split(), status=2)
    assert err.endswith(f" (see hoodie {command} --help)\n")


@pytest.mark.parametrize("command", ["upgrade", "downgrade"])
def test_a_missing_option_with_choices_is_told_in_one_line(command: str, hoodie: Terminal) -> None:
    _, err = hoodie.both(command, "table", status=2)
    (line,) = err.splitlines()
    assert "Missing option '--to'" in line
    assert "\n" not in hoodie.document(command, "table", status=2)["error"]["message"]


@pytest.mark.parametrize("words", [["report", "--output", "{}/x"], ["metrics", "--output", "{}/x"]])
def test_an_output_that_cannot_be_there_is_wrong_usage(
    words: list[str], lake: Path, tmp_path: Path, hoodie: Terminal
) -> None:
    (tmp_path / "file").write_text("")
    given = [word.format(tmp_path / "file") for word in words]
    _, err = hoodie.both(*given, lake / "a", status=2)
    assert err.startswith(f"hoodie: {given[1]} {given[2]}: ")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [["report", "--output", "{}"], ["query", "--format", "csv", "--output", "{}/a.html"]], ids=" ".join
)
def test_an_output_where_nothing_can_be_written_is_named_and_no_matter_of_the_table(
    words: list[str], lake: Path, tmp_path: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> None:
        raise PermissionError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(output_file, "open", read_only, raising=False)
    _, err = hoodie.both(*(word.format(tmp_path) for word in words), lake / "a", status=2)
    assert err.splitlines() == [f"hoodie: --output {tmp_path}/a.html cannot be written: Read-only file system"]


def test_a_working_folder_that_was_removed_is_told(
    lake: Path, tmp_path: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "removed").mkdir()
    monkeypatch.chdir(tmp_path / "removed")
    (tmp_path / "removed").rmdir()
    for words in (["info", "a"], ["ls", "a"], ["report", "a"]):
        _, err = hoodie.both(*words, status=2)
        assert err.startswith("hoodie: 'a' is below the working folder of this process, which was removed"), err
    hoodie.both("report", lake / "a", status=2)
    hoodie("info", lake / "a")


def test_an_output_that_is_a_pipe_or_a_link_stays_one(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    hoodie("query", lake / "a", "--format", "csv", "--output", tmp_path / "pipe")
    assert b'"oslo"' in os.read(pipe, 10_000)
    os.close(pipe)
    for _ in range(2):
        hoodie("metrics", lake / "a", "--output", tmp_path / "link")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text().startswith("# HELP")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "lake", "link", "pipe"]


def test_a_warning_about_options_is_one_line_without_a_place_in_the_source(lake: Path, hoodie: Terminal) -> None:
    _, err = hoodie.both("clean", lake / "a", "--option", "nope=1", "--dry-run")
    (line,) = err.splitlines()
    assert line.startswith("warning: unknown options, which have no effect: nope")


def test_credentials_are_masked_in_errors_and_tracebacks(
    lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "_known", set())
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "environment-" + SECRET)
    told = f"key AKIAXAMPLE, secret {SECRET}, environment-{SECRET}, nested-{SECRET}, https://me:{SECRET}@host/x refused"
    broken(monkeypatch, RuntimeError(told))
    given = ["--storage-option", "key=AKIAXAMPLE", "--storage-option", f"secret={SECRET}", "--storage-option"]
    given += [json.dumps({"aws_session_token": f"nested-{SECRET}"}).join(["client_kwargs=", ""])]
    for words in ([], ["--debug"], ["--json"], ["--json", "--debug"]):
        out, err = hoodie.both("show", lake / "a", *given, *words, status=3)
        assert "refused" in out + err
        assert SECRET not in out + err
        assert "AKIAXAMPLE" not in out + err


@pytest.mark.parametrize("path", [f"s3://me:{SECRET}@bucket/table", f"nosuch://me:{SECRET}@bucket/table"])
def test_credentials_in_a_uri_are_masked(path: str, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refused(*given: Any, **more: Any) -> None:
        raise OSError(f"no way to {path}")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr("hoodie.storage.retry.ATTEMPTS", 1)
    monkeypatch.setattr("hoodie.cli.calls.storage_for", refused)
    for words in ([], ["--json"], ["--debug"]):
        assert main(["show", path, *words]) != 0
        said = hoodie.capsys.readouterr()
        assert "bucket" in said.out + said.err
        assert SECRET not in said.out + said.err


def test_a_malformed_storage_option_is_not_repeated(hoodie: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    _, err = hoodie.both("show", "table", "--storage-option", SECRET, status=2)
    assert SECRET not in err
    assert "is not KEY=VALUE" in err
    monkeypatch.setenv("HOODIE_STORAGE_OPTIONS", SECRET)
    _, err = hoodie.both("show", "table", status=2)
    assert SECRET not in err


def test_storage_options_reach_the_driver(hoodie: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def storage_for(path: str, options: Any) -> None:
        seen.append((path, options))
        raise FileNotFoundError(path)

    monkeypatch.setattr("hoodie.cli.calls.storage_for", storage_for)
    monkeypatch.setenv("HOODIE_STORAGE_OPTIONS", "anon=true endpoint_url=http://minio:9000")
    hoodie("show", "s3://bucket/table", status=3)
    assert seen == [("s3://bucket/table", {"anon": True, "endpoint_url": "http://minio:9000"})]


def test_ctrl_c_is_no_traceback(lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, KeyboardInterrupt())
    _, err = hoodie.both("show", lake / "a", status=130)
    assert err.strip() == "hoodie: interrupted"


def test_every_word_of_hudi_stands_for_a_command(hoodie: Terminal) -> None:
    for words, known in OTHER_WORDS.items():
        assert other_words([*words, "table"])[: len(known)] != list(words)
        out, _ = hoodie.both(*words, "--help")
        assert out.startswith("Usage: hoodie "), words
    assert other_words(["compactor", "show", "t"]) == ["compaction", "plan", "t"]


def test_a_folder_of_tables_is_told_with_the_glob_that_names_them(lake: Path, hoodie: Terminal) -> None:
    _, err = hoodie.both("stats", lake, status=3)
    assert err.rstrip().endswith(f"Tables lie in it: '{lake}/*' names them.")
    (lake / "empty").mkdir()
    assert "Tables lie in it" not in hoodie.both("stats", lake / "empty", status=3)[1]


@pytest.mark.parametrize("command", ["ls", "info", "doctor", "query", "history"])
def test_a_file_in_the_place_of_a_table_is_told(command: str, tmp_path: Path, hoodie: Terminal) -> None:
    (tmp_path / "trips.parquet").write_bytes(b"PAR1")
    _, err = hoodie.both(command, tmp_path / "trips.parquet", status=3)
    assert err.startswith(f"hoodie: {tmp_path}/trips.parquet: a file, and a table is a folder. Name the folder")


#: Without the lines of a call that takes long, as on a busy machine each may.
_COMMAND = (
    "import sys; from hoodie.cli.main import main; from hoodie.display import progress; "
    "progress.write_due_lines = lambda: None; sys.exit(main(sys.argv[1:]))"
)


@pytest.mark.parametrize("words", [["history"], ["query", "--format", "csv"], ["info", "--json"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_finding(lake: Path, words: list[str]) -> None:
    arguments = [sys.executable, "-c", _COMMAND, words[0], str(lake / "a"), *words[1:]]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


@pytest.mark.parametrize("words", ["info", "query --format csv", "info --json", "info --nonsense --json"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
def test_an_output_that_is_full_or_closed_is_one_line(lake: Path, words: str) -> None:
    command = f'{sys.executable} -c "{_COMMAND}" {words} {lake / "a"}'
    full = subprocess.run(f"{command} > /dev/full", shell=True, capture_output=True, text=True, check=False)
    assert (full.returncode, full.stderr) == (3, "hoodie: the output cannot be written: No space left on device\n")
    closed = subprocess.run(f"{command} >&-", shell=True, capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (2 if "nonsense" in words else 0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk here")
def test_an_error_that_a_full_disk_does_not_take_is_no_finding(tmp_path: Path) -> None:
    command = f'{sys.executable} -c "{_COMMAND}" info {tmp_path / "nowhere"} 2> /dev/full'
    assert subprocess.run(command, shell=True, check=False).returncode == 3


@pytest.mark.parametrize(
    "words",
    [
        ("files", "--partition", "--json"),
        ("query", "--columns", "--json"),
        ("export", "--to", "--json"),
        ("report", "--output", "--json"),
        ("info", "--storage-option", "--json"),
    ],
)
def test_an_option_in_the_place_of_a_value_is_none(
    lake: Path, hoodie: Terminal, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake)
    before = sorted(lake.rglob("*"))
    out, _ = hoodie.both(words[0], "a", *words[1:], status=2)
    assert f"{words[1]} needs a value, and --json is an option" in json.loads(out)["error"]["message"]
    assert sorted(lake.rglob("*")) == before
    hoodie.both(words[0], "a", words[1], status=2)


def test_numbers_and_names_beyond_any_use_are_refused_in_words(lake: Path, hoodie: Terminal) -> None:
    for words in (("query",), ("changes", "--begin", "earliest"), ("history",)):
        _, err = hoodie.both(words[0], lake / "a", *words[1:], "--limit", "9" * 30, status=2)
        assert "'--limit': " + "9" * 30 in err
    _, err = hoodie.both("metrics", lake / "a", "--output", "", status=2)
    assert err == "hoodie: --output '': expected the path of a file\n"
