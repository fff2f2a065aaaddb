"""Patterns over the paths of a table's files, as Hadoop has them: `*`, `?`, `[ab]`, `[^ab]`, `{a,b}`."""

import re

GLOB_CHARACTERS = frozenset("*?[{")
_ALL_FILES = ("*", "*.*", "*.parquet")


def matches_folder(pattern: str, partition: str) -> bool:
    """Whether a pattern, part by part, is of a partition, of a folder above it, or of all files within it.

    pattern, partition  relative to the table
    """
    patterns, parts = pattern.split("/"), partition.split("/") if partition else []
    if len(patterns) == len(parts) + 1 and patterns[-1] in _ALL_FILES:
        patterns = patterns[:-1]
    if len(patterns) > len(parts):
        return False
    return all(_expression(one).fullmatch(part) for one, part in zip(patterns, parts, strict=False))


def matches_file(pattern: str, path: str, root: str) -> bool:
    """Whether a pattern is of a file: here `*` and `?` are any characters, "/" too.

    pattern  relative to the table, or with its path
    path     of the file, relative to the table
    root     the table's path
    """
    inside = pattern.removeprefix(root).lstrip("/")
    return _expression(inside).fullmatch(path) is not None


def _expression(pattern: str) -> re.Pattern[str]:
    regex, depth, at = "", 0, 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "\\" and at < len(pattern):
            regex, at = regex + re.escape(pattern[at]), at + 1
        elif char == "*":
            regex += ".*"
        elif char == "?":
            regex += "."
        elif char == "[" and (end := pattern.find("]", at + 1)) > 0:
            inside = pattern[at:end].replace("\\", "\\\\")
            regex, at = f"{regex}[{'^' + inside[1:] if inside[0] in '!^' else inside}]", end + 1
        elif char == "{":
            regex, depth = f"{regex}(?:", depth + 1
        elif char == "}" and depth:
            regex, depth = f"{regex})", depth - 1
        else:
            regex += "|" if char == "," and depth else re.escape(char)
    return re.compile(regex + ")" * depth, re.DOTALL)
