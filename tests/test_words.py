"""Prose of the sources and the docs uses the field's words: the old names of routes, key status and locks stay out.

The words of this project are in docs/concepts.md; a benchmark's batch named `spread` is a name, not prose.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: What no text may say -> what to say instead.
FORBIDDEN = {
    r"\bnear (?:write|batch|route|limit)": "on the driver",
    r"\b(?:goes|go|runs?) near\b(?! (?:the|its|their|this|where))": "runs on the driver",
    r"\bspread (?:write|batch|route)": "on executors",
    r"\bnear and spread\b": "driver and executors",
    r"\bbrought near\b": "collected to the driver",
    r"\bfates?\b": "key status",
    r"\bwhoever\b": "the process or writer that",
    r"\bfor dead\b": "considered dead",
    r"\btaken for (?:new|written)\b": "considered, counts as",
    r"\bnot to be had\b": "could not acquire",
    r"\block(?: that)? (?:is|was) had\b|\bstill had\b": "held",
    r"\btwice is as once\b": "idempotent",
    r"\btells? of\b": "names, reports, returns",
    r"\blearnt\b": "measured, recorded",
    r"\bany more\b": "no longer, still",
    r"\b(?:cannot|can) be told\b|\bis told as\b": "available, known, decided",
    r"`(?:learn|settle|tell_of_dead)\b": "record_writes, finalize, notify_rolled_back",
    r"""(?m-i:(?:^|[.:;?!(|#>*"'-])[^\S\n]*Of [a-z0-9`])""": "the subject first: no sentence begins with Of",
}


def texts() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield from (path for path in sorted((ROOT / "docs").rglob("*.md")) if "format" not in path.parts)
    yield from sorted((ROOT / "src" / "hoodie").rglob("*.py"))
    yield from sorted((ROOT / "src" / "hoodie").rglob("*.csv"))


def found_in(text: str) -> list[str]:
    """The forbidden words of a text, each with its line and the words to use."""
    return [
        f"{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}, say: {instead}"
        for pattern, instead in FORBIDDEN.items()
        for match in re.finditer(pattern.replace(" ", r"\s+"), text, re.IGNORECASE)
    ]


def test_no_text_uses_a_word_that_the_field_has_a_term_for() -> None:
    found = [f"{path.relative_to(ROOT)}:{line}" for path in texts() for line in found_in(path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "A near write",
        "the batch is spread: spread batches",
        "taken for dead",
        "the lock was not to be had",
        "its fate",
        "Two came. Of these one stays.",
        '"Of logs only."',
        "not any\n    more",
    ],
)
def test_an_old_word_is_seen(text: str) -> None:
    assert found_in(text)


@pytest.mark.parametrize(
    "text", ["a file is closed near this size", "logs of `spread`", "spread over many files", "the List Of three"]
)
def test_a_word_in_its_plain_meaning_is_let_pass(text: str) -> None:
    assert not found_in(text)


#: What says where a value came from, or what became of it, and not what it is: no variable is called so.
NO_NOUNS = {
    "asked",
    "done",
    "each",
    "found",
    "given",
    "gone",
    "kept",
    "known",
    "left",
    "made",
    "there",
    "told",
    "wanted",
}

#: The two sides of an operator are called left and right.
SIDES = {"expressions": {"left"}, "arrow": {"left"}}


def bound_names(source: str) -> Iterator[tuple[int, str]]:
    """The variables, parameters and fields that a module binds, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
            yield node.lineno, node.name


def test_variables_are_called_by_nouns() -> None:
    modules = (ROOT / "src" / "hoodie").rglob("*.py")
    names = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(modules)
        for line, name in bound_names(path.read_text("utf-8"))
        if name in NO_NOUNS and name not in SIDES.get(path.parent.name, ())
    ]
    assert not names, "\n".join(names)


#: What says as little of a function, a class or a module; LEFT is a function of SQL.
NO_NAMES = (NO_NOUNS - {"left"}) | {
    "believed",
    "beside",
    "listed",
    "looked",
    "mentioned",
    "missed",
    "near",
    "noted",
    "said",
    "seen",
    "shown",
    "some",
    "spoken",
    "together",
    "written",
}


def defined_names(source: str) -> Iterator[str]:
    """The functions, methods and classes of a module, those within others too, without leading underscores."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name.strip("_")


def test_functions_classes_and_modules_say_what_they_return_or_hold() -> None:
    names = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "src" / "hoodie").rglob("*.py"))
        for name in (path.stem, *defined_names(path.read_text("utf-8")))
        if name.lower() in NO_NAMES
    ]
    assert not names, "\n".join(names)


def test_each_way_to_bind_a_name_is_seen() -> None:
    source = """
def f(given, *kept, made=1, **done):
    found = [left for left in given]
    with open(there) as told, (asked := 1):
        for gone in found: pass
    try: pass
    except OSError as known: pass
    match found:
        case [wanted, *each]: pass
"""
    assert {name for _, name in bound_names(source)} >= NO_NOUNS - {"there"}


def described_arguments(node: ast.FunctionDef) -> Iterator[str]:
    """The names that a docstring has an entry for: a name, or some, then two spaces or more and what they are."""
    for line in (ast.get_docstring(node) or "").splitlines():
        if entry := re.match(r"([a-z_]+(?:, [a-z_]+)*)  +\S", line):
            yield from entry[1].split(", ")


def test_docstrings_describe_arguments_that_there_are() -> None:
    problems = []
    for path in sorted((ROOT / "src" / "hoodie").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                arguments = {
                    "returns",
                    "yields",
                    *(part.arg for part in ast.walk(node.args) if isinstance(part, ast.arg)),
                }
                described = set(described_arguments(node))
                problems += [f"{path.relative_to(ROOT)}: {node.name}: {name}" for name in described - arguments]
    assert not problems, "\n".join(problems)
