"""What stands for a background thread in tests that decide what happens when."""

from collections.abc import Callable


def by_hand(every: float, work: Callable[[], bool]) -> Callable[[], None]:
    """Runs nothing in the background; takes the place of `locks.background.background`."""
    return lambda: None
