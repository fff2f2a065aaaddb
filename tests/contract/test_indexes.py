"""Every index of the library, and two of a user's own, are put to the suite of all indexes."""

import itertools

import pytest

from hoodie.testing.index_suite import Entry, IndexSuite, Subject
from hoodie.testing.storage import Dying
from support.index_entries import INDEXES
from support.nightly import by_day

#: By day each kind of index fails: the others keep nothing of their own either. A writer dies in a torn call or is
#: refused one, in turn: see support.nightly.WAYS_TO_DIE.
KINDS = ("SIMPLE", "GLOBAL_BLOOM", "BUCKET", "HBASE", "RECORD_INDEX")
TYPES = ("COPY_ON_WRITE", "MERGE_ON_READ")
FAILURES = by_day(
    itertools.product(INDEXES, (Dying.AFTER, Dying.TORN, None), TYPES),
    lambda case: (
        case[0].name in KINDS
        and case[1] is (Dying.TORN, None)[KINDS.index(case[0].name) % 2]
        and case[2] == TYPES[KINDS.index(case[0].name) // 2 % 2]
    ),
)


def failure_id(value: object) -> str:
    return value.name if isinstance(value, Entry | Dying) else str(value or "refused")


#: By day both types for those that keep entries, one in turn for the others.
CASES = by_day(
    itertools.product(INDEXES, TYPES),
    lambda case: case[0].name in KINDS[3:] or (case[1] == TYPES[0]) == INDEXES.index(case[0]) % 2,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dying" not in metafunc.fixturenames:
        ids = [f"{index.name}-{table_type}" for index, table_type in itertools.product(INDEXES, TYPES)]
        metafunc.parametrize(("index", "table_type"), CASES, indirect=True, ids=ids)


class TestIndexes(IndexSuite):
    @pytest.fixture
    def index(self, request: pytest.FixtureRequest) -> Entry:
        entry: Entry = request.param
        return entry

    @pytest.fixture
    def table_type(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.mark.parametrize(
        ("index", "dying", "table_type"), FAILURES, indirect=["index", "table_type"], ids=failure_id
    )
    def test_a_write_that_fails_anywhere_leaves_keys_to_be_found(self, subject: Subject, dying: Dying | None) -> None:
        super().test_a_write_that_fails_anywhere_leaves_keys_to_be_found(subject, dying)
