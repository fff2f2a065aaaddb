"""Hudi 1.x's word for how rows are merged, as the payload class that means the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoodie.errors import InvalidOption

_PAYLOADS = {
    "COMMIT_TIME_ORDERING": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    "EVENT_TIME_ORDERING": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
}
_CUSTOM = "CUSTOM"  # what merges is named by options of its own
_PAYLOAD_KEYS = ("hoodie.datasource.write.payload.class", "hoodie.compaction.payload.class")


def with_payload(options: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """The options with the payload class in place of the merge mode.

    keys    names of the merge mode
    Raises  InvalidOption on an unknown mode, or one that contradicts the payload class
    """
    given = {key: options[key].strip().upper() for key in keys if options.get(key, "").strip()}
    rest = {key: value for key, value in options.items() if key not in keys}
    for key, mode in given.items():
        if mode == _CUSTOM:
            continue
        if mode not in _PAYLOADS:
            raise InvalidOption(f"{key}={options[key]!r}: expected one of {', '.join([*_PAYLOADS, _CUSTOM])}")
        payload = _PAYLOADS[mode]
        for other in _PAYLOAD_KEYS:
            if other in rest and rest[other].rpartition(".")[2] != payload.rpartition(".")[2]:
                raise InvalidOption(f"{key}={options[key]!r} means {other}={payload!r}, not {rest[other]!r}")
        rest.setdefault(_PAYLOAD_KEYS[0], payload)
    return rest
