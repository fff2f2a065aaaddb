"""The options of the services that run after a commit: cleaning and archiving."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.options import option
from hoodie.errors import InvalidOption


class CleanPolicy(StrEnum):
    """What cleaning keeps."""

    KEEP_LATEST_COMMITS = "KEEP_LATEST_COMMITS"
    KEEP_LATEST_BY_HOURS = "KEEP_LATEST_BY_HOURS"
    KEEP_LATEST_FILE_VERSIONS = "KEEP_LATEST_FILE_VERSIONS"


def _positive(value: int) -> bool:
    return value > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """Whether table services run automatically."""

    enabled: bool = option(
        "hoodie.table.services.enabled", True, "false: no table service runs automatically after a commit."
    )


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
    commits: int = option(
        "hoodie.cleaner.commits.retained",
        10,
        "Commits that KEEP_LATEST_COMMITS keeps files for.",
        aliases=("hoodie.clean.commits.retained",),
        check=_positive,
    )
    hours: int = option(
        "hoodie.cleaner.hours.retained",
        24,
        "Hours that KEEP_LATEST_BY_HOURS keeps files for.",
        aliases=("hoodie.clean.hours.retained",),
        check=_positive,
    )
    versions: int = option(
        "hoodie.cleaner.fileversions.retained",
        3,
        "Versions of a file group that KEEP_LATEST_FILE_VERSIONS keeps.",
        aliases=("hoodie.clean.fileversions.retained",),
        check=_positive,
    )
    every: int = option(
        "hoodie.clean.max.commits",
        1,
        "Clean after a commit once there are so many commits since the last clean.",
        aliases=("hoodie.clean.trigger.max.commits",),
        check=_positive,
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
    min_commits: int = option(
        "hoodie.keep.min.commits",
        20,
        "The least commits that stay on the active timeline. More stay if cleaning needs them.",
        check=_positive,
    )
    max_commits: int = option(
        "hoodie.keep.max.commits",
        30,
        "With more commits than that the oldest are archived, up to hoodie.keep.min.commits. Cleans and rollbacks are "
        "counted apart.",
        check=_positive,
    )
    batch: int = option(
        "hoodie.commits.archival.batch", 10, "Entries in a block of an archive file, three a commit.", check=_positive
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
        check=_positive,
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


SERVICE_GROUPS = (ServiceOptions, CleanOptions, ArchiveOptions)
