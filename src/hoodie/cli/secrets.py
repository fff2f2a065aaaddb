"""Credentials stay out of what is printed: values of storage options and of the environment, and those in URIs."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

_NAMES = re.compile(r"secret|token|passw|credential|signature|\bsas|account_key|access_?key|connection_string", re.I)
#: Short names that fsspec drivers have for credentials.
_EXACT = frozenset({"key", "sas", "username", "user"})
_IN_URI = re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)")
_MASK = "***"

_known: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether a storage option of that name holds a credential."""
    return name.lower() in _EXACT or _NAMES.search(name) is not None


def remember(options: Mapping[str, Any]) -> None:
    """Mask the values of storage options that hold credentials, from now on."""
    _known.update(_values(options, False))


def masked(text: str) -> str:
    """The text without credentials: those of storage options, of the environment, and in URIs."""
    environment = {value for name, value in os.environ.items() if _NAMES.search(name)}
    for value in sorted(_known | environment, key=len, reverse=True):
        if len(value) > 3:
            text = text.replace(value, _MASK)
    return _IN_URI.sub(_MASK, text)


def masked_path(path: str) -> str:
    """A path or URI without a user and a password in it."""
    return _IN_URI.sub(_MASK, path)


def masked_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Properties, with a mask in place of values whose name says that they are credentials."""
    return {key: _MASK if _NAMES.search(key) else value for key, value in properties.items()}


def _values(options: Mapping[str, Any], secret: bool) -> Iterator[str]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _values(value, secret or is_secret(name))
        elif isinstance(value, str) and (secret or is_secret(name)):
            yield value
