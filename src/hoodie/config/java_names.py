"""Names of Java classes as releases before 0.6 had them: the same rules, by the names that they have now."""

from __future__ import annotations

_EARLIER = ("com.uber.hoodie", "org.apache.hudi")
_PAYLOADS = "org.apache.hudi.common.model"

EMPTY_PAYLOAD = f"{_PAYLOADS}.EmptyHoodieRecordPayload"


def payload_name(name: str) -> str:
    """The full name of a payload class, by its name alone or with the package of any release."""
    package, _, simple = name.strip().rpartition(".")
    folders = ("", *_EARLIER, *(f"{part}.{folder}" for part in _EARLIER for folder in ("payload", "common.model")))
    return f"{_PAYLOADS}.{simple}" if package in folders else name.strip()


def key_generator_name(name: str) -> str:
    """The name without its package of a key generator of any release; others as they are."""
    package, _, simple = name.strip().rpartition(".")
    folders = ("", *_EARLIER, *(f"{part}.keygen" for part in _EARLIER))
    return simple if package in folders else name.strip()
