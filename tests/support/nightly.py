"""Cases that are slow and rarely fail alone: `make nightly` runs them, the default suite a few of their kind."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from hoodie.testing.storage import Dying


def nightly(*values: object, id: str | None = None) -> Any:
    """A case of `pytest.mark.parametrize` that only the nightly run has."""
    return pytest.param(*values, id=id, marks=pytest.mark.nightly)


def by_day(cases: Iterable[Any], kept: Callable[[Any], bool]) -> list[Any]:
    """All cases, of which the default suite runs the kept ones. A tuple is the values of several parameters."""
    split = [(case, case if isinstance(case, tuple) else (case,)) for case in cases]
    return [pytest.param(*values) if kept(case) else nightly(*values) for case, values in split]


def covering(
    *axes: Iterable[Any], pairs: bool = False, always: Callable[[Any], bool] = lambda case: False
) -> list[Any]:
    """All combinations of the values of several parameters, of which the default suite runs so many that each value
    occurs. The values of a mapping are named by its keys.

    pairs   each pair of values of two parameters occurs, too
    always  other combinations, as tuples, that the default suite runs
    """
    named = [axis if isinstance(axis, Mapping) else _named(axis) for axis in axes]
    names = [list(axis) for axis in named]
    every = list(itertools.product(*names))
    if pairs:
        kept = _pairwise(every)
    else:  # along diagonals, each time round by one further
        longest = max(map(len, names))
        kept = {tuple(n[(i + i // len(n) * at) % len(n)] for at, n in enumerate(names)) for i in range(longest)}
    cases = []
    for labels in every:
        values = tuple(axis[label] for axis, label in zip(named, labels, strict=True))
        marks = [] if labels in kept or always(values) else [pytest.mark.nightly]
        cases.append(pytest.param(*values, id="-".join(labels), marks=marks))
    return cases


def _named(axis: Iterable[Any]) -> dict[str, Any]:
    values = list(axis)
    names = {_name(value): value for value in values}
    assert len(names) == len(values), f"give a mapping: of {values} some have one name"
    return names


def _name(value: Any) -> str:
    text = getattr(value, "__name__", None) or getattr(value, "name", None) or str(value)
    return text.rpartition(".")[2] if text.startswith("org.") else text


def _pairwise(every: list[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Few of the combinations that have all pairs: each time the one with the most that none had."""
    pairs = {case: set(itertools.combinations(enumerate(case), 2)) for case in every}
    left, kept = set().union(*pairs.values()), set()
    while left:
        best = max(every, key=lambda case: len(pairs[case] & left))
        kept.add(best)
        left -= pairs[best]
    return kept


def scaled(day: int, night: int) -> int:
    """A number of examples or a stride: that of the default suite, or of `make nightly`, which runs the files
    that ask with another profile of Hypothesis. A search tries more than the night."""
    profile = os.environ.get("HYPOTHESIS_PROFILE", "ci")
    return {"ci": day, "search": 20 * night if night > day else night}.get(profile, night)


def each_call(every: int = 3) -> Iterator[int]:
    """After how many calls something dies, without end: those of the default suite are `every` so many apart."""
    return itertools.count(0, scaled(every, 1))


#: Torn by day: a call that did not happen and the one before it that did leave the same files.
WAYS_TO_DIE = by_day(Dying, lambda how: how is Dying.TORN)
