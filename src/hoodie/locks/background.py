"""Periodic work in a background thread: renewing a lease, writing a heartbeat."""

import threading
from collections.abc import Callable

#: Repeats some work every so many seconds; what it returns stops it, and returns once it has stopped.
Background = Callable[[float, Callable[[], bool]], Callable[[], None]]


def background(every: float, work: Callable[[], bool]) -> Callable[[], None]:
    """Call `work` every so many seconds in a thread of its own, until it returns False or the result is called.

    The thread does not keep the process alive: when a writer exits its leases are no longer renewed.
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
