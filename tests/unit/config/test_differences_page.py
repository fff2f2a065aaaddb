"""The page of differences is made from the cases that real Hudi runs."""

from pathlib import Path

from support.differences_page import page

_DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_of_differences_is_that_of_the_cases() -> None:
    assert (_DOCS / "differences-from-hudi.md").read_text() == page()
