"""What the files of writes hold, in the form of the table's version: JSON with layout 1, Avro with layout 2.

What decodes and encodes Avro is imported where it is needed: JSON is enough for most timelines.
"""

from __future__ import annotations

from hoodie.formats.timeline.commit_json import decode_commit, encode_commit, encode_inflight
from hoodie.model.commit import CommitMetadata
from hoodie.model.instant import Action, Instant, State
from hoodie.timeline.layout import TimelineLayout, comparable_action

#: How an Avro container begins; other commit files are JSON.
AVRO_MAGIC = b"Obj\x01"


def completed_content(metadata: CommitMetadata, action: Action, layout: TimelineLayout) -> bytes:
    """The content of a completed commit, delta commit or replace commit.

    action  of the instant, pending or completed
    """
    if not layout.stamps_completion:
        return encode_commit(metadata)
    from hoodie.formats.timeline.commit_avro import encode_avro_commit

    return encode_avro_commit(metadata, replacing=comparable_action(action) is Action.REPLACE_COMMIT)


def inflight_content(profile: CommitMetadata, layout: TimelineLayout) -> bytes:
    """The content of an inflight write: its workload profile (`inflight_profile`)."""
    if not layout.stamps_completion:
        return encode_inflight(profile)
    from hoodie.formats.timeline.commit_avro import encode_avro_commit

    return encode_avro_commit(profile)


def commit_content(data: bytes, path: str, instant: Instant) -> CommitMetadata:
    """The metadata in the file of a completed or inflight write, in whichever form it is.

    path    of the file, for errors
    Raises  CorruptFile
    """
    if not data.startswith(AVRO_MAGIC):
        return decode_commit(data, path)
    from hoodie.formats.timeline.services import decode_avro_commit

    replacing = instant.state is State.COMPLETED and comparable_action(instant.action) is Action.REPLACE_COMMIT
    return decode_avro_commit(data, path, replacing)
