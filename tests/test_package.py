"""What is published: the files of the wheel, and a README whose links hold on a package index."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.compute as pc
import pytest

ROOT = Path(__file__).parents[1]
IMAGE = re.compile(r"!\[[^]]*\]\(([^)\s]+)\)")
LINK = re.compile(r"(?<!!)\[[^]]+\]\(([^)\s]+)\)")


def test_arrow_is_one_that_makes_whole_arrays_of_slices() -> None:
    """Before release 24 `if_else` with a null makes broken texts of a slice: keys are made so."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (least,) = [int(match[1]) for text in project["dependencies"] if (match := re.match(r"pyarrow>=(\d+)", text))]
    assert least >= 24
    texts = pa.array(["a", "b", "c"], pa.large_string()).slice(1, 1)
    made = pc.if_else(pc.equal(texts, ""), None, texts)
    made.validate(full=True)
    assert made.to_pylist() == ["b"]


@pytest.fixture(scope="module")
def setup_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_script", ROOT / "setup.py")
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of a copy of the repository, built without a network."""
    copy = tmp_path_factory.mktemp("package")
    for name in ("README.md", "LICENSE", "NOTICE", "MANIFEST.in", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", build, "dist"], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = (copy / "dist").glob("*.whl")
    return zipfile.ZipFile(built)


def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def test_the_wheel_holds_all_of_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "hoodie").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_the_wheel_holds_license_and_notice(wheel: zipfile.ZipFile, name: str) -> None:
    (path,) = (path for path in wheel.namelist() if path.endswith(f"/{name}"))
    assert wheel.read(path) == (ROOT / name).read_bytes()
    assert name in (metadata(wheel).get_all("License-File") or [])


def test_the_readme_of_the_wheel_has_no_link_that_needs_the_repository(wheel: zipfile.ZipFile) -> None:
    found = metadata(wheel)
    assert found["License-Expression"] == "Apache-2.0"
    assert found["Description-Content-Type"] == "text/markdown"
    readme = str(found.get_payload(decode=True), "utf-8")  # type: ignore[arg-type]
    assert "# Hoodie" in readme
    assert "`docs/features.md`" in readme
    assert all(link.startswith(("https://", "#")) for link in [*LINK.findall(readme), *IMAGE.findall(readme)])


def test_a_link_of_the_readme_leads_to_the_page_of_the_site(setup_script: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    site = "https://docs.example/hoodie/"
    links = [link.removeprefix(site) for link in LINK.findall(setup_script.for_index(readme, site)) if site in link]
    assert len(links) == sum("://" not in link for link in LINK.findall(readme))
    root_pages = {
        "changes.html": "CHANGELOG.md",
        "contributing.html": "CONTRIBUTING.md",
        "security.html": "SECURITY.md",
    }
    for link in links:
        page = link.partition("#")[0]
        name = f"docs/{page.replace('index.html', 'README.md').replace('.html', '.md')}"
        assert (ROOT / root_pages.get(page, name)).is_file(), link


def test_links_of_the_readme_that_hold_anywhere_stay(setup_script: ModuleType) -> None:
    text = "[a](https://a.example) [b](docs/concepts.md#c) ![d](docs/d.svg) [e](#e)"
    nowhere = "[a](https://a.example) b (`docs/concepts.md`) *d* (`docs/d.svg`) [e](#e)"
    assert setup_script.for_index(text, None) == nowhere
    site = "https://s.example"
    published = setup_script.for_index(text, site).split()
    assert published[1:3] == ["[b](https://s.example/concepts.html#c)", "![d](https://s.example/d.svg)"]
