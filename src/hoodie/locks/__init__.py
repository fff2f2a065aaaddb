"""Locks that keep the writers of a table apart."""

from hoodie.locks.choose import lock_by
from hoodie.locks.protocol import Grant, Lock, Refused

__all__ = ["Grant", "Lock", "Refused", "lock_by"]
