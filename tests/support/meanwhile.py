"""A storage amid whose calls something else happens."""

from collections.abc import Callable
from copy import copy
from typing import Any

from hoodie.storage.protocol import Storage
from hoodie.storage.wrapped import WrappedStorage

#: Whether a call is the one, by the name of the method and the path.
At = Callable[[str, str], bool]


def calls_of(methods: str, ending: str | tuple[str, ...]) -> At:
    """The calls of these methods for a path that ends so."""
    return lambda name, path: name in methods.split() and path.endswith(ending)


class Meanwhile(WrappedStorage):
    """Does something else, once, right before the first call that is the one. Tasks of Spark get the storage itself."""

    def __init__(self, inner: Storage, when: At, act: Callable[[], object]) -> None:
        super().__init__(inner)
        self.when, self.act = when, act
        self.over = False

    def mutate(self, name: str, path: str, call: Callable[[], Any]) -> Any:
        if not self.over and self.when(name, path):
            self.over = True
            self.act()
        return call()

    observe = mutate

    def __reduce__(self) -> Any:
        return copy, (self.inner,)  # of a module that workers have, too
