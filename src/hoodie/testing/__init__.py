"""What tests need: storage wrappers, a table builder, and suites that hold a storage or an index to its contract."""

from hoodie.testing.storage import (
    CountingStorage,
    Crash,
    CrashAfter,
    DelayingStorage,
    Dying,
    MemoryStorage,
    RefusingStorage,
)

__all__ = ["CountingStorage", "Crash", "CrashAfter", "DelayingStorage", "Dying", "MemoryStorage", "RefusingStorage"]
