"""The documentation is true: its Python runs, its answers are the ones shown, its links lead somewhere.

Blocks of one page run in order and share their names; `spark` is there. A comment behind a statement says what it does:
`# -> (3, 0)` is the value of an expression, `# raises InvalidOption: did you mean` an error and a part of its message.
A value may stand alone on the next line.
"""

from __future__ import annotations

import ast
import logging
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.nightly import by_day

ROOT = Path(__file__).parents[2]
#: Slow pages, of which each call has tests of its own beside: their blocks run in the nightly suite.
TESTED_ELSEWHERE = ("spark-calls.md", "streaming.md", "sql.md", "coming-from-hudi.md", "merging.md")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EVERY_PAGE = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

NOT_RUN = re.compile(r"<!-- not run: \S.* -->")
LINK = re.compile(r"(?<!!)\[[^]]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Python of a page. Lines count from 1; `line` is that of the first one."""

    source: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    """The Python of a page that is to be run."""
    lines = text.splitlines()
    said = ""  # the last line before the block that is not blank
    at = 0
    while at < len(lines):
        if lines[at].strip() == "```python":
            end = lines.index("```", at)
            if not NOT_RUN.fullmatch(said.strip()):
                yield Block("\n".join(lines[at + 1 : end]) + "\n", at + 2)
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
            assert shown == comment.removeprefix("-> "), f"{where}: the page shows another answer"
        else:
            _run(statement, names, page)


def _run(statement: ast.stmt, names: dict[str, Any], page: str) -> object:
    if isinstance(statement, ast.Expr):
        return eval(compile(ast.Expression(statement.value), page, "eval"), names)
    exec(compile(ast.Module([statement], []), page, "exec"), names)
    return None


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """A page shows how to hear the library's loggers, which the tests that come after it have not asked for."""
    loggers = [logging.getLogger(name) for name in (None, "hoodie")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        for handler in set(logger.handlers) - set(handlers):
            logger.removeHandler(handler)


@pytest.mark.usefixtures("logging_as_before")
@pytest.mark.parametrize(
    "page", by_day(PAGES, lambda page: page.name not in TESTED_ELSEWHERE), ids=lambda page: page.name
)
def test_the_python_of_a_page_runs_and_answers_as_shown(
    page: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark}
    for block in blocks(page.read_text(encoding="utf-8")):
        run_block(block, names, str(page.relative_to(ROOT)))


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        path, _, heading = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (heading and heading not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert not broken


def anchors(text: str) -> set[str]:
    """What links call the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_block_is_skipped_only_with_a_reason() -> None:
    page = "```python\na\n```\n<!-- not run: needs a bucket -->\n\n```python\nb\n```\ntext\n```python\nc\n```\n"
    assert list(blocks(page)) == [Block("a\n", 2), Block("c\n", 11)]


@pytest.mark.parametrize(
    "source",
    [
        "1 + 1  # -> 3\n",
        "1 + 1\n# -> 3\n",
        "x = [\n    1,\n]\nx  # -> [2]\n",
        "1 / 1  # raises ZeroDivisionError\n",
        "1 / 0  # raises ValueError: division\n",
        "1 / 0  # raises ZeroDivisionError: not this\n",
        "1 / 0\n",
    ],
)
def test_a_page_that_is_wrong_is_found(source: str) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError, pytest.fail.Exception)):
        run_block(Block(source, 1), {}, "page.md")


def test_a_page_that_is_right_passes() -> None:
    run_block(Block("x = 1\nx + 1  # -> 2\nx\n# -> 1\n1 / 0  # raises ZeroDivisionError: division\n", 1), {}, "page.md")
