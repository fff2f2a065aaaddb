"""Runs one of the tortures and prints its table; the exit status is 1 when anything was lost."""

import argparse
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from hoodie.testing.storage import Crash
from torture import crash
from torture.actor import WITH_METADATA_TABLE
from torture.operations import CASES
from torture.plot import chart
from torture.soak import MEASURES, TIMES, soak
from torture.storm import hudi_rs, storm

#: How much dearer the last commits of a soak may be than the first.
GROWTH = 1.3


DOCS = Path(__file__).parents[1] / "docs" / "reliability.md"


def main(arguments: Sequence[str] | None = None) -> int:
    threading.excepthook = _of_the_living
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _of_the_living(problem: threading.ExceptHookArgs) -> None:
    """Threads of a process that plays dead end with it, and have nothing to tell."""
    if not issubclass(problem.exc_type, Crash):
        threading.__excepthook__(problem)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("torture", description=__doc__)
    commands = parser.add_subparsers(title="tortures", metavar="torture", required=True)
    dying = commands.add_parser("crash", help="die at every operation on storage, in each operation on a table")
    dying.add_argument("--case", action="append", metavar="NAME", help="only cases whose name has this; repeatable")
    dying.add_argument("--stride", type=int, default=1, help="at every n-th call only")
    dying.add_argument("--twice", action="store_true", help="the write after the death dies as well")
    dying.set_defaults(run=_crash)
    killing = commands.add_parser("storm", help="several processes on one table, killed at random moments")
    killing.add_argument("--seconds", type=float, default=60)
    killing.add_argument("--seed", type=int, default=0)
    killing.add_argument("--metadata", action="store_true", help="with all partitions of the metadata table")
    killing.add_argument("--table-version", default="6", choices=("6", "8", "9"))
    killing.add_argument("--spark", action="store_true", help="with a Spark writer whose tasks die and stand still")
    killing.add_argument("--keep", type=Path, help="an empty folder for the table and the ledgers, which stay")
    killing.set_defaults(run=_storm)
    long = commands.add_parser("soak", help="very many small commits with cleaning and archiving after each")
    long.add_argument("--commits", type=int, default=1_000)
    long.add_argument("--warm", type=int, default=100, help="first commits that are not counted")
    long.add_argument("--table-type", default="COPY_ON_WRITE", choices=("COPY_ON_WRITE", "MERGE_ON_READ"))
    long.add_argument("--plot", type=Path, help="an SVG file to write the curves to")
    long.set_defaults(run=_soak)
    everything = commands.add_parser("all", help="all of them, one after the other")
    everything.set_defaults(run=_all)
    for command in (dying, killing, long):
        command.add_argument("--docs", action="store_true", help="put the table into docs/reliability.md")
    return parser


def _all(options: argparse.Namespace) -> int:
    return max(main([name]) for name in ("crash", "storm", "soak"))


def _into_docs(name: str, text: str) -> None:
    """Put what a torture printed into docs/reliability.md, in place of what it printed before."""
    pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    page = DOCS.read_text()
    if not pattern.search(page):
        raise SystemExit(f"{DOCS} has no place for {name}")
    DOCS.write_text(pattern.sub(lambda found: f"{found[1]}{text.strip()}\n{found[2]}", page))


def _crash(options: argparse.Namespace) -> int:
    chosen = [case for case in CASES if not options.case or any(word in case.name for word in options.case)]
    outcomes = []
    for case in chosen:
        outcomes.append(crash.torture(case, options.stride, twice=options.twice))
        print(crash.report(outcomes[-1:]).splitlines()[2], flush=True)
        for failure in outcomes[-1].failures[:5]:
            print(f"  call {failure.call}, {failure.dying.name.lower()}: {failure.problem}", flush=True)
    print("", text := crash.report(outcomes), sep="\n")
    if options.docs:
        _into_docs("crash", text)
    return int(any(outcome.failures for outcome in outcomes))


def _storm(options: argparse.Namespace) -> int:
    more = {"hoodie.write.table.version": options.table_version} | (WITH_METADATA_TABLE if options.metadata else {})
    toll = storm(options.seconds, options.keep, seed=options.seed, oracle=hudi_rs, spark=options.spark, options=more)
    print(text := toll.report())
    if options.docs:
        _into_docs("storm", text)
    return int(bool(toll.wrong))


def _soak(options: argparse.Namespace) -> int:
    run = soak(options.commits, options.warm, table_type=options.table_type)
    print(text := run.report())
    if options.docs:
        _into_docs("soak", text)
    if plot := options.plot or (DOCS.with_name("soak.svg") if options.docs else None):
        panels = {name: [of(commit) for commit in run.commits] for name, of in MEASURES.items()}
        plot.write_text(chart(panels, "commits"))
    grown = {name: run.growth(of) for name, of in MEASURES.items()}
    # On a machine that others use wall time may grow by their doing: then the processor's tells.
    time = min(grown.pop(name) for name in TIMES)
    return int(bool(run.wrong) or max(time, *grown.values()) > GROWTH)
