"""Cases that are slow and rarely fail alone: `make nightly` runs them, the default suite a few of their kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


#: Torn by day: a call that did not happen and the one before it that did leave the same files.
WAYS_TO_DIE = by_day(Dying, lambda how: how is Dying.TORN)
