"""How much history a table keeps, said once when it is created: `keep="30 days"`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hoodie.config.options import Options, declared
from hoodie.config.services import CleanOptions, CleanPolicy
from hoodie.errors import InvalidInput

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
    match = _KEEP.fullmatch(f"{keep} commits" if isinstance(keep, int) else keep)
    if match is None or not int(match[1]) or isinstance(keep, bool):
        raise InvalidInput(f'keep={keep!r}: expected such as "30 days", "48 hours", "2 weeks", "20 commits" or 20')
    unit = match[2].lower().rstrip("s")
    if unit == "commit":
        return {_POLICY: CleanPolicy.KEEP_LATEST_COMMITS.value, _COMMITS: match[1]}
    return {_POLICY: CleanPolicy.KEEP_LATEST_BY_HOURS.value, _HOURS: str(int(match[1]) * _HOURS_OF[unit])}


def with_kept(options: Options, table: Mapping[str, str]) -> Options:
    """The options over what the table's properties say about its history; all of that yields to one option about it."""
    recorded = {key: table[key] for key in RECORDED if key in table}
    return options if not recorded or not _KEYS.isdisjoint(options) else Options({**recorded, **options})


def policy_text(table: Mapping[str, str]) -> str:
    """What cleaning of a table keeps unless its writers' options say otherwise, such as "the latest 10 commits"."""
    how = with_kept(Options(), table).read(CleanOptions)
    if how.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        days, rest = divmod(how.hours, 24)
        return f"the latest {days} days" if days > 1 and not rest else f"the latest {how.hours} hours"
    return f"the latest {how.commits} commits"
