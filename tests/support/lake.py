"""A folder of small tables, and the command line on it."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import click
import pytest

from hoodie.cli.main import cli, main, other_words
from hoodie.storage.local import LocalStorage
from support.compacting import fill
from support.real_tables import files_of as real_files

_NAMES = ("a", "b")


def build(folder: Path) -> None:
    """Two Merge-on-Read tables, `a` and `b`, with three commits each, and a folder that is none."""
    fill(LocalStorage(folder / _NAMES[0]))
    for name in _NAMES[1:]:
        shutil.copytree(folder / _NAMES[0], folder / name)
    (folder / "notes").mkdir()
    (folder / "notes" / "readme").write_text("no table")


class Terminal:
    """Runs command lines in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object, status: int = 0) -> list[str]:
        """The lines of standard output. The exit status must be as given."""
        out, err = self.both(*words, status=status)
        del err
        return out.splitlines()

    def both(self, *words: object, status: int = 0) -> tuple[str, str]:
        """Standard output and standard error."""
        self.capsys.readouterr()
        ended = main([str(word) for word in words])
        said = self.capsys.readouterr()
        assert ended == status, (ended, said)
        return said.out, said.err

    def document(self, *words: object, status: int = 0) -> dict[str, Any]:
        """The JSON document."""
        out, _ = self.both(*words, "--json", status=status)
        (line,) = out.splitlines()
        found: dict[str, Any] = json.loads(line)
        assert found["status"] == status
        return found

    def result(self, *words: object, status: int = 0) -> dict[str, Any]:
        """The result of the one table."""
        (table,) = self.document(*words, status=status)["tables"]
        found: dict[str, Any] = table["result"]
        return found


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def unpacked(name: str, folder: Path) -> Path:
    """A table by Hudi 0.15, unpacked below a folder."""
    for path, data in real_files(f"hudi-0.15/{name}").items():
        file = folder / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder / name


def parse(line: str) -> None:
    """Parse a command line as the command would. Raises click's errors."""
    words = shlex.split(line)[1:]
    context, group = click.Context(cli, info_name="hoodie"), cli
    words = other_words(words)
    while True:
        name, found, words = group.resolve_command(context, words)
        assert found is not None
        if not isinstance(found, click.Group):
            found.make_context(name, words, parent=context)
            return
        context, group = click.Context(found, info_name=name, parent=context), found
