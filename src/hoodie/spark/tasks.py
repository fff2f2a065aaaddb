"""Work balanced over Spark tasks, and running it."""

from __future__ import annotations

import heapq
import os
import pickle
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import pyarrow as pa
from pyspark import StorageLevel, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from hoodie.errors import WorkerEnvironment
from hoodie.spark.code_archive import send
from hoodie.spark.worker_errors import mark_worker_errors, raise_worker_errors

T = TypeVar("T")
R = TypeVar("R")

_FALLBACK_CORES = 8
_LEAST_TASKS = 4
_RESULTS = StructType([StructField("number", LongType()), StructField("result", BinaryType())])
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")


@dataclass(frozen=True, slots=True)
class Packed(Generic[T]):
    """Many values that go along with the code of tasks, in compressed bundles. A task unpacks those that it asks for: a
    million values as they are would take each Python worker a gigabyte.

    size  values in a bundle
    """

    bundles: tuple[bytes, ...]
    size: int

    @classmethod
    def of(cls, values: Sequence[T], size: int = 64) -> Packed[T]:
        """Values, each to be asked for by its position."""
        bundles = (tuple(values[first : first + size]) for first in range(0, len(values), size))
        dumps: Callable[[object], bytes] = cloudpickle.dumps
        return cls(tuple(zlib.compress(dumps(bundle), 1) for bundle in bundles), size)

    def values_at(self, numbers: Iterable[int]) -> Iterator[T]:
        """The values of some positions, in that order. Neighbours are unpacked once."""
        opened: int = -1
        bundle: tuple[T, ...] = ()
        for number in numbers:
            at, place = divmod(number, self.size)
            if at != opened:
                opened, bundle = at, pickle.loads(zlib.decompress(self.bundles[at]))
            yield bundle[place]


def balance(items: Sequence[T], size: Callable[[T], int], count: int) -> list[list[T]]:
    """The items in `count` hands of about equal size: largest first, each to the hand that has least."""
    hands: list[list[T]] = [[] for _ in range(count)]
    loads = [(0, number) for number in range(count)]
    for item in sorted(items, key=size, reverse=True):
        load, number = heapq.heappop(loads)
        hands[number].append(item)
        heapq.heappush(loads, (load + size(item), number))
    return hands


def bin_pack(items: Sequence[T], size: Callable[[T], int], enough: int) -> list[list[T]]:
    """The items for as few Spark tasks as give each about `enough` bytes."""
    total = sum(map(size, items))
    count = min(len(items), max(_LEAST_TASKS, -(-total // enough)))
    return balance(items, size, count)


def run_per_item(
    session: SparkSession, items: Sequence[T], call: Callable[[T], Iterator[pa.RecordBatch]], schema: StructType
) -> DataFrame:
    """A Spark task for each item, with what the call makes of it."""
    count = max(1, len(items))
    packed = Packed.of(items, 1)
    return session.range(0, len(items), 1, count).mapInArrow(partial(_call_each, packed, call), schema)


def map_items(session: SparkSession, kernel: Callable[[T], R], items: Sequence[T], /) -> list[R]:
    """What a kernel makes of each item, in their order, a Spark task for each. Kernel, items and results pickle.

    Raises what its tasks raised
    """
    check_workers(session)
    numbered = list(enumerate(items))
    rows = collect(run_per_item(session, numbered, partial(_pickled, kernel), _RESULTS))
    results = dict(zip(rows.column("number").to_pylist(), rows.column("result").to_pylist(), strict=True))
    return [pickle.loads(results[number]) for number, _ in numbered]


def _pickled(kernel: Callable[[T], R], item: tuple[int, T]) -> Iterator[pa.RecordBatch]:
    number, value = item
    with mark_worker_errors():
        result = pickle.dumps(kernel(value))
    yield pa.record_batch([pa.array([number], pa.int64()), pa.array([result], pa.binary())], names=["number", "result"])


def _call_each(
    items: Packed[T], call: Callable[[T], Iterator[pa.RecordBatch]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for item in items.values_at(batch.column(0).to_pylist()):
            yield from call(item)


def cores(session: SparkSession) -> int:
    """Tasks that run at once, as far as settings tell: Spark Connect knows no more."""
    for key in ("spark.sql.leafNodeDefaultParallelism", "spark.default.parallelism"):
        text = session.conf.get(key, None)
        if text:
            return int(text)
    return local_cores(session) or _FALLBACK_CORES


def local_cores(session: SparkSession) -> int:
    """Tasks that run at once in the JVM of the driver; 0: they run elsewhere, or nothing tells."""
    local = _LOCAL.fullmatch(master(session))
    if local is None:
        return 0
    return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)


def master(session: SparkSession) -> str:
    """Where the session's tasks run, as `spark.master` has it, which no session changes; "": nothing tells."""
    if session not in _masters:
        _masters[session] = session.conf.get("spark.master", None) or ""
    return _masters[session]


def is_classic(session: SparkSession) -> bool:
    """Whether the session has a JVM of its own, which resolves frames as they are made: Spark Connect's server does so
    when it is asked for something."""
    return type(session) is SparkSession


def collect(frame: DataFrame) -> pa.Table:
    """The rows of a frame. Raises what its tasks raised."""
    with raise_worker_errors():
        return frame.toArrow()


def persist(frame: DataFrame) -> DataFrame:
    """Keep the rows, so that they are evaluated once however many jobs need them."""
    return frame.persist(StorageLevel.MEMORY_AND_DISK)


def check_workers(session: SparkSession) -> None:
    """Refuse a session whose Python workers cannot run this library, before anything is written. Where only its own
    code is missing and the workers are on this machine, it is sent to them.

    Raises WorkerEnvironment naming PYSPARK_PYTHON.
    """
    if session in _checked:
        return
    try:
        _run_probe(session)
    except WorkerEnvironment as problem:
        if "'hoodie'" not in str(problem) or not str(session.conf.get("spark.master", "")).startswith("local"):
            raise
        send(session)
        _run_probe(session)
    _checked.add(session)


def _run_probe(session: SparkSession) -> None:
    with raise_worker_errors():
        session.range(1).mapInArrow(_probe, "ok long").toArrow()


_checked: WeakSet[SparkSession] = WeakSet()
_masters: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()


def _probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import hoodie.writing.tasks.run  # noqa: F401

    for batch in batches:
        yield pa.record_batch([batch.column(0)], names=["ok"])
