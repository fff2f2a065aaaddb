"""What a reader of logs sees now and did not see at an earlier moment, for those who keep what they read then."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.merge.log_scan import Committed
from hoodie.view.published import Published


def logs_shown_since(
    then: Committed, now: Committed, commits: Iterable[Published]
) -> frozenset[tuple[str, str]] | None:
    """The files whose blocks count now and did not then, by partition path and name. In all others the same blocks
    count, as long as they have as many bytes.

    commits  what completed commits wrote, as far as it is known
    returns  None when it is not known: blocks no longer count, or it is not known what a commit wrote
    """
    if then.after != now.after or now.first_active > then.latest or not all(map(now.shows, then.completed)):
        return None
    shown = {instant for instant in {*now.completed, *then.inflight} if now.shows(instant) and not then.shows(instant)}
    written = {commit.instant.requested: commit.files for commit in commits} if shown else {}
    if not shown <= written.keys():
        return None
    return frozenset(
        (partition, name) for instant in shown for partition, names in written[instant].items() for name in names
    )
