"""Long uploads whose completion gets no answer, through drivers as Azure's, Google's and S3's: done is found out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hoodie.storage.gcs import GCS
from hoodie.storage.object_stores import Azure, ObjectStore

PATH = "/bucket/long"
LONG = bytes(range(256)) * (1 << 15) + b"end"


def of(module: str, name: str, base: type[Exception] = Exception, **attributes: object) -> Exception:
    """An error of a driver that need not be installed."""
    return type(name, (base,), {"__module__": module, **attributes})("no answer")


TIMED_OUT = of("azure.core.exceptions", "ServiceResponseTimeoutError")
DENIED = of("azure.core.exceptions", "HttpResponseError", status_code=403)


class Upload:
    """A file that goes up in parts. Its completion fails, and the object is there after so many looks; None: never."""

    def __init__(self, store: Store, path: str, marks: dict[str, str]) -> None:
        self.store, self.path, self.marks = store, path, marks
        self.data, self.closed = b"", False

    def write(self, piece: bytes) -> None:
        self.data += piece

    def _upload_chunk(self, final: bool = False) -> None:
        self.store.sent += 1
        if self.store.faults:
            raise self.store.faults.pop(0)

    def close(self) -> None:
        self._upload_chunk(final=True)
        self.store.pending = (self.path, self.data, self.marks)
        if self.store.after == 0:
            self.store.appear()
        if self.store.problem is not None:
            raise self.store.problem
        self.store.appear()


class Store(MemoryFileSystem):
    """A store whose uploads end as it is told, and that keeps metadata and a version of each object."""

    cachable = False
    split_path = staticmethod(lambda path: (*path.strip("/").split("/", 1), None))

    def __init__(self, problem: Exception | None = None, after: int | None = 0, cut: int = 0) -> None:
        super().__init__(skip_instance_cache=True)
        self.store, self.pseudo_dirs = {}, [""]  # its own, not that of the class
        self.problem, self.after, self.cut = problem, after, cut
        self.pending: Any = None
        self.marks: dict[str, dict[str, str]] = {}
        self.versions = self.looks = self.sent = 0
        self.faults: list[Exception] = []

    def open(self, path: str, mode: str = "rb", **how: Any) -> Any:
        if mode != "wb" or "block_size" not in how:
            return super().open(path, mode, **how)
        return Upload(self, path, how.get("metadata") or how.get("Metadata") or {})

    def appear(self) -> None:
        path, data, marks = self.pending
        self.pipe_file(path, data[: len(data) - self.cut])
        self.marks[path], self.versions = marks, self.versions + 1

    def _looked(self, path: str) -> None:
        if self.pending is not None and self.after is not None:
            self.looks += 1
            if self.looks > self.after > 0:
                self.appear()
        if path not in self.store:
            raise FileNotFoundError(path)

    def metadata(self, path: str) -> dict[str, str]:
        self._looked(path)
        return self.marks[path]

    def call(self, method: str, url: str, bucket: str, key: str, **_: Any) -> dict[str, Any]:
        """Google's."""
        self._looked(path := f"/{bucket}/{key}")
        return {"metadata": self.marks[path], "size": str(len(self.cat_file(path)))}

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        self._looked(path)
        return {**super().info(path), "etag": f'"{self.versions}"'}


DRIVERS: dict[str, Callable[[Store], ObjectStore]] = {"azure": Azure, "gcs": GCS}
EACH = pytest.mark.parametrize("driver", DRIVERS)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)


def write(driver: str, store: Store) -> None:
    with DRIVERS[driver](store).output(PATH) as file:
        file.write(LONG)


@EACH
@pytest.mark.parametrize("after", [0, 1, 3])
@pytest.mark.parametrize("before", [b"", b"x" * len(LONG)])
def test_an_upload_that_is_completed_without_an_answer_is_done(driver: str, after: int, before: bytes) -> None:
    store = Store(TIMED_OUT, after)
    if before:  # an object of the same name and size, which this one replaces
        store.pending = (PATH, before, {})
        store.appear()
        store.pending = None
    write(driver, store)
    assert store.cat_file(PATH) == LONG


@EACH
def test_an_upload_that_never_appears_is_an_error_of_the_system(driver: str) -> None:
    store = Store(TIMED_OUT, None)
    with pytest.raises(OSError, match="ServiceResponseTimeoutError: no answer"):
        write(driver, store)
    assert PATH not in store.store


@EACH
def test_an_upload_that_is_refused_is_not_waited_for(driver: str) -> None:
    store = Store(DENIED, 5)
    with pytest.raises(type(DENIED)):
        write(driver, store)
    assert store.looks <= 3


@EACH
def test_an_upload_of_which_a_part_is_missing_is_not_done(driver: str) -> None:
    with pytest.raises(OSError, match="no answer" if driver == "azure" else "holds .* bytes of 8388611"):
        write(driver, Store(TIMED_OUT, 0, cut=1))


def test_a_part_whose_answer_comes_too_late_is_sent_to_google_again() -> None:
    store = Store()
    store.faults = [TimeoutError(), TimeoutError()]
    write("gcs", store)
    assert store.sent == 3
    assert store.cat_file(PATH) == LONG
