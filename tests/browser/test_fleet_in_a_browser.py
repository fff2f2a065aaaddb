"""The page of `hoodie serve` in a real browser: it lists tables, sorts and filters them, follows changes, and fits."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoodie.cli.calls import Call
from hoodie.cli.fleet.server import Fleet, listening_server
from hoodie.display.summary import bytes_text
from support.lake import build, unpacked

pytestmark = pytest.mark.browser


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, Fleet, str]]:
    """A folder with good tables, one that lacks a log and one whose settings are damaged, and the server's address."""
    lake = tmp_path / "lake"
    build(lake)
    for name in ("cow_types", "cow_savepoint", "mor_pending_compaction"):
        unpacked(name, lake)
    next((lake / "b" / "rome").glob(".*.log.*")).unlink()
    (lake / "cow_savepoint" / ".hoodie" / "hoodie.properties").write_text("hoodie.table.version=6\n")
    next((lake / "cow_types").rglob("*.parquet")).with_name("<b>stray.parquet").write_bytes(b"x")
    fleet = Fleet(Call("serve", (f"{lake}/*",), jobs=2), 3600.0)
    fleet.look()
    with listening_server(fleet, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield lake, fleet, f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def names(page: Any) -> list[str]:
    return [text.rsplit("/", 1)[-1].split(" ")[0] for text in page.locator("td.t small").all_inner_texts()]


def test_the_page_lists_sorts_and_filters_tables_and_follows_them(
    browser: Any, served: tuple[Path, Fleet, str]
) -> None:
    lake, fleet, url = served
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(url)
    page.wait_for_selector("tbody tr")
    assert names(page) == ["b", "cow_savepoint", "cow_types", "a", "mor_pending_compaction"]  # problems first
    assert page.locator(".badge").all_inner_texts() == ["down", "down", "note", "fine", "fine"]
    assert page.title() == "(2) Tables"
    page.get_by_role("button", name="size").click()
    stats = [table.health.stats for table in fleet.tables.values()]
    sizes = [each.base_bytes for each in stats if each is not None]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("size")
    first = page.locator("tbody tr").first.locator("td").nth(2).inner_text()
    assert first == bytes_text(max(sizes))
    page.locator("input").fill("missing rome")
    assert names(page) == ["b"]
    page.locator("input").fill("")
    (lake / "a" / ".hoodie" / "hoodie.properties").write_text("")
    fleet.look()
    page.locator(".badge.down").nth(2).wait_for(timeout=20_000)
    assert page.title() == "(3) Tables"
    page.get_by_role("link", name="cow_types").click()
    assert page.locator("h1").inner_text() == "cow_types"
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 500, 1280])
def test_the_page_fits_and_nothing_lies_beside_it(
    browser: Any, served: tuple[Path, Fleet, str], width: int, scheme: str, tmp_path: Path
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto(served[2])
    page.wait_for_selector("tbody tr")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    folder = Path(os.environ.get("HOODIE_TEST_PICTURES") or tmp_path)
    page.screenshot(path=folder / f"fleet-{width}-{scheme}.png", full_page=True)
