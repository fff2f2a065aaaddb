"""What came of a command, for each table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, TypeVar

R = TypeVar("R")


class Status(IntEnum):
    """The exit status of a command; of several tables the greatest."""

    FINE = 0
    FOUND = 1  # what was looked for was found: a finding of the doctor, a plan that cannot run
    USAGE = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a table, or the command, failed.

    type     the class of docs/errors.md, or of Python
    message  one line, with advice
    """

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """What came of one table."""

    path: str
    status: Status
    result: R | None = None
    error: Problem | None = None
    warnings: tuple[str, ...] = ()
