"""A message that goes on after what another error says has one full stop between the two."""

import inspect

import pytest

from hoodie import errors
from hoodie.doctor.findings import Fault, Finding, Severity

SAID = "Unexpected end of stream. Deserializing page header failed.\n"


def _with_a_problem() -> list[type[Exception]]:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]
    return [kind for kind in kinds if {"problem", "why"} & inspect.signature(kind.__init__).parameters.keys()]


@pytest.mark.parametrize("kind", _with_a_problem())
def test_every_class_that_repeats_a_problem_ends_it_once(kind: type[Exception]) -> None:
    names = [*inspect.signature(kind.__init__).parameters][1:]
    numbers = {"number": 5, "offset": 3, "is_file": False}
    error = kind(*(SAID if name in ("problem", "why") else numbers.get(name, name) for name in names))
    said = SAID.strip(".\n")
    assert said in str(error)
    assert f"{said}.\n." not in str(error)


def test_a_finding_ends_its_problem_once() -> None:
    finding = Finding(Severity.ERROR, Fault.CHECKSUM, "x", SAID, "Do it.")
    assert str(finding).endswith("failed. Do it.")
