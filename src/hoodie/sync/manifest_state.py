"""What manifests were last written of, and from that which partitions are to be written again. Pure rules."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from hoodie.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class ManifestState:
    """The instants of the timeline when the manifests were written, and which manifests these were.

    completed  completed commits of the active timeline
    pending    pending ones: one may be completed and archived before the next look
    """

    formats: tuple[str, ...]
    base: str
    completed: tuple[str, ...]
    pending: tuple[str, ...] = ()

    @classmethod
    def of(cls, timeline: Timeline, formats: Collection[str], base: str) -> ManifestState:
        done = tuple(instant.requested for instant in timeline.commits)
        return cls(tuple(sorted(formats)), base, done, tuple(instant.requested for instant in timeline.pending()))

    def encode(self) -> bytes:
        content = {
            "formats": list(self.formats),
            "base": self.base,
            "completed": list(self.completed),
            "pending": list(self.pending),
        }
        return json.dumps(content).encode()


def decode_state(data: bytes) -> ManifestState | None:
    """None when the bytes are no state: the manifests are written whole then."""
    try:
        content = json.loads(data)
        lists = (content["formats"], content["completed"], content["pending"])
        formats, completed, pending = (tuple(map(str, values)) for values in lists)
        return ManifestState(formats, str(content["base"]), completed, pending)
    except (ValueError, KeyError, TypeError):
        return None


def new_commits(before: ManifestState | None, now: ManifestState) -> frozenset[str] | None:
    """The commits whose partitions have other files than their manifests say; None: unknown, look at all partitions.

    Unknown when there is no state, or one of other manifests; when a commit was rolled back; and when commits may have
    come and left the active timeline unseen.
    """
    if before is None or (before.formats, before.base) != (now.formats, now.base):
        return None
    if not before.completed or not now.completed or before.completed[-1] not in now.completed:
        return None
    first = now.completed[0]
    gone = set(before.completed) - set(now.completed)
    unseen = set(before.pending) - set(now.completed) - set(now.pending)
    if any(time >= first for time in gone) or any(time < first for time in unseen):
        return None
    return frozenset(now.completed) - set(before.completed)
