"""Real engines on loopback, one of a kind for the whole run. `make engines` runs these tests; ENGINES chooses.

What is missing (no Java 17, no Maven, a jar that is not served) skips the tests that need it, with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hudi_engine import HudiEngine
from support.servers import running
from tools.engines import HUDI, Missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.engines)


@pytest.fixture(scope="session", params=sorted(HUDI))
def hudi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiEngine]:
    """Each release in turn."""
    chosen = os.environ.get("ENGINES", "hudi").split()
    if not {"hudi", f"hudi-{request.param}"} & set(chosen):
        pytest.skip(f"ENGINES does not name hudi or hudi-{request.param}")
    try:
        engine = HudiEngine(request.param, tmp_path_factory.mktemp("hudi"))
    except Missing as error:
        pytest.skip(str(error))
    with running(engine):
        yield engine
