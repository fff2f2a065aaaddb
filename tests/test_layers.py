"""The house rules: a package imports only what stands below it, and no modules import each other in a circle.

Read from the source with ast; nothing is imported.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"

# Lower floors first; packages of one floor do not know each other.
FLOORS = (
    {"errors", "display"},
    {"model"},
    {"config"},
    {"schema"},
    {"storage"},
    {"locks", "keygen"},
    {"expressions"},
    {"formats"},
    {"timeline"},
    {"index", "view", "merge"},
    {"plan"},
    {"table"},
    {"metadata"},
    {"commit"},
    {"reading"},
    {"lookup", "doctor"},
    {"writing"},
    {"conditional"},
    {"recovery", "hbase"},
    {"services"},
    {"facts", "sync"},
    {"report"},
    {"metrics"},
    {"spark"},
    {"api"},
    {"statements"},
    {"sources"},
    {"cli", "testing", "hudi"},
)
FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}

MAY_IMPORT_PYSPARK = {"spark", "api", "statements", "sources", "cli"}

#: Public names that several modules define: functions that are found by name (`make` of an index, `export` of
#: metrics), results that the schema of the command line names, and an entry of the suite for indexes of users.
DEFINED_TWICE = {"Entry", "MetadataPartition", "Rows", "export", "make"}

#: Programs beside the library. They use it as they like; among themselves they have no circles either.
PROGRAMS = ("bench", "torture", "demo")


def test_a_package_imports_only_what_stands_below_it() -> None:
    found = [problem for module, tree in _library() for problem in violations(module, tree)]
    assert not found, "\n".join(found)


def test_nothing_imports_the_package_of_an_index_outside_the_table() -> None:
    found = [
        f"{module} imports {name}"
        for module, tree in _library()
        for _, name in _imports(module, tree)
        if name.startswith("hoodie.hbase") and not module.startswith(("hoodie.hbase", "hoodie.testing.hbase"))
    ]
    assert not found, "\n".join(found)


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {f"hoodie.{name}": tree for name, tree in _below(SOURCE / "hoodie")}
    assert not circles(modules), _drawn(circles(modules))
    for program in PROGRAMS:
        parts = {f"{program}.{name}": tree for name, tree in _below(ROOT / program)}
        assert parts
        assert not circles(parts), _drawn(circles(parts))


def test_the_package_root_and_the_public_names_of_spark_only_re_export() -> None:
    for package in ("hoodie", "hoodie/spark"):
        tree = ast.parse((SOURCE / package / "__init__.py").read_text())
        found = [f"{package}/__init__.py:{node.lineno}" for node in tree.body if not _is_re_export(node)]
        assert not found, "\n".join(found)


def test_below_the_doors_options_are_typed() -> None:
    """`api`, `cli` and the doors of Spark turn text into `Options`; an index gets the text, too."""
    text = ("api", "statements", "sources", "cli", "config", "index", "hbase", "storage", "testing")
    properties = {"hoodie.table.create", "hoodie.table.recorded_index"}
    found = [
        f"{module}:{argument.lineno}"
        for module, tree in _library()
        if module.split(".")[1] not in text and module not in properties
        for node in _nodes(tree)
        if isinstance(node, ast.FunctionDef)
        for argument in [*node.args.args, *node.args.kwonlyargs]
        if argument.arg in ("options", "given")
        and "Mapping[str" in ast.unparse(argument.annotation or ast.Constant(""))
    ]
    assert not found, "\n".join(found)


def test_what_is_below_the_doors_takes_typed_settings_and_not_the_options_of_a_call() -> None:
    """`Options` may name anything; a signature with it does not say what the function goes by. Named are the doors, and
    who makes settings of options or hands them to an index, which has options of its own."""
    doors = ("api", "cli", "statements", "sources", "spark.stream", "config", "testing")
    others = ("table.settings", "writing.operations", "hbase")
    found = [
        f"{module}:{node.lineno}"
        for module, tree in _library()
        if not f"{module.removeprefix('hoodie.')}.".startswith(tuple(f"{room}." for room in (*doors, *others)))
        for node in _nodes(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "hoodie.config.options"
        if any(alias.name == "Options" for alias in node.names)
    ]
    assert not found, "\n".join(found)


def test_a_public_name_is_defined_in_one_module() -> None:
    modules: dict[str, set[str]] = {}
    for module, tree in _below(SOURCE / "hoodie"):
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                modules.setdefault(node.name, set()).add(module)
    several = {name: sorted(places) for name, places in modules.items() if len(places) > 1}
    assert several.keys() == DEFINED_TWICE, {name: several[name] for name in several.keys() - DEFINED_TWICE}


def test_every_package_has_its_floor() -> None:
    assert {module.split(".")[1] for module, _ in _library()} == FLOOR.keys()


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
        "hoodie.expressions.reader": ["import sqlglot", "from sqlglot.errors import ParseError"],
        "hoodie.view.slices": ["from hoodie.merge.order import newest", "import hoodie", "from hoodie import Table"],
        "hoodie.commit.publish": ["import pyspark", "from pyspark.sql import DataFrame", "import hoodie.spark.tasks"],
        "hoodie.spark.run": ["from hoodie.cli import main", "from hoodie.testing.memory import MemoryStorage"],
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
        "hoodie.spark.run": "import pyspark\nfrom hoodie.commit import publish\nfrom hoodie.errors import HoodieError",
        "hoodie.testing.memory": "from hoodie.storage import Storage\nfrom hoodie.plan import upsert",
    }
    for module, source in good.items():
        assert not list(violations(module, ast.parse(source))), (module, source)


def test_a_circle_is_found_however_its_modules_import_each_other() -> None:
    ring = {"hoodie.a.x": "from hoodie.a import y", "hoodie.a.y": "def late():\n    import hoodie.a.z"}
    open_ended = {**ring, "hoodie.a.z": "from hoodie.a.w import name", "hoodie.a.w": ""}
    closed = {**ring, "hoodie.a.z": "from hoodie.a.x import name"}
    assert not circles({name: ast.parse(text) for name, text in open_ended.items()})
    assert circles({name: ast.parse(text) for name, text in closed.items()}) == [
        {"hoodie.a.x", "hoodie.a.y", "hoodie.a.z"}
    ]


def violations(module: str, tree: ast.Module) -> Iterator[str]:
    """What a module, "hoodie.view.slices" or "hoodie.view.__init__", must not import; one line each."""
    package = module.split(".")[1]
    for line, target in _imports(module, tree):
        parts = target.split(".")
        where = f"{module.replace('.', '/')}:{line} imports {target}"
        if parts[0] == "pyspark" and package not in MAY_IMPORT_PYSPARK:
            yield f"{where}: only {', '.join(sorted(MAY_IMPORT_PYSPARK))} may"
        if parts[0] == "sqlglot" and module != "hoodie.expressions.parser":
            yield f"{where}: take it from hoodie.expressions.parser"
        if parts[0] != "hoodie":
            continue
        if len(parts) == 1 or parts[1] not in FLOOR:
            yield f"{where}: the package root re-exports for users; import the module itself"
        elif parts[1] == "testing" and package != "testing":
            yield f"{where}: what tests need is for tests"
        elif parts[1] != package and FLOOR[parts[1]] >= FLOOR[package]:
            yield f"{where}: {package} stands below or beside {parts[1]}"


def circles(modules: Mapping[str, ast.Module]) -> list[set[str]]:
    """The sets of modules that reach each other by imports, wherever in a module these stand."""
    goes = {name: set(_targets(name, tree, modules)) - {name} for name, tree in modules.items()}
    reached = {name: _reached(name, goes) for name in goes}
    rings = {frozenset(b for b in reached[a] if a in reached[b]) for a in goes if a in reached[a]}
    return sorted((set(ring) for ring in rings), key=sorted)


def _reached(start: str, goes: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [*goes[start]]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += goes[name]
    return found


def _targets(name: str, tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    """The modules among those given that one imports: `from a.b import c` is a.b.c where that is a module."""
    for node in _nodes(tree):
        if isinstance(node, ast.ImportFrom):
            source = _absolute(name, node)
            names = [f"{source}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for found in names:
            at = found if found in modules else found.rpartition(".")[0]
            if at in modules:
                yield at


def _drawn(rings: Iterable[set[str]]) -> str:
    return "\n".join(" <-> ".join(sorted(ring)) for ring in rings)


def _imports(module: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all imports, wherever they stand; `from hoodie import x` is hoodie.x."""
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            if source == "hoodie":
                yield from ((node.lineno, f"hoodie.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, source
        elif isinstance(node, ast.Call) and _called(node) == "import_module":
            yield from ((node.lineno, arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))


@cache
def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Its imports, calls and functions, at whatever depth."""
    kinds = (ast.Import, ast.ImportFrom, ast.Call, ast.FunctionDef)
    return tuple(node for node in ast.walk(tree) if isinstance(node, kinds))


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    called = node.func
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    base = module.split(".")[: -node.level]
    return ".".join([*base, node.module] if node.module else base)


def _library() -> Iterator[tuple[str, ast.Module]]:
    """All modules but those that re-export public names from wherever they are."""
    for name, tree in _below(SOURCE / "hoodie"):
        if name not in ("__init__", "spark.__init__"):
            yield f"hoodie.{name}", tree


@cache
def _below(folder: Path) -> tuple[tuple[str, ast.Module], ...]:
    paths = sorted(folder.rglob("*.py"))
    names = (".".join(path.relative_to(folder).with_suffix("").parts) for path in paths)
    return tuple((name, ast.parse(path.read_text(), str(path))) for name, path in zip(names, paths, strict=True))


def _is_re_export(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets)
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__getattr__", "__dir__"}  # names that load on first use
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING" and all(map(_is_re_export, node.body))
    if isinstance(node, ast.Try):  # says what is missing
        return all(map(_is_re_export, node.body))
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_docstring or isinstance(node, (ast.Import, ast.ImportFrom))
