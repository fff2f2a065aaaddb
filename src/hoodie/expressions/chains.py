"""Chains of AND and of OR, however long: programs make conditions of hundreds of parts."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def operands(node: Any) -> list[Any]:
    """What a chain of one operator joins, from left to right; the parser nests it a level for each."""
    parts, rest = [], [node]
    while rest:
        part = rest.pop()
        if type(part) is type(node):
            rest += [part.right, part.left]
        else:
            parts.append(part)
    return parts


def balanced(parts: Sequence[T], join: Callable[[T, T], T]) -> T:
    """Parts joined in pairs, so that a long chain is not deep; they stay in order."""
    level = list(parts)
    while len(level) > 1:
        pairs = [join(*level[at : at + 2]) for at in range(0, len(level) - 1, 2)]
        level = [*pairs, *level[len(pairs) * 2 :]]
    return level[0]
