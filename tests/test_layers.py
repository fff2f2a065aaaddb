"""The house rule: a layer imports only what stands below it. Read from the source with ast, nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"

# Lower floors first; layers of one floor do not know each other.
FLOORS = (
    {"errors"},
    {"model"},
    {"config"},
    {"storage", "formats"},
    {"timeline", "locks"},
    {"view", "index", "merge"},
    {"plan"},
    {"table"},
    {"sync"},
    {"spark"},
    {"cli", "testing"},
)
FLOOR = {layer: floor for floor, layers in enumerate(FLOORS) for layer in layers}

MAY_IMPORT_PYSPARK = {"spark", "cli"}


def test_a_layer_imports_only_what_stands_below_it() -> None:
    found = [problem for module, tree in _modules() for problem in violations(module, tree)]
    assert not found, "\n".join(found)


def test_the_package_root_only_re_exports() -> None:
    tree = ast.parse((SOURCE / "hoodie" / "__init__.py").read_text())
    found = [f"hoodie/__init__.py:{node.lineno}" for node in tree.body if not _is_re_export(node)]
    assert not found, "\n".join(found)


def test_every_layer_has_its_floor() -> None:
    assert {module.split(".")[1] for module, _ in _modules()} <= FLOOR.keys()


def test_each_kind_of_violation_is_found() -> None:
    bad = {
        "hoodie.model.files": [
            "from hoodie.plan.upsert import plan_upsert",
            "import hoodie.config.options",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hoodie.timeline import load",
            "def late():\n    from hoodie.view import slices",
            "from ..plan import upsert",
            "from .. import plan",
            "import importlib\nimportlib.import_module('hoodie.view.slices')",
        ],
        "hoodie.view.slices": ["from hoodie.merge.order import newest", "import hoodie", "from hoodie import Table"],
        "hoodie.table.commit": ["import pyspark", "from pyspark.sql import DataFrame", "import hoodie.spark.write.run"],
        "hoodie.spark.write.run": ["from hoodie.cli import main", "from hoodie.testing.memory import MemoryStorage"],
        "hoodie.testing.memory": ["from hoodie.cli import main"],
    }
    for module, sources in bad.items():
        for source in sources:
            assert len(list(violations(module, ast.parse(source)))) == 1, (module, source)


def test_what_points_down_is_no_violation() -> None:
    good = {
        "hoodie.plan.__init__": "from .upsert import plan_upsert",
        "hoodie.plan.upsert": "from hoodie.plan import profile\nfrom . import profile\nfrom hoodie import errors",
        "hoodie.view.slices": "import numpy\nfrom hoodie.timeline.load import Timeline\nfrom ..model import files",
        "hoodie.spark.write.run": "import pyspark\nfrom hoodie.table import commit\nfrom hoodie.errors import HoodieError",
        "hoodie.testing.memory": "from hoodie.storage import Storage\nfrom hoodie.plan import upsert",
    }
    for module, source in good.items():
        assert not list(violations(module, ast.parse(source))), (module, source)


def violations(module: str, tree: ast.Module) -> Iterator[str]:
    """What a module, "hoodie.view.slices" or "hoodie.view.__init__", must not import; one line each."""
    layer = module.split(".")[1]
    for line, target in _imports(module, tree):
        parts = target.split(".")
        where = f"{module.replace('.', '/')}:{line} imports {target}"
        if parts[0] == "pyspark" and layer not in MAY_IMPORT_PYSPARK:
            yield f"{where}: only {' and '.join(sorted(MAY_IMPORT_PYSPARK))} may"
        if parts[0] != "hoodie":
            continue
        if len(parts) == 1 or parts[1] not in FLOOR:
            yield f"{where}: the package root re-exports for users; import the module itself"
        elif parts[1] == "testing" and layer != "testing":
            yield f"{where}: what tests need is for tests"
        elif parts[1] != layer and FLOOR[parts[1]] >= FLOOR[layer]:
            yield f"{where}: {layer} stands below or beside {parts[1]}"


def _imports(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all imports, wherever they stand; `from hoodie import x` is hoodie.x."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            if source == "hoodie":
                yield from ((node.lineno, f"hoodie.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, source
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"importlib.import_module", "import_module"}:
            yield from ((node.lineno, arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    base = module.split(".")[: -node.level]
    return ".".join([*base, node.module] if node.module else base)


def _modules() -> Iterator[tuple[str, ast.Module]]:
    """All modules but the root."""
    for path in sorted((SOURCE / "hoodie").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts != ("hoodie", "__init__"):
            yield ".".join(parts), ast.parse(path.read_text(), str(path))


def _is_re_export(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets)
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__getattr__", "__dir__"}  # names that load on first use
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING" and all(map(_is_re_export, node.body))
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, (ast.Import, ast.ImportFrom))
