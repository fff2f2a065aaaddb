"""Hudi's options by name: which have an effect here, which need none, and which ask for what would not happen.

The list is `hudi_options.csv` beside this module, read when a key is met that no group of options declares. Sources:
docs/format/hudi-options.csv (all options of Hudi 0.15 and 1.2), and what jobs of older releases and of Spark carry.
"""

import csv
import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources


class OptionClass(StrEnum):
    """What becomes of an option of Hudi."""

    USED = "used"
    NO_EFFECT = "no effect"  # and none is needed
    NOT_IN_WRITES = "not in writes"  # asks for something that a write does not do
    NOT_IN_READS = "not in reads"
    NOT_SUPPORTED = "not supported"  # neither in writes nor in reads


class Purpose(StrEnum):
    """What options are given for."""

    WRITE = "write"
    READ = "read"
    BOTH = "both"


_REFUSED_FOR = {
    OptionClass.NOT_IN_WRITES: {Purpose.WRITE, Purpose.BOTH},
    OptionClass.NOT_IN_READS: {Purpose.READ, Purpose.BOTH},
    OptionClass.NOT_SUPPORTED: {Purpose.WRITE, Purpose.READ, Purpose.BOTH},
}


@dataclass(frozen=True, slots=True)
class HudiOption:
    """One option of the list.

    key       its name; `fs.*` stands for all names that begin with `fs.`
    accepted  values, in lower case, that ask for nothing that would not happen; the empty one always does not
    advice    why it needs no effect, or what to do instead
    rows      it decides which rows or values are written or read: no call goes on without
    """

    key: str
    kind: OptionClass
    accepted: frozenset[str]
    advice: str
    rows: bool = False

    def is_refused(self, value: str, purpose: Purpose) -> bool:
        """Whether the value asks for something that would not happen."""
        asks = value.strip().lower() not in self.accepted
        return asks and purpose in _REFUSED_FOR.get(self.kind, ())


#: Values of indexes that hold for all partitions: another index may find a key where it is not.
_GLOBAL_INDEXES = ("INMEMORY",)

#: Values of options that have an effect with others.
_VALUES = {
    "hoodie.index.type": {
        word: f"The index {word} is not kept. Leave hoodie.index.type out, or take BLOOM, SIMPLE, GLOBAL_BLOOM, "
        "GLOBAL_SIMPLE, RECORD_INDEX, BUCKET or HBASE"
        for word in ("RECORD_LEVEL_INDEX", "INMEMORY", "FLINK_STATE")
    }
}


@cache
def hudi_options() -> Mapping[str, HudiOption]:
    """All of the list, by name."""
    text = resources.files("hoodie.config").joinpath("hudi_options.csv").read_text("utf-8")
    options = {}
    for row in csv.DictReader(text.splitlines()):
        accepted = frozenset(["", *row["accepted"].lower().split("|")])
        kind = OptionClass(row["class"])
        options[row["key"]] = HudiOption(row["key"], kind, accepted, row["advice"], row["rows"] == "rows")
    return options


def find_option(key: str) -> HudiOption | None:
    """The option of that name, or of the longest beginning that the list has; None for an unknown one."""
    options = hudi_options()
    if key in options:
        return options[key]
    parts = key.split(".")
    beginnings = (".".join([*parts[:count], "*"]) for count in range(len(parts) - 1, 0, -1))
    return next((options[beginning] for beginning in beginnings if beginning in options), None)


def refused_value(key: str, value: str) -> str | None:
    """What to do about a value, of an option that has an effect, that asks for something that would not happen."""
    return _VALUES.get(key, {}).get(value.strip().upper())


def decides_rows(key: str, value: str) -> bool:
    """Whether a refused option decides which rows or values are written or read: no call goes on without."""
    if key in _VALUES:
        return value.strip().upper() in _GLOBAL_INDEXES
    declared_option = find_option(key)
    return declared_option is not None and declared_option.rows


def misspelt(key: str, declared: Collection[str]) -> str | None:
    """The known name that the key is a misspelling of; None when there is none.

    declared  names that groups of options have, beside those of the list

    Names that differ in a whole word, such as `min` and `max` or `compact` and `clustering`, mean different things:
    each part between dots must be spelt nearly the same, or all be the same but for `.`, `_`, `-` and case.
    """
    spellings = [name for name in {*declared, *hudi_options()} if not name.endswith("*")]
    bare = _bare(key)
    if same := [name for name in spellings if _bare(name) == bare]:
        return min(same)
    near = [name for name in difflib.get_close_matches(key, spellings, n=8, cutoff=0.8) if _spelt_alike(key, name)]
    return near[0] if near else None


def _bare(key: str) -> str:
    return re.sub(r"[._\-\s]", "", key).lower()


def _spelt_alike(key: str, name: str) -> bool:
    words, others = _words(key), _words(name)
    return len(words) == len(others) and all(
        word == other or difflib.SequenceMatcher(None, word, other).ratio() >= 0.7
        for word, other in zip(words, others, strict=True)
    )


def _words(key: str) -> list[str]:
    return re.split(r"[._\-]", key.lower())


def as_sentences(problems: Iterable[tuple[str, str]]) -> list[str]:
    """Sentences, one for each advice, with all options that it is about.

    problems  pairs of an option, as the message shows it, and its advice
    """
    by_advice: dict[str, list[str]] = {}
    for shown, advice in problems:
        by_advice.setdefault(advice, []).append(shown)
    return [f"{', '.join(shown)}: {advice}." for advice, shown in by_advice.items()]
