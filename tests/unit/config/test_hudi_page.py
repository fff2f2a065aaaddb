"""docs/coming-from-hudi.md is what the list of Hudi's options says."""

import re
import subprocess
import sys
from pathlib import Path

from hoodie.config.hudi_options import OptionClass, hudi_options
from tools.docs import hudi_page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "coming-from-hudi.md"
ROW = re.compile(r"\| `(?P<key>[^`]+)` \| (?P<kind>[a-z ]+)(?:, \*rows\*)? \| (?P<accepted>.*?) \| (?P<advice>.*?) \|")


def test_the_committed_page_is_what_the_list_gives() -> None:
    advice = "run: python -m tools.docs.hudi_page > docs/coming-from-hudi.md"
    assert PAGE.read_text(encoding="utf-8") == hudi_page.page(), advice


def test_the_module_prints_the_page() -> None:
    command = [sys.executable, "-m", "tools.docs.hudi_page"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    assert printed == hudi_page.page()


def test_every_option_is_on_the_page_once_with_its_class() -> None:
    rows = [found for line in hudi_page.page().splitlines() if (found := ROW.fullmatch(line))]
    assert sorted(row["key"] for row in rows) == sorted(hudi_options())
    kinds = {row["key"]: OptionClass(row["kind"]) for row in rows}
    assert kinds["hoodie.index.type"] is OptionClass.USED
    assert kinds["hoodie.upsert.shuffle.parallelism"] is OptionClass.NO_EFFECT
    assert kinds["hoodie.clustering.inline"] is OptionClass.NOT_IN_WRITES
    assert kinds["hoodie.datasource.merge.type"] is OptionClass.NOT_IN_READS
