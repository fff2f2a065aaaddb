"""The options of compaction: when one is planned, and which file slices it takes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.options import Options, option
from hoodie.errors import InvalidOption


class Trigger(StrEnum):
    """What triggers a compaction."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


def _positive(value: int) -> bool:
    return value > 0


def _not_negative(value: int) -> bool:
    return value >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineCompaction:
    """What a writer does about compaction after its commit."""

    run: bool = option(
        "hoodie.compact.inline",
        False,
        "After each commit to a Merge-on-Read table the writer plans a compaction, if one is due, and carries it out, "
        "with all others that are pending.",
    )
    schedule: bool = option(
        "hoodie.compact.schedule.inline",
        False,
        "After each commit to a Merge-on-Read table the writer plans a compaction, if one is due and none is pending, "
        "and leaves it to `hoodie compactor run`. With the trigger NUM_COMMITS_AFTER_LAST_REQUEST also while others "
        "are pending.",
    )


def inline_compaction(options: Options) -> InlineCompaction:
    """Raises InvalidOption on a malformed value, or when both are on."""
    inline = options.read(InlineCompaction)
    if inline.run and inline.schedule:
        raise InvalidOption(
            "hoodie.compact.inline and hoodie.compact.schedule.inline are both true: the first plans and runs "
            "compactions in the writer, the second plans them for others to run. Set one of them"
        )
    return inline


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """When the logs of a Merge-on-Read table are merged into base files, and how much of them at a time."""

    trigger: Trigger = option(
        "hoodie.compact.inline.trigger.strategy",
        Trigger.NUM_COMMITS,
        "A compaction is planned after so many delta commits since the last one (NUM_COMMITS), or also since the last "
        "one that was planned (NUM_COMMITS_AFTER_LAST_REQUEST), after so much time (TIME_ELAPSED), after both "
        "(NUM_AND_TIME) or after one of them (NUM_OR_TIME).",
    )
    delta_commits: int = option(
        "hoodie.compact.inline.max.delta.commits",
        5,
        "Delta commits after which a compaction is planned.",
        check=_positive,
    )
    delta_seconds: int = option(
        "hoodie.compact.inline.max.delta.seconds",
        3600,
        "Seconds since the last compaction, or else the first delta commit, after which one is planned.",
        check=_positive,
    )
    strategy: str = option(
        "hoodie.compaction.strategy",
        "org.apache.hudi.table.action.compact.strategy.LogFileSizeBasedCompactionStrategy",
        "Which file slices a compaction takes. Hudi's classes by full or short name: "
        "LogFileSizeBasedCompactionStrategy and LogFileNumBasedCompactionStrategy (most log bytes or files first) and "
        "BoundedIOCompactionStrategy, each within the target IO; DayBasedCompactionStrategy, "
        "BoundedPartitionAwareCompactionStrategy and UnBoundedPartitionAwareCompactionStrategy by the day in the "
        "partition path; UnBoundedCompactionStrategy (all). Or the import path, `package.module:function`, of a "
        "function of your own.",
    )
    target_io: int = option(
        "hoodie.compaction.target.io",
        512_000,
        "About how many MB a compaction reads and writes; the slice that exceeds it is still taken.",
        expected="MB, such as 512000",
        check=_not_negative,
    )
    size_threshold: int = option(
        "hoodie.compaction.logfile.size.threshold",
        0,
        "LogFileSizeBasedCompactionStrategy takes slices with at least this many bytes of logs.",
        expected="bytes, such as 104857600",
        check=_not_negative,
    )
    number_threshold: int = option(
        "hoodie.compaction.logfile.num.threshold",
        0,
        "LogFileNumBasedCompactionStrategy takes slices with at least this many log files.",
        check=_not_negative,
    )
    target_days: int = option(
        "hoodie.compaction.daybased.target.partitions",
        10,
        "DayBasedCompactionStrategy takes this many partitions, the newest; the partition-aware ones divide the "
        "partitions this many days ago.",
        check=_positive,
    )


COMPACTION_GROUPS = (InlineCompaction, CompactionOptions)
