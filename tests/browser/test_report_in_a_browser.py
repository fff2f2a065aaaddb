"""The report of a table, opened in a real browser: it draws, fits, and asks for nothing.

HOODIE_TEST_BROWSER names a Chromium, or headless shell; else one is looked for on PATH. `make browser` brings one.
"""

from pathlib import Path
from typing import Any

import pytest

from hoodie.report.page import make_report
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from support.reported import EVIL, table_with_history

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = table_with_history(MemoryStorage())
    return make_report(table.state(), Settings.of({})).save(tmp_path_factory.mktemp("report") / "trips.html")


def opened(browser: Any, file: Path, **how: Any) -> tuple[Any, list[str], list[str]]:
    """The page with what it asked for and what it complained of."""
    page = browser.new_page(**how)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri(), wait_until="networkidle")
    return page, asked, said


def test_the_page_asks_for_itself_alone_and_complains_of_nothing(browser: Any, page_file: Path) -> None:
    page, asked, said = opened(browser, page_file)
    assert asked == [page_file.as_uri()]
    assert said == []
    assert page.title() == "trips"
    assert page.locator("h2").all_inner_texts() == [
        "Where the bytes are",
        "What happened",
        "Files",
        "What services would do now",
        "Columns",
    ]


def test_the_pictures_are_drawn_with_colours_and_told_to_those_who_do_not_see_them(
    browser: Any, page_file: Path
) -> None:
    page, _, _ = opened(browser, page_file)
    pictures = page.get_by_role("img")
    assert pictures.count() >= 5
    for number in range(pictures.count()):
        box = pictures.nth(number).bounding_box()
        assert box["width"] > 300
        assert box["height"] > 15
        assert pictures.nth(number).get_attribute("aria-label")
    fills = page.eval_on_selector_all("svg rect", "all => all.map(one => getComputedStyle(one).fill)")
    assert len(set(fills)) >= 3
    assert "rgb(0, 0, 0)" not in fills  # no style reached it


def test_names_from_the_table_are_text(browser: Any, page_file: Path) -> None:
    page, _, _ = opened(browser, page_file)
    assert page.locator("script").count() == 0
    assert EVIL[:15] in page.locator("main").inner_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_phones_and_screens(browser: Any, page_file: Path, width: int) -> None:
    page, _, _ = opened(browser, page_file, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.evaluate(
        "[...document.querySelectorAll('svg text')].map(t => t.ownerSVGElement.getBoundingClientRect().width / 80)"
    )
    assert min(sizes) > 10  # pixels, 12 of 960: narrow screens scroll a picture rather than shrink its text


def test_text_is_readable_in_light_and_dark(browser: Any, page_file: Path) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page, _, _ = opened(browser, page_file, color_scheme=scheme)
        for selector in ("h1", "p", "td", ".tile span"):
            ink = page.eval_on_selector(selector, "one => getComputedStyle(one).color")
            ground = page.eval_on_selector("body", "one => getComputedStyle(one).backgroundColor")
            assert contrast(ink, ground) >= 4.5, (scheme, selector)
        seen[scheme] = ground
    assert seen["light"] != seen["dark"]


def contrast(ink: str, ground: str) -> float:
    """The ratio of two colours of the form "rgb(1, 2, 3)", by WCAG's formula."""
    first, second = sorted((luminance(ink), luminance(ground)))
    return (second + 0.05) / (first + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
