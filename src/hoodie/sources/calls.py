"""What is remembered of the calls on Spark's readers and writers, until one of them does something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

#: The names of the format, in small letters.
NAMES = ("hudi", "org.apache.hudi", "hoodie")

#: Those that this process answers.
CAUGHT: set[str] = set()


def said_to(builder: Any) -> dict[str, Any]:
    """What was said to a reader or writer so far."""
    found = builder.__dict__.setdefault("_hoodie", {"format": "", "options": {}, "mode": "default", "by": []})
    assert isinstance(found, dict)
    return found


def ours(name: object) -> bool:
    return isinstance(name, str) and name.lower() in CAUGHT


def names_in(columns: Sequence[Any]) -> list[Any]:
    """The columns of a call that takes them one by one, or in one list."""
    return list(columns[0]) if len(columns) == 1 and isinstance(columns[0], (list, tuple)) else list(columns)


def partition_columns(given: Any, said: dict[str, Any]) -> list[Any]:
    """The partition columns of a write: those of its last call, a name or several, else those said before."""
    return [given] if isinstance(given, str) else list(given or said["by"])


def wrap_format(original: Callable[..., Any]) -> Callable[..., Any]:
    def format(self: Any, source: str) -> Any:
        said_to(self)["format"] = source
        return original(self, source)

    return format


def wrap_option(original: Callable[..., Any]) -> Callable[..., Any]:
    def option(self: Any, key: str, value: Any) -> Any:
        said_to(self)["options"][key] = value
        return original(self, key, value)

    return option


def wrap_options(original: Callable[..., Any]) -> Callable[..., Any]:
    def options(self: Any, **options: Any) -> Any:
        said_to(self)["options"].update(options)
        return original(self, **options)

    return options


def wrap_partition_by(original: Callable[..., Any]) -> Callable[..., Any]:
    def partitionBy(self: Any, *cols: Any) -> Any:
        said_to(self)["by"] = names_in(cols)
        return original(self, *cols)

    return partitionBy


def wrap_schema(original: Callable[..., Any]) -> Callable[..., Any]:
    def schema(self: Any, schema: Any) -> Any:
        said_to(self)["schema"] = schema
        return original(self, schema)

    return schema
