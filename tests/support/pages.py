"""Python on pages of the documentation: its blocks, those in tabs included, and what their comments say of it.

Blocks of one page run in order and share their names. Tabs, `=== "Without Spark"`, have names and a folder of their
own, which the tabs of this title on a page share; tabs "Spark" have those of the page. A comment behind a statement
says what it does: `# -> (3, 0)` is the value of an expression, `# raises InvalidOption: did you mean` an error and a
part of its message. A value may stand alone on the next line.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
_TAB = re.compile(r'=== "([^"]+)"')
#: Titles of tabs.
SPARK, ALONE = "Spark", "Without Spark"


@dataclass(frozen=True)
class Block:
    """Python of a page. Lines count from 1; `line` is that of the first one. tab: the title of the tab it is in"""

    source: str
    line: int
    tab: str = ""


def blocks(text: str) -> Iterator[Block]:
    """The Python of a page that is to be run."""
    lines = text.splitlines()
    said = tab = ""  # the last line before the block that is not blank; the tab
    at = 0
    while at < len(lines):
        line = lines[at]
        if title := _TAB.fullmatch(line):
            tab = title[1]
        elif line and not line.startswith("    "):
            tab = ""
        if line.strip() == "```python":
            margin = line[: len(line) - len(line.lstrip())]
            end = lines.index(f"{margin}```", at)
            if not NOT_RUN.fullmatch(said.strip()):
                yield Block(dedent("\n".join(lines[at + 1 : end])) + "\n", at + 2, tab)
            at = end
        said = lines[at] or said
        at += 1


def run_block(block: Block, names: dict[str, Any], page: str) -> None:
    """Run the block's statements one after the other, and hold them to their comments."""
    comments = {
        token.start[0]: token.string.removeprefix("#").strip()
        for token in tokenize.generate_tokens(StringIO(block.source).readline)
        if token.type == tokenize.COMMENT
    }
    lines = block.source.splitlines()
    for statement in ast.parse(block.source).body:
        where = f"{page}:{block.line + statement.lineno - 1}"
        end = statement.end_lineno or 0
        below = comments.get(end + 1, "") if lines[end : end + 1] and lines[end].startswith("# -> ") else ""
        comment = comments.get(end, "") or below
        ast.increment_lineno(statement, block.line - 1)
        if comment.startswith("raises "):
            name, _, part = comment.removeprefix("raises ").partition(": ")
            with pytest.raises(Exception, match=re.escape(part) or None) as raised:
                _run(statement, names, page)
            assert type(raised.value).__name__ == name, f"{where}: {raised.value!r}"
        elif comment.startswith("-> "):
            shown = repr(_run(statement, names, page))
            assert shown == comment.removeprefix("-> "), f"{where}: the page shows another answer than {shown}"
        else:
            _run(statement, names, page)


def _run(statement: ast.stmt, names: dict[str, Any], page: str) -> object:
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), page, "eval"), names)
    exec(compile(ast.Module([statement], []), page, "exec"), names)
    return None
