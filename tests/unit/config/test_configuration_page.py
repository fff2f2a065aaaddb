"""docs/configuration.md is what the option declarations say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hoodie.config.datasource import ALL_GROUPS
from hoodie.config.options import declared, read_options
from tools.docs import options_page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "configuration.md"
ROW = re.compile(r"\| `(?P<key>[^`]+)` \| (?P<default>.*?) \| (?P<meaning>.+) \|")


def rows(text: str) -> list[re.Match[str]]:
    return [found for line in text.splitlines() if (found := ROW.fullmatch(line))]


def test_the_committed_page_is_what_the_declarations_give() -> None:
    advice = "run: python -m tools.docs.options_page > docs/configuration.md"
    assert PAGE.read_text(encoding="utf-8") == options_page.page(), advice


def test_the_module_prints_the_page() -> None:
    command = [sys.executable, "-m", "tools.docs.options_page"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    assert printed == options_page.page()


def test_every_option_is_on_the_page_once() -> None:
    wanted = [spec.keys[0] for group in ALL_GROUPS for _, spec in declared(group)]
    assert sorted(row["key"] for row in rows(options_page.page())) == sorted(wanted)


def main_keys() -> list[str]:
    """The keys above the table of those that are seldom needed."""
    return [row["key"] for row in rows(options_page.page().partition("## Seldom needed")[0])]


def test_the_main_tables_have_at_most_forty_options() -> None:
    assert len(main_keys()) <= 40


def test_the_defaults_shown_are_values_that_read_as_the_defaults() -> None:
    shown = {row["key"]: row["default"] for row in rows(options_page.page())}
    for group in ALL_GROUPS:
        keys = [spec.keys[0] for _, spec in declared(group)]
        given = {key: shown[key].split("`")[1] for key in keys if shown[key] != "not set"}
        assert read_options(group, given) == group(), group.__name__


def test_words_that_an_option_takes_are_all_named() -> None:
    row = next(row for row in rows(options_page.page()) if row["key"].endswith("scalar.time.unit"))
    assert row["meaning"].endswith("One of NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS.")


def test_other_keys_of_an_option_are_named() -> None:
    row = next(row for row in rows(options_page.page()) if row["key"] == "hoodie.table.name")
    assert row["meaning"].endswith("Also read from `hoodie.datasource.write.table.name`.")


def test_an_option_that_is_seldom_needed_is_not_in_the_main_tables() -> None:
    assert options_page.SELDOM.isdisjoint(main_keys())
    assert {row["key"] for row in rows(options_page.page())} >= options_page.SELDOM


def test_a_seldom_option_that_no_section_has_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options_page, "SELDOM", options_page.SELDOM | {"hoodie.gone"})
    with pytest.raises(ValueError, match=r"no section has \['hoodie.gone'\]"):
        options_page.page()


def test_a_group_without_a_section_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options_page, "SECTIONS", options_page.SECTIONS[1:])
    with pytest.raises(ValueError, match="needs one section"):
        options_page.page()
