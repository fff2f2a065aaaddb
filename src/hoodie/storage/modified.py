"""Saying when a file was written, where the storage can: local disks."""

from __future__ import annotations

from hoodie.storage.local import LocalStorage
from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage


def set_modified(storage: Storage, path: str, millis: int) -> bool:
    """Give a file the time of another one whose content it has; whether the storage can.

    millis  since 1970, UTC
    """
    while isinstance(storage, WrappedStorage):
        storage = storage.inner
    if not isinstance(storage, LocalStorage):
        return False
    storage.set_modified(path, millis)
    return True
