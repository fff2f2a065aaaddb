"""Where the tests on real servers put their tables."""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from hoodie.storage import Storage, storage_for


@dataclass(frozen=True)
class Store:
    """A URI, and the driver's options."""

    uri: str
    options: dict[str, Any] = field(default_factory=dict)

    def new(self) -> Storage:
        """An empty folder."""
        return storage_for(f"{self.uri}/{uuid4().hex}/table", self.options)
