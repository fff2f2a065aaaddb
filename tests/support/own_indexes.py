"""Indexes of a user's own, as `hoodie.index.class` names them: they know a table by reading all of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from hoodie.config.table import TableConfig
from hoodie.index.contract import ByKey, Index, IndexContext, Placed, Tags
from hoodie.index.pruning import IndexStats
from hoodie.reading.snapshot import read_table
from hoodie.table.state import load_state
from hoodie.timeline.timeline import Timeline

#: (partition path, record key) -> file id; with a global index the path is "*"
LocatedKeys = Mapping[tuple[str, str], tuple[str, str]]

#: What tells that an index is to be this one.
EXACT = {"hoodie.index.class": "support.own_indexes:exact"}
EXACT_GLOBAL = {"hoodie.index.class": "support.own_indexes:exact_global"}


def exact(options: Mapping[str, str], config: TableConfig) -> Index:
    """Finds each key where a snapshot reader sees it, logs included."""
    return Index(name="exact", look_up=ByKey(partial(_tagger, False)), sees_logs=True)


def exact_global(options: Mapping[str, str], config: TableConfig) -> Index:
    return Index(name="exact_global", look_up=ByKey(partial(_tagger, True)), sees_logs=True, is_global=True)


def _tagger(is_global: bool, there: IndexContext) -> partial[Tags]:
    rows = read_table(load_state(there.storage))
    places = {}
    for key, path, name in zip(*(rows.column(n).to_pylist() for n in rows.column_names[2:5]), strict=True):
        places["*" if is_global else path, key] = (path, name.partition("_")[0])
    return partial(tag, places, is_global)


def tag(places: LocatedKeys, is_global: bool, keys: pa.Array, partitions: pa.Array) -> Tags:
    found = [
        places.get(("*" if is_global else path, key), (None, None))
        for key, path in zip(keys.to_pylist(), partitions.to_pylist(), strict=True)
    ]
    columns = [pa.array([place[n] for place in found], pa.string()) for n in (0, 1)]
    hits = len(found) - columns[1].null_count
    return Tags(*columns, IndexStats(candidates=len(found), checked=len(found), hits=hits))


@dataclass(frozen=True)
class Answer:
    """An index that answers so many rows too many, whatever it is asked."""

    more: int = 0

    def __call__(self, options: Mapping[str, str], config: TableConfig) -> Index:
        return Index(name="answer", look_up=ByKey(self.tagger))

    def tagger(self, there: IndexContext) -> partial[Tags]:
        return partial(_answer, self.more)


def _answer(more: int, keys: pa.Array, partitions: pa.Array) -> Tags:
    nothing = pa.nulls(len(keys) + more, pa.string())
    return Tags(nothing, nothing, IndexStats())


too_many, too_few = Answer(2), Answer(-1)


def no_index(options: Mapping[str, str], config: TableConfig) -> str:
    return "BLOOM"


@dataclass
class Diary:
    """An index that keeps what it hears, and fails where it is told to, as code of a user's own may."""

    heard: list[tuple[str, str]] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)

    def __call__(self, options: Mapping[str, str], config: TableConfig) -> Index:
        return Index(
            name="diary",
            look_up=ByKey(partial(_tagger, False)),
            record_writes=self.record_writes,
            finalize=lambda instant, rows: self.hear("settle", instant),
            rolled_back=lambda instant: self.hear("rolled back", instant),
            catch_up=self.catch_up,
        )

    def catch_up(self, before: Timeline, context: IndexContext) -> None:
        if "catch up" in self.fails:
            raise LookupError("catch up is too much")

    def record_writes(self, placed: Sequence[Placed]) -> pa.Table:
        self.hear("learn", placed[0].instant)
        return pa.table({"keys": pa.concat_arrays([each.inserted for each in placed])})

    def hear(self, what: str, instant: str) -> None:
        self.heard.append((what, instant))
        if what in self.fails:
            raise LookupError(f"{what} is too much")


diary = Diary()

not_callable = "a text"
