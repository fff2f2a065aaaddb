"""One process of a storm. It works until it is killed.

Below FOLDER lie the table, the ledgers, and a file for each actor that says how often it did what.
"""

import contextlib
import json
import os
import random
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hoodie.errors import HoodieError, MetadataTableDropped, MetadataTableIgnored
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.services.metadata_upkeep import archive_table
from hoodie.storage.local import LocalStorage
from hoodie.table.settings import Settings
from hoodie.testing.tables import ArrowTable
from torture.ledger import Ledger, batch, problems, read_ledgers

OPTIONS: dict[str, str] = {
    "hoodie.table.name": "storm",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "StorageBasedLockProvider",
    "hoodie.write.lock.storage.validity.timeout.secs": "3",
    "hoodie.write.lock.storage.renew.interval.secs": "1",
    "hoodie.write.lock.wait_time_ms": "20000",
    "hoodie.write.lock.client.num_retries": "0",
    "hoodie.client.heartbeat.interval_in_ms": "1000",
    "hoodie.client.heartbeat.tolerable.misses": "3",
    "hoodie.compact.inline.max.delta.commits": "1",
    # Readers that take longer than this many commits find their files gone: see docs/reliability.md.
    "hoodie.cleaner.commits.retained": "20",
    "hoodie.keep.min.commits": "24",
    "hoodie.keep.max.commits": "30",
    "hoodie.table.services.enabled": "false",  # the cleaner is a process of its own
}


#: With these, too, a storm keeps a metadata table: all its partitions, compacted often.
WITH_METADATA_TABLE: dict[str, str] = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "2",
    "hoodie.metadata.compact.max.delta.commits": "3",
}
#: With these a storm is on a table of the newest version without logs: its compactor is refused.
COPY_ON_WRITE_9: dict[str, str] = {
    "hoodie.write.table.version": "9",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
}
#: The file with the options of a storm.
_OPTIONS_FILE = "options.json"


def let_rage(folder: Path, options: dict[str, str]) -> None:
    """Say with which options all processes of a storm write."""
    (folder / _OPTIONS_FILE).write_text(json.dumps(options))


def options_in(folder: Path) -> dict[str, str]:
    """Those that all processes of a storm write with."""
    return dict(json.loads((folder / _OPTIONS_FILE).read_text()))


def table(folder: Path) -> ArrowTable:
    return ArrowTable(LocalStorage(folder / "table"), options_in(folder))


class Diary:
    """How often an actor did what, over all its lives, and its last errors; for the report only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}

    def note(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        beside = self.path.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(self.counts))
        os.replace(beside, self.path)


@contextlib.contextmanager
def noted(diary: Diary, kind: type[Warning]) -> Iterator[None]:
    """Put warnings of a kind into the diary, instead of showing any."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        yield
    for warning in shown:
        if issubclass(warning.category, kind):
            diary.note(f"{kind.__name__}: {warning.message}")


def write(folder: Path, name: str, diary: Diary) -> None:
    """Send one batch until it is acknowledged, with the same number each time, also after this process died."""
    account = read_ledgers(folder).get(name)
    number = 1 if account is None else account.acknowledged + 1
    ledger = Ledger(folder / f"{name}.ledger")
    same = {
        "hoodie.datasource.write.streaming.checkpoint.identifier": name,
        "hoodie.datasource.write.streaming.batch.id": str(number),
    }
    while True:
        ledger.note("begun", number)
        try:
            with noted(diary, MetadataTableDropped):
                result = table(folder).upsert(batch(name, number), options=same)
        except HoodieError as error:
            ledger.note("failed", number)
            diary.note(f"refused: {type(error).__name__}")
            time.sleep(random.uniform(0, 0.3))
            continue
        ledger.note("acknowledged", number)
        diary.note("known already" if result.route == "known" else "written")
        return


def run_compaction(folder: Path, name: str, diary: Diary) -> None:
    storage, settings = LocalStorage(folder / "table"), Settings.of(options_in(folder))
    planned = schedule_compaction(storage, settings)
    done = compact(storage, settings)
    diary.note("compacted" if done else "planned" if planned else "nothing to compact")
    time.sleep(0.2)


def run_cleaning(folder: Path, name: str, diary: Diary) -> None:
    storage, settings = LocalStorage(folder / "table"), Settings.of(options_in(folder))
    cleaned, archived = clean(storage, settings), archive_table(storage, settings)
    diary.note("cleaned" if cleaned.instant else "nothing to clean")
    if archived.instants:
        diary.note("archived")
    time.sleep(0.2)


def read(folder: Path, name: str, diary: Diary) -> None:
    """See that all that was acknowledged is there, and nothing in part."""
    before = read_ledgers(folder)
    try:
        with noted(diary, MetadataTableIgnored):
            rows = table(folder).snapshot()
    except FileNotFoundError:  # cleaned, or archived, while we read
        diary.note("read again: a file was gone")
        return
    wrong = problems(rows, before, read_ledgers(folder))
    diary.note("read")
    if wrong:
        (folder / f"{name}.{time.time_ns()}.wrong").write_text("\n".join(wrong))


ROLES: dict[str, Callable[[Path, str, Diary], None]] = {
    "writer": write,
    "compactor": run_compaction,
    "cleaner": run_cleaning,
    "reader": read,
}


def main(role: str, name: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    diary = Diary(folder / f"{name}.diary")
    act: Any = ROLES[role]
    diary.note("lives")
    while True:
        try:
            act(folder, name, diary)
        except HoodieError as error:
            diary.note(f"refused: {type(error).__name__}")
            time.sleep(0.1)
        except Exception:
            diary.note("broke")
            (folder / f"{name}.{time.time_ns()}.broke").write_text(traceback.format_exc())
            time.sleep(0.5)
