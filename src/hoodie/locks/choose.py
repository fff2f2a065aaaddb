"""Which lock a table's options name."""

import os
import re

from hoodie.config.locks import LockOptions, LockProvider
from hoodie.locks.in_process import in_process
from hoodie.locks.lock_files import FileLock, StorageLock
from hoodie.locks.protocol import Attempt, Lock
from hoodie.locks.zookeeper import ZooKeeperLock, implicit_path, lock_path
from hoodie.storage import storage_beside
from hoodie.storage.protocol import Storage, redacted_path


def lock_by(provider: LockProvider, options: LockOptions, storage: Storage, *, name: str = "") -> Lock:
    """The lock of a table by a provider, or an independent one with a name.

    name    "": the table's own lock, which all its writers take. Another, such as "compaction-20240102030405678": an
            independent lock of the same provider
    Raises  InvalidOption when an option is missing that the provider needs
    """
    what = f"{f'lock {name}' if name else 'lock'} of table {redacted_path(storage.root)}"
    skew = 0 if provider is LockProvider.IN_PROCESS else options.clock_skew
    return Lock(what, _attempt(provider, options, storage, name, what), options, skew=skew / 1000)


def _attempt(provider: LockProvider, options: LockOptions, storage: Storage, name: str, what: str) -> Attempt:
    match provider:
        case LockProvider.ZOOKEEPER:
            return ZooKeeperLock(lock_path(options, name), what, options).attempt
        case LockProvider.ZOOKEEPER_IMPLICIT:
            return ZooKeeperLock(implicit_path(table_identity(storage.root), name), what, options).attempt
        case LockProvider.FILE_SYSTEM:
            file, minutes = f"lock-{name}" if name else "lock", options.filesystem_expire
            if options.filesystem_path:
                return FileLock(storage_beside(storage, options.filesystem_path), file, what, minutes * 60).attempt
            return FileLock(storage, f".hoodie/{file}", what, minutes * 60).attempt
        case LockProvider.STORAGE:
            seconds, renewal = options.storage_validity, options.storage_renewal
            return StorageLock(storage, name or "table", what, seconds, renewal).attempt
        case LockProvider.IN_PROCESS:
            return in_process(table_identity(storage.root), name)


_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(.*)", re.DOTALL)

#: Schemes that address the same store -> the canonical one.
_ONE_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}


def table_identity(root: str) -> str:
    """One name for the table at `Storage.root`, however its path is written: locks outside the table's storage go by
    it. Those within do not need it: whatever the path, they are the same file.

    root     a local path, or a URI
    returns  a local path without symbolic links; or a URI with one scheme for a store (s3a:// is s3://), its host in
             lower case and no slash at the end
    """
    uri = _URI.fullmatch(root)
    if uri is None:
        return os.path.realpath(root)
    scheme, host, path = uri[1].lower(), uri[2].lower(), uri[3].rstrip("/")
    return f"{_ONE_STORE.get(scheme, scheme)}://{host}{path}"
