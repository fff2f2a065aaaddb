"""A Copy-on-Write and a Merge-on-Read table take the same random histories, without Spark."""

import pytest

from support.nightly import nightly, scaled
from support.twin_histories import Kept, run_histories


def test_both_table_types_hold_the_same_rows_after_every_step() -> None:
    run_histories(scaled(2, 5), 6)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_both_table_types_hold_the_same_rows_in_long_histories() -> None:
    run_histories(500, 30)


#: Keys in two partitions end the record index.
@pytest.mark.filterwarnings("ignore::hoodie.errors.MetadataTableDropped")
@pytest.mark.parametrize(("count", "steps"), [(1, 6), nightly(15, 12)])
def test_metadata_tables_follow_histories_of_both_table_types(count: int, steps: int) -> None:
    run_histories(count, steps, Kept)
