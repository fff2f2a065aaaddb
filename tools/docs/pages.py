"""MkDocs hooks: pages of the repository's root in the site, and links that hold in both.

The README is the first page; the changes and the files for contributors are pages too. Links are written for a reader
of the repository, where they are checked; here they are turned to where the pages are in the site. `mkdocs.yml` names
this file.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
ROOT_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[#)])")
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//", re.IGNORECASE)


def on_config(config: Any, **_: Any) -> Any:
    """A folder in the navigation stands for all its pages, README first: a new page needs no entry."""
    config.nav = [_with_pages(entry) for entry in config.nav]
    return config


def _with_pages(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    ((title, value),) = entry.items()
    if not isinstance(value, str) or not value.endswith("/"):
        return entry
    names = sorted(path.name for path in (ROOT / "docs" / value).glob("*.md"))
    names.sort(key=lambda name: name != "README.md")
    return {title: [value + name for name in names]}


def on_files(files: Files, config: Any, **_: Any) -> Files:
    for name, uri in ROOT_PAGES.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    return relinked(markdown, page.file.src_uri)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """The site is whole without a network: nothing is fetched from another host."""
    if found := _FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} fetches from another host: {found[0]}")
    return output


def relinked(text: str, uri: str) -> str:
    """A page's text with the links that are right in the site.

    uri  the page's path in the site's sources
    """
    where = {site: name for name, site in ROOT_PAGES.items()}.get(uri, f"docs/{uri}")
    parts, at = [], 0
    for fence in [*_FENCE.finditer(text), None]:
        end = fence.start() if fence else len(text)
        parts.append(_LINK.sub(lambda link: _in_site(link[1], where, uri), text[at:end]))
        if fence:
            parts.append(fence[0])
            at = fence.end()
    return "".join(parts)


def _in_site(link: str, where: str, uri: str) -> str:
    if ":" in link or link.startswith("/"):
        return link
    target = posixpath.normpath(posixpath.join(posixpath.dirname(where), link))
    site = ROOT_PAGES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
    return link if site is None else posixpath.relpath(site, posixpath.dirname(uri) or ".")
