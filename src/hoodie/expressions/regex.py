"""Regular expressions of Java's, as Spark's RLIKE has them, written so that Arrow's mean the same."""

from __future__ import annotations

import re

from hoodie.errors import InvalidInput

_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-[a-zA-Z]*)?[:)]")
_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?|.", re.S)
#: Java's white space has the vertical tab.
_OUTSIDE = {r"\s": r"[\s\x0b]", r"\S": r"[^\s\x0b]"}
#: What ends a line in Java: a dot matches none of these, and the end of a text may stand before one. By token: the flag
#: that says something else, and what is meant.
_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_LINES = {".": ("s", f"[^{_ENDS}]"), "$": ("m", rf"(?:(?:\r\n|[{_ENDS}])?\z)")}


def java_regex(pattern: str) -> str:
    """Raises InvalidInput on what Arrow takes for something else."""
    flags = "".join(_FLAGS.findall(pattern))
    if "U" in flags or ("i" in flags and not pattern.isascii()):
        raise _refused(pattern, "flags that Java reads in another way")
    parts: list[str] = []
    in_class = False
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if token == r"\v":
            raise _refused(pattern, r"the class \v")
        if in_class:
            if token.startswith("[") or (token == "&" and pattern.startswith("&", match.end())):
                raise _refused(pattern, "a class within a class")
            in_class = token != "]"
        elif token.startswith("["):
            in_class = True
        else:
            token = _OUTSIDE.get(token, token)
            flag, meant = _LINES.get(token, ("", token))
            token = token if flag and flag in flags else meant
        parts.append(token)
    return "".join(parts)


def _refused(pattern: str, what: str) -> InvalidInput:
    return InvalidInput(f"the regular expression {pattern!r} has {what}, which needs Spark: write it in another way")
