"""Random histories that the library and the real Hudi carry out alike, by the same options and rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from support.engine_cases import Case, Row, Step

_MODEL = "org.apache.hudi.common.model"
#: Payload classes, by short names.
PAYLOADS = {
    "overwrite": f"{_MODEL}.OverwriteWithLatestAvroPayload",
    "default": f"{_MODEL}.DefaultHoodieRecordPayload",
    "partial": f"{_MODEL}.PartialUpdateAvroPayload",
    "non_defaults": f"{_MODEL}.OverwriteNonDefaultsWithLatestAvroPayload",
}
TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_MOVING = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
_BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
_INDEXES: tuple[Mapping[str, str], ...] = (
    {"hoodie.index.type": "BLOOM", "hoodie.datasource.write.hive_style_partitioning": "true"},
    {"hoodie.index.type": "SIMPLE"},
    _MOVING,
    _BUCKETS,
)
_CITIES = ("oslo", "rome", "lima")


@dataclass(slots=True)
class _Model:
    """What the next step has to know.

    cities   of the keys that live, or did last
    alive    keys of rows
    deleted  keys that were ever deleted
    ts       the greatest ordering value so far
    holes    whether rows may lack a value, which their payload fills
    moves    whether a row may name another partition than the stored one
    logs     whether rows go to logs
    buckets  whether a bulk insert finds its bucket taken: Hudi begins a second file group and fails from then on
    """

    random: Random
    holes: bool
    moves: bool
    logs: bool
    buckets: bool
    cities: dict[str, str] = field(default_factory=dict)
    alive: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    ts: int = 10

    def step(self) -> Step:
        steps = [self._upsert] * 6 + [self._insert, self._bulk_insert, self._delete, self._delete, self._overwrite]
        return self.random.choice(steps)() if self.alive else self._insert()

    def _row(self, key: str, ts: int) -> Row:
        hole = self.holes and key not in self.deleted and self.random.random() < 0.3
        day, fare = self.random.randrange(3), self.random.randrange(100) / 4
        return (key, self.cities[key], None if hole else day, ts, fare)

    def _later(self) -> int:
        self.ts += 1
        return self.ts

    def _new_keys(self, count: int) -> list[str]:
        """A key that a log deleted, and that comes back by an insert, Hudi doubles at its next upsert."""
        keys = [f"k{number}" for number in range(len(self.cities), len(self.cities) + count)]
        self.cities.update({key: self.random.choice(_CITIES) for key in keys})
        self.alive.update(keys)
        return keys

    def _some(self, keys: Iterable[str]) -> list[str]:
        known = sorted(keys)
        return self.random.sample(known, min(len(known), self.random.randint(1, 4)))

    def _insert(self, operation: str = "insert") -> Step:
        keys = self._new_keys(self.random.randint(1, 3))
        return Step(operation, tuple(self._row(key, self._later()) for key in keys))

    def _bulk_insert(self) -> Step:
        return self._insert("insert" if self.buckets else "bulk_insert")

    def _upsert(self) -> Step:
        """Rows of keys that were deleted come back with greater ordering values: of late ones Hudi's types differ.

        Where rows move, Hudi puts the stored row into a log again for a late one, and it gets that commit's time.
        """
        rows = []
        for key in [*self._some(self.cities), *(self._new_keys(1) if self.random.random() < 0.3 else [])]:
            late = key in self.alive - self.deleted and self.random.random() < 0.25 and not (self.moves and self.logs)
            if self.moves and not late and self.random.random() < 0.3:
                self.cities[key] = self.random.choice(_CITIES)
            rows.append(self._row(key, self.random.randint(1, self.ts) if late else self._later()))
            if self.random.random() < 0.2:  # twice in one batch
                rows.append(self._row(key, self._later()))
            self.alive.add(key)
        return Step("upsert", tuple(rows))

    def _delete(self) -> Step:
        keys = self._some(self.alive)
        self._forget(keys)
        return Step("delete", tuple(self._row(key, self._later()) for key in keys))

    def _overwrite(self) -> Step:
        [key] = self._new_keys(1)
        self._forget([other for other in self.alive if other != key and self.cities[other] == self.cities[key]])
        return Step("insert_overwrite", (self._row(key, self._later()),))

    def _forget(self, keys: list[str]) -> None:
        self.alive.difference_update(keys)
        self.deleted.update(keys)


def histories(seed: int, steps: int) -> Iterator[Case]:
    """One of each table type and payload, each of so many writes. The seed chooses the index, too."""
    index = _INDEXES[seed % len(_INDEXES)]
    for kind, table_type in TYPES.items():
        inline = kind == "mor" and seed % 2 == 0
        compacted = {"hoodie.compact.inline": str(inline).lower(), "hoodie.compact.inline.max.delta.commits": "4"}
        for payload, class_name in PAYLOADS.items():
            name = f"{kind}_{payload}_{seed}"
            options = {
                "hoodie.table.name": name,
                "hoodie.datasource.write.table.type": table_type,
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.datasource.write.partitionpath.field": "city",
                "hoodie.datasource.write.payload.class": class_name,
                **index,
                **compacted,
            }
            holes = payload in ("partial", "non_defaults")
            if (kind, payload) == ("mor", "non_defaults") and index is _MOVING:
                holes = False  # Hudi fills a row of the log from the stored one there: docs/coming-from-hudi.md
            model = _Model(Random(name), holes, index is _MOVING, kind == "mor", index is _BUCKETS)
            yield Case(name, options, tuple(model.step() for _ in range(steps)))
