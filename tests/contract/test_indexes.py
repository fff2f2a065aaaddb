"""Every index of the library, and two of a user's own, are put to the suite of all indexes."""

from __future__ import annotations

import pytest

from hoodie.testing.index_suite import Entry, IndexSuite
from support.index_entries import INDEXES


class TestIndexes(IndexSuite):
    @pytest.fixture(params=INDEXES, ids=lambda index: index.name)
    def index(self, request: pytest.FixtureRequest) -> Entry:
        entry: Entry = request.param
        return entry
