import pytest

from hoodie.testing.storage import MemoryStorage
from support.compacting import fill


@pytest.fixture
def storage() -> MemoryStorage:
    made = MemoryStorage()
    fill(made)
    return made
