"""Storages for tests: one in memory, and wrappers that count calls, die at one, or take their time."""

from __future__ import annotations

import builtins
import io
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar

from hoodie.storage import Entry, InputFile, OutputFile, Storage, WrappedStorage, join, split
from hoodie.storage.protocol import check_file, check_path, check_range, temporary_beside

T = TypeVar("T")
_COUNTING = threading.Lock()  # one for all wrappers, which so need none of their own and pickle


def _now() -> int:
    return time.time_ns() // 1_000_000


class MemoryStorage(Storage):
    """Files in this process, with a truly exclusive create. Pickling copies them.

    files  {path: content} to start with
    clock  milliseconds since 1970, for the mtime of what is written
    """

    def __init__(self, files: Mapping[str, bytes] | None = None, clock: Callable[[], int] = _now) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._files = {check_file(path): (bytes(data), clock()) for path, data in (files or {}).items()}

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {"clock": self.clock, "_files": dict(self._files)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    @property
    def root(self) -> str:
        return "memory://table"

    def snapshot(self) -> dict[str, bytes]:
        """{path: content} as of now, to compare or to start another storage with."""
        with self._lock:
            return {path: data for path, (data, _) in self._files.items()}

    def copy(self) -> MemoryStorage:
        """A storage of its own with the same files and modification times."""
        other = MemoryStorage(clock=self.clock)
        other.__setstate__(self.__getstate__())
        return other

    def list(self, folder: str = "") -> list[Entry]:
        check_path(folder)
        with self._lock:
            if folder in self._files:
                raise NotADirectoryError(folder)
            files = dict(self._files)
        entries = set()
        for path, rest in _below(files, folder):
            name, slash, _ = rest.partition("/")
            entries.add(Entry(name, 0, 0, is_dir=True) if slash else _entry(name, files[path]))
        return sorted(entries)

    def list_tree(self, folder: str = "", skip: Collection[str] = ()) -> dict[str, builtins.list[Entry]]:
        check_path(folder)
        with self._lock:
            files = dict(self._files)
        tree: dict[str, list[Entry]] = {}
        for path, rest in sorted(_below(files, folder)):
            if "/" not in rest or rest.split("/")[0] not in skip:
                parent, name = split(path)
                tree.setdefault(parent, []).append(_entry(name, files[path]))
        return {parent: sorted(tree[parent]) for parent in sorted(tree)}

    def read(self, path: str) -> bytes:
        with self._lock:
            if check_file(path) not in self._files:
                raise FileNotFoundError(path)
            return self._files[path][0]

    def read_range(self, path: str, start: int, end: int) -> bytes:
        check_range(path, start, end)
        return self.read(path)[start:end]

    def open_input(self, path: str, size: int | None = None) -> InputFile:
        return io.BytesIO(self.read(path))

    def size(self, path: str) -> int:
        return len(self.read(path))

    def exists(self, path: str) -> bool:
        with self._lock:
            return check_file(path) in self._files

    def create_new(self, path: str, data: bytes) -> None:
        with self._lock:
            if check_file(path) in self._files:
                raise FileExistsError(path)
            self._files[path] = (bytes(data), self.clock())

    def write(self, path: str, data: bytes) -> None:
        with self._lock:
            self._files[check_file(path)] = (bytes(data), self.clock())

    @contextmanager
    def open_output(self, path: str) -> Iterator[OutputFile]:
        check_file(path)
        buffer = io.BytesIO()
        yield buffer
        self.write(path, buffer.getvalue())

    def delete(self, path: str) -> bool:
        with self._lock:
            return self._files.pop(check_file(path), None) is not None

    def delete_tree(self, folder: str, paths: Collection[str] | None = None) -> None:
        check_file(folder)
        with self._lock:
            for path, _ in _below(self._files, folder):
                del self._files[path]


def _below(files: Mapping[str, Any], folder: str) -> builtins.list[tuple[str, str]]:
    """(path, path relative to the folder) of the files at any depth."""
    prefix = join(folder, "")
    return [(path, path[len(prefix) :]) for path in files if path.startswith(prefix)]


def _entry(name: str, file: tuple[bytes, int]) -> Entry:
    return Entry(name, len(file[0]), file[1])


class CountingStorage(WrappedStorage):
    """Counts calls by method and folder: that of the file, or the one given to list, list_tree and delete_tree.

    Counts of a pickled copy stay with the copy.
    """

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.calls: Counter[tuple[str, str]] = Counter()

    def count(self, method: str | None = None, folder: str | None = None) -> int:
        """Calls of a method (None: any) in a folder (None: any; "" is the base path)."""
        with _COUNTING:
            calls = list(self.calls.items())
        return sum(n for (name, place), n in calls if method in (None, name) and folder in (None, place))

    def reset(self) -> None:
        with _COUNTING:
            self.calls.clear()

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        return self.observe(name, path, call)

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        folder = path if name in ("list", "list_tree", "delete_tree") else split(path)[0]
        with _COUNTING:
            self.calls[name, folder] += 1
        return call()


class RefusingStorage(WrappedStorage):
    """Answers calls with an OSError, as a full disk or a read-only folder does; in workers, too, as it pickles.

    number   of `errno`
    within   only mutating calls on paths with this text are refused
    looking  calls that only look, as well
    """

    def __init__(self, inner: Storage, number: int, within: str = "", *, looking: bool = False) -> None:
        super().__init__(inner)
        self.number, self.within, self.looking = number, within, looking

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        if self.within in path:
            raise OSError(self.number, os.strerror(self.number), f"{self.root}/{path}")
        return call()

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        if self.looking and self.within in path:
            raise OSError(self.number, os.strerror(self.number), f"{self.root}/{path}")
        return call()


class Crash(BaseException):
    """The process died here. No Exception, so that nothing between here and the test survives it by mistake."""


class Dying(Enum):
    """How far the call gets at which a `CrashAfter` dies."""

    BEFORE = "nothing of it happened"
    TORN = "it happened in part, as far as a storage without atomic publication would show"
    AFTER = "it happened and the answer got lost"


class CrashAfter(WrappedStorage):
    """Lets `writes` mutating calls through and dies at the next; from then on every call raises Crash.

    A whole `open_output` block counts as one call, made when it ends. Torn, it leaves the first half of the file under
    its name; `create_new` and `write` leave a temporary file beside, `delete_tree` removes the first half of the files,
    `delete` nothing.
    """

    def __init__(self, inner: Storage, writes: int, dying: Dying = Dying.BEFORE) -> None:
        super().__init__(inner)
        self.remaining, self.dying, self.dead = writes, dying, False

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        if self._alive():
            return call()
        if self.dying is Dying.AFTER:
            call()
        raise Crash(f"{name} of {path}: {self.dying.value}")

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        if self.dead:
            raise Crash("this process is dead")
        return call()

    def create_new(self, path: str, data: bytes) -> None:
        with self._tearing(lambda: self.inner.write(temporary_beside(path), data[: len(data) // 2])):
            super().create_new(path, data)

    def write(self, path: str, data: bytes) -> None:
        with self._tearing(lambda: self.inner.write(temporary_beside(path), data[: len(data) // 2])):
            super().write(path, data)

    @contextmanager
    def open_output(self, path: str) -> Iterator[OutputFile]:
        self.observe("open_output", path, lambda: None)
        buffer = io.BytesIO()
        yield buffer
        data = buffer.getvalue()

        def publish() -> None:
            with self.inner.open_output(path) as file:
                file.write(data)

        with self._tearing(lambda: self.inner.write(path, data[: len(data) // 2])):
            self.mutate("open_output", path, publish)

    def delete_tree(self, folder: str, paths: Collection[str] | None = None) -> None:
        def half() -> None:
            paths = [join(parent, e.name) for parent, entries in self.inner.list_tree(folder).items() for e in entries]
            for path in paths[: len(paths) // 2]:
                self.inner.delete(path)

        with self._tearing(half):
            super().delete_tree(folder, paths)

    @contextmanager
    def _tearing(self, leave: Callable[[], None]) -> Iterator[None]:
        was_dead = self.dead
        try:
            yield
        except Crash:
            if self.dying is Dying.TORN and not was_dead:
                leave()
            raise

    def _alive(self) -> bool:
        """Whether one more mutating call goes through; the first that does not is the one to die in."""
        with _COUNTING:
            if self.dead:
                raise Crash("this process is dead")
            self.dead = self.remaining == 0
            self.remaining -= 1
            return not self.dead


class DelayingStorage(WrappedStorage):
    """Waits before each call, to let another writer in between.

    delay  seconds for (method, path); it may as well wait for a threading.Event itself and return 0
    """

    def __init__(self, inner: Storage, delay: Callable[[str, str], float]) -> None:
        super().__init__(inner)
        self.delay = delay

    def mutate(self, name: str, path: str, call: Callable[[], T]) -> T:
        return self.observe(name, path, call)

    def observe(self, name: str, path: str, call: Callable[[], T]) -> T:
        time.sleep(self.delay(name, path))
        return call()
