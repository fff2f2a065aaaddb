"""What begin and end of a range of changes are about: when commits began, or when they were completed."""

import pytest

from hoodie.config.options import Options
from hoodie.config.read import IncrementalOptions
from hoodie.errors import InvalidOption

VERSION = "hoodie.datasource.read.incr.table.version"


@pytest.mark.parametrize(
    ("value", "by_completion"),
    [("", (False, True)), ("6", (False, False)), ("six", (False, False)), ("8", (True, True)), ("NINE", (True, True))],
)
def test_an_option_names_the_version_whose_order_counts(value: str, by_completion: tuple[bool, bool]):
    read = Options({VERSION: value} if value else {}).read(IncrementalOptions)
    assert (read.by_completion(1), read.by_completion(2)) == by_completion


def test_a_policy_that_names_completion_goes_first():
    policy = {"hoodie.read.timeline.holes.resolution.policy": "USE_TRANSITION_TIME", VERSION: "6"}
    assert Options(policy).read(IncrementalOptions).by_completion(1)


def test_another_version_is_refused():
    with pytest.raises(InvalidOption, match="expected 6, 8 or 9"):
        Options({VERSION: "7"}).read(IncrementalOptions)
