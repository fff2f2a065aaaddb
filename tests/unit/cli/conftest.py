import shutil
from pathlib import Path

import pytest

from hoodie.display import progress
from support.lake import Terminal, build


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints does not depend on how long it takes on a busy machine."""
    monkeypatch.setattr(progress, "_write_lines", lambda: None)


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
