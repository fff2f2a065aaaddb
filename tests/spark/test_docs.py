"""The documentation is true: its Python runs, its answers are the ones shown, its links lead somewhere.

What runs is said in `support.pages`; `spark` is there. Tabs without Spark run without Java, in tests/unit/docs.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.nightly import by_day
from support.pages import ALONE, ROOT, Block, blocks, run_block

#: Slow pages, of which each call has tests of its own beside: their blocks run in the nightly suite.
TESTED_ELSEWHERE = (
    "spark-calls.md",
    "streaming.md",
    "sql.md",
    "coming-from-hudi.md",
    "merging.md",
    "writing.md",
    "reading.md",
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EVERY_PAGE = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

LINK = re.compile(r"(?<!!)\[[^]]+\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


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


@pytest.fixture
def settings_as_before(spark: SparkSession) -> Iterator[None]:
    """A page gives tables names, which are settings of the session: another has tables of its own with these names."""
    before = set(spark.conf.getAll)
    yield
    for key in set(spark.conf.getAll) - before:
        spark.conf.unset(key)


@pytest.mark.usefixtures("logging_as_before", "settings_as_before")
@pytest.mark.parametrize(
    "page", by_day(PAGES, lambda page: page.name not in TESTED_ELSEWHERE), ids=lambda page: page.name
)
def test_the_python_of_a_page_runs_and_answers_as_shown(
    page: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"spark": spark}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.tab != ALONE:
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


def test_blocks_in_tabs_run_too() -> None:
    fences = '=== "{}"\n\n    ```python\n    if a:\n        {}\n    ```\n\n'
    page = fences.format(ALONE, "b") + fences.format("Spark", "c") + "text\n\n```python\nd\n```\n"
    alone, with_spark, after = blocks(page)
    assert alone == Block("if a:\n    b\n", 4, ALONE)
    assert with_spark == Block("if a:\n    c\n", 11, "Spark")
    assert after == Block("d\n", 18)


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
