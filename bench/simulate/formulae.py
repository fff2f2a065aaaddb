"""What `large_batches` says of a write beside the same write as it runs, at sizes that fit one machine.

Blocks are measured in the index files of Spark's shuffle, uncompressed, and so are all shuffles of the write; the plan
is that of `explain_upsert`.
"""

import itertools
import shutil
import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import hoodie
from bench.simulate.large_batches import UPDATES, Case, IndexName, Keys, Sizes, simulate, spread
from hoodie.spark.session import local_session
from hoodie.writing.batch import stage

FILE_ROWS = 2000
GROUPS, PARTITIONS = 40, 4
ROWS = 50_000
_EACH = GROUPS // PARTITIONS
_SOURCES = 8
#: Characters that fill a row up to some size, and bytes that record key and partition path add to it.
_TEXT = 400
_KEYS_OF_ROW = 24
_SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "p", "text")])
_OPTIONS = {
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.copyonwrite.insert.auto.split": "false",
    "hoodie.copyonwrite.insert.split.size": FILE_ROWS,
    "hoodie.metadata.enable": "false",
}


@dataclass(frozen=True)
class Compared:
    """One number of one write: as the formula has it, and as it came out."""

    case: str
    what: str
    expected: float
    measured: float

    @property
    def error(self) -> float:
        """Share of what was measured."""
        return (self.expected - self.measured) / self.measured if self.measured else float(self.expected != 0)


def compare_all() -> Iterator[Compared]:
    """Each spread of keys, by BLOOM and by SIMPLE, with a shuffle."""
    with tempfile.TemporaryDirectory() as scratch:
        local = Path(scratch) / "spark"
        session = local_session(
            "formulae",
            **{
                "spark.local.dir": local,
                "spark.shuffle.compress": False,
                "spark.cleaner.referenceTracking": False,  # files of shuffles stay, to be measured
                "spark.sql.shuffle.partitions": 8,
            },
        )
        most, stage.LARGEST_PARTITION = stage.LARGEST_PARTITION, 0  # as of a batch too large for the staged way
        try:
            for keys in Keys:
                made = Path(scratch) / f"made-{keys}"
                _make(made, keys)
                for index in (IndexName.BLOOM, IndexName.SIMPLE):
                    path = Path(scratch) / f"{keys}-{index}"
                    shutil.copytree(made, path)
                    yield from _compare(session, path, local, keys, index)
        finally:
            stage.LARGEST_PARTITION = most
            session.stop()


def _make(path: Path, keys: Keys) -> None:
    """The table, without Spark: of keys by time each file has some that follow one another, of others the files have
    about one range."""
    table = hoodie.create_table(str(path), name="t", record_key="id", partition_by="p", options=_OPTIONS)
    for group in range(_EACH):
        numbers = _stored(group, FILE_ROWS, keys)
        table.insert(pa.concat_tables([_of_partition(numbers, part) for part in range(PARTITIONS)]))


def _stored(group: int, count: int, keys: Keys) -> np.ndarray:
    """So many keys of a file group."""
    if keys is Keys.RECENT:
        return group * FILE_ROWS + np.arange(count)
    return np.arange(count) * _EACH + group


def _compare(session: SparkSession, path: Path, local: Path, keys: Keys, index: IndexName) -> Iterator[Compared]:
    table = hoodie.open_table(str(path), spark=session)
    loaded = [slice_.base for slice_ in table.file_slices() if slice_.base is not None]
    record = sum(base.size for base in loaded) // (len(loaded) * FILE_ROWS)
    options = {**_OPTIONS, "hoodie.index.type": str(index), "hoodie.spark.driver.max.batch.bytes": 0}
    rows = _batch(keys)
    batch = session.createDataFrame(rows).repartition(_SOURCES)
    plan = table.explain_upsert(batch, options=options).plan
    before = set(local.rglob("shuffle_*.index"))
    cost = table.upsert(batch, options=options).index
    # The first of the shuffles is the batch's own.
    shuffles = sorted(set(local.rglob("shuffle_*.index")) - before, key=lambda file: int(file.name.split("_")[1]))
    own = shuffles[0].name.split("_")[1] if shuffles else ""
    blocks = [_largest(file) for file in shuffles if file.name.split("_")[1] != own]
    row = rows.nbytes // len(rows) + _KEYS_OF_ROW
    sizes = Sizes(row, record, FILE_ROWS, fills=False, sources=_SOURCES)
    outcome = simulate(Case(ROWS * row, len(loaded), PARTITIONS, keys, index, sizes))
    rewritten = sum(1 for task in plan.tasks if task.bytes_read)
    largest = max(task.updates + task.inserts for task in plan.tasks)
    footers = cost.files + (cost.files - cost.files_pruned_by_range) if index is IndexName.BLOOM else cost.files
    numbers = [
        ("tasks", outcome.tasks, len(plan.tasks)),
        ("rows of the largest task", outcome.largest_task, largest),
        ("bytes of base files read by tasks", outcome.bytes_read, plan.bytes_read),
        ("pairs of key and file", outcome.pairs, cost.candidates - cost.pruned_by_range),
        ("files opened", outcome.opened, footers + rewritten),
        ("largest shuffle block, at most", outcome.largest_block, max(blocks, default=0)),
    ]
    for what, expected, measured in numbers:
        if index is IndexName.BLOOM or not what.startswith("pairs"):
            yield Compared(f"{keys}, {index}", what, expected, measured)


def _batch(keys: Keys) -> pa.Table:
    """Keys of the table and new ones, spread as `spread` says."""
    parts = []
    for part, count in enumerate(spread(ROWS, PARTITIONS, keys).tolist()):
        hits = [min(int(n), FILE_ROWS) for n in spread(int(count * UPDATES), _EACH, keys)]
        stored = [_stored(group, hit, keys) for group, hit in enumerate(hits)]
        parts.append(_of_partition(np.concatenate(stored), part))
        # New keys are later than all, or among the others.
        new = np.arange(count - sum(hits)) + (_EACH * FILE_ROWS if keys is Keys.RECENT else 0)
        parts.append(_of_partition(new, part, "new"))
    return pa.concat_tables(parts).combine_chunks()  # Spark takes a table whose first chunk is empty for an empty one


def _of_partition(numbers: np.ndarray, part: int, suffix: str = "") -> pa.Table:
    """Rows whose text no encoding makes smaller."""
    random = np.random.default_rng(part).bytes(_TEXT // 2 * len(numbers)).hex()
    texts = [random[start : start + _TEXT] for start in range(0, len(random), _TEXT)]
    ids = [f"k{number:012}{suffix}" for number in numbers.tolist()]
    return pa.table({"id": ids, "p": [f"p{part}"] * len(ids), "text": texts}, _SCHEMA)


def _largest(index: Path) -> int:
    """The largest block of a map output, by the offsets in its index file."""
    data = index.read_bytes()
    offsets = struct.unpack(f">{len(data) // 8}q", data)
    return max((after - before for before, after in itertools.pairwise(offsets)), default=0)
