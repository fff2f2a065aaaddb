"""A Griffe extension: the aligned columns of the project's docstrings become definition lists.

    path     a local path, or a URI
    options  `hoodie.*` options;
             all others are the driver's
    Raises   TableNotFound

`mkdocs.yml` names this file.
"""

import re
from collections.abc import Iterator
from typing import Any

import griffe

_ENTRY = re.compile(r"(?P<terms>\*{0,2}[\w.|]+(?:, \*{0,2}[\w.|]+)*)(?: {2,}|: {2,})(?P<meaning>\S.*)")
_SECTIONS = {"raises": "Raises", "returns": "Returns", "yields": "Yields", "source": "Source"}


class Columns(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """What a constructor sets and nothing describes is not part of the reference; fields of dataclasses are."""
        if "dataclass" in cls.labels:
            return
        for name, member in list(cls.members.items()):
            if member.is_attribute and "instance-attribute" in member.labels and not member.docstring:
                del cls.members[name]


def as_markdown(text: str) -> str:
    """A docstring with its columns as definition lists; all else is Markdown as it is."""
    return "\n\n".join(_paragraph(lines) for lines in _paragraphs(text))


def _paragraphs(text: str) -> Iterator[list[str]]:
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            lines.append(line)
        elif lines:
            yield lines
            lines = []


def _paragraph(lines: list[str]) -> str:
    if not any(map(_ENTRY.fullmatch, lines)):
        return "\n".join(lines)
    made: list[str] = []
    for line in lines:
        if entry := _ENTRY.fullmatch(line):
            terms = entry["terms"].split(", ")
            named = [_SECTIONS.get(term.lower()) or f"`{term}`" for term in terms]
            made += ["", ", ".join(named), f":   {entry['meaning']}"]
        elif line.startswith(" ") and made:
            made.append(f"    {line.strip()}")
        else:
            made += [*([""] if made and made[-1].startswith((":", " ")) else []), line]
    return "\n".join(made).strip()
