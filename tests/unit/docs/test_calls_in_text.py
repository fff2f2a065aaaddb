"""Calls that pages name in running text have the arguments that they are written with there."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.api.table import HoodieTable
from support.pages import ROOT

#: Pages of users; those below `format` and `design` name calls of others, and of before.
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "engines").glob("*.md"))]
_CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_BLOCK = re.compile(r"```.*?```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_calls_in_running_text_have_the_arguments_named_there(page: Path) -> None:
    problems = []
    for text, call in _calls(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        name = ast.unparse(call.func)
        try:
            words = {word.arg: None for word in call.keywords if word.arg}
            _signature(call.func).bind_partial(*_given(call.args), **words)
        except AttributeError:
            problems.append(f"`{text}`: there is no {name}")
        except TypeError as error:
            problems.append(f"`{text}`: {name} has {error}")
    assert not problems, "\n".join(problems)


def _calls(text: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls in each piece of code, save those of names that are not this library's."""
    for code in _CODE.findall(text):
        try:
            tree = ast.parse(code.replace("\n", " ").replace("…", "..."), mode="eval")
        except SyntaxError:  # SQL, a command
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_own(node.func):
                yield code, node


def _is_own(callee: ast.expr) -> bool:
    match callee:
        case ast.Attribute(value=ast.Name(id="hoodie" | "table" | "HoodieTable")):
            return True
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="hoodie"))):
            return True
        case ast.Attribute(value=ast.Call(func=made)):
            return ast.unparse(made) in ("hoodie.open_table", "hoodie.create_table")
    return False


def _signature(callee: ast.expr) -> inspect.Signature:
    """As it is called: without `self`. Raises AttributeError"""
    assert isinstance(callee, ast.Attribute)
    match callee.value:
        case ast.Name(id="hoodie"):
            owner: Any = hoodie
        case ast.Attribute(attr=name):
            owner = getattr(hoodie, name)
        case _:
            owner = HoodieTable
    signature = inspect.signature(getattr(owner, callee.attr))
    first, *others = signature.parameters.values() or [None]
    return signature.replace(parameters=others) if first is not None and first.name == "self" else signature


def _given(arguments: list[ast.expr]) -> list[None]:
    """A place for each argument, save for `...`, which says that some are left out."""
    return [None for argument in arguments if not (isinstance(argument, ast.Constant) and argument.value is ...)]
