"""The report of a table: what it says, against the table; and that it asks for nothing from outside."""

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from hoodie.cli.facts import stats_text
from hoodie.config.options import Options
from hoodie.display.summary import bytes_text, percent_text
from hoodie.facts.files import stats
from hoodie.facts.table import table_facts
from hoodie.model.instant import Action, Instant, State
from hoodie.recovery.savepoint import make_savepoint
from hoodie.report.charts import Part, columns, instant_label, stacked_bars, timeline
from hoodie.report.page import make_report
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import preview_compaction, schedule_compaction
from hoodie.storage import storage_for
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.timeline.load import read_compaction_plan
from support.reported import DUE, EVIL, table_with_history
from support.trips import table_options

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Balanced(HTMLParser):
    """Sees that each element is closed; keeps attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(html: str) -> Balanced:
    page = Balanced()
    page.feed(html)
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_report_is_one_well_formed_page_that_asks_for_nothing(kind: str) -> None:
    page = parsed(make_report(table_with_history(MemoryStorage(), kind).state(), Settings.of({})).html)
    tags = {tag for tag, _ in page.seen}
    assert not tags & {"script", "link", "img", "iframe", "object"}
    assert not [name for _, attributes in page.seen for name in attributes if name in ("src", "href", "srcset")]
    assert "default-src 'none'" in str([attributes for tag, attributes in page.seen if tag == "meta"])
    assert {"svg", "table", "section"} <= tags


def test_the_pictures_are_well_formed() -> None:
    html = make_report(table_with_history(MemoryStorage()).state(), Settings.of({})).html
    pictures = re.findall(r"<svg.*?</svg>", html)
    assert len(pictures) >= 5
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert root.get("aria-label")
        _, _, width, height = map(float, root.get("viewBox", "").split())
        for rectangle in root.iter("rect"):
            x, w = float(rectangle.get("x", "")), float(rectangle.get("width", ""))
            assert -1 <= x <= x + w <= width + 3, ElementTree.tostring(rectangle)
            assert float(rectangle.get("height", "")) <= height


def test_names_from_the_table_are_escaped() -> None:
    html = make_report(table_with_history(MemoryStorage()).state(), Settings.of({})).html
    assert EVIL not in html
    assert "<script" not in html
    assert "before &lt;fares&gt;" in html


def test_the_facts_are_those_of_the_table() -> None:
    table = table_with_history(MemoryStorage())
    facts = table_facts(table.state(), Settings.of({}))
    slices = table.slices()
    assert facts.sizes.base_bytes == sum(s.base.size for s in slices if s.base)
    assert facts.sizes.log_bytes == sum(log.size for s in slices for log in s.logs) > 0
    assert facts.sizes.groups == len(slices) == 3
    assert [part.path for part in facts.sizes.partitions] == sorted([EVIL, "oslo", "rome"])
    assert [commit.operation for commit in facts.commits].count("COMPACT") == 1
    assert [commit.instant for commit in facts.commits] == [i.requested for i in table.state().timeline.commits]
    upserts = [commit for commit in facts.commits if commit.operation == "UPSERT"]
    assert (upserts[0].inserted, upserts[0].updated, upserts[0].amplification) == (30, 0, 1.0)
    assert (upserts[-1].inserted, upserts[-1].updated) == (0, 30)
    data = [f for files in table.storage.list_tree("", skip=(".hoodie",)).values() for f in files]
    every = sum(file.size for file in data if ".parquet" in file.name or ".log." in file.name)
    assert facts.sizes.base_bytes + facts.sizes.log_bytes + facts.sizes.older_bytes == every
    assert len(facts.ratios) == 3
    assert [savepoint.comment for savepoint in facts.savepoints] == ["before <fares>"]


def test_what_services_would_do_is_what_they_do() -> None:
    table = table_with_history(MemoryStorage())
    compact(table.storage, Settings.of({}), schedule_compaction(table.storage, Settings.read(DUE)))
    table.upsert(pa.table({"id": [f"t{i}" for i in range(3)], "city": ["oslo", "rome", EVIL], "ts": [9] * 3}))
    options = Options({"hoodie.cleaner.commits.retained": "1"})
    facts = table_facts(table.state(), Settings.of({**options, **DUE}))
    preview = preview_compaction(table.state(), Settings.of(DUE))
    assert facts.compaction == preview
    assert preview.due
    assert not preview_compaction(table.state(), Settings.of({})).due
    done = clean(table.storage, Settings.of(options))
    assert facts.cleaning.files == len(done.paths) > 0
    instant = schedule_compaction(table.storage, Settings.of(DUE))
    state = table.state()
    (pending,) = state.timeline.pending_compactions
    assert pending.requested == instant
    assert preview.groups == len(read_compaction_plan(state.storage, state.timeline, pending).operations) == 3
    assert preview.log_bytes == facts.sizes.log_bytes


def test_a_plan_that_is_pending_is_said_to_be_so() -> None:
    table = table_with_history(MemoryStorage())
    assert "is pending" not in make_report(table.state(), Settings.of({})).html
    instant = schedule_compaction(table.storage, Settings.read(DUE))
    assert instant is not None
    html = make_report(table.state(), Settings.of({})).html
    assert f"is pending: the plan of {instant_label(instant)} for 3 file groups waits to be run" in html
    assert "is not due" not in html


def test_rows_and_columns_are_said() -> None:
    table = table_with_history(MemoryStorage())
    text = " ".join(parsed(make_report(table.state(), Settings.of({})).html).text)
    assert "30 rows in base files" in text
    assert "3 columns, as the newest commit declares them" in text
    assert "id string record key city string partition ts long ordering" in text
    assert table_facts(table.state(), Settings.of({})).rows == 30


def test_columns_stand_on_an_axis_that_says_what_they_mean() -> None:
    def marks(*sizes: float, whole: bool = False) -> list[str]:
        bars = [(str(size), Part(size, "base", "")) for size in sizes]
        picture = ElementTree.fromstring(columns(bars, "", lambda size: f"{size:g} B", whole=whole))
        return [text.text or "" for text in picture.iter("text") if text.get("class") == "value"]

    assert marks(10, 4) == ["10 B", "5 B", "0 B"]
    assert marks(3, 1, whole=True) == ["3 B", "0 B"]
    assert marks(4, 1, whole=True) == ["4 B", "2 B", "0 B"]


def test_units_are_those_of_the_command_line() -> None:
    table = table_with_history(MemoryStorage())
    html = make_report(table.state(), Settings.of({})).html
    measured = stats(table.storage, Settings.of({}))
    line = next(line for line in stats_text(measured) if str(line).startswith("log files"))
    size, share = bytes_text(measured.log_bytes), percent_text(measured.log_share)
    assert str(line).split(None, 2)[2] == f"{measured.log_files}, {size}: {share} of the base files"
    assert f"{size} logs" in html
    assert f"<b>{share}</b><span>logs to base files</span>" in html


def test_an_empty_table_has_a_report() -> None:
    options = {"hoodie.table.name": "new", "hoodie.datasource.write.recordkey.field": "id"}
    html = make_report(ArrowTable.create(MemoryStorage(), options).state(), Settings.of({})).html
    assert "Nothing was written yet." in "".join(parsed(html).text)


def test_a_report_changes_nothing() -> None:
    storage = MemoryStorage()
    table = table_with_history(storage)
    before = dict(storage.list_tree(""))
    make_report(table.state(), Settings.of(DUE))
    assert storage.list_tree("") == before


def test_a_table_of_thousands_of_partitions_has_a_page_that_loads() -> None:
    table = ArrowTable.create(
        MemoryStorage(),
        table_options("wide", "id", partition="part"),
    )
    count = 300
    table.bulk_insert(pa.table({"id": list(range(count)), "part": [f"p{n}" for n in range(count)]}))
    html = make_report(table.state(), Settings.of({})).html
    assert "the largest 20 of 300" in html
    assert len(html) < 60_000


def test_a_report_is_saved_and_shown_in_a_frame(tmp_path: Path) -> None:
    report = make_report(table_with_history(MemoryStorage()).state(), Settings.of({}))
    assert report.save(tmp_path / "trips.html").read_text(encoding="utf-8") == report.html
    assert repr(report).startswith("Report('trips', ")
    shown = parsed(report._repr_html_())
    (frame,) = shown.seen
    assert frame[0] == "iframe"
    assert frame[1]["srcdoc"] == report.html
    assert frame[1]["sandbox"] == ""


def test_no_option_of_the_storage_is_in_a_report() -> None:
    secret = "hush-7f3a"
    storage = storage_for("memory://reported/trips", {"token": secret})
    report = make_report(table_with_history(storage).state(), Settings.of({}))
    assert secret not in report.html
    assert "memory://reported/trips" in report.html


def test_small_parts_of_a_bar_are_seen() -> None:
    drawn = stacked_bars([("a", [Part(10**9, "base", ""), Part(1, "log", "")])], "sizes")
    widths = [float(width) for width in re.findall(r'<rect class="log".*?width="([\d.]+)"', drawn)]
    assert widths == [2.0]


def test_names_and_totals_of_bars_stand_before_them_where_a_narrow_screen_shows_them() -> None:
    drawn = stacked_bars([("oslo", [Part(9_000, "base", "")]), ("bern", [Part(1_000, "log", "")])], "sizes")
    texts = {text: float(x) for x, text in re.findall(r'<text [^>]*x="([\d.]+)"[^>]*>([^<]*)<', drawn)}
    bars = [float(x) for x in re.findall(r'<rect [^>]*? x="([\d.]+)"', drawn)]
    assert texts.keys() == {"oslo", "9.0 kB", "bern", "1.0 kB"}
    assert max(texts.values()) < min(bars) < 300


def test_completed_compactions_have_the_colour_of_compactions_on_the_timeline() -> None:
    storage = MemoryStorage()
    table = table_with_history(storage)
    (compaction,) = table.state().timeline.completed({Action.COMMIT})
    make_savepoint(storage, Settings.of({}), compaction.requested)
    html = make_report(table.state(), Settings.of({})).html
    assert len(re.findall(r'<circle class="dot log"[^>]*><title>commit ', html)) == 1
    assert len(re.findall(r'<circle class="dot base"[^>]*><title>deltacommit ', html)) == 6
    assert len(re.findall(r'<circle class="dot service"[^>]*><title>savepoint ', html)) == 2


def test_pending_instants_are_hollow_on_the_timeline() -> None:
    instants = [
        Instant("20240131120000000", Action.COMMIT, State.COMPLETED),
        Instant("20240131120100000", Action.COMMIT, State.INFLIGHT),
    ]
    drawn = timeline(instants, "20240131120200000", "instants")
    assert drawn.count("dot base open") == 1
    assert "commit 2024-01-31 12:01:00, inflight" in drawn
