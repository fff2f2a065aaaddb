"""Where the code knows a version of the format by its number. A new version is added there, and nowhere else."""

import re
from collections import Counter
from pathlib import Path

import hoodie

SOURCE = Path(hoodie.__file__).parent
#: Lines that compare the number of a version, by module.
KNOWN = {
    "config/table.py": 3,  # what can be read, and the version amid an upgrade
    "merge/payloads.py": 1,  # from which version on a merge mode decides
}
_COMPARED = re.compile(r"\bversion\b[^=\n]*?(==|!=|<=|>=|<|>)\s*(\d|NEWEST)|\d\s*<=\s*config\.version")


def test_only_these_lines_compare_the_number_of_a_version() -> None:
    lines: Counter[str] = Counter()
    for path in SOURCE.rglob("*.py"):
        for line in path.read_text().splitlines():
            code = re.sub(r"VERSIONS\[[^]]*\]\.\w+", "", line.partition("#")[0])
            about_tables = re.search(r"config\.version|table_version|int\(version\)", code)
            if about_tables and _COMPARED.search(code):
                lines[path.relative_to(SOURCE).as_posix()] += 1
    assert lines == KNOWN
