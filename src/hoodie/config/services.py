"""The options of the services that run after a commit (expiry of partitions, cleaning, archiving), and how much history
a table keeps by them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.options import Options, above_zero, declared, option, positive, read_options
from hoodie.errors import InvalidInput, InvalidOption


class CleanPolicy(StrEnum):
    """What cleaning keeps."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """Whether table services run automatically."""

    enabled: bool = option(
        "hoodie.table.services.enabled", True, "false: no table service runs automatically after a commit."
    )


class Expiry(StrEnum):
    """What the age of a partition is counted from."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_CREATION_TIME = "KEEP_BY_CREATION_TIME"


#: Hudi's classes, by their names without a package.
_EXPIRY_CLASSES = {
    "KeepByTimeStrategy": Expiry.KEEP_BY_TIME,
    "KeepByCreationTimeStrategy": Expiry.KEEP_BY_CREATION_TIME,
}


def _expiry_class(name: str) -> str:
    return name.strip().rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryOptions:
    """Which partitions expire: all rows of a partition that nobody has written to for so long are deleted."""

    inline: bool = option("hoodie.partition.ttl.inline", False, "Delete expired partitions after each commit.")
    days: int = option(
        "hoodie.partition.ttl.strategy.days.retain",
        -1,
        "Days that a partition is kept. It has no default: without it no partition expires.",
        expected="days, such as 30",
        check=lambda value: value == -1 or value > 0,
    )
    strategy: Expiry = option(
        "hoodie.partition.ttl.management.strategy.type",
        Expiry.KEEP_BY_TIME,
        "What the days are counted from. KEEP_BY_TIME: the last write to the partition; KEEP_BY_CREATION_TIME: the "
        "commit that made it.",
    )
    strategy_class: str = option(
        "hoodie.partition.ttl.strategy.class",
        "",
        "The strategy by the name of Hudi's class, KeepByTimeStrategy or KeepByCreationTimeStrategy; it goes before "
        "`hoodie.partition.ttl.management.strategy.type`.",
        expected=f"a class of Hudi: {' or '.join(_EXPIRY_CLASSES)}",
        check=lambda name: not name or _expiry_class(name) in _EXPIRY_CLASSES,
    )
    selected: tuple[str, ...] = option(
        "hoodie.partition.ttl.strategy.partition.selected",
        (),
        "Partition paths, separated by commas: no others expire.",
    )
    most: int = above_zero(
        "hoodie.partition.ttl.strategy.max.delete.partitions",
        1000,
        "Partitions that one commit deletes at most, those of the longest age first.",
    )

    @property
    def counted_from(self) -> Expiry:
        """The strategy, by its class if that is given."""
        return _EXPIRY_CLASSES.get(_expiry_class(self.strategy_class), self.strategy)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOptions:
    """Which file versions are kept for reads of earlier states. Older ones are deleted."""

    automatic: bool = option("hoodie.clean.automatic", True, "Clean after each commit.")
    policy: CleanPolicy = option(
        "hoodie.cleaner.policy",
        CleanPolicy.KEEP_LATEST_COMMITS,
        "KEEP_LATEST_COMMITS: what reads as of the latest commits need; KEEP_LATEST_BY_HOURS: of the latest hours; "
        "KEEP_LATEST_FILE_VERSIONS: so many versions of each file group.",
        aliases=("hoodie.clean.policy",),
    )
    commits: int = above_zero(
        "hoodie.cleaner.commits.retained",
        10,
        "Commits that KEEP_LATEST_COMMITS keeps files for.",
        aliases=("hoodie.clean.commits.retained",),
    )
    hours: int = above_zero(
        "hoodie.cleaner.hours.retained",
        24,
        "Hours that KEEP_LATEST_BY_HOURS keeps files for.",
        aliases=("hoodie.clean.hours.retained",),
    )
    versions: int = above_zero(
        "hoodie.cleaner.fileversions.retained",
        3,
        "Versions of a file group that KEEP_LATEST_FILE_VERSIONS keeps.",
        aliases=("hoodie.clean.fileversions.retained",),
    )
    every: int = above_zero(
        "hoodie.clean.max.commits",
        1,
        "Clean after a commit once there are so many commits since the last clean.",
        aliases=("hoodie.clean.trigger.max.commits",),
    )
    incremental: bool = option(
        "hoodie.cleaner.incremental.mode",
        True,
        "List only partitions where commits since the last clean replaced files; off: list the whole table each time.",
        aliases=("hoodie.clean.incremental.enabled",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    """How long the active timeline gets. Older instants move to the archive: `history(archived=True)` includes them."""

    automatic: bool = option("hoodie.archive.automatic", True, "Archive after each commit, when there is enough.")
    min_commits: int = above_zero(
        "hoodie.keep.min.commits",
        20,
        "The least commits that stay on the active timeline. More stay if cleaning needs them.",
    )
    max_commits: int = above_zero(
        "hoodie.keep.max.commits",
        30,
        "With more commits than that the oldest are archived, up to hoodie.keep.min.commits. Cleans and rollbacks are "
        "counted apart.",
    )
    batch: int = above_zero(
        "hoodie.commits.archival.batch", 10, "Entries in a block of an archive file, three a commit."
    )
    merge: bool = option(
        "hoodie.archive.merge.enable",
        True,
        "Merge small archive files into larger ones when there are enough of them. Hudi's default is false.",
    )
    merge_files: int = option(
        "hoodie.archive.merge.files.batch.size", 10, "Archive files that become one.", check=lambda value: value > 1
    )
    merge_limit: int = option(
        "hoodie.archive.merge.small.file.limit.bytes",
        20 * 1024 * 1024,
        "Bytes that a merged archive file has at most.",
        expected="bytes, such as 20971520",
        check=positive,
    )
    beyond_savepoint: bool = option(
        "hoodie.archive.beyond.savepoint",
        False,
        "Archive commits that are newer than a savepoint, too; the savepoint's own stays. Without it archiving stops "
        "at the oldest savepoint.",
    )

    def __post_init__(self) -> None:
        if self.max_commits <= self.min_commits:
            raise InvalidOption(
                f"hoodie.keep.max.commits={self.max_commits} must be greater than "
                f"hoodie.keep.min.commits={self.min_commits}: archiving starts above the first and stops at the second"
            )


SERVICE_GROUPS = (ServiceOptions, ExpiryOptions, CleanOptions, ArchiveOptions)


_POLICY = "hoodie.cleaner.policy"
_COMMITS = "hoodie.cleaner.commits.retained"
_HOURS = "hoodie.cleaner.hours.retained"
_VERSIONS = "hoodie.cleaner.fileversions.retained"
#: What a table keeps as its own setting when it is created with `keep`.
RECORDED = (_POLICY, _COMMITS, _HOURS)
_KEYS = frozenset(
    key
    for _, spec in declared(CleanOptions)
    if spec.keys[0] in (*RECORDED, _VERSIONS)
    for key in spec.keys
)  # fmt: skip
_KEEP = re.compile(r"\s*(\d+)\s*(hours?|days?|weeks?|commits?)\s*", re.I)
_HOURS_OF = {"hour": 1, "day": 24, "week": 24 * 7}


def kept_options(keep: str | int | None) -> dict[str, str]:
    """The cleaning policy that `keep` means.

    keep    "30 days", "48 hours", "2 weeks", "20 commits" or a number of commits; None: nothing is said
    Raises  InvalidInput
    """
    if keep is None:
        return {}
    match = _KEEP.fullmatch(f"{keep} commits" if isinstance(keep, int) else str(keep))
    if match is None or not int(match[1]) or isinstance(keep, bool):
        raise InvalidInput(f'keep={keep!r}: expected such as "30 days", "48 hours", "2 weeks", "20 commits" or 20')
    unit = match[2].lower().rstrip("s")
    if unit == "commit":
        return {_POLICY: CleanPolicy.KEEP_LATEST_COMMITS.value, _COMMITS: match[1]}
    return {_POLICY: CleanPolicy.KEEP_LATEST_BY_HOURS.value, _HOURS: str(int(match[1]) * _HOURS_OF[unit])}


def clean_options(options: Options, table: Mapping[str, str]) -> CleanOptions:
    """The options over what the table's properties say about its history; all of that yields to one option about it."""
    recorded = {} if not _KEYS.isdisjoint(options) else {key: table[key] for key in RECORDED if key in table}
    return read_options(CleanOptions, {**recorded, **options})


def policy_text(table: Mapping[str, str]) -> str:
    """What cleaning of a table keeps unless its writers' options say otherwise, such as "the latest 10 commits"."""
    how = clean_options(Options(), table)
    if how.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        days, rest = divmod(how.hours, 24)
        return f"the latest {days} days" if days > 1 and not rest else f"the latest {how.hours} hours"
    return f"the latest {how.commits} commits"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackOptions:
    """How a rollback finds the files and blocks to remove."""

    using_markers: bool = option(
        "hoodie.rollback.using.markers",
        True,
        "A rollback of a pending write removes what the write's markers name. `false`: it lists all partitions and "
        "searches all logs, as it does anyway where markers are missing or unreadable.",
    )
