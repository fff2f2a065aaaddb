"""The page of the commands, out of the command tree: `python -m tools.docs.commands_page` writes docs/cli.md and
docs/cli.schema.json; tests compare."""

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_type_hints

import click

from hoodie.cli.arguments import Command, Option
from hoodie.cli.main import OTHER_WORDS, cli
from tools.docs.cli_schema import RESULTS, json_schema

_INTRODUCTION = """# Commands

`hoodie` looks at tables, runs their services and finds out what is wrong with them, from a shell, cron or a workflow
scheduler. Nothing but `compaction run` with Spark starts Spark. [Operations](operations.md) has whole schedules.

```sh
hoodie info /data/trips
hoodie check '/data/lake/*' --quick
hoodie clean --from tables.txt --yes --json
```

**Tables.** A path is a local folder or a URI (`s3://bucket/trips`). Commands take any number of paths. A glob in quotes
stands for the tables that match it; `--from FILE` takes more paths, one a line. Several tables are worked on at once
(`--jobs`), a failed one does not stop the others, and a summary comes last. `stats`, `doctor` and `compaction plan` say
a line a table, which `--sort` orders and `--where` chooses by its fields. Where a command takes an instant it may be
the last argument: `hoodie rollback /data/trips 20260131120000000`.

**Exit status.** With several tables the greatest one counts.

| status | meaning |
|---|---|
| 0 | fine |
| 1 | something was found: a warning or an error of the doctor, a plan that cannot be run, keys in several file groups |
| 2 | wrong usage: nothing was looked at, nothing was done |
| 3 | failed: the table is missing or damaged, storage refused, or an answer was no |

130 is the status after Ctrl-C.

**What cannot be undone** (`clean`, `archive`, `expire`, `rollback`, `restore`, `savepoint delete`) is shown first, and
asked about. `--yes` does it without a question, `--dry-run` only shows it. Without a terminal and without either the
command is refused with status 2. `doctor --repair` shows what it would do unless `--yes` is given.

**Errors** are one line that says what to do; `--debug` adds the traceback.

**Credentials** come from the environment, as the storage's driver looks for them, or by `--storage-option` and
`HOODIE_STORAGE_OPTIONS`. They are in no output: values of such options and of environment variables that are named like
credentials are masked in errors, in tracebacks and in `hoodie metadata`.

**Completion.** `eval "$(hoodie completion bash)"` in `~/.bashrc` completes commands, options and folders; zsh and fish
likewise.

## JSON

With `--json` a command prints one document on one line (`compaction run --watch` when it ends). Its schema,
[`hoodie.cli/1`](cli.schema.json), gains fields in later versions; nothing is renamed or removed within `/1`.

| field | type | |
|---|---|---|
| `schema` | string | `hoodie.cli/1` |
| `command` | string | such as `compaction plan` |
| `status` | integer | the exit status |
| `tables` | array | one entry for each table, in the order of the paths |
| `tables[].path` | string | as it was given, or matched |
| `tables[].status` | integer | of this table |
| `tables[].result` | object or null | what the command says below; null of one that failed, save runs of compactions |
| `tables[].error` | object or null | `type`, a class of [Errors](errors.md), and `message`, one line |
| `tables[].warnings` | array of strings | |
| `error` | object or null | why no table was looked at |
| `summary` | object | `tables`, `fine`, `found`, `failed` (numbers of tables) and `seconds` |
"""

_COMMON = """
`--option` is for commands that read or change more than the timeline. `version` and `completion` take `--json` and
`--debug` only.
"""


def page() -> str:
    """docs/cli.md"""
    show = next(command for words, command in commands(cli) if words == "stats")
    common = [option for option in show.params if isinstance(option, Option)]
    parts = [_INTRODUCTION, "\n".join(["## Options of all commands", "", *_options(common), _COMMON])]
    names = {option.name for option in common}
    for words, command in commands(cli):
        own = [option for option in command.params if isinstance(option, Option) and option.name not in names]
        parts.append("\n".join(_section(words, command, own)))
    parts.append("\n".join(_words()))
    return "\n".join(parts)


def schema_text() -> str:
    """docs/cli.schema.json"""
    return json.dumps(json_schema(), indent=2) + "\n"


def commands(group: click.Group, words: str = "") -> Iterator[tuple[str, Command]]:
    """All commands with their words, such as "savepoint create", in the order of the help."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, f"{name} ")
        else:
            assert isinstance(found, Command), f"{name} is made by `hoodie.cli.arguments.command`"
            yield f"{words}{name}", found


def _section(words: str, command: Command, own: Sequence[Option]) -> Iterator[str]:
    yield f"## {words}"
    yield ""
    yield inspect.cleandoc(command.help or "")
    yield ""
    yield "```sh"
    yield from command.examples
    yield "```"
    yield ""
    if own:
        yield from _options(own)
        yield ""
    yield from _result(RESULTS[words])


def _options(options: Iterable[Option]) -> Iterator[str]:
    yield "| option | | example |"
    yield "|---|---|---|"
    for option in options:
        yield f"| {_names(option)} | {_cell(option.help or '')} | `{_cell(option.example)}` |"


def _names(option: Option) -> str:
    value = "" if option.is_flag else f" {option.metavar or '|'.join(getattr(option.type, 'choices', ()))}"
    return ", ".join(f"`{_cell(name + value)}`" for name in option.opts)


def _result(kind: type) -> Iterator[str]:
    """The fields of a result, with what the docstring of its type says of them."""
    yield f"Result: {_first(kind)}"
    yield ""
    yield from _fields(kind, "")
    yield ""


def _fields(kind: type, indent: str) -> Iterator[str]:
    meanings, hints = dict(_meanings(kind)), get_type_hints(kind)
    for field in dataclasses.fields(kind):
        meaning = meanings.get(field.name, "")
        inner = [part for part in _dataclasses(hints[field.name]) if part is not kind]
        kind_name = re.sub(r"(\w+\.)+(?=\w)", "", inspect.formatannotation(hints[field.name]))
        name = kind_name.replace("tuple[", "list[").replace(", ...]", "]").replace("Mapping[", "map[")
        yield f"{indent}- `{field.name}` ({name.replace('| None', 'or null')}){f': {meaning}' if meaning else ''}"
        for part in inner:
            yield from _fields(part, f"{indent}    ")


def _dataclasses(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield hint
    for part in getattr(hint, "__args__", ()):
        yield from _dataclasses(part)


def _first(kind: type) -> str:
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())


def _meanings(kind: type) -> Iterator[tuple[str, str]]:
    """What the docstring of a result says of its fields: "name  meaning", with further lines indented."""
    names: list[str] = []
    words: list[str] = []
    for line in [*inspect.cleandoc(kind.__doc__ or "").splitlines(), "end  "]:
        if match := re.match(r"(\w+(?:, \w+)*)  +(.*)", f"{line} "):
            yield from ((name, " ".join(words)) for name in names)
            names, words = match[1].split(", "), [match[2].strip()]
        elif names:
            words.append(line.strip())


def _words() -> Iterator[str]:
    yield "## Hudi's words"
    yield ""
    yield "Accepted in place of the words above:"
    yield ""
    yield "| | the same as |"
    yield "|---|---|"
    for words, known in OTHER_WORDS.items():
        yield f"| `hoodie {' '.join(words)}` | `hoodie {' '.join(known)}` |"
    yield ""
    yield "`--commit` and `--savepoint` are accepted in place of `--instant`."
    yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write(docs: Path) -> Mapping[Path, str]:
    """The pages by path, below the folder of the documentation."""
    return {docs / "cli.md": page(), docs / "cli.schema.json": schema_text()}


if __name__ == "__main__":
    for path, text in write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")).items():
        path.write_text(text, "utf-8")
