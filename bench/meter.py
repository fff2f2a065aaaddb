"""Wall time, CPU time and memory of a process and all below it: the JVM, and Python workers that live or lived."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

import psutil

_SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Reading:
    """What a measured stretch took; seconds, and the peaks of resident bytes."""

    wall: float
    cpu: float
    peak_driver: int
    peak_jvm: int
    peak_workers: int

    @property
    def peak(self) -> int:
        """The sum of the peaks, which need not have been at one time; pages that workers share count in each."""
        return self.peak_driver + self.peak_jvm + self.peak_workers


class ProcessTimes:
    """User and system time of a process, this one by default, and of all below it, those that ended included.

    The time of a process that ended moves to its parent when that waits for it. A parent that ignores SIGCHLD, as
    PySpark's daemon of Python workers does, never waits, and the time is in nobody's sum. So the last reading of each
    process is kept: what it took after that, at most a sample's length, is lost with such a parent, and nothing else.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = root
        self._turn = threading.Lock()
        self._own: dict[_Process, float] = {}
        self._reaped: dict[_Process, float] = {}  # what it got of children that it waited for
        self._parents: dict[_Process, int] = {}
        self._living: set[_Process] = set()

    def sample(self) -> None:
        """Read all processes that are there now."""
        with self._turn:
            self._living = set()
            for process in _tree(self._root):
                try:
                    with process.oneshot():
                        key = (process.pid, process.create_time())
                        times, parent = process.cpu_times(), process.ppid()
                except psutil.NoSuchProcess:
                    continue
                self._living.add(key)
                self._own[key] = times.user + times.system
                self._reaped[key] = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
                self._parents[key] = parent

    def total(self) -> float:
        """Seconds until the last sample."""
        with self._turn:
            ended: defaultdict[int, float] = defaultdict(float)  # by the parent: the seconds of children that were read
            for key, parent in self._parents.items():
                if key not in self._living:
                    ended[parent] += self._own[key] + self._reaped[key]
            never_read = (max(0.0, seconds - ended[pid]) for (pid, _), seconds in self._reaped.items())
            return sum(self._own.values()) + sum(never_read)


#: Its number and when it began, since numbers come again.
_Process: TypeAlias = tuple[int, float]


@dataclass
class Meter:
    """`with Meter() as meter: ...`, then meter.reading. Linux: elsewhere processes that ended are not counted.

    root  the process that is measured with all below it; None: this one, and the meter's own work with it
    """

    root: int | None = None
    reading: Reading = field(init=False)

    def __enter__(self) -> Meter:
        self._stop = threading.Event()
        self._peaks = {"driver": 0, "jvm": 0, "workers": 0}
        self._times = ProcessTimes(self.root)
        self._times.sample()
        self._cpu = self._times.total()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._wall
        self._stop.set()
        self._sampler.join()
        self._times.sample()
        cpu = self._times.total() - self._cpu
        peaks = self._peaks
        self.reading = Reading(wall, cpu, peaks["driver"], peaks["jvm"], peaks["workers"])

    def _sample(self) -> None:
        while True:
            self._times.sample()
            for role, size in resident_bytes(self.root).items():
                self._peaks[role] = max(self._peaks[role], size)
            if self._stop.wait(_SAMPLE_SECONDS):
                return


def resident_bytes(root: int | None = None) -> dict[str, int]:
    """Memory now by role: the process, JVMs below it, Python processes below those."""
    sizes = {"driver": 0, "jvm": 0, "workers": 0}
    for process in _tree(root):
        try:
            role = (
                "driver" if process.pid == (root or os.getpid()) else "jvm" if process.name() == "java" else "workers"
            )
            sizes[role] += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return sizes


def _tree(root: int | None) -> list[psutil.Process]:
    """Empty when the process has ended."""
    try:
        top = psutil.Process(root)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
