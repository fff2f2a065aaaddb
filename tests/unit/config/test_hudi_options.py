"""Options of Hudi jobs: each is used, needs no effect, or is refused with all others that are."""

import csv
import logging
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from hoodie.config.datasource import ALL_GROUPS, check_options, overridden
from hoodie.config.hudi_options import OptionClass, Purpose, find_option, hudi_options, misspelt
from hoodie.config.options import declared
from hoodie.errors import InvalidOption, OptionIgnored
from support.hudi_jobs import JOBS, Job

ROOT = Path(__file__).parents[3]
REFUSED = (OptionClass.NOT_IN_WRITES, OptionClass.NOT_IN_READS, OptionClass.NOT_SUPPORTED)
DECLARED = {key for group in ALL_GROUPS for _, spec in declared(group) for key in spec.keys}
NAMED_BY_ARGUMENTS = {"path", "hoodie.base.path"}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_passes_or_is_refused_with_all_its_reasons_at_once(job: Job) -> None:
    if not job.refused:
        used = check_options(job.options, Purpose.WRITE)
        assert used.keys() <= DECLARED | NAMED_BY_ARGUMENTS
        assert used["hoodie.table.name"] == "stock"
        return
    with pytest.raises(InvalidOption) as refused:
        check_options(job.options, Purpose.WRITE)
    text = str(refused.value)
    assert all(key in text for key in job.refused)
    innocent = job.options.keys() - set(job.refused)
    assert not [key for key in innocent if f"{key}=" in text or f"{key!r}" in text]
    assert [key for key in job.refused if f"unknown option {key!r}" in text] == list(job.unknown)
    assert ("would not happen" in text) == (set(job.refused) > set(job.unknown))


def test_several_reasons_have_a_line_each() -> None:
    with pytest.raises(InvalidOption) as refused:
        check_options({"hoodie.clustering.inline": "true", "hoodie.metrics.on": "true", "hoodie.cleaner.polcy": "x"})
    first, second, *advice, last = str(refused.value).splitlines()
    assert first == "unknown option 'hoodie.cleaner.polcy'. Did you mean 'hoodie.cleaner.policy'?"
    assert second == "Asked for, and would not happen:"
    assert [line.split("=")[0] for line in advice] == ["  hoodie.clustering.inline", "  hoodie.metrics.on"]
    assert last == "hoodie.compat.unsupported=warn goes on without."
    with pytest.raises(InvalidOption) as alone:
        check_options({"hoodie.metrics.on": "true"})
    assert len(str(alone.value).splitlines()) == 1


@pytest.mark.parametrize(
    "job", [job for job in JOBS if job.refused and not job.unknown and not job.about_rows], ids=lambda job: job.name
)
def test_with_warn_a_job_goes_on_without_what_would_not_happen(job: Job) -> None:
    with pytest.warns(OptionIgnored) as caught:
        used = check_options({**job.options, "hoodie.compat.unsupported": "warn"}, Purpose.WRITE)
    assert len(caught) == 1
    assert all(key in str(caught[0].message) for key in job.refused)
    assert used.keys().isdisjoint(job.refused)


@pytest.mark.parametrize(
    ("key", "value", "purpose"),
    [
        ("hoodie.index.type", "INMEMORY", Purpose.WRITE),  # global: a key is once in the table
        ("hoodie.payload.delete.marker", "D", Purpose.WRITE),
        ("hoodie.errortable.enable", "true", Purpose.WRITE),
        ("hoodie.write.record.merge.strategy.id", "00000000-0000-0000-0000-000000000000", Purpose.WRITE),
        ("hoodie.datasource.overwrite.mode", "dynamic", Purpose.WRITE),
        ("hoodie.datasource.read.incr.filters", "fare > 1", Purpose.READ),
        ("hoodie.datasource.merge.type", "skip_merge", Purpose.READ),
    ],
)
def test_what_decides_about_rows_is_refused_with_warn_too(key: str, value: str, purpose: Purpose) -> None:
    options = {key: value, "hoodie.metrics.on": "true", "hoodie.compat.unsupported": "warn"}
    with pytest.raises(InvalidOption) as refused:
        check_options(options, purpose)
    assert f"{key}={value!r}" in str(refused.value)
    assert "whatever hoodie.compat.unsupported says" in str(refused.value)
    assert "hoodie.metrics.on" not in str(refused.value)
    with pytest.raises(InvalidOption, match="goes on without, but not without") as both:
        check_options({"hoodie.clustering.inline": "true", key: value})
    assert f"but not without {key}=" in str(both.value)


def test_every_option_that_is_refused_is_sorted_by_whether_it_decides_about_rows() -> None:
    """Those that do not: where and how files, indexes and services are kept, and who is told of a commit."""
    others = {known.key for known in hudi_options().values() if known.kind in REFUSED and not known.rows}
    about = re.compile(
        r"metrics|metadata|index\.(hbase|name|defs)|clustering|layout|format|compaction|secondarykey|expression"
        r"|bulkinsert\.user|callback|lock\.|sync|service\.manager|archivelog|clean\.trigger|empty\.commit|rollback"
        r"|drop\.partition\.columns|meta\.fields|outputtimestamp|schema\.on\.read|table\.version|metafile"
    )
    assert [key for key in sorted(others) if not about.search(key)] == []


def test_a_misspelt_name_stays_an_error_with_warn() -> None:
    with pytest.raises(InvalidOption, match=r"unknown option 'hoodie\.cleaner\.comits\.retained'"):
        check_options({"hoodie.cleaner.comits.retained": "5", "hoodie.compat.unsupported": "warn"})


def test_every_option_of_hudi_is_on_the_list() -> None:
    with (ROOT / "docs" / "format" / "hudi-options.csv").open(encoding="utf-8") as file:
        names = {row["key"] for row in csv.DictReader(file)}
    assert len(names) == 912
    assert {name for name in names if find_option(name) is None} == set()


def test_what_the_list_calls_used_is_read_by_an_option_group() -> None:
    used = {key for key, known in hudi_options().items() if known.kind is OptionClass.USED}
    assert used - NAMED_BY_ARGUMENTS <= DECLARED


def test_each_option_without_effect_says_why_and_each_that_is_refused_what_to_do() -> None:
    for known in hudi_options().values():
        if known.kind is OptionClass.USED:
            assert known.advice == ""
        elif known.kind is OptionClass.NO_EFFECT:
            assert known.advice.endswith("."), known.key
        else:
            assert known.advice, known.key
            assert not known.advice.endswith("."), known.key


def test_defaults_and_false_of_what_is_not_there_are_never_an_error() -> None:
    """The defaults are those of Hudi's own declarations, as far as they are plain values."""
    with (ROOT / "docs" / "format" / "hudi-options.csv").open(encoding="utf-8") as file:
        defaults = {row["key"]: row["default"] for row in csv.DictReader(file)}
    seen = 0
    for known in hudi_options().values():
        if known.kind in (OptionClass.USED, OptionClass.NO_EFFECT):
            continue
        default = defaults.get(known.key, "")
        if default in ("true", "false", "") or default.islower():
            assert not known.is_refused(default, Purpose.BOTH), known.key
            seen += 1
        assert known.is_refused("something that nobody has", Purpose.BOTH), known.key
    assert seen > 60


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("hoodie.cleaner.comits.retained", "hoodie.cleaner.commits.retained"),
        ("hoodie.datasource.write.recordkey.fields", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.datasource.write.record.key.field", "hoodie.datasource.write.recordkey.field"),
        ("hoodie.clustering.inlin", "hoodie.clustering.inline"),
        ("hoodie.upsert.shuffle.paralellism", "hoodie.upsert.shuffle.parallelism"),
        ("Hoodie.Table.Name", "hoodie.table.name"),
        ("hoodie.keep.mid.commits", None),  # neither max nor min
        ("hoodie.compact.async", None),
        ("hoodie.merge.inline", None),
        ("hoodie.datasource.hive_sync.db", None),
        ("token", None),
    ],
)
def test_only_a_close_spelling_of_a_known_name_is_suggested(key: str, name: str | None) -> None:
    assert misspelt(key, DECLARED) == name


def test_options_without_effect_are_named_in_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    options = {
        "hoodie.upsert.shuffle.parallelism": 2,
        "hoodie.embed.timeline.server": "true",
        "fs.s3a.secret.key": "do not tell",
        "hoodie.index.type": "SIMPLE",
    }
    with caplog.at_level(logging.INFO, "hoodie"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_options(options) == {"hoodie.index.type": "SIMPLE"}
    (line,) = caplog.records
    assert line.name == "hoodie.options"
    assert line.levelno == logging.INFO
    for key in list(options)[:3]:
        assert key in line.getMessage()
    assert "do not tell" not in line.getMessage()


def test_an_option_of_writes_asks_for_nothing_in_a_read() -> None:
    metrics = {"hoodie.metrics.on": "true"}
    assert check_options(metrics, Purpose.READ) == {}
    skip = {"hoodie.datasource.merge.type": "skip_merge"}
    assert check_options(skip, Purpose.WRITE) == {}
    refused = ((metrics, Purpose.WRITE), (skip, Purpose.READ), (metrics, Purpose.BOTH), (skip, Purpose.BOTH))
    for options, purpose in refused:
        with pytest.raises(InvalidOption, match="would not happen"):
            check_options(options, purpose)


def test_none_is_not_given() -> None:
    assert check_options({"hoodie.index.type": None, "hoodie.table.name": "x"}) == {"hoodie.table.name": "x"}


@pytest.mark.parametrize(
    ("mode", "payload"),
    [
        ("EVENT_TIME_ORDERING", "org.apache.hudi.common.model.DefaultHoodieRecordPayload"),
        ("commit_time_ordering", "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"),
    ],
)
def test_a_merge_mode_is_the_payload_class_that_means_the_same(mode: str, payload: str) -> None:
    named = {"hoodie.datasource.write.payload.class": payload}
    assert check_options({"hoodie.write.record.merge.mode": mode}) == named
    assert check_options({"hoodie.record.merge.mode": mode, **named}) == named
    table = {"hoodie.compaction.payload.class": "another"}
    assert overridden(table, check_options({"hoodie.write.record.merge.mode": mode})) == named


def test_a_merge_mode_that_contradicts_the_payload_class_is_refused() -> None:
    options = {
        "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
        "hoodie.datasource.write.payload.class": "OverwriteWithLatestAvroPayload",
    }
    with pytest.raises(InvalidOption, match=r"EVENT_TIME_ORDERING.*DefaultHoodieRecordPayload"):
        check_options(options)
    with pytest.raises(InvalidOption, match="expected one of COMMIT_TIME_ORDERING"):
        check_options({"hoodie.write.record.merge.mode": "NEWEST"})
    assert check_options({"hoodie.write.record.merge.mode": "CUSTOM"}) == {}


def test_the_list_is_not_read_when_all_options_are_declared() -> None:
    code = (
        "from hoodie.config.datasource import check_options\n"
        "from hoodie.config.hudi_options import hudi_options\n"
        "check_options({'hoodie.index.type': 'BLOOM', '_mine': '1'})\n"
        "print(hudi_options.cache_info().misses)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "0"
