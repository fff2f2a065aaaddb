"""One upsert of up to 5 TB on paper, and a table of a million file groups: python -m bench.simulate.

Writes the tables and the picture of docs/scale.md (--docs), and prints them. It takes about half an hour, and four
gigabytes of memory and as many inodes as there are file groups.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.simulate.formulae import compare_all
from bench.simulate.large_batches import LIMIT, Case, IndexName, Keys, Outcome, simulate_apart
from bench.simulate.many_groups import Shape, make, measure_all
from bench.simulate.page import Simulated, batches_table, formulae_table, groups_table, picture, replace_part, size

DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
BATCHES = (1e10, 1e11, 1e12, 5e12)
#: File groups and partitions.
SHAPES = ((100, 1), (10_000, 1000), (1_000_000, 100_000), (10_000, 1), (1_000_000, 1))
#: Tables as large take a minute a plan: they meet the largest batch only.
_LARGE = 1_000_000
PARTS = ("batches", "formulae", "groups")


def cases(batches: Sequence[float], shapes: Sequence[tuple[int, int]]) -> Iterator[list[Case]]:
    """BLOOM with keys spread all ways, and for the largest batch the other indexes with random keys: those that one
    plan serves together."""
    for groups, partitions in shapes:
        for bytes_ in batches[-1:] if groups >= _LARGE else batches:
            for keys in Keys:
                case = Case(bytes_, groups, partitions, keys, IndexName.BLOOM)
                others = [index for index in IndexName if bytes_ == batches[-1] and keys is Keys.UNIFORM]
                one_plan = [replace(case, index=i) for i in others if i not in (IndexName.BLOOM, IndexName.BUCKET)]
                yield [case, *one_plan]
                if others:
                    yield [replace(case, index=IndexName.BUCKET)]


def simulated(batches: Sequence[float], shapes: Sequence[tuple[int, int]]) -> Iterator[Simulated]:
    """What there is after each shape."""
    outcomes: list[tuple[Case, Outcome]] = []
    for shape in shapes:
        for together in cases(batches, [shape]):
            outcomes += zip(together, simulate_apart(together), strict=True)
            print(".", end="", file=sys.stderr, flush=True)
        yield outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("bench.simulate", description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--docs", action="store_true", help=f"write the results into {DOCS.name}, and its picture")
    parser.add_argument("--groups", type=int, default=1_000_000, help="file groups of the table that is made")
    parser.add_argument("--partitions", type=int, default=10_000, help="its partitions")
    parser.add_argument("--table", type=Path, help="a table that was made before, in place of one made now")
    parser.add_argument("--most-groups", type=int, default=1_000_000, help="leave larger tables out of the batches")
    options = parser.parse_args(arguments)
    failed = False

    def show(name: str, text: str) -> None:
        print(f"\n{name}\n{text}")
        if options.docs:
            DOCS.write_text(replace_part(DOCS.read_text(), name, text))

    if "batches" in options.parts:
        for outcomes in simulated(BATCHES, [shape for shape in SHAPES if shape[0] <= options.most_groups]):
            largest = max(done.largest_block for _, done in outcomes)
            failed = largest >= LIMIT
            print(f"\nthe largest block is {size(largest)}, of at most {size(LIMIT)}", file=sys.stderr)
            show("batches", batches_table(outcomes))
            if options.docs:
                DOCS.with_name("scale.svg").write_text(picture(outcomes))
    if "formulae" in options.parts:
        show("formulae", formulae_table(compare_all()))
    if "groups" in options.parts:
        folder = options.table or Path(tempfile.mkdtemp(prefix="many-groups-"))
        try:
            if options.table is None:
                make(folder, Shape(options.groups, options.partitions))
            show("groups", groups_table(measure_all(folder)))
        finally:
            if options.table is None:
                shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
