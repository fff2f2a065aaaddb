"""A Copy-on-Write and a Merge-on-Read table take the same random histories, without Spark."""

from __future__ import annotations

import pytest

from support.twin_histories import run_histories


def test_both_table_types_hold_the_same_rows_after_every_step() -> None:
    run_histories(20, 6)


@pytest.mark.nightly
def test_both_table_types_hold_the_same_rows_in_long_histories() -> None:
    run_histories(2000, 30)
