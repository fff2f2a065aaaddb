"""The page of what Hudi reads otherwise, from the cases that were run.

python -m support.differences_page > ../docs/differences-from-hudi.md     in tests/
"""

from __future__ import annotations

from support.engine_cases import CASES, Difference

_PAGE = """# Differences from Hudi

<!-- Generated in tests/: python -m support.differences_page > ../docs/differences-from-hudi.md -->

`make engines` compares {cases} small tables of Hoodie with what Hudi 0.15.0 and 1.2.0 (Spark 3.5) read of them:
snapshot, read-optimized, incremental, as of an instant. It names every view whose rows differ, and fails when one of
them becomes the same. Options and defaults that differ: [coming from Hudi](coming-from-hudi.md).

## On purpose

| table | views | Hudi | Hoodie | why |
|---|---|---|---|---|
{meant}

## Faults of Hudi's readers

They show on tables that Hudi 0.15 itself wrote, too; those of 1.x were not asked for there.

| table | releases, views | Hudi | Hoodie | way round |
|---|---|---|---|---|
{faults}
"""


def page() -> str:
    differences = list(dict.fromkeys(d for case in CASES.values() for d in case.differences))
    return _PAGE.format(
        cases=len(CASES),
        meant="\n".join(_row(d, ", ".join(d.views)) for d in differences if not d.fault),
        faults="\n".join(_row(d, f"{_releases(d)}: {', '.join(d.views)}") for d in differences if d.fault),
    )


def _row(difference: Difference, where: str) -> str:
    return f"| {difference.table} | {where} | {difference.theirs} | {difference.ours} | {difference.way} |"


def _releases(difference: Difference) -> str:
    return ", ".join(f"{release}x" if release.endswith(".") else release for release in difference.releases)


if __name__ == "__main__":
    print(page(), end="")
