"""What storages that a driver reaches have in common: a URI, the driver's options, and its own form of paths."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from hoodie.storage.protocol import Storage, check_file, redacted_path, same_scheme


class UriStorage(Storage):
    """The files below a URI.

    root     without a trailing slash
    options  of the driver; they may hold secrets, and are in no message
    """

    root = ""  # set below; a property of the protocol
    remote = True

    def __init__(self, root: str, options: Mapping[str, Any] | None) -> None:
        self.root, self._options = root, dict(options or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.root, self._options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({redacted_path(self.root)!r})"

    def options_for(self, uri: str) -> Mapping[str, Any]:
        return self._options if same_scheme(uri, self.root) else {}

    @abstractmethod
    def _at(self, path: str) -> str:
        """The driver's path. Raises InvalidInput for a name that it cannot address."""

    def _file(self, path: str) -> str:
        """The driver's path of a file, or of a folder that is not the base path."""
        return self._at(check_file(path))
