"""The meter counts what it says it counts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.meter import Meter, cpu_seconds, resident_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes that ended are not counted")

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def test_a_process_that_ended_is_counted() -> None:
    with Meter() as meter:
        subprocess.run([sys.executable, "-c", BURN], check=True)
    assert 0.3 < meter.reading.cpu < 5
    assert meter.reading.wall > 0.3


def test_a_grandchild_is_counted_while_it_lives_and_when_it_is_gone() -> None:
    nested = (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); print('x', flush=True); input()"
    )
    before = cpu_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "x\n"
        alive = cpu_seconds()
        child.communicate("\n")
    assert alive - before > 0.3
    assert cpu_seconds() >= alive


def test_memory_is_told_by_role() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as child:
        sizes = resident_bytes()
        child.communicate("\n")
    assert sizes["driver"] > 10**6
    assert sizes["workers"] > 0
    assert sizes["jvm"] == 0
