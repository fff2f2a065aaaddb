"""What users see of the package: its names, its version, its errors, and what an import costs."""

import ast
import functools
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie import errors
from hoodie.config.datasource import ALL_GROUPS
from hoodie.config.hudi_options import hudi_options
from hoodie.config.options import declared
from support.nightly import nightly
from tools.docs.errors_page import page, public

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "hoodie"

#: Errors that never leave the package: their callers answer with the result of the earlier write, or go on.
INTERNAL = {"BatchKnown", "ColumnsRefused"}


def run(source: str) -> str:
    """What a fresh Python prints that runs the source."""
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- names ---


def test_every_public_name_is_there() -> None:
    for name in hoodie.__all__:
        assert getattr(hoodie, name) is not None
    assert set(hoodie.__all__) <= set(dir(hoodie))
    assert hoodie.hudi.read is importlib.import_module("hoodie.api.datasource_read").read
    assert hoodie.spark.sql is importlib.import_module("hoodie.statements.run").sql
    assert set(hoodie.spark.__all__) <= set(dir(hoodie.spark))
    for module in (hoodie, hoodie.spark):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'upsert'"):
            module.upsert  # noqa: B018


def test_type_checkers_see_the_names_that_are_loaded_late() -> None:
    for module in (hoodie, hoodie.spark):
        tree = ast.parse(Path(str(module.__file__)).read_text())
        (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
        seen = {
            alias.name: f"{node.module}"
            for node in typed.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert seen == module.__homes__
        assert {*seen} == {*module.__all__} - {"__version__"}
        assert module.__all__ == sorted(module.__all__)


def test_no_module_has_the_name_of_a_public_function() -> None:
    """Importing such a module would put it in the place of the function."""
    assert {module.name for module in pkgutil.iter_modules([str(SOURCE)])} & set(hoodie.__all__) == {"hudi", "spark"}
    assert not {module.name for module in pkgutil.iter_modules([str(SOURCE / "spark")])} & set(hoodie.spark.__all__)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    try:
        assert hoodie.__version__ == metadata.version("hoodie")
        assert hoodie.__version__ == project["project"]["version"]
    except metadata.PackageNotFoundError:
        assert hoodie.__version__ == "0+unknown"


def test_the_package_says_that_it_is_typed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["hoodie"]
    assert (SOURCE / "py.typed").exists()


# --- signatures ---

#: What a call is about: these come by position, in this order. All else is given by name.
SUBJECTS = (
    *("session", "df", "keys", "path", "partitions", "operation", "instant", "result", "begin", "end", "app_name"),
    *("callback", "source", "condition", "values"),
)
#: Also by position: what the only argument of a call is about.
ALONE = {
    "schedule_compaction": ("extra_metadata",),
    "lock": ("name",),
    "metadata": ("partition",),
    "stream_upsert": ("name",),
    "register_table": ("name", "location"),
    "unregister_table": ("name",),
    "refresh_view": ("name",),
    "sql": ("text",),
    "update": ("where",),
    "upgrade": ("to",),
    "downgrade": ("to",),
}
#: The calls of those who bring the options of Hudi's jobs: here the options are part of the subject.
BY_OPTIONS = ("HoodieReadClient", "HoodieWriteClient", "read", "write")
#: Made by other calls only, or values that calls return.
VALUES = {"HoodieError", "HoodieWarning", "KeyedRows", "MergeBuilder", "Rows", "Scan", "WriteResult", "__version__"}
MODULES = {"hudi", "spark"}


def public_calls() -> dict[str, inspect.Signature]:
    """The signatures of all public functions and methods, without `self`, by their names after `hoodie.`"""
    found = {}
    values = {name: getattr(hoodie, name) for name in set(hoodie.__all__) - VALUES - MODULES}
    for module in (hoodie.hudi, hoodie.spark):
        values |= {name: getattr(module, name) for name in module.__all__}
    for name, value in values.items():
        found[name] = inspect.signature(value)
        for method, function in inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else ():
            if not method.startswith("_"):
                parameters = list(inspect.signature(function).parameters.values())[1:]
                found[f"{name}.{method}"] = inspect.Signature(parameters)
    return found


def test_the_subject_of_a_call_comes_by_position_and_all_else_by_name() -> None:
    calls = public_calls()
    assert {"HoodieTable.upsert", "HoodieWriteClient.commit", "HoodieReadClient.read", "open_table"} <= calls.keys()
    for call, signature in calls.items():
        assert not misplaced(call, signature), (call, signature)


def misplaced(call: str, signature: inspect.Signature) -> list[str]:
    """The parameters of a call that stand where the rule does not have them."""
    own = call.rpartition(".")[2]
    subject = [*SUBJECTS, *ALONE.get(own, ()), *(("options",) if own in BY_OPTIONS and call == own else ())]
    named = [name for name, one in signature.parameters.items() if one.kind is one.KEYWORD_ONLY]
    placed = [name for name, one in signature.parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    wrong = [name for name in placed if name not in subject]
    wrong += [name for name in named if name in subject and name not in ("partitions", "operation")]
    if placed != sorted(placed, key=lambda name: subject.index(name) if name in subject else -1):
        wrong += placed
    for last, name in enumerate(reversed([name for name in ("storage_options", "options") if name in named])):
        wrong += [name] if named[-1 - last] != name else []
    return wrong


def test_the_rule_of_signatures_can_be_broken() -> None:
    def positional(df, options=None): ...
    def not_last(df, *, options=None, dry_run=False): ...
    def by_name(path, *, begin): ...
    def other_order(path, session): ...

    for function in (positional, not_last, by_name, other_order):
        assert misplaced("table", inspect.signature(function)), function


def test_all_that_opens_a_table_takes_options_of_its_storage_and_all_that_reads_or_writes_options() -> None:
    calls = public_calls()
    openers = {call for call, signature in calls.items() if "path" in signature.parameters}
    assert openers == {
        *("HoodieReadClient", "HoodieTable", "HoodieWriteClient", "create_table", "open_table"),
        *("read", "write"),
    }
    for call in openers:
        assert {"storage_options", "options"} <= calls[call].parameters.keys(), call
    # The clients have the options that they were made with; these only list what the timeline or metadata table says.
    lists = {"HoodieTable.history", "HoodieTable.savepoints", "HoodieTable.metadata"}
    methods = {call for call in calls if call.startswith("HoodieTable.")} - lists
    assert not [call for call in methods if "options" not in calls[call].parameters]


# --- modules ---

#: What users import from. All else of the package is internal.
PUBLIC = (
    *("hoodie", "hoodie.errors", "hoodie.hudi", "hoodie.index", "hoodie.metrics", "hoodie.spark", "hoodie.storage"),
    "hoodie.testing",
)
#: Their names are those of packages, but they are for users.
LOGGERS = ("hoodie.index", "hoodie.locks", "hoodie.services", "hoodie.storage", "hoodie.write")
_IMPORT = re.compile(r"(?:from|import) (hoodie\b[\w.]*)")
_NAMED = re.compile(r"`(hoodie\.[a-z_]+)((?:\.\w+)*)[`(]")


def test_the_docs_send_no_user_to_an_internal_module() -> None:
    packages = {f"hoodie.{module.name}" for module in pkgutil.iter_modules([str(SOURCE)])}
    keys = {key for group in ALL_GROUPS for _, spec in declared(group) for key in spec.keys} | {*hudi_options()}
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        found += [(path.name, name) for name in _IMPORT.findall(text) if not name.startswith(PUBLIC[1:])]
        for module, rest in _NAMED.findall(text):
            option = any(key.startswith(module + rest) for key in keys) or module == "hoodie.table"  # a table property
            option = option or (path.name == "metrics.md" and module + rest in LOGGERS)
            found += [(path.name, module + rest)] if module in packages - {*PUBLIC} and not option else []
    assert not [(page, name) for page, name in found if name != "hoodie"]


def test_what_public_modules_offer_is_there() -> None:
    for name in PUBLIC:
        module = importlib.import_module(name)
        assert [one for one in getattr(module, "__all__", ()) if getattr(module, one, None) is None] == []


# --- what an import costs ---


def test_importing_the_package_loads_little_and_nothing_large() -> None:
    source = """
import sys
before = set(sys.modules)
import hoodie
print(*set(sys.modules) - before)
"""
    loaded = run(source).split()
    assert not {name.partition(".")[0] for name in loaded} & {"pyspark", "pandas", "pyarrow", "numpy", "fsspec"}
    assert [name for name in loaded if name.startswith("hoodie")] == ["hoodie"]
    assert len(loaded) < 60  # 0.03 s of processor time, and what it offers is imported when it is named


NEITHER = """
import importlib.abc, sys

class Without(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in {"pyspark", "pandas"}:
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Without())
import hoodie
"""


@pytest.mark.parametrize("name", ["mor_logs", nightly("v6_cow_simplekeygen")])
def test_an_arrow_table_is_read_where_neither_pyspark_nor_pandas_is_installed(name: str, fixture_table) -> None:
    path = fixture_table(name)
    read = f"print(hoodie.open_table({str(path)!r}).count())"
    assert int(run(f"{NEITHER}{read}")) == hoodie.open_table(str(path)).snapshot().to_arrow().num_rows > 0
    # Of the two PyArrow itself loads pandas, where it is installed, with the first value that it converts to its own.
    assert run(f"import sys, hoodie\n{read}\nprint('pyspark' in sys.modules)").split()[-1] == "False"


def test_a_small_read_does_not_wait_for_pandas(tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "t", record_key="id").upsert(
        pa.table({"id": [1, 2, 3], "city": ["a", "b", "b"], "fare": [1.5, 2.5, 3.25]})
    )
    reads = ["", "filters='id > 1'", "filters=\"city = 'b' and fare < 3.5\""]
    calls = "\n".join(
        f"print(len(hoodie.open_table({str(tmp_path / 't')!r}).snapshot({read}).to_arrow()))" for read in reads
    )
    assert run(f"import sys, hoodie\n{calls}\nprint('pandas' in sys.modules)").split() == ["3", "2", "2", "False"]


def test_only_pyarrow_and_pyspark_load_pandas() -> None:
    found = [f"{path}:{node.lineno}" for path, node in _nodes() if _imports(node, "pandas")]
    assert not found


# --- errors ---


def test_all_classes_are_errors_or_warnings() -> None:
    for name, found in vars(errors).items():
        if isinstance(found, type):
            assert issubclass(found, (errors.HoodieError, errors.HoodieWarning)), name


def test_errors_of_other_modules_are_none_of_the_public_tree() -> None:
    for path, _ in _nodes(ast.Module):
        if "testing" not in path.parts and path.name != "__main__.py" and path.parts[-2:] != ("hbase", "client.py"):
            module = ".".join(("hoodie", *path.relative_to(SOURCE).with_suffix("").parts))
            for name, found in vars(importlib.import_module(module.removesuffix(".__init__"))).items():
                if inspect.isclass(found) and issubclass(found, (errors.HoodieError, errors.HoodieWarning)):
                    assert found.__module__ == errors.__name__ or name in INTERNAL, (module, name)


def test_every_warning_is_of_the_tree() -> None:
    allowed = {found.__name__ for found in public() if issubclass(found, errors.HoodieWarning)}
    for path, node in _nodes(ast.Call):
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or ast.unparse(node.func) != "warnings.warn":
            continue
        warning, *category = node.args
        assert not category, (path, node.lineno)
        assert "category" not in {word.arg for word in node.keywords}, (path, node.lineno)
        # A variable holds what another function made: mypy knows it for a warning, as text needs a category.
        made = ast.unparse(warning.func) if isinstance(warning, ast.Call) else ""
        assert isinstance(warning, ast.Name) or made.rpartition(".")[2] in allowed, (path, node.lineno)


def test_one_filter_reaches_all_warnings_and_they_pickle() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.HoodieWarning)
        with pytest.raises(errors.DamagedLog):
            warnings.warn(errors.DamagedLog("a.log", 3, "cut short"), stacklevel=1)
    told = pickle.loads(pickle.dumps(errors.ServiceFailed("cleaning", "1", "no network")))
    assert str(told) == "1 is committed, but cleaning after it failed: no network"


def test_the_page_of_errors_draws_the_tree() -> None:
    """Else: python -m tools.docs.errors_page > docs/errors.md"""
    drawn = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert drawn == page()
    for found in public():
        assert f"| `{found.__name__}` |" in drawn


def _nodes(kind: type[ast.AST] = ast.stmt) -> Iterator[tuple[Path, ast.AST]]:
    return ((path, node) for path, tree in _trees() for node in ast.walk(tree) if isinstance(node, kind))


@functools.cache
def _trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in sorted(SOURCE.rglob("*.py"))]


def _imports(node: ast.AST, package: str) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] == package for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == package
