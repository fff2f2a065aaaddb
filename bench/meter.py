"""Wall time, CPU time and memory of this process and all below it: the JVM, and Python workers that live or lived."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field

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


@dataclass
class Meter:
    """`with Meter() as meter: ...`, then meter.reading. Linux: elsewhere processes that ended are not counted."""

    reading: Reading = field(init=False)

    def __enter__(self) -> Meter:
        self._stop = threading.Event()
        self._peaks = {"driver": 0, "jvm": 0, "workers": 0}
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()
        self._cpu = cpu_seconds()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall = time.perf_counter() - self._wall
        cpu = cpu_seconds() - self._cpu
        self._stop.set()
        self._sampler.join()
        peaks = self._peaks
        self.reading = Reading(wall, cpu, peaks["driver"], peaks["jvm"], peaks["workers"])

    def _sample(self) -> None:
        while True:
            for role, size in resident_bytes().items():
                self._peaks[role] = max(self._peaks[role], size)
            if self._stop.wait(_SAMPLE_SECONDS):
                return


def cpu_seconds() -> float:
    """User and system time of this process, its descendants, and those that ended and were waited for.

    The time of a process that ended moves to its parent when that waits for it, so a sum over the tree never loses
    it; but it can be missed or counted twice if the tree changes while it is read. Then it is read again.
    """
    for _ in range(50):
        before = _tree()
        try:
            total = sum(_own_and_reaped(process) for process in before)
        except psutil.NoSuchProcess:
            continue
        if {p.pid for p in _tree()} == {p.pid for p in before}:
            return total
    raise RuntimeError("processes come and go too fast to add up their times")


def resident_bytes() -> dict[str, int]:
    """Memory now by role: this process, JVMs below it, Python processes below those."""
    sizes = {"driver": 0, "jvm": 0, "workers": 0}
    for process in _tree():
        try:
            role = "driver" if process.pid == os.getpid() else "jvm" if process.name() == "java" else "workers"
            sizes[role] += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return sizes


def _tree() -> list[psutil.Process]:
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


def _own_and_reaped(process: psutil.Process) -> float:
    times = process.cpu_times()
    reaped = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return times.user + times.system + reaped
