"""The notebook of ten minutes runs without Spark, and shows what it has stored."""

import json
import os
from pathlib import Path

import pytest

from support.notebooks import run_notebook, texts
from support.pages import ROOT

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def test_the_notebook_shows_what_it_has_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for number, (cell, outputs) in enumerate(run_notebook(notebook, NOTEBOOK.name), 1):
        assert cell["execution_count"] == number
        assert texts(outputs, os.getcwd()) == texts(cell["outputs"], "/home/ann"), "".join(cell["source"])


def test_the_notebook_has_no_spark() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 15
    assert not any("spark" in source.lower() for source in code)
