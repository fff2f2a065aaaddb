"""A report of a table: its facts as one page of HTML that asks for nothing from outside: no scripts, no requests."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from hoodie.display.render import html_table
from hoodie.display.summary import Cell, ColumnKind, ShownColumn, bytes_text, count_text, percent_text, summary
from hoodie.facts.sizes import PartitionFacts
from hoodie.facts.table import CommitFacts, TableFacts, table_facts
from hoodie.keygen.time_units import partition_names
from hoodie.report.charts import Part, columns, instant_label, one_bar, stacked_bars, ticks, timeline
from hoodie.report.style import CSS
from hoodie.storage.faults import typed_errors
from hoodie.table.settings import Settings
from hoodie.table.state import TableState

#: Commits and partitions that a picture shows at most: the newest, and the largest.
_COMMITS, _PARTITIONS = 60, 20
#: Commits in the table beneath the pictures.
_TABLE = 12
_TIMELINE = 1000

_TIMELINE_KEY = (
    ("base", "writes"),
    ("log", "compaction and clustering"),
    ("service", "other services"),
    ("bad", "going back; hollow: pending"),
)
_KEY = {"base": "base files", "log": "logs", "older": "older versions, which reads of the newest state do not need"}


def html_page(facts: TableFacts) -> str:
    """The page."""
    parts = [
        _header(facts),
        _tiles(facts),
        _bytes(facts),
        _history(facts),
        _files(facts),
        _services(facts),
        _columns(facts),
    ]
    name = escape(facts.config.name)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{CSS}</style></head><body><main>{''.join(parts)}"
        f"<footer>As of {instant_label(facts.as_of)} in the table's time zone. Written by Hoodie.</footer>"
        "</main></body></html>"
    )


def _header(facts: TableFacts) -> str:
    config = facts.config
    partitions = partition_names(config.partition_by, config.properties)
    properties = [
        str(config.type).replace("_", "-").title().replace("-On-", "-on-"),
        f"key {', '.join(config.record_key) or 'none'}",
        f"partitioned by {', '.join(partitions)}" if partitions else "not partitioned",
        f"ordered by {', '.join(config.ordering)}" if config.ordering else "",
        f"table version {config.version}",
    ]
    line = " · ".join(escape(property_text) for property_text in properties if property_text)
    return f"<header><h1>{escape(config.name)}</h1><p>{escape(facts.path)}</p><p>{line}</p></header>"


def _tiles(facts: TableFacts) -> str:
    newest = instant_label(facts.commits[-1].instant) if facts.commits else "none yet"
    tiles = [
        (bytes_text(facts.sizes.base_bytes + facts.sizes.log_bytes), "read by a snapshot"),
        (f"{facts.sizes.groups:,}", "file groups"),
        (f"{len(facts.sizes.partitions):,}", "partitions"),
        (f"{len(facts.commits):,}", f"commits, the newest {newest}"),
        (_percent(facts.sizes.log_bytes, facts.sizes.base_bytes), "logs to base files"),
        *([(f"{facts.rows:,}", "rows in base files")] if facts.rows is not None else []),
        (f"{len(facts.columns):,}", "columns"),
    ]
    divs = [f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in tiles]
    return f'<div class="tiles">{"".join(divs)}</div>'


def _bytes(facts: TableFacts) -> str:
    sizes = {"base": facts.sizes.base_bytes, "log": facts.sizes.log_bytes, "older": facts.sizes.older_bytes}
    parts = [Part(size, style, f"{_KEY[style]}: {bytes_text(size)}") for style, size in sizes.items()]
    key = _legend((style, f"{bytes_text(size)} {_KEY[style]}") for style, size in sizes.items())
    return _section("Where the bytes are", "", one_bar(parts, "Bytes by kind of file") + key)


def _history(facts: TableFacts) -> str:
    if not facts.instants:
        return _section("What happened", "Nothing was written yet.", "")
    shown = facts.instants[-_TIMELINE:]
    newest = f"The newest {_TIMELINE:,} of {len(facts.instants):,} instants."
    about = "" if len(shown) == len(facts.instants) else newest
    services = {commit.instant for commit in facts.commits if _style(commit) == "log"}
    body = timeline(shown, facts.as_of, "Instants over time, by action", services) + _legend(_TIMELINE_KEY)
    commits = facts.commits[-_COMMITS:]
    if commits:
        what = "" if len(commits) == len(facts.commits) else f", the newest {_COMMITS}"
        names = ticks([commit.instant for commit in commits])
        bars = [(name, Part(c.bytes, _style(c), _commit_text(c))) for name, c in zip(names, commits, strict=True)]
        body += f"<h3>Bytes written by each commit{what}</h3>"
        body += columns(bars, "Bytes written by each commit", bytes_text)
        body += _amplification(commits, what) + "<h3>Newest commits</h3>" + _commit_table(facts.commits)
    return _section("What happened", about, body)


def _amplification(commits: Sequence[CommitFacts], what: str) -> str:
    values = [commit.amplification or 0.0 for commit in commits]
    if not any(values):
        return ""
    titles = [
        f"{instant_label(c.instant)}: {v:.1f} rows for each changed row" for c, v in zip(commits, values, strict=True)
    ]
    names = ticks([commit.instant for commit in commits])
    bars = [(name, Part(v, "service", text)) for name, v, text in zip(names, values, titles, strict=True)]
    picture = columns(bars, "Rows written for each row changed, by commit", lambda rows: f"{rows:,.1f}", 80)
    return f"<h3>Rows written for each row that was changed{what}</h3>{picture}"


def _style(commit: CommitFacts) -> str:
    return "log" if commit.operation in ("COMPACT", "LOG_COMPACT", "CLUSTER") else "base"


def _commit_text(commit: CommitFacts) -> str:
    rows = f"{commit.inserted:,} inserted, {commit.updated:,} updated, {commit.deleted:,} deleted"
    where = f"{bytes_text(commit.bytes)} in {count_text(commit.files, 'file')}"
    return f"{commit.operation} {instant_label(commit.instant)}: {rows}; {where}"


_COMMIT_COLUMNS = (
    *(ShownColumn(name) for name in ("instant", "operation")),
    *(ShownColumn(name, ColumnKind.COUNT) for name in ("inserted", "updated", "deleted", "files")),
    ShownColumn("written", ColumnKind.BYTES),
    ShownColumn("rows for each changed", ColumnKind.RATIO),
)


def _commit_table(commits: Sequence[CommitFacts]) -> str:
    rows: Iterable[Sequence[Cell]] = (
        (c.instant, c.operation, c.inserted, c.updated, c.deleted, c.files, c.bytes, c.amplification)
        for c in reversed(commits[-_TABLE:])
    )
    return _table(_COMMIT_COLUMNS, rows)


def _files(facts: TableFacts) -> str:
    if not facts.sizes.partitions:
        return _section("Files", "The table has no files.", "")
    small = facts.sizes.small
    about = (
        f"{small:,} of {count_text(len(facts.sizes.base_sizes), 'base file')} are small: up to "
        f"{bytes_text(facts.sizing.small_limit)} they take inserts first, and files are closed near "
        f"{bytes_text(facts.sizing.max_size)}."
    )
    body = "<h3>Base files by size</h3>" + _histogram(facts) + _by_partition(facts.sizes.partitions)
    if facts.ratios:
        rows = ((part, group, log, base, _percent(log, base)) for part, group, log, base in facts.ratios[:10])
        body += "<h3>File groups with the most logs for their base file</h3>" + _table(_RATIO_COLUMNS, rows)
    return _section("Files", about, body)


_RATIO_COLUMNS = (
    *(ShownColumn(name) for name in ("partition", "file group")),
    *(ShownColumn(name, ColumnKind.BYTES) for name in ("logs", "base file")),
    ShownColumn("logs to base"),
)


def _histogram(facts: TableFacts) -> str:
    """Columns by size, three to a power of ten: 1, 2 and 5."""
    counts: dict[int, int] = {}
    for size in facts.sizes.base_sizes:
        counts[_step(size)] = counts.get(_step(size), 0) + 1
    if not counts:
        return "<p>There are logs only.</p>"
    bars = []
    for step in range(min(counts), max(counts) + 1):
        low, high, count = _bound(step), _bound(step + 1), counts.get(step, 0)
        style = "good" if low > facts.sizing.small_limit else "base"
        title = f"{count_text(count, 'base file')} of {bytes_text(low)} to {bytes_text(high)}"
        bars.append((bytes_text(low), Part(count, style, title)))
    return columns(bars, "Base files by size", lambda files: count_text(round(files), "file"), whole=True)


def _step(size: int) -> int:
    """The column of a size."""
    power = math.floor(math.log10(max(size, 1)))
    lead = size / 10**power
    return power * 3 + (2 if lead >= 5 else 1 if lead >= 2 else 0)


def _bound(step: int) -> int:
    """The least size of a column."""
    return int((1, 2, 5)[step % 3] * 10 ** (step // 3))


def _by_partition(partitions: Sequence[PartitionFacts]) -> str:
    largest = sorted(partitions, key=lambda part: part.base_bytes + part.log_bytes, reverse=True)
    shown, rest = largest[:_PARTITIONS], largest[_PARTITIONS:]
    rows = [(part.path or "(no partition)", _partition_parts(part)) for part in shown]
    what = f", the largest {_PARTITIONS} of {len(partitions):,}" if rest else ""
    picture = stacked_bars(rows, "Bytes by partition")
    key = _legend((("base", "base files"), ("log", "logs")))
    return f"<h3>Bytes by partition{what}</h3>{picture}{key}"


def _partition_parts(part: PartitionFacts) -> list[Part]:
    where = part.path or "(no partition)"
    base = f"{where}: {count_text(part.groups, 'file group')}, {bytes_text(part.base_bytes)} in base files"
    log = f"{where}: {count_text(part.logs, 'log')} of {bytes_text(part.log_bytes)}"
    return [Part(part.base_bytes, "base", base), Part(part.log_bytes, "log", log)]


def _columns(facts: TableFacts) -> str:
    if not facts.columns:
        return ""
    about = f"{count_text(len(facts.columns), 'column')}, as the newest commit declares them."
    rows = ((column.name, column.type, _part_of(facts, column.name)) for column in facts.columns)
    return _section("Columns", about, _table((ShownColumn("name"), ShownColumn("type"), ShownColumn("part")), rows))


def _part_of(facts: TableFacts, name: str) -> str:
    """What a column is for."""
    config = facts.config
    parts = {"record key": config.record_key, "partition": config.partition_by, "ordering": config.ordering}
    return ", ".join(part for part, names in parts.items() if name in names)


def _services(facts: TableFacts) -> str:
    jobs = [_cleaning(facts), _compaction(facts), _archiving(facts), _savepoints(facts), _pending(facts)]
    body = "".join(f"<div><h3>{name}</h3><p>{escape(text)}</p></div>" for name, text in jobs)
    about = "By the options of the writes that this report was made with. Nothing was changed."
    return _section("What services would do now", about, f'<div class="jobs">{body}</div>')


def _cleaning(facts: TableFacts) -> tuple[str, str]:
    clean = facts.cleaning
    if not clean.files:
        return "Cleaning", "has nothing to delete."
    retention = f" Reads as of {instant_label(clean.earliest)} and later would still work." if clean.earliest else ""
    return "Cleaning", f"would delete {count_text(clean.files, 'file')} of {bytes_text(clean.bytes)}.{retention}"


def _compaction(facts: TableFacts) -> tuple[str, str]:
    plan = facts.compaction
    if plan is None:
        return "Compaction", "is for Merge-on-Read tables; this one has no logs."
    if facts.plans:
        named = [
            f"the plan of {instant_label(instant.requested)} for {count_text(groups, 'file group')}"
            + (", which somebody runs or died in," if instant.state.name == "INFLIGHT" else "")
            for instant, groups in facts.plans
        ]
        return "Compaction", f"is pending: {' and '.join(named)} waits to be run (hoodie compaction run)."
    if not plan.groups:
        return "Compaction", "has nothing to merge."
    due = "It is due." if plan.due else "It is not due yet."
    logs, base = bytes_text(plan.log_bytes), bytes_text(plan.base_bytes)
    return "Compaction", f"would merge {logs} of logs into {count_text(plan.groups, 'base file')} of {base}. {due}"


def _archiving(facts: TableFacts) -> tuple[str, str]:
    if not facts.archiving:
        return "Archiving", f"has nothing to do: the timeline has {count_text(len(facts.instants), 'instant')}."
    return "Archiving", f"would move {count_text(facts.archiving, 'instant')} out of the timeline."


def _savepoints(facts: TableFacts) -> tuple[str, str]:
    savepoints = [f"{instant_label(s.instant)}{f' ({s.comment})' if s.comment else ''}" for s in facts.savepoints[-5:]]
    return "Savepoints", f"keep {', '.join(savepoints)}." if savepoints else "There are none."


def _pending(facts: TableFacts) -> tuple[str, str]:
    named = [f"{i.action} {instant_label(i.requested)}" for i in facts.pending[:5]]
    more = f" and {len(facts.pending) - 5} more" if len(facts.pending) > 5 else ""
    return "Pending writes", f"{', '.join(named)}{more}." if named else "There are none."


def _section(title: str, about: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{f'<p>{escape(about)}</p>' if about else ''}{body}</section>"


def _legend(items: Iterable[tuple[str, str]]) -> str:
    keys = (f'<span><i style="background:var(--{style})"></i>{escape(label)}</span>' for style, label in items)
    return f'<div class="key">{"".join(keys)}</div>'


def _table(named: Sequence[ShownColumn], rows: Iterable[Sequence[Cell]]) -> str:
    return f'<div class="scroll">{html_table(summary("", named, rows))}</div>'


def _percent(part: int, whole: int) -> str:
    if not part:
        return percent_text(0)
    return percent_text(part / whole) if whole else "logs only"


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
        target.write_text(self.html, encoding="utf-8", errors="backslashreplace")
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
def make_report(state: TableState, settings: Settings) -> Report:
    """A report of a table as it is. Nothing is changed, and no data file is opened.

    settings `hoodie.*` options of its writes: by them cleaning, archiving and compaction would go
    Raises   CorruptFile; InvalidOption; UnsupportedTable
    """
    return Report(state.config.name, html_page(table_facts(state, settings)))
