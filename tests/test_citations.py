"""What code and docs cite is there: pages of `docs` with the sections named, modules and functions in pages of the
design, and the vectors that tests pin the code by.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "docs", "bench", "torture", "demo")
VECTORS = ROOT / "tests" / "vectors"
VECTORS_PAGE = (VECTORS / "README.md").read_text(encoding="utf-8")

# docs/format/log-files.md 1, 4 and 6
CITED = re.compile(r"docs/(?P<page>[\w./-]+\.md)(?P<sections>(?:(?:,| and)? \d+(?:\.\d+)*(?![\w-]))*)")
SECTION = re.compile(r"\d+(?:\.\d+)*")
HEADING = re.compile(r"^#+ (\d+(?:\.\d+)*)\.? ", re.MULTILINE)
ITEM = re.compile(r"^(\d+)\. ", re.MULTILINE)  # of a page that is one numbered list


def sources(*suffixes: str) -> Iterator[Path]:
    for folder in FOLDERS:
        for suffix in suffixes:
            yield from sorted((ROOT / folder).rglob(f"*{suffix}"))


def problems(text: str, root: Path = ROOT) -> Iterator[str]:
    """Pages and sections that a text cites and that are not there."""
    for found in CITED.finditer(text):
        page = root / "docs" / found["page"]
        if not page.is_file():
            yield f"docs/{found['page']}: no such page"
            continue
        content = page.read_text(encoding="utf-8")
        sections = HEADING.findall(content) or ITEM.findall(content)
        for section in SECTION.findall(found["sections"]):
            if section not in sections:
                yield f"docs/{found['page']} has no section {section}"


def test_every_page_and_section_that_is_cited_is_there() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path in sources(".py", ".md")
        if path != Path(__file__)
        for problem in problems(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_the_format_is_cited_where_it_is() -> None:
    assert sum("docs/format/" in path.read_text(encoding="utf-8") for path in sources(".py")) > 40
    old = re.compile(r"(?<![\w/])spec/[\w-]+\.md")
    assert not [path for path in sources(".py", ".md") if old.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Source: docs/format/a.md 1 and 2.1.", []),
        ("Source: docs/format/a.md 2.1, 1 (HoodieTable), docs/format/a.md 1.", []),
        ("docs/format/a.md 1; docs/format/a.md 3", ["docs/format/a.md has no section 3"]),
        ("docs/format/a.md 1, 2, 3 and 4", [f"docs/format/a.md has no section {n}" for n in (3, 4)]),
        ("docs/format/b.md 1", ["docs/format/b.md: no such page"]),
        ("docs/format/a.md 2 (20 rows)", []),
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text: str, expected: list[str], tmp_path: Path) -> None:
    page = tmp_path / "docs" / "format" / "a.md"
    page.parent.mkdir(parents=True)
    page.write_text("# Title\n\n## 1. One\n\n3. an item\n\n## 2. Two\n\n### 2.1 More\n")
    assert list(problems(text, tmp_path)) == expected


# --- docs/design ---

LIBRARY = ROOT / "src" / "hoodie"
# `writing/run.py`, `lookup/batch.locate`, `reading/scan_plan.py: plan_read`, `hoodie.plan.conflict`
CODE = re.compile(r"`((?:hoodie\.|[a-z_]+/)[\w/.]*)(?:: (\w+))?`")
OPTIONS = {option for path in LIBRARY.rglob("*.py") for option in re.findall(r'"(hoodie\.[\w.]+)"', path.read_text())}


def missing_code(text: str) -> Iterator[str]:
    """Modules of the library, and names in them, that a page has and the library has not."""
    for found in CODE.finditer(text):
        name = found[1].removeprefix("hoodie.").removesuffix(".py").rstrip("/")
        parts = [*re.split("[/.]", name), *filter(None, [found[2]])]
        if found[1] in OPTIONS or not (LIBRARY / parts[0]).is_dir():
            continue
        place = LIBRARY
        while parts and (place / parts[0]).is_dir():
            place /= parts.pop(0)
        module = (
            place / f"{parts.pop(0)}.py" if parts and (place / f"{parts[0]}.py").is_file() else place / "__init__.py"
        )
        nodes = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if not {getattr(node, "name", getattr(node, "id", "")) for node in nodes}.issuperset(parts):
            yield found[0]


def test_what_pages_of_the_design_name_is_in_the_library() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "docs" / "design").glob("*.md"))
        for name in missing_code(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_a_module_or_a_function_that_is_not_there_is_found() -> None:
    there = "`writing/run.py` `lookup/batch.locate` `reading/scan_plan.py: plan_read` `hoodie.plan.conflict` `merge/`"
    gone = [
        "`writing/runs.py`",
        "`lookup/batch.placed`",
        "`reading/scan_plan.py: plan_reads`",
        "`hoodie.plan.conflicts`",
    ]
    assert list(missing_code(f"{there} `hoodie.index.type` `tests/x.py` {' '.join(gone)}")) == gone


# --- tests/vectors/README.md ---

# | `log_scan.json` | what it pins | `tests/unit/merge/test_log_scan.py` |
ROWS = dict(re.findall(r"^\| `([\w./-]+\.json)` \|.*\| ([^|]+) \|$", VECTORS_PAGE, re.MULTILINE))


def test_every_vector_file_is_described() -> None:
    assert set(ROWS) == {path.relative_to(VECTORS).as_posix() for path in VECTORS.rglob("*.json")}


@pytest.mark.parametrize("name", ROWS)
def test_the_tests_of_a_vector_file_are_those_that_read_it(name: str) -> None:
    reading = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if f'"{name}"' in path.read_text(encoding="utf-8")
    }
    assert set(re.findall(r"`(tests/[\w./-]+\.py)`", ROWS[name])) == reading
    assert reading or "not used" in ROWS[name]
