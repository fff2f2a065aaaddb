"""That what is refused changes no file of a table."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hoodie.api.table import HoodieTable
from hoodie.errors import InvalidInput


def files(path: str | Path) -> dict[str, str]:
    """Every file below the path with a hash of its content."""
    found = Path(path)
    return {
        str(file.relative_to(found)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(found.rglob("*"))
        if file.is_file()
    }


@contextmanager
def untouched(table: HoodieTable, *names: str, error: type[Exception] = InvalidInput) -> Iterator[None]:
    """The block fails with the error, whose message has all the names, and no file changes."""
    before = files(table.path)
    with pytest.raises(error) as raised:
        yield
    for name in names:
        assert name in str(raised.value)
    assert files(table.path) == before
