"""Several processes on one table, killed at random moments: writers, a compactor, a cleaner, a reader.

Every batch that was acknowledged is there, each of its rows once; of one that was not, all rows or none. Readers check
it all the while, the end checks it in all views and by another reader.
"""

import contextlib
import json
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import pyarrow as pa
from hudi import HudiReadOptions, HudiTableBuilder

from hoodie.doctor.examine import Severity, examine
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.storage.local import LocalStorage
from hoodie.table.create import create
from hoodie.table.settings import Settings
from hoodie.table.state import load_state
from hoodie.testing.tables import ArrowTable
from torture import actor
from torture.actor import OPTIONS, let_rage, options_in
from torture.cluster import troubled_writer
from torture.ledger import batch, problems, read_ledgers, totals

#: name -> role; each is a process that is killed and started anew.
CAST = {
    "w1": "writer",
    "w2": "writer",
    "w3": "writer",
    "compactor": "compactor",
    "cleaner": "cleaner",
    "reader": "reader",
}
#: Processes come from one that has everything imported, so that they are at work at once.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["torture.actor"])


@dataclass
class Toll:
    """What a storm came to."""

    seconds: float = 0.0
    kills: int = 0
    begun: int = 0
    acknowledged: int = 0
    refused: int = 0
    diaries: dict[str, dict[str, int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def report(self) -> str:
        did = Counter[str]()
        for counts in self.diaries.values():
            did.update({what: count for what, count in counts.items() if what != "lives"})
        lines = [
            "| | |",
            "|---|---|",
            f"| seconds | {self.seconds:.0f} |",
            f"| processes killed | {self.kills} |",
            f"| batches begun | {self.begun} |",
            f"| batches acknowledged | {self.acknowledged} |",
            f"| writes refused, and sent again | {self.refused} |",
            *(f"| {what} | {count} |" for what, count in sorted(did.items())),
            f"| rows lost, doubled or in part | {len(self.wrong)} |",
        ]
        return "\n".join([*lines, *self.wrong[:20]])


def storm(
    seconds: float,
    folder: Path | None = None,
    cast: dict[str, str] | None = None,
    seed: int = 0,
    oracle: Callable[[Path], pa.Table] | None = None,
    spark: bool = False,
    options: Mapping[str, str] | None = None,
) -> Toll:
    """Let it rage for so long, then see what is left.

    folder  for the table and the ledgers; None: a temporary one
    oracle  another reader of the table at a path, for the end
    spark   with a Spark writer, whose tasks die and stand still
    options of all processes, over `actor.OPTIONS`
    """
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="storm-")))
        let_rage(folder, {**OPTIONS, **(options or {})})
        create(LocalStorage(folder / "table"), options_in(folder))
        begun = time.monotonic()
        toll = Toll()
        if spark:
            with troubled_writer(folder, "spark", seed) as done:
                _rage(seconds, folder, cast or CAST, random.Random(seed), toll)
            toll.diaries["trouble"] = done
        else:
            _rage(seconds, folder, cast or CAST, random.Random(seed), toll)
        _reckon(folder, toll, oracle)
        toll.seconds = time.monotonic() - begun
        return toll


def _rage(seconds: float, folder: Path, cast: dict[str, str], chance: random.Random, toll: Toll) -> None:
    alive: dict[str, BaseProcess] = {name: _start(role, name, folder) for name, role in cast.items()}
    try:
        _wait_for_work(folder)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.1, 1.5))
            name = chance.choice(sorted(alive))
            _kill(alive[name])
            toll.kills += 1
            alive[name] = _start(cast[name], name, folder)
    finally:
        for process in alive.values():
            _kill(process)


def _wait_for_work(folder: Path) -> None:
    """Until something is acknowledged: on a busy machine processes take their time to begin."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if any(account.acknowledged for account in read_ledgers(folder).values()):
            return
        time.sleep(0.05)


def _start(role: str, name: str, folder: Path) -> BaseProcess:
    process = _FORKS.Process(target=actor.main, args=(role, name, folder), daemon=True)
    process.start()
    return process


def _kill(process: BaseProcess) -> None:
    """At once, as a machine that loses power: nothing of it gets to clean up."""
    process.kill()
    process.join()


def _reckon(folder: Path, toll: Toll, oracle: Callable[[Path], pa.Table] | None) -> None:
    """Compare the table with the ledgers: as the storm left it, after the next write, and after services."""
    options = options_in(folder)
    table = ArrowTable(LocalStorage(folder / "table"), options)
    for path in sorted([*folder.glob("*.wrong"), *folder.glob("*.broke")]):
        toll.wrong.append(f"{path.name}: {path.read_text()[-1500:]}")
    toll.wrong += _against_ledgers(folder, table.snapshot(), "as it was left")
    time.sleep(4)  # until the hearts of the dead and their lock have run out
    table.upsert(batch("last", 1))
    _note(folder, "last", 1)
    toll.wrong += _against_ledgers(folder, table.snapshot(), "after the next write")
    while load_state(table.storage).config.merge_on_read and compact(table.storage, Settings.of(options)) is not None:
        pass
    clean(table.storage, Settings.of(options))
    toll.wrong += _against_ledgers(folder, table.snapshot(), "after compaction and cleaning")
    if oracle is not None:
        toll.wrong += _against_ledgers(folder, oracle(folder / "table"), "as another reader sees it")
    found = [finding for finding in examine(table.storage, grace=0) if finding.severity > Severity.NOTE]
    toll.wrong += [f"the doctor: {finding}" for finding in found]
    toll.begun, toll.acknowledged, toll.refused = totals(read_ledgers(folder).values())
    toll.diaries |= {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.diary"))}


def _note(folder: Path, writer: str, number: int) -> None:
    (folder / f"{writer}.ledger").write_text(f"begun {number}\nacknowledged {number}\n")


def _against_ledgers(folder: Path, rows: pa.Table, when: str) -> list[str]:
    accounts = read_ledgers(folder)
    return [f"{when}: {problem}" for problem in problems(rows, accounts, accounts)]


def hudi_rs(path: Path) -> pa.Table:
    """The rows of a table as hudi-rs reads them: a reader that shares no code with this library."""
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read(HudiReadOptions())
    tables = [pa.Table.from_batches([each]) for each in batches]
    return pa.concat_tables(tables, promote_options="permissive")
