"""Which process holds a lock, and whether it is dead: told only where its number cannot be another's.

A process number means something on one machine, since one boot of it, within one PID namespace (a container has its
own). All three have to be this process's own; else nothing is known, and the lock has to expire. The time at which the
process began tells it from a later one with the same number.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process of some machine.

    boot     of the machine: "" where the system does not say
    space    its PID namespace, and that of its clocks; "" where the system does not say
    started  clock ticks from the boot to its begin; 0 where the system does not say
    """

    host: str
    pid: int
    boot: str
    space: str
    started: int

    @classmethod
    def own(cls) -> Self:
        """This process."""
        boot, space = _place()
        return cls(socket.gethostname(), os.getpid(), boot, space, _start_time(os.getpid()))

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Self:
        """Raises KeyError, ValueError, TypeError when they are no process's."""
        host, boot, space = (str(fields[name]) for name in ("host", "boot", "space"))
        return cls(host, int(fields["pid"]), boot, space, int(fields["started"]))

    def fields(self) -> dict[str, str | int]:
        """What `read` takes."""
        return {"host": self.host, "pid": self.pid, "boot": self.boot, "space": self.space, "started": self.started}

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def is_dead(self) -> bool:
        """Whether it has certainly ended. False in all cases of doubt."""
        own_place = (socket.gethostname(), *_place())
        if "" in own_place or own_place != (self.host, self.boot, self.space) or self.pid <= 0 or not self.started:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # another user's: it is there
            return _is_other(self)
        return _is_other(self) or _is_zombie(self.pid)


def _place() -> tuple[str, str]:
    """The boot of this machine, and the namespaces of this process; "" for what the system does not say."""
    try:
        if os.readlink(_PROC / "self") != str(os.getpid()):  # the /proc of another namespace
            return "", ""
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        clock = _PROC / "self/ns/time"
        return boot, os.readlink(_PROC / "self/ns/pid") + (f" {os.readlink(clock)}" if clock.is_symlink() else "")
    except OSError:
        return "", ""


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name, the first its state; none when the system does not show them."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _start_time(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 and fields[19].isdigit() else 0


def _is_other(process: Process) -> bool:
    """Whether the process of this number is a later one."""
    started = _start_time(process.pid)
    return started > process.started


def _is_zombie(pid: int) -> bool:
    """Whether it has ended, and its parent has not asked yet how."""
    fields = _stat(pid)
    try:
        threads = len(os.listdir(_PROC / str(pid) / "task"))
    except OSError:
        return False
    return bool(fields) and fields[0] == "Z" and threads <= 1
