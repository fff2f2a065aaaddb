"""What a writer knows for sure: which batches it began, and which were acknowledged. A file of lines, synced."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

PARTITIONS = ("p0", "p1", "p2")
ROWS = 6  # new keys a batch


@dataclass(frozen=True)
class Account:
    """What one writer's ledger says, over all its lives."""

    writer: str
    begun: int = 0  # number of the newest batch that was sent; 0: none
    acknowledged: int = 0  # of the newest batch whose write returned
    failed: int = 0  # writes that raised


class Ledger:
    """The ledger of one writer. It survives its death: a line is on disk when the call returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)

    def note(self, word: str, batch: int) -> None:
        self._file.write(f"{word} {batch}\n".encode())
        os.fsync(self._file.fileno())


def read_ledgers(folder: Path) -> dict[str, Account]:
    """The accounts by writer. The last line of a writer that was killed may be cut short: then it was never said."""
    found = {}
    for path in sorted(folder.glob("*.ledger")):
        begun = acknowledged = failed = 0
        for line in path.read_text().splitlines(keepends=True):
            word, _, number = line.partition(" ")
            if not line.endswith("\n"):
                break
            begun = max(begun, int(number))
            acknowledged = max(acknowledged, int(number)) if word == "acknowledged" else acknowledged
            failed += word == "failed"
        found[path.stem] = Account(path.stem, begun, acknowledged, failed)
    return found


def batch(writer: str, number: int) -> pa.Table:
    """The rows of a batch: new keys in all partitions, and a newer value of three keys that each batch changes."""
    new = [(f"{writer}-{number}-{i}", PARTITIONS[i % len(PARTITIONS)], number) for i in range(ROWS)]
    counters = [(f"{writer}-counter-{place}", place, number) for place in PARTITIONS]
    keys, places, numbers = (list(column) for column in zip(*new, *counters, strict=True))
    return pa.table({"id": keys, "p": places, "ts": pa.array(numbers, pa.int64()), "writer": [writer] * len(keys)})


def problems(rows: pa.Table, before: Mapping[str, Account], after: Mapping[str, Account]) -> list[str]:
    """What contradicts the ledgers in the rows of a table.

    before  accounts from before the rows were read: all that was acknowledged by then must be there, once
    after   accounts from after: what is there must have been sent by then, and be there whole
    """
    found: dict[str, list[tuple[str, int]]] = {}
    columns = [rows.column(name).to_pylist() for name in ("id", "p", "ts") if rows.num_rows]  # a new table has none
    for key, place, number in zip(*columns, strict=True):
        found.setdefault(key, []).append((place, number))
    wrong = [f"{key} occurs {len(places)} times" for key, places in found.items() if len(places) > 1]
    expected: set[str] = set()
    for writer, account in after.items():
        acknowledged = before[writer].acknowledged if writer in before else 0
        seen = 0
        for number in range(1, account.begun + 1):
            keys = {f"{writer}-{number}-{i}" for i in range(ROWS)}
            there = keys & found.keys()
            expected |= keys
            if number <= acknowledged and there != keys:
                wrong.append(f"batch {number} of {writer} was acknowledged, and {len(there)} of {ROWS} rows are there")
            elif there and there != keys:
                wrong.append(f"batch {number} of {writer} is there in part: {len(there)} of {ROWS} rows")
            seen = number if there else seen
        counters = {f"{writer}-counter-{place}": place for place in PARTITIONS}
        expected |= counters.keys()
        for key, place in counters.items():
            if seen and found.get(key) != [(place, seen)]:
                wrong.append(f"{key} is {found.get(key)}, and batch {seen} is there")
    wrong += [f"{key} was never sent" for key in sorted(found.keys() - expected)]
    return wrong


def totals(accounts: Iterable[Account]) -> tuple[int, int, int]:
    """Batches begun, acknowledged, and writes that raised."""
    each = list(accounts)
    return sum(a.begun for a in each), sum(a.acknowledged for a in each), sum(a.failed for a in each)
