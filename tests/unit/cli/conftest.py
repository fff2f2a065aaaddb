from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.lake import Terminal, build


@pytest.fixture(scope="session")
def built_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "lake"
    build(folder)
    return folder


@pytest.fixture
def lake(built_lake: Path, tmp_path: Path) -> Path:
    """A folder with the tables `a` and `b`, which are this test's own."""
    return Path(shutil.copytree(built_lake, tmp_path / "lake"))


@pytest.fixture
def hoodie(capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)
