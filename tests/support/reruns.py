"""Files of the ordinary suite once more, in a process of their own that a setting sends to a real server."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def rerun(tests: Sequence[str], environment: Mapping[str, str], *arguments: str) -> None:
    """Raises AssertionError with the end of the output where a test fails, and where none ran."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *tests]
    ended = subprocess.run(
        command, cwd=_ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-1000:]
