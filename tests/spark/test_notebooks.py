"""The notebooks of the documentation run, cell by cell."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_a_notebook_runs(name: str, spark: Any) -> None:
    del spark  # it is there, and `local_session` finds it
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        assert not cell.get("outputs"), f"{name}: cell {number} keeps what it printed"
        if cell["cell_type"] != "code":
            continue
        source = ast.parse("".join(cell["source"]), f"{name}[{number}]")
        last = source.body.pop() if isinstance(source.body[-1], ast.Expr) else None
        exec(compile(source, f"{name}[{number}]", "exec"), names)
        if isinstance(last, ast.Expr):  # what a notebook shows: text, and HTML where there is some
            shown = eval(compile(ast.Expression(last.value), f"{name}[{number}]", "eval"), names)
            assert len(repr(shown)) < 5000
            if hasattr(shown, "_repr_html_"):
                assert shown._repr_html_()
