"""How an option is declared, and how strings become typed groups of options."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

from hoodie.errors import InvalidOption

T = TypeVar("T")

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB


@dataclass(frozen=True, slots=True)
class Declared:
    """One option as declared: its keys (the first is the name, the rest are accepted aliases), meaning and check."""

    keys: tuple[str, ...]
    help: str
    expected: str
    check: Callable[[Any], bool] | None


def option(
    key: str,
    default: Any,
    help: str,
    *,
    aliases: tuple[str, ...] = (),
    expected: str = "",
    check: Callable[[Any], bool] | None = None,
) -> Any:
    """A dataclass field that is read from the string option `key`.

    expected  what a good value looks like, for the error: "bytes, such as 104857600"
    check     more than the type: returns False for a value out of range
    """
    declared = Declared((key, *aliases), help, expected, check)
    return dataclasses.field(default=default, metadata={"option": declared})


def positive(value: float) -> bool:
    """A check of options."""
    return value > 0


def not_negative(value: float) -> bool:
    """A check of options."""
    return value >= 0


def above_zero(key: str, default: float, help: str, *, aliases: tuple[str, ...] = ()) -> Any:
    """An `option` whose values are positive numbers."""
    return option(key, default, help, aliases=aliases, check=positive)


def from_zero(key: str, default: float, help: str, *, aliases: tuple[str, ...] = ()) -> Any:
    """An `option` whose values are positive numbers or 0."""
    return option(key, default, help, aliases=aliases, check=not_negative)


def bytes_option(key: str, default: int, help: str, *, least: int = 1, aliases: tuple[str, ...] = ()) -> Any:
    """An `option` whose values are sizes."""
    expected = "bytes, such as 104857600"
    return option(key, default, help, aliases=aliases, expected=expected, check=lambda value: value >= least)


def millis_option(key: str, default: int, help: str, *, least: int = 0) -> Any:
    """An `option` whose values are times."""
    return option(key, default, help, expected="milliseconds, such as 60000", check=lambda value: value >= least)


@cache
def _declared(group: Hashable) -> Sequence[tuple[dataclasses.Field[Any], Declared]]:
    fields = dataclasses.fields(cast(type, group))
    return tuple((f, f.metadata["option"]) for f in fields if "option" in f.metadata)


def declared(group: type) -> Sequence[tuple[dataclasses.Field[Any], Declared]]:
    """The options of a group, in the order of their declaration."""
    return _declared(group)


def group_keys(group: type, *names: str) -> frozenset[str]:
    """The keys of some options of a group; of all, where none is named."""
    return frozenset(key for field, spec in declared(group) if not names or field.name in names for key in spec.keys)


def read_options(group: type[T], properties: Mapping[str, object]) -> T:
    """The group with its fields set from `properties`; keys that are absent keep their defaults.

    Raises InvalidOption naming key, value and what was expected.
    """
    values = {}
    for member, spec in declared(group):
        for key in spec.keys:
            if key in properties:
                values[member.name] = _parse(key, properties[key], member.default, spec)
                break
    return group(**values)


class Options(Mapping[str, str]):
    """The options of one call, as the door checked them: text by key, and typed groups of them. Immutable.

    Made in `api` and `cli`; what lies below asks for groups: `options.read(CleanOptions).commits`.
    """

    __slots__ = ("_cache", "_text")

    def __init__(self, text: Mapping[str, str] | None = None) -> None:
        self._text = dict(text or {})
        self._cache: dict[Any, Any] = {}

    def read(self, group: type[T]) -> T:
        """The options of a group. Raises InvalidOption naming key, value and what was expected."""
        if group not in self._cache:
            self._cache[group] = read_options(group, self._text)
        return cast(T, self._cache[group])

    def memoized(self, make: Callable[[Options], T]) -> T:
        """What a function makes of the options, made at the first call. It reads nothing else, and does not warn."""
        if make not in self._cache:
            self._cache[make] = make(self)
        return cast(T, self._cache[make])

    def __getitem__(self, key: str) -> str:
        return self._text[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._text)

    def __len__(self) -> int:
        return len(self._text)

    def __repr__(self) -> str:
        return f"Options({sorted(self._text)})"  # names only: values may be secrets

    def __reduce__(self) -> tuple[type[Options], tuple[dict[str, str]]]:
        return Options, (self._text,)


def alias_sets(groups: Iterable[type]) -> dict[str, frozenset[str]]:
    """Each key of the groups' options with all keys that name the same option, itself among them."""
    sets: dict[str, frozenset[str]] = {}
    for group in groups:
        for _, spec in declared(group):
            keys = frozenset(spec.keys).union(*(sets.get(key, ()) for key in spec.keys))
            sets |= dict.fromkeys(keys, keys)
    return sets


def override(options: Mapping[str, str], by: Mapping[str, str], aliases: Mapping[str, frozenset[str]]) -> Options:
    """`options` with those of `by` over them, whichever aliases the two use.

    aliases  of `alias_sets`
    """
    replaced = {alias for key in by for alias in aliases.get(key, (key,))}
    return Options({**{key: value for key, value in options.items() if key not in replaced}, **by})


def refuse_two_aliases(options: Mapping[str, str], aliases: Mapping[str, frozenset[str]]) -> None:
    """Raises InvalidOption naming two keys of one option with different values; equal values pass."""
    seen: dict[frozenset[str], str] = {}
    for key, value in options.items():
        first = seen.setdefault(aliases.get(key, frozenset((key,))), key)
        if options[first].strip() != value.strip():
            raise InvalidOption(f"{first}={options[first]!r} and {key}={value!r} are one option: give one of them")


def _parse(key: str, value: object, default: object, spec: Declared) -> object:
    text = value if isinstance(value, str) else as_text(value)
    try:
        parsed = _convert(text, default)
    except (ValueError, KeyError):
        parsed = None
        bad = True
    else:
        bad = spec.check is not None and not spec.check(parsed)
    if bad:
        raise InvalidOption(f"{key}={text!r}: expected {spec.expected or _expectation(default)}")
    return parsed


def as_text(value: object) -> str:
    """An option's value as the text that a properties file or a command line would have."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds")  # without them it is the end of its second
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return ",".join(as_text(item) for item in value)
    return str(value)


def _convert(text: str, default: object) -> object:
    if isinstance(default, bool):
        return {"true": True, "false": False}[text.strip().lower()]
    if isinstance(default, int):
        return int(text)
    if isinstance(default, float):
        return float(text)
    if isinstance(default, Enum):
        return type(default)[text.strip().upper().replace("-", "_")]
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _expectation(default: object) -> str:
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, int):
        return f"a whole number, such as {default}"
    if isinstance(default, float):
        return f"a number, such as {default}"
    if isinstance(default, Enum):
        return "one of " + ", ".join(member.name for member in type(default))
    return "text"
