"""The meter counts what it says it counts."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.meter import Meter, ProcessTimes

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
    times = ProcessTimes()
    before = seconds(times)
    with subprocess.Popen(
        [sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "x\n"
        alive = seconds(times)
        child.communicate("\n")
    assert alive - before > 0.3
    assert seconds(times) >= alive


def test_a_child_that_nobody_waits_for_is_counted_once() -> None:
    """As Python workers are, whose parent ignores SIGCHLD: their time goes to nobody when they end."""
    ignoring = (
        "import signal, subprocess, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-c', {BURN.replace('0.4', '1')!r}]).wait()\n"
        "print('x', flush=True); input()"
    )
    with (
        Meter() as meter,
        subprocess.Popen(
            [sys.executable, "-c", ignoring], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as parent,
    ):
        assert parent.stdout is not None
        assert parent.stdout.readline() == "x\n"
        parent.communicate("\n")
    assert 0.7 < meter.reading.cpu < 5


def test_a_meter_of_another_process_leaves_out_this_one() -> None:
    code = f"print('x', flush=True); input()\n{BURN.replace('0.4', '1')}\nprint('x', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "x\n"
        with Meter(child.pid) as idle:
            until = time.process_time() + 0.5
            while time.process_time() < until:
                pass
        with Meter(child.pid) as busy:
            print(file=child.stdin, flush=True)
            assert child.stdout.readline() == "x\n"
        child.communicate("\n")
    assert idle.reading.cpu < 0.3
    assert 0.7 < busy.reading.cpu < 5


def seconds(times: ProcessTimes) -> float:
    times.sample()
    return times.total()


def test_memory_is_told_by_role() -> None:
    # In a process of its own: this one may have the JVM of other tests below it.
    told = (
        "import json, subprocess, sys\n"
        "from bench.meter import resident_bytes\n"
        "child = subprocess.Popen([sys.executable, '-c', 'print(1, flush=True); input()'],\n"
        "                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(json.dumps(resident_bytes()))\n"
        "child.communicate(b'\\n')\n"
    )
    root = Path(__file__).parents[3]
    sizes = json.loads(subprocess.run([sys.executable, "-c", told], check=True, cwd=root, capture_output=True).stdout)
    assert sizes["driver"] > 10**6
    assert sizes["workers"] > 10**6
    assert sizes["jvm"] == 0
