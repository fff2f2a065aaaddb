"""What pages show without Spark runs where there is neither Spark nor Java."""

import re
from pathlib import Path
from typing import Any

import pytest

from support.pages import ALONE, ROOT, SPARK, blocks, run_block

#: Pages that an analyst is sent to: each shows what it is about without Spark first.
BOTH_WAYS = (
    "cdc.md",
    "concepts.md",
    "concurrency.md",
    "engines-python.md",
    "incremental.md",
    "merging.md",
    "notebook.md",
    "reading.md",
    "recovery.md",
    "services.md",
    "table-types.md",
    "writing.md",
)
WITH_TABS = [page for page in sorted((ROOT / "docs").glob("*.md")) if f'=== "{ALONE}"' in page.read_text()]


@pytest.mark.parametrize("page", WITH_TABS, ids=lambda page: page.name)
def test_the_tabs_without_spark_run_and_answer_as_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.tab == ALONE:
            assert not re.findall(r"\bspark[=.]", block.source)
            run_block(block, names, str(page.relative_to(ROOT)))


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_a_page_for_analysts_begins_without_spark(name: str) -> None:
    """The first Python of the page that is run, and the first tab of each pair."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    calls = [block for block in blocks(text) if "hoodie." in block.source]
    assert calls[0].tab == ALONE or not any("spark" in block.source for block in calls)
    titles = [line for line in text.splitlines() if line.startswith("=== ")]
    assert titles == [f'=== "{ALONE}"', f'=== "{SPARK}"'] * (len(titles) // 2)
