"""What the default suite keeps of the combinations of several parameters."""

import itertools

import pytest

from support.nightly import covering

AXES = ("COPY_ON_WRITE", "MERGE_ON_READ"), {"in memory": 0, "spilled": 1}, "689", ("SIMPLE", "BLOOM", "BUCKET", "HBASE")


@pytest.mark.parametrize(("pairs", "count"), [(False, 4), (True, 12)])
def test_each_value_occurs_by_day_and_each_combination_by_night(pairs: bool, count: int) -> None:
    cases = covering(*AXES, pairs=pairs)
    kept = [case.values for case in cases if not case.marks]
    assert (len(cases), len(kept)) == (48, count)
    assert [set(values) for values in zip(*kept, strict=True)] == [
        {"COPY_ON_WRITE", "MERGE_ON_READ"}, {0, 1}, {*"689"}, {*AXES[3]},
    ]  # fmt: skip
    both = {pair for case in kept for pair in itertools.combinations(enumerate(case), 2)}
    assert (len(both) == 4 + 6 + 8 + 6 + 8 + 12) == pairs
    assert cases[1].id == "COPY_ON_WRITE-in memory-6-BLOOM"


def test_two_values_of_one_name_need_names() -> None:
    with pytest.raises(AssertionError, match="give a mapping"):
        covering([1, "1"], "ab")
