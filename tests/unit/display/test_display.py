"""What consoles and notebooks show of results: short whatever they hold, and escaped."""

from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from hoodie.display.render import as_html, console_text
from hoodie.display.summary import ColumnKind, ShownColumn, bytes_text, seconds_text, summary
from hoodie.doctor.findings import Fault, Finding, Findings, Mend, Remedies, Remedy, Severity
from hoodie.index.pruning import IndexStats
from hoodie.model.commit import CommitMetadata, Operation, WriteStat
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, FileSlices, LogFile
from hoodie.model.instant import Action, Instant, State
from hoodie.model.plans import InstantRef, RestorePlan, RollbackPlan, RollbackRequest
from hoodie.plan.write import PartitionProfile, TaskKind, WritePlan, WriteTask
from hoodie.recovery.restore import RestoreResult
from hoodie.recovery.rollback import RollbackResult
from hoodie.recovery.savepoint import Savepoint, SavepointList
from hoodie.services.archive import ArchiveResult, CommitHistory, history
from hoodie.services.clean import CleanResult
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.explanation import WriteExplanation
from hoodie.writing.result import WriteResult
from support.scans import plan_scan
from support.trips import table_options

MANY = 1_200
EVIL = "<script>alert(1)</script>&amp;"
INSTANT = "20240131120000000"


def partition(number: int) -> str:
    return f"{EVIL}{number}"


def group(number: int) -> FileGroupId:
    return FileGroupId(partition(number), f"{EVIL}-{number}")


def slices() -> list[FileSlice]:
    bases = [BaseFile(group(n), INSTANT, "0-0-0", 1000, f"{n}_0-0-0_{INSTANT}.parquet") for n in range(MANY)]
    logs = [
        tuple(LogFile(group(n), INSTANT, v, "0-0-0", 10, f".{n}_{INSTANT}.log.{v}_0-0-0") for v in range(9))
        for n in range(MANY)
    ]
    return [FileSlice(group(n), INSTANT, base, log) for n, (base, log) in enumerate(zip(bases, logs, strict=True))]


def metadata() -> CommitMetadata:
    stats = {
        partition(n): (WriteStat(file_id=f"{n}", path=f"{partition(n)}/{n}.parquet", partition=partition(n)),)
        for n in range(MANY)
    }
    return CommitMetadata(operation=Operation.UPSERT, stats=stats, extra={"schema": "x" * 30_000, EVIL: "y"})


def instants() -> tuple[Instant, ...]:
    return tuple(Instant(f"{int(INSTANT) + n}", Action.COMMIT, State.COMPLETED) for n in range(MANY))


def rollback_plan() -> RollbackPlan:
    requests = tuple(RollbackRequest(partition=partition(n), delete=(f"{n}.parquet",)) for n in range(MANY))
    return RollbackPlan(instant=InstantRef(INSTANT, "commit"), requests=requests)


def table() -> ArrowTable:
    options = table_options(EVIL, "id", partition="city", ordering="id")
    return ArrowTable.create(MemoryStorage(), options)


@cache
def results() -> dict[str, Any]:
    """A large one of everything that public calls return."""
    rows, names = metadata(), {partition(n): (f"{n}.parquet",) for n in range(MANY)}
    many = slices()
    tasks = tuple(WriteTask(n, group(n), TaskKind.REWRITE, many[n], 1, 1) for n in range(MANY))
    plan = WritePlan(tasks, {}, 100)
    profile = {partition(n): PartitionProfile(1) for n in range(MANY)}
    savepoint = Savepoint(INSTANT, EVIL, 0, EVIL, frozenset(f"{n}" for n in range(MANY)))
    finding = Finding(Severity.ERROR, Fault.MISSING, EVIL, "is missing " * 100, EVIL)
    some = table()
    some.upsert(pa.table({"id": [1, 2], "city": ["oslo", "rome"]}))
    scan = plan_scan(some.state())
    undo = InstantRef(INSTANT, EVIL)
    return {
        "write": WriteResult(INSTANT, rows, IndexStats(), "driver", {"write": 1.0}),
        "commit": rows,
        "stat": replace(next(iter(rows.stats.values()))[0], log_files=tuple(names)),
        "history": CommitHistory((instant, rows) for instant in instants()),
        "pair": (instants()[0], rows),
        "explain": WriteExplanation(profile, plan, "driver", "BLOOM", IndexStats(), EVIL),
        "write plan": plan,
        "scan": replace(scan, slices=tuple(many)),
        "findings": Findings([finding] * MANY),
        "finding": finding,
        "remedies": Remedies([Remedy(Mend.DELETE, EVIL)] * MANY),
        "savepoints": SavepointList([savepoint] * MANY),
        "savepoint": savepoint,
        "clean": CleanResult(INSTANT, "p", INSTANT, names, tuple(names)),
        "archive": ArchiveResult(instants(), "f"),
        "rollback": RollbackResult(INSTANT, "", rollback_plan(), None),
        "restore": RestoreResult(INSTANT, "", RestorePlan(instants=(undo,) * MANY), (rollback_plan(),) * 10),
        "rollback plan": rollback_plan(),
        "slices": FileSlices(many),
        "slice": many[0],
        "state": some.state(),
    }


@pytest.fixture(scope="module")
def large() -> dict[str, Any]:
    return results()


NAMES = sorted(results())
#: These are one line however much they hold; the others have rows, too.
LINES = {"write", "commit", "stat", "pair", "finding", "savepoint", "clean", "archive", "rollback", "restore", "slice"}


@pytest.mark.parametrize("name", NAMES)
def test_the_repr_of_a_result_is_short_whatever_it_holds(name: str, large: dict[str, Any]) -> None:
    shown = repr(large[name])
    assert len(shown) < (500 if name in LINES else 6000), name
    assert ("\n" in shown) <= (name not in LINES), name


@pytest.mark.parametrize("name", [name for name in NAMES if hasattr(results()[name], "_repr_html_")])
def test_what_a_notebook_shows_is_short_and_escaped(name: str, large: dict[str, Any]) -> None:
    shown = large[name]._repr_html_()
    assert len(shown) < 12_000, name
    assert "<script" not in shown.lower(), name
    assert "&amp;amp;" in shown or EVIL[:8] not in repr(large[name]), name


def test_all_that_public_calls_return_has_something_for_a_notebook(large: dict[str, Any]) -> None:
    inner = {"pair", "write plan", "rollback plan", "state"}
    assert all(hasattr(value, "_repr_html_") for name, value in large.items() if name not in inner)


def test_rows_that_are_not_shown_are_counted(large: dict[str, Any]) -> None:
    assert repr(large["history"]).splitlines()[0] == "1,200 commits"
    assert repr(large["history"]).endswith("and 1,180 more")
    assert "and 1,180 more" in large["history"]._repr_html_()


def test_history_is_the_list_of_pairs_that_it_always_was() -> None:
    some = table()
    first = some.upsert(pa.table({"id": [1, 2], "city": ["oslo", "rome"]}))
    second = some.upsert(pa.table({"id": [2, 3], "city": ["rome", "rome"]}))
    commits = history(some.state())
    assert [instant.requested for instant, _ in commits] == [second.instant, first.instant]
    assert commits == list(commits)
    assert isinstance(commits[0], tuple)
    assert commits[1:] + [] == [commits[1]]  # noqa: RUF005
    lines = repr(commits).splitlines()
    assert lines[0] == "2 commits"
    assert lines[1].split() == ["instant", "action", "operation", "inserted", "updated", "deleted", "files", "written"]
    assert lines[2].split()[:7] == [second.instant, "commit", "UPSERT", "1", "1", "0", "1"]


def test_a_table_has_its_numbers_to_the_right_and_its_words_to_the_left() -> None:
    shown = summary("title", ("name", ShownColumn("rows", ColumnKind.COUNT)), [("a", 1), ("bcd", 12345)], 5)
    assert console_text(shown).splitlines() == [
        "title",
        "  name    rows",
        "  a          1",
        "  bcd   12,345",
        "  and 3 more",
    ]
    assert '<td class="n">12,345</td>' in as_html(shown)


def test_a_line_break_in_a_cell_does_not_break_the_table() -> None:
    assert "a b" in console_text(summary("t", ("c",), [("a\nb",)]))
    assert console_text(summary("t\nu")) == "t u"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_960, "10 kB"),
        (999_600, "1.0 MB"),
        (5e9, "5.0 GB"),
        (5e18, "5000 PB"),
    ],
)
def test_sizes_are_written_as_people_read_them(size: float, text: str) -> None:
    assert bytes_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.004, "4 ms"), (0.41, "0.4 s"), (12.4, "12 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_durations_are_written_as_people_read_them(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
