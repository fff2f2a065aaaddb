"""A report of a table, made and kept as one page."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from hoodie.display.summary import bytes_text
from hoodie.facts.table import table_facts
from hoodie.report.page import html_page
from hoodie.storage.faults import typed_errors
from hoodie.table.settings import Settings
from hoodie.table.state import TableState
from hoodie.timeline.timeline import Clock, utc_now


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A page about a table: `save` it, or look at it in a notebook.

    table  its name
    html   the page: it needs nothing else, and asks for nothing from outside
    """

    table: str
    html: str = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a local file, over one that is there, and return its path. Raises OSError"""
        target = Path(path)
        target.write_text(self.html, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"Report({self.table!r}, {bytes_text(len(self.html.encode()))} of HTML)"

    def _repr_html_(self) -> str:
        # A frame of its own: neither the notebook's style nor the page's reaches the other.
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self.table)}" sandbox="" loading="lazy" '
            'style="width:100%;height:700px;border:1px solid currentColor;border-radius:8px"></iframe>'
        )


@typed_errors()
def make_report(state: TableState, settings: Settings, clock: Clock = utc_now) -> Report:
    """A report of a table as it is. Nothing is changed, and no data file is opened.

    settings `hoodie.*` options of its writes: by them cleaning, archiving and compaction would go
    Raises   CorruptFile; InvalidOption; UnsupportedTable
    """
    return Report(state.config.name, html_page(table_facts(state, settings, clock)))
