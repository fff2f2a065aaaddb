"""The rest of the library does not need the package of the HBase index."""

import pkgutil
import subprocess
import sys

import pytest

import hoodie
from support.reruns import rerun

#: Files and tests that are about the index in HBase.
_ABOUT_HBASE = "not hbase and not HBASE and not HBase"
_OTHERS = ["tests/unit", "tests/contract", "tests/property", "tests/interop"]
_PLUGIN = ("-p", "support.without_hbase", "--ignore-glob=*hbase*", "-k", _ABOUT_HBASE)


def test_every_other_module_is_imported() -> None:
    names = [
        module.name
        for module in pkgutil.walk_packages(hoodie.__path__, "hoodie.")
        if "hbase" not in module.name and not module.name.endswith("__main__")
    ]
    code = f"import support.without_hbase, importlib\nfor name in {names}: importlib.import_module(name)"
    done = subprocess.run([sys.executable, "-c", code], cwd="tests", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.nightly
def test_savepoints_and_restores_go_on() -> None:
    rerun(
        ["tests/unit/recovery/test_savepoint.py"],
        {},
        *_PLUGIN[:-1],
        f"{_ABOUT_HBASE} and (as_of_a_savepoint or deleted_savepoint or during_a_restore)",
    )


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_everything_else_goes_on() -> None:
    rerun(_OTHERS, {}, *_PLUGIN)
