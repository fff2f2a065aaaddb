"""All settings are in pyproject.toml, but for the README of a package index: relative links lead nowhere there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
_IMAGE = re.compile(r"!\[([^]]*)\]\((?!\w+:)([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^]]+)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")


def for_index(readme: str, site: str | None) -> str:
    """The README with links and images that hold anywhere.

    site  where the documentation is published; None: the text of a link stays, followed by the file's name, and of an
          image what it shows
    """

    def link(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        if site is None:
            return f"{text} (`{path}`)"
        return f"[{text}]({site.rstrip('/')}/{_in_site(path)}{anchor})"

    def image(found: re.Match[str]) -> str:
        return (
            f"*{found[1]}* (`{found[2]}`)"
            if site is None
            else f"![{found[1]}]({site.rstrip('/')}/{_in_site(found[2])})"
        )

    return _LINK.sub(link, _IMAGE.sub(image, readme))


def _in_site(path: str) -> str:
    """Where a file of the repository is in the site that `make docs` writes."""
    root_pages = {
        "CHANGELOG.md": "changes.html",
        "CONTRIBUTING.md": "contributing.html",
        "SECURITY.md": "security.html",
    }
    page = root_pages.get(path, path.removeprefix("docs/"))
    return re.sub(r"\.md$", ".html", re.sub(r"README\.md$", "index.html", page))


if __name__ == "__main__":
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
    setup(
        long_description=for_index((ROOT / "README.md").read_text(encoding="utf-8"), urls.get("Documentation")),
        long_description_content_type="text/markdown",
    )
