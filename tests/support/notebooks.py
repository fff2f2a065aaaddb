"""Notebooks as what they say: their cells are run, and what each shows is compared with what is stored.

`python -m support.notebooks examples/notebook.ipynb` runs one in an empty folder and stores what its cells show.
"""

import ast
import contextlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: What differs from run to run: instants, times of day, seconds, sizes, ids of files, addresses, the folder.
_VARYING = (
    (re.compile(r"\d{17}"), "<instant>"),
    (re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d+)?"), "<time>"),
    (re.compile(r"\d+(\.\d+)? (ms|s|B|bytes|kB|MB)\b"), "<number>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}-0"), "<file id>"),
    (re.compile(r"0x[0-9a-f]+"), "<address>"),
)


def steady(text: str, folder: str) -> str:
    """Text without what differs from run to run."""
    text = text.replace(folder, "<folder>")
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def run_notebook(notebook: dict[str, Any], name: str) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Its cells of code in turn, each with what it shows: what it prints, and its last expression as a notebook shows
    it, as text and as HTML where there is some."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        where = f"{name}[{number}]"
        source = ast.parse("".join(cell["source"]), where)
        last = source.body.pop() if source.body and isinstance(source.body[-1], ast.Expr) else None
        printed, shown = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            exec(compile(source, where, "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), where, "eval"), names)
        outputs: list[dict[str, Any]] = []
        if printed.getvalue():
            outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
        if shown is not None:
            data = {"text/plain": _lines(repr(shown))}
            if hasattr(shown, "_repr_html_") and (html := shown._repr_html_()):
                data = {"text/html": _lines(html), **data}
            outputs.append({"data": data, "metadata": {}, "output_type": "execute_result"})
        yield cell, outputs


def texts(outputs: list[dict[str, Any]], folder: str) -> list[str]:
    """What outputs say, without what differs from run to run."""
    parts = []
    for output in outputs:
        data = output.get("data") or {"text/plain": output["text"]}
        parts += [steady("".join(lines), folder) for _, lines in sorted(data.items())]
    return parts


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main(path: str) -> None:
    file = Path(path).resolve()
    notebook = json.loads(file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, (cell, outputs) in enumerate(run_notebook(notebook, file.name), 1):
            # A reader's folder has another name.
            shown = json.loads(json.dumps(outputs).replace(os.getcwd(), "/home/ann"))
            for output in shown:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = number
            cell["outputs"], cell["execution_count"] = shown, number
        os.chdir("/")
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
