"""What storage says when it fails reaches callers as an error of ours that says what to do, with its cause."""

import errno
import os
import pickle
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie import open_table
from hoodie.config.options import Options
from hoodie.errors import (
    AccessDenied,
    CredentialsRejected,
    FileGone,
    HoodieError,
    InvalidInput,
    NameTooLong,
    StorageFailed,
    StorageFull,
    StorageUnavailable,
    WrongRegion,
)
from hoodie.recovery.restore import restore
from hoodie.recovery.rollback import rollback
from hoodie.recovery.savepoint import make_savepoint
from hoodie.services.archive import archive
from hoodie.services.clean import clean
from hoodie.services.compaction.run import compact
from hoodie.services.compaction.schedule import schedule_compaction
from hoodie.spark.worker_errors import mark_worker_errors, raise_worker_errors
from hoodie.storage import FsspecStorage, LocalStorage
from hoodie.storage.driver_errors import is_transient
from hoodie.storage.drivers import MemoryDriver
from hoodie.storage.faults import fault_of, typed_errors
from hoodie.storage.protocol import Storage
from hoodie.table.settings import Settings
from hoodie.testing.storage import MemoryStorage, RefusingStorage
from hoodie.testing.tables import ArrowTable
from hoodie.writing.run import delete_partitions
from support.trips import TRIPS

OPTIONS = {
    **TRIPS,
    "hoodie.table.services.enabled": "false",
}
MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline.max.delta.commits": "1"}


def rows(*keys: str, city: str = "oslo", ts: int = 1, note: str = "x") -> pa.Table:
    return pa.table({"id": list(keys), "city": [city] * len(keys), "ts": [ts] * len(keys), "note": [note] * len(keys)})


def of_driver(name: str, module: str, **attributes: object) -> Exception:
    error: Exception = type(name, (Exception,), {"__module__": module, **attributes})("what it said")
    return error


def boto(code: str, status: int, region: str = "") -> Exception:
    headers = {"x-amz-bucket-region": region} if region else {}
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers}}
    return of_driver("ClientError", "botocore.exceptions", response=response)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


FAULTS = [
    (OSError(errno.ENOSPC, "No space left on device", "/t/a"), StorageFull, "Free some and call again"),
    (OSError(errno.EDQUOT, "Disk quota exceeded"), StorageFull, "quota"),
    (boto("InsufficientStorage", 507), StorageFull, "quota"),
    (OSError(errno.ENAMETOOLONG, "File name too long", "/t/aaa"), NameTooLong, "Shorten the partition value"),
    (OSError(errno.EROFS, "Read-only file system", "/t/a"), AccessDenied, "mounted read-only"),
    (PermissionError(errno.EACCES, "Permission denied", "/t/a"), AccessDenied, "who owns the folder"),
    (PermissionError("Access Denied"), AccessDenied, "policy"),
    (boto("AccessDenied", 403), AccessDenied, "policy"),
    (caused(TimeoutError("expired"), boto("ExpiredToken", 400)), CredentialsRejected, "Renew them"),
    (caused(PermissionError("no"), boto("InvalidAccessKeyId", 403)), CredentialsRejected, "Renew them"),
    (of_driver("NoCredentialsError", "botocore.exceptions"), CredentialsRejected, "Renew them"),
    (of_driver("RefreshError", "google.auth.exceptions"), CredentialsRejected, "Renew them"),
    (of_driver("HttpError", "gcsfs.retry", code=401), CredentialsRejected, "Renew them"),
    (of_driver("ClientAuthenticationError", "azure.core.exceptions"), CredentialsRejected, "Renew them"),
    (caused(OSError(78, "endpoint"), boto("PermanentRedirect", 301)), WrongRegion, "is in another region. Give the"),
    (caused(OSError(78, "Moved"), boto("301", 301, "eu-west-1")), WrongRegion, "is in the region eu-west-1. Give the"),
    (caused(OSError(22, "Bad Request"), boto("400", 400, "eu-west-1")), WrongRegion, "the region eu-west-1"),
    (caused(OSError(22, "Bad Request"), boto("400", 400)), StorageFailed, "call again"),
    (boto("AuthorizationHeaderMalformed", 400), StorageFailed, "call again"),
    (FileNotFoundError(errno.ENOENT, "No such file", "/t/a"), FileGone, "call again"),
    (TimeoutError("read"), StorageUnavailable, "call again later"),
    (ConnectionResetError("reset"), StorageUnavailable, "call again later"),
    (of_driver("ServerDisconnectedError", "aiohttp.client_exceptions"), StorageUnavailable, "call again later"),
    (OSError(errno.EIO, "Input/output error"), StorageFailed, "call again"),
]


@pytest.mark.parametrize(("raw", "kind", "advice"), FAULTS, ids=lambda value: repr(value)[:50])
def test_a_fault_of_storage_is_an_error_that_says_what_to_do(raw: Exception, kind: type[StorageFailed], advice: str):
    raw.add_note("a note")
    with pytest.raises(HoodieError) as raised, typed_errors():
        raise raw
    error = raised.value
    assert type(error) is kind
    assert isinstance(error, OSError)  # callers who expect that, as Python has it, still do
    assert error.__cause__ is raw
    assert error.__notes__ == ["a note"]
    assert advice in str(error)
    assert (str(raw) or type(raw).__name__) in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.errno) == (kind, str(error), error.errno)


def test_a_fault_of_a_store_that_names_no_path_says_which_table_it_was(monkeypatch: pytest.MonkeyPatch):
    storage = FsspecStorage("memory://someone:secret@bucket/trips")

    def refuse(*arguments: object) -> bytes:
        raise of_driver("NoCredentialsError", "botocore.exceptions")

    monkeypatch.setattr(MemoryDriver, "read", refuse)
    told = r"^memory://someone:\*\*\*@bucket/trips: NoCredentialsError: what it said\. .*AWS_ACCESS_KEY_ID"
    with pytest.raises(CredentialsRejected, match=told), typed_errors():
        storage.read(".hoodie/hoodie.properties")


def test_what_python_calls_them_stays_true():
    assert issubclass(FileGone, FileNotFoundError)
    assert issubclass(AccessDenied, PermissionError)
    assert issubclass(NameTooLong, InvalidInput)


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), ZeroDivisionError("x"), InvalidInput("x")], ids=repr)
def test_other_errors_pass_as_they_are(error: Exception):
    assert fault_of(error) is None
    with pytest.raises(type(error)) as raised, typed_errors():
        raise error
    assert raised.value is error


def test_expired_credentials_are_not_tried_again():
    # s3fs makes a TimeoutError of them.
    assert not is_transient(caused(TimeoutError("expired"), boto("ExpiredToken", 400)))
    assert is_transient(caused(TimeoutError("slow"), boto("SlowDown", 503)))


@pytest.mark.parametrize(("raw", "kind", "advice"), FAULTS, ids=lambda value: repr(value)[:50])
def test_a_fault_in_a_worker_is_the_same_error_on_the_driver(raw: Exception, kind: type[StorageFailed], advice: str):
    with pytest.raises(StorageFailed) as in_worker, mark_worker_errors():
        raise raw
    text = "".join([str(in_worker.value), *in_worker.value.__notes__])  # all that Spark brings back
    with pytest.raises(kind) as raised, raise_worker_errors():
        raise RuntimeError(f"Job aborted: {text}\n at org.apache.spark")
    assert type(raised.value) is kind
    assert str(raised.value) == str(in_worker.value)


def test_a_full_disk_below_spark_itself_says_so():
    text = "Job aborted due to stage failure: java.io.IOException: No space left on device\n\tat java.base/sun.nio.ch"
    with pytest.raises(StorageFull, match=r"a task of Spark's failed.*Free some"), raise_worker_errors():
        raise RuntimeError(text)


# --- services, on storages that refuse ---


def made(options: dict[str, str] | None = None) -> MemoryStorage:
    """Four commits, so that every service has something to do."""
    storage = MemoryStorage()
    table = ArrowTable.create(storage, {**OPTIONS, **(options or {})})
    for ts in range(1, 5):
        table.upsert(rows("a", "b", ts=ts))
    return storage


SERVICES: dict[str, tuple[Callable[[Storage], Any], dict[str, str]]] = {
    "clean": (lambda s: clean(s, Settings.of({"hoodie.cleaner.commits.retained": "1"})), {}),
    "archive": (
        lambda s: archive(
            s,
            Settings.of(
                {
                    "hoodie.keep.min.commits": "2",
                    "hoodie.keep.max.commits": "3",
                    "hoodie.cleaner.commits.retained": "1",
                    "hoodie.clean.automatic": "false",
                }
            ),
        ),
        {},
    ),
    "rollback": (lambda s: rollback(s, Settings.of({})), {}),
    "savepoint": (lambda s: make_savepoint(s, Settings.of({}), None), {}),
    "delete_partitions": (lambda s: delete_partitions(s, ["oslo"], Settings.read(Options(OPTIONS))), {}),
    "schedule_compaction": (lambda s: schedule_compaction(s, Settings.of({**OPTIONS, **MOR})), MOR),
}


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, StorageFull), (errno.EROFS, AccessDenied)])
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_on_a_storage_that_refuses_says_what_to_do(service: str, number: int, kind: type[StorageFailed]):
    act, options = SERVICES[service]
    storage = made(options)
    before = ArrowTable(storage).snapshot()
    with pytest.raises(kind) as raised:
        act(RefusingStorage(storage, number))
    assert isinstance(raised.value.__cause__, OSError)
    assert not isinstance(raised.value.__cause__, HoodieError)
    assert ArrowTable(storage).snapshot() == before
    act(storage)  # once there is room again


def test_a_lock_of_a_folder_that_is_read_only_says_what_to_do():
    provider = {"hoodie.write.lock.provider": "StorageBasedLockProvider"}
    lock = Settings.of(provider).writers.lock_on(RefusingStorage(MemoryStorage(), errno.EROFS))
    with pytest.raises(AccessDenied, match="read-only"), lock:
        pass
    with pytest.raises(AccessDenied, match="read-only"):
        lock.acquire(0)


def test_compaction_and_restore_on_a_full_disk_say_so_and_can_be_called_again():
    storage = made(MOR)
    planned = schedule_compaction(storage, Settings.of({**OPTIONS, **MOR}))
    full = RefusingStorage(storage, errno.ENOSPC, ".parquet")
    with pytest.raises(StorageFull):
        compact(full, Settings.of({**OPTIONS, **MOR}), planned)
    assert compact(storage, Settings.of({**OPTIONS, **MOR}), planned) is not None
    table = ArrowTable(storage, {**OPTIONS, **MOR})
    save = make_savepoint(storage, Settings.of({}), None)
    table.upsert(rows("a", ts=9))
    with pytest.raises(StorageFull):
        restore(RefusingStorage(storage, errno.ENOSPC), Settings.of({}), save.instant)
    restore(storage, Settings.of({}), save.instant)
    assert {row["ts"] for row in table.snapshot().to_pylist()} == {4}


def test_a_read_of_files_that_it_may_not_open_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ArrowTable.create(LocalStorage(tmp_path), OPTIONS).upsert(rows("a"))

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "a.parquet")

    monkeypatch.setattr(LocalStorage, "open_input", refuse)
    with pytest.raises(AccessDenied, match="who owns the folder") as raised:
        open_table(str(tmp_path)).snapshot().to_arrow()
    assert isinstance(raised.value.__cause__, PermissionError)


def test_a_partition_name_that_is_too_long_changes_no_rows(tmp_path: Path):
    table = ArrowTable.create(LocalStorage(tmp_path), OPTIONS)
    table.upsert(rows("a"))
    before = table.snapshot()
    with pytest.raises(NameTooLong, match="Shorten the partition value"), typed_errors():
        table.upsert(rows("b", city="o" * 300))
    assert table.snapshot() == before
    table.upsert(rows("c", city="rome"))
    assert table.snapshot().num_rows == 2


# --- a disk that really is full ---


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[Path], Storage]]]:
    """A folder on a disk of 2 MB, or where this process may not mount one a storage with such a quota."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    try:
        yield folder, (lambda path: LocalStorage(path)) if mounted else (lambda path: Quota(LocalStorage(path)))
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


class Quota(RefusingStorage):
    """Refuses to write once the folder holds 2 MB."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner, errno.ENOSPC)

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        used = sum(os.stat(file).st_size for file in Path(self.root).rglob("*") if file.is_file())
        if used > 2_000_000 and name != "delete":
            return super().mutate(name, path, call)
        return call()


def test_a_disk_that_fills_up_leaves_the_table_as_it_was(small_disk: tuple[Path, Callable[[Path], Storage]]):
    folder, storage = small_disk
    options = {**OPTIONS, "hoodie.parquet.compression.codec": "uncompressed"}
    table = ArrowTable.create(storage(folder), options)
    table.upsert(rows("a", "b"))
    before = table.snapshot()

    def fill() -> None:
        nonlocal before
        for number in range(100):
            table.insert(rows(*(f"k{number}-{n}" for n in range(2000)), city=f"c{number}", note=os.urandom(50).hex()))
            before = table.snapshot()

    with pytest.raises(StorageFull, match="Free some and call again") as raised, typed_errors():
        fill()
    assert isinstance(raised.value.__cause__, OSError)
    assert table.snapshot() == before
    other = ArrowTable(LocalStorage(folder))  # a reader of its own sees the same
    assert other.snapshot() == before


def test_a_clean_of_a_full_disk_says_that_it_needs_room_and_frees_more(
    small_disk: tuple[Path, Callable[[Path], Storage]],
):
    folder, storage = small_disk
    full = storage(folder)
    settings = Settings.of({"hoodie.clean.commits.retained": "1"})
    table = ArrowTable.create(full, {**OPTIONS, "hoodie.clean.automatic": "false"})
    for ts in range(1, 5):
        table.upsert(rows("a", ts=ts))
    before, blocks = table.snapshot(), [folder / f"other-{number}" for number in range(40)]
    with suppress(OSError):
        for block in blocks:
            block.write_bytes(bytes(64 * 1024))
    with pytest.raises(StorageFull, match="free a megabyte outside the table for that"):
        clean(full, settings)
    for block in blocks[:16]:
        block.unlink()
    assert len(clean(full, settings).paths) >= 2
    assert table.snapshot() == before
