"""The page of the commands, the schema of their documents, help and completion: out of the command tree, and true."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import jsonschema
import pytest

from hoodie.cli.arguments import Option
from hoodie.cli.main import cli
from hoodie.storage.local import LocalStorage
from support.compacting import schedule
from support.lake import Terminal, parse, unpacked
from tools.docs.cli_schema import RESULTS, json_schema
from tools.docs.commands_page import commands, page, schema_text, write

ROOT = Path(__file__).parents[3]
COMMANDS = dict(commands(cli))


def test_the_page_and_the_schema_are_those_of_the_command_tree() -> None:
    for path, text in write(ROOT / "docs").items():
        assert path.read_text("utf-8") == text, (
            f"run python -m tools.docs.commands_page ({path.name} is not as it should be)"
        )
    assert page()
    assert schema_text()


def test_every_command_of_the_tree_has_a_result_type() -> None:
    assert COMMANDS.keys() == RESULTS.keys()


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_has_an_example_that_parses(
    words: str, tmp_path: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables.txt").write_text("/data/trips\n")
    (tmp_path / "hoodie.properties").write_text("hoodie.clean.hours.retained=48\n")
    command = COMMANDS[words]
    out, _ = hoodie.both(*words.split(), "--help")
    needed = {
        "completion": "bash",
        "export": "table --to out",
        "upgrade": "table --to 9",
        "downgrade": "table --to 6",
    }.get(words, "" if words == "version" else "table")
    for option in command.params:
        if isinstance(option, click.Option):
            assert isinstance(option, Option), f"{option.name} is made by `hoodie.cli.arguments.cli_option`"
            assert f"Example: {option.example}" in " ".join(out.split())
            assert any(name in option.example.split() for name in option.opts), option.example
            parse(f"hoodie {words} {needed} {option.example}")
    assert command.examples
    for example in command.examples:
        line = example.removeprefix('eval "$(').removesuffix(')"').split(" > ")[0]
        parse(line)
        assert shlex.split(line)[1 : 1 + len(words.split())] == words.split()
        assert example in out


def test_documents_follow_the_schema(lake: Path, tmp_path: Path, hoodie: Terminal) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    path, seen, mdt = lake / "a", set(), unpacked("cow_metadata_table", tmp_path)
    planned = schedule(LocalStorage(path))
    lines: list[tuple[object, ...]] = [
        ("ls", lake),
        ("info", path),
        ("history", path, "--all"),
        ("files", path, "--all"),
        ("stats", path),
        ("metadata show", path),
        ("metadata stats", mdt),
        ("metadata list", mdt),
        ("metadata validate", mdt),
        ("metadata create", mdt),
        ("metadata drop", mdt, "--yes"),
        ("report", path, "--output", tmp_path / "pages"),
        ("query", path),
        ("changes", path),
        ("export", path, "--to", tmp_path / "out"),
        ("clean", path, "--yes"),
        ("archive", path, "--dry-run"),
        ("expire", path, "--dry-run", "--option", "hoodie.partition.ttl.strategy.days.retain=30"),
        ("upgrade", lake / "b", "--to", "9", "--dry-run"),
        ("downgrade", lake / "b", "--to", "6", "--dry-run"),
        ("compaction plan", path),
        ("compaction validate", path, planned),
        ("compaction repair", path, planned),
        ("compaction unschedule", path, planned),
        ("compaction schedule", path, "--option", "hoodie.compact.inline.max.delta.commits=1"),
        ("compaction run", path, "--dry-run"),
        ("compaction run", path, "--engine", "local"),
        ("savepoint create", path),
        ("savepoint show", path),
        ("manifest", path, "--format", "csv"),
        ("metrics", path),
        ("check", path, "--repair"),
        ("index show", path),
        ("rollback", lake / "b", "--dry-run"),
        ("version",),
        ("completion", "bash"),
    ]
    for words, *rest in lines:
        document = hoodie.document(*str(words).split(), *rest)
        assert document["command"] == words
        assert all(table["result"] is not None for table in document["tables"])
        validator.validate(document)
        seen.add(words)
    saved = hoodie.result("savepoint", "show", path)["savepoints"][0]["instant"]
    for words in (("restore", path, saved, "--dry-run"), ("savepoint delete", path, saved, "--yes")):
        validator.validate(hoodie.document(*str(words[0]).split(), *words[1:]))
        seen.add(words[0])
    # tests/unit/lookup with an HBase, test_cli_engines, test_cli_watch
    assert RESULTS.keys() - seen == {"index rebuild", "sync", "serve"}
    validator.validate(hoodie.document("info", lake / "nowhere", path, status=3))
    validator.validate(hoodie.document("info", status=2))


def test_a_wrong_document_does_not_follow_the_schema(lake: Path, hoodie: Terminal) -> None:
    document = hoodie.document("info", lake / "a")
    document["tables"][0]["result"]["commits"] = "three"
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(document)


def test_a_shell_completes_commands_and_options() -> None:
    def completed(*words: str) -> list[str]:
        environment = {"_HOODIE_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": "%d"}
        environment["COMP_CWORD"] = str(len(words) - 1)
        code = "import sys; sys.argv[0] = 'hoodie'; from hoodie.cli.main import main; sys.exit(main())"
        ran = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    assert completed("hoodie", "sa") == ["plain,savepoint"]
    assert "plain,--dry-run" in completed("hoodie", "clean", "--")
    assert completed("hoodie", "show", "/da") == ["dir,/da"]


def test_the_script_of_a_shell_calls_the_command(hoodie: Terminal) -> None:
    assert "_HOODIE_COMPLETE=bash_complete" in "\n".join(hoodie("completion", "bash"))
    assert json.dumps(hoodie.result("completion", "zsh"))
