"""What tests need: storage wrappers, a table builder, suites that hold a storage or an index to its contract, and a
stand-in for HBase.
"""

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
