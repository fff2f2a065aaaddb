"""A server process that ends with the process that started it, however that one ends."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

#: Ends the server when standard input does: when whoever holds its other end stops it, or dies.
_WATCHED = """
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
(read -r _ <&3; kill -9 $server) >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait $server
status=$?
kill $watch 2>/dev/null
exit $status
"""


class Server:
    """One process, which can be stopped and started again.

    command  what runs
    folder   where it runs; its output goes to the file `name`.log there
    ready    whether it answers, given what it has printed since it was started
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        ready: Callable[[str], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.command, self.folder, self.ready = name, list(command), folder, ready
        self.environment = environment
        self.log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, patience: float = 120.0) -> None:
        """Returns when it is ready. Raises RuntimeError with the end of its output when that takes longer."""
        begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _WATCHED, "sh", *self.command],
                cwd=self.folder,
                env=None if self.environment is None else dict(self.environment),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + patience
        while not self.ready(said := self.log.read_bytes()[begin:].decode(errors="replace")):
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError(f"{self.name} did not start: {said[-3000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End it as a crash would. Nothing if it does not run."""
        if self._process is not None:
            assert self._process.stdin
            self._process.stdin.close()
            self._process.wait()
            self._process = None


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class Startable(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


S = TypeVar("S", bound=Startable)


@contextmanager
def running(server: S) -> Iterator[S]:
    """A server, or several that are one, started; stopped at the end, also when it did not start."""
    try:
        server.start()
        yield server
    finally:
        server.stop()
