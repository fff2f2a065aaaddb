"""Work that goes on beside the work: renewing a lease, beating a heart."""

from __future__ import annotations

import threading
from collections.abc import Callable

#: Repeats some work every so many seconds; what it returns ends that, and returns once it has ended.
Background = Callable[[float, Callable[[], bool]], Callable[[], None]]


def background(every: float, work: Callable[[], bool]) -> Callable[[], None]:
    """Call `work` every so many seconds by a thread of its own, until it returns False or the result is called.

    The thread does not keep the process alive: a writer that ends, ends its leases.
    """
    stopped = threading.Event()

    def loop() -> None:
        while not stopped.wait(every):
            if not work():
                return

    thread = threading.Thread(target=loop, name="hoodie-lease", daemon=True)
    thread.start()

    def stop() -> None:
        stopped.set()
        if threading.current_thread() is not thread:
            thread.join()

    return stop


def by_hand(every: float, work: Callable[[], bool]) -> Callable[[], None]:
    """Nothing goes on by itself: for tests that decide what happens when."""
    return lambda: None
