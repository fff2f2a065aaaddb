"""The options of compaction: when one is planned, and which file slices it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.locks import BatchOptions
from hoodie.config.options import Options, above_zero, from_zero, not_negative, option, read_options
from hoodie.errors import InvalidOption

_INLINE = "hoodie.compact.inline"
_SCHEDULE = "hoodie.compact.schedule.inline"
_ASYNC = "hoodie.datasource.compaction.async.enable"
_TRIGGER = "hoodie.compact.inline.trigger.strategy"
_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
_DELTA_SECONDS = "hoodie.compact.inline.max.delta.seconds"
_WHEN_DUE = (_TRIGGER, _DELTA_COMMITS, _DELTA_SECONDS)
#: What a table keeps as its own setting when it is created with it.
RECORDED = (_INLINE, _SCHEDULE, *_WHEN_DUE)


class Trigger(StrEnum):
    """What triggers a compaction."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineCompaction:
    """What a writer does about compaction after its commit."""

    run: bool = option(
        _INLINE,
        True,
        "After a commit to a Merge-on-Read table the writer plans a compaction, if one is due, and carries it out with "
        "all others that are pending. Set to true: pending ones after each commit, due or not. false: no.",
    )
    schedule: bool = option(
        _SCHEDULE,
        False,
        "After each commit to a Merge-on-Read table the writer plans a compaction, if one is due and none is pending, "
        "and leaves it to `hoodie compactor run`. With the trigger NUM_COMMITS_AFTER_LAST_REQUEST also while others "
        "are pending.",
    )
    beside: bool = option(
        _ASYNC,
        True,
        "Another process compacts: a batch writer for which this is set to true does not, unless "
        "`hoodie.compact.inline` says so. A stream compacts after its micro-batches; with this and "
        "`hoodie.compact.inline` set to false it does not.",
    )
    no_streams: bool = option(
        "hoodie.datasource.write.streaming.disable.compaction", False, "A stream plans and runs no compaction."
    )


@dataclass(frozen=True, slots=True)
class CompactionAfterCommit:
    """What a writer does about compaction after a commit.

    run       plan one that is due, and carry it out with those that are pending
    schedule  plan one that is due, for others to carry out
    explicit  options or table say so: pending ones are carried out whether or not one is due, and it is an error when
              nothing can be planned since other writes are pending
    beside    another process does it, as the options of a batch writer say
    """

    run: bool = True
    schedule: bool = False
    explicit: bool = False
    beside: bool = False


def inline_compaction(options: Options, table: Mapping[str, str] | None = None) -> CompactionAfterCommit:
    """What options say, or else the table's properties, or else Hudi's default: a due compaction is carried out.

    Raises InvalidOption on a malformed value, or when two exclude each other
    """
    keys = (_INLINE, _SCHEDULE, _ASYNC)
    own = {key: options[key] for key in keys if key in options}
    values = own or {key: value for key, value in (table or {}).items() if key in keys}
    chosen = read_options(InlineCompaction, {**options, **values})
    if chosen.schedule and chosen.run and _INLINE in values:
        raise InvalidOption(
            f"{_INLINE} and {_SCHEDULE} are both true: the first plans and runs "
            "compactions in the writer, the second plans them for others to run. Set one of them"
        )
    stream = options.read(BatchOptions).batch >= 0
    if stream and chosen.no_streams:
        return CompactionAfterCommit(run=False)
    if chosen.schedule:
        return CompactionAfterCommit(run=False, schedule=True, explicit=True)
    if stream and own:  # inline=false asks for one beside the stream, which is what a stream has here
        return CompactionAfterCommit(chosen.run or chosen.beside, explicit=chosen.run and _INLINE in values)
    if _INLINE in values:
        return CompactionAfterCommit(chosen.run, explicit=chosen.run)
    beside = chosen.beside and _ASYNC in values
    return CompactionAfterCommit(not beside, beside=beside and _SCHEDULE not in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionOptions:
    """When the logs of a Merge-on-Read table are merged into base files, and how much of them at a time."""

    trigger: Trigger = option(
        _TRIGGER,
        Trigger.NUM_COMMITS,
        "A compaction is planned after so many delta commits since the last one (NUM_COMMITS), or also since the last "
        "one that was planned (NUM_COMMITS_AFTER_LAST_REQUEST), after so much time (TIME_ELAPSED), after both "
        "(NUM_AND_TIME) or after one of them (NUM_OR_TIME).",
    )
    delta_commits: int = above_zero(_DELTA_COMMITS, 5, "Delta commits after which a compaction is planned.")
    delta_seconds: int = above_zero(
        _DELTA_SECONDS,
        3600,
        "Seconds since the last compaction, or else the first delta commit, after which one is planned.",
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
        check=not_negative,
    )
    size_threshold: int = option(
        "hoodie.compaction.logfile.size.threshold",
        0,
        "LogFileSizeBasedCompactionStrategy takes slices with at least this many bytes of logs.",
        expected="bytes, such as 104857600",
        check=not_negative,
    )
    number_threshold: int = from_zero(
        "hoodie.compaction.logfile.num.threshold",
        0,
        "LogFileNumBasedCompactionStrategy takes slices with at least this many log files.",
    )
    target_days: int = above_zero(
        "hoodie.compaction.daybased.target.partitions",
        10,
        "DayBasedCompactionStrategy takes this many partitions, the newest; the partition-aware ones divide the "
        "partitions this many days ago.",
    )


COMPACTION_GROUPS = (InlineCompaction, CompactionOptions)


def compaction(options: Options, table: Mapping[str, str]) -> CompactionOptions:
    """The options over what the table's properties keep about when a compaction is due."""
    return read_options(CompactionOptions, {**{key: table[key] for key in _WHEN_DUE if key in table}, **options})
