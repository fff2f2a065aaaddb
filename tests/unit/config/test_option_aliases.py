"""One option has several names: whichever a call uses, it counts over the table's, and two of them cannot disagree."""

from dataclasses import fields

import pytest

from hoodie.config.datasource import ALL_GROUPS, check_options, overridden
from hoodie.config.options import alias_sets, declared, read_options
from hoodie.config.services import CleanOptions
from hoodie.errors import InvalidOption
from hoodie.testing.storage import MemoryStorage
from hoodie.testing.tables import ArrowTable

WITH_ALIASES = sorted({keys for keys in alias_sets(ALL_GROUPS).values() if len(keys) > 1}, key=sorted)


@pytest.mark.parametrize("keys", WITH_ALIASES, ids=lambda keys: min(keys))
def test_an_option_of_a_call_counts_over_the_tables_whatever_name_either_has(keys: frozenset[str]) -> None:
    for tables in keys:
        for calls in keys:
            assert overridden({tables: "table", "other": "x"}, {calls: "call"}) == {calls: "call", "other": "x"}


@pytest.mark.parametrize(
    "keys", [keys for keys in WITH_ALIASES if "hoodie.table.name" not in keys], ids=lambda keys: min(keys)
)
def test_two_names_of_one_option_with_different_values_are_refused_by_both_names(keys: frozenset[str]) -> None:
    first, second = sorted(keys)[:2]
    with pytest.raises(InvalidOption) as refused:
        check_options({first: "1", second: "2"})
    assert first in str(refused.value)
    assert second in str(refused.value)
    if "hoodie.record.merge.mode" not in keys:  # it becomes the payload class
        assert check_options({first: "1", second: "1"}) == {first: "1", second: "1"}


def test_an_alias_names_one_option_of_a_group() -> None:
    for group in ALL_GROUPS:
        keys = [key for _, spec in declared(group) for key in spec.keys]
        assert len(keys) == len(set(keys)), group
        assert len(declared(group)) <= len(fields(group))  # type: ignore[arg-type]


def test_a_call_that_retains_more_commits_by_another_name_keeps_them() -> None:
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.cleaner.commits.retained": "1",
    }
    call = {"hoodie.clean.commits.retained": "7"}
    assert read_options(CleanOptions, overridden(options, call)).commits == 7
    table = ArrowTable.create(MemoryStorage(), options)
    assert read_options(CleanOptions, table._options(call)).commits == 7
