"""docs/operations.md: its commands run on two tables, those of cron, systemd and Airflow as well."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hoodie.storage.local import LocalStorage
from support.compacting import schedule
from support.lake import Terminal, parse

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def lines() -> Iterator[str]:
    """The commands of the shell, and those of cron, without what their output goes to."""
    for block in blocks("sh"):
        yield from (line for line in block.replace("\\\n", " ").splitlines() if line.startswith("hoodie "))
    for line in blocks("cron")[0].splitlines():
        if not line.startswith("#"):
            yield line.split(None, 5)[5]


@pytest.fixture
def in_lake(lake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file of paths."""
    (lake.parent / "tables.txt").write_text(f"{lake}/a\n{lake}/b\n")
    schedule(LocalStorage(lake / "a"))
    monkeypatch.chdir(lake.parent)
    return lake


def test_the_page_s_commands_run(in_lake: Path, hoodie: Terminal) -> None:
    lock = re.search(r'LOCK="(.*)"', PAGE)
    assert lock is not None
    ran = 0
    for line in lines():
        line = re.split(r" \| | >>? ", line)[0].replace("$LOCK", lock[1]).replace("/data/lake", str(in_lake))
        words = shlex.split(line.replace("/etc/hoodie/", ""))[1:]
        hoodie(*words)
        ran += 1
    assert ran > 20


def airflow_commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the DAG of the page would run."""
    given: list[str] = []

    class BashOperator:
        def __init__(self, *, task_id: str, bash_command: str, **more: Any) -> None:
            given.append(bash_command)

        def __rshift__(self, other: BashOperator) -> BashOperator:
            return other

    class DAG:
        def __init__(self, name: str, **more: Any) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *raised: object) -> None: ...

    for name, content in {"airflow": {"DAG": DAG}, "airflow.operators": {}}.items():
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        vars(sys.modules[name]).update(content)
    bash = ModuleType("airflow.operators.bash")
    vars(bash)["BashOperator"] = BashOperator
    monkeypatch.setitem(sys.modules, "airflow.operators.bash", bash)
    exec(compile(blocks("python")[0], "docs/operations.md", "exec"), {})
    return given


def test_the_dag_s_commands_run(in_lake: Path, hoodie: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = airflow_commands(monkeypatch)
    assert len(commands) == 5
    for command in commands:
        hoodie(*shlex.split(command.replace("/etc/hoodie/", ""))[1:])


def test_the_command_of_the_service_parses(in_lake: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", PAGE, re.M)
    parse(line.replace("/etc/hoodie/", ""))


def test_the_fields_that_the_page_names_are_in_the_documents(in_lake: Path, hoodie: Terminal) -> None:
    known: set[str] = set()
    for words in (["show"], ["stats"], ["metadata"], ["doctor"], ["history"]):
        (table,) = hoodie.document(*words, in_lake / "a")["tables"]
        known |= table["result"].keys()
    named = set(re.findall(r"`(older_bytes|log_share|small_files|base_files|base_bytes|behind|healthy|last)`", PAGE))
    assert named <= known
    assert {"older_bytes", "log_share", "small_files", "behind"} <= named
