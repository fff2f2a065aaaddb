"""Locks that keep the writers of a table apart."""

from __future__ import annotations

from hoodie.locks.choose import has_lock, lock_by, lock_for
from hoodie.locks.protocol import Grant, Lock, Refused

__all__ = ["Grant", "Lock", "Refused", "has_lock", "lock_by", "lock_for"]
