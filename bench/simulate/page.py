"""The tables and the picture of docs/scale.md."""

import math
import re
from collections.abc import Iterable, Sequence

from bench.simulate.formulae import Compared
from bench.simulate.large_batches import LIMIT, Case, Keys, Outcome
from bench.simulate.many_groups import Measured

Simulated = Sequence[tuple[Case, Outcome]]

_COLOURS = {Keys.UNIFORM: "#2f6fdb", Keys.RECENT: "#e08a1e", Keys.SKEWED: "#cf3d4d"}


def replace_part(page: str, name: str, text: str) -> str:
    """The page with what stands between the marks of a part replaced. Raises ValueError without such marks"""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no part <!-- {name} --> ... <!-- end -->")
    return pattern.sub(lambda match: match[1] + text + match[2], page)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """texts: columns that hold words, from the left; the others hold numbers"""
    rule = "|" + "|".join("---" if at < texts else "---:" for at in range(len(header))) + "|"
    return "\n".join(["| " + " | ".join(header) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def batches_table(simulated: Simulated) -> str:
    header = ("batch", "groups", "partitions", "keys", "index", "exchange", "tasks", "Spark tasks", "largest task")
    header = (*header, "its rows", "largest block", "files opened", "to each executor", "driver", "seconds")
    rows = (
        (
            size(case.bytes),
            f"{case.groups:,}",
            f"{case.partitions:,}",
            str(case.keys),
            f"{case.index}, {done.look_up}",
            done.exchange,
            f"{done.tasks:,}",
            f"{done.spark_tasks:,}",
            size(done.largest_partition),
            f"{done.largest_task:,}",
            size(done.largest_block) if done.largest_block else "none",
            f"{done.opened:,}",
            size(done.sent),
            size(done.memory) if done.memory >= 1e6 else "below 1 MB",
            f"{done.seconds:.1f}",
        )
        for case, done in simulated
    )
    return table(header, rows, texts=6)


def formulae_table(compared: Iterable[Compared]) -> str:
    header = ("write", "number", "by formula", "as it ran", "error")
    rows = ((c.case, c.what, f"{c.expected:,.0f}", f"{c.measured:,.0f}", f"{c.error:+.0%}") for c in compared)
    return table(header, rows, texts=2)


def groups_table(measured: Iterable[Measured]) -> str:
    header = ("call", "answer", "seconds", "requests", "memory")
    rows = ((m.name, m.answer, f"{m.seconds:.1f}", f"{m.requests:,}", size(m.memory)) for m in measured)
    return table(header, rows, texts=2)


def size(count: float) -> str:
    """Bytes as people say them, in powers of 1000."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} B"


# --- the picture ---

_LEFT, _WIDTH, _HEIGHT, _GAP = 76, 620, 220, 64


def picture(simulated: Simulated) -> str:
    """Largest block, and memory of the driver, over the bytes of the batch; both axes by powers of ten."""
    blocks = [(case.bytes, done.largest_block, case.keys) for case, done in simulated if done.largest_block]
    memory = [(case.bytes, max(done.memory, 1e6), case.keys) for case, done in simulated]
    drawn = [
        *_panel(0, "largest shuffle block of an upsert, by bytes of its batch", blocks, (1e5, 1e10), LIMIT),
        *_panel(1, "memory that planning takes on the driver, by bytes of the batch", memory, (1e6, 1e10), None),
    ]
    bottom = 2 * (_HEIGHT + _GAP)
    for number, (keys, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + number * 140
        drawn.append(f'<circle cx="{x}" cy="{bottom + 4}" r="5" fill="{colour}"/>')
        drawn.append(f'<text x="{x + 12}" y="{bottom + 8}">{keys}</text>')
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 16} {bottom + 20}" '
        'font-family="sans-serif" font-size="12" fill="#1f2328">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *drawn, "</svg>\n"])


def _panel(
    number: int,
    title: str,
    points: Iterable[tuple[float, float, Keys]],
    range_: tuple[float, float],
    limit: float | None,
) -> Iterable[str]:
    top = number * (_HEIGHT + _GAP) + 28
    low, high = (math.log10(bound) for bound in range_)

    def x(value: float) -> float:
        return _LEFT + (math.log10(value) - 9.8) / 3.2 * _WIDTH

    def y(value: float) -> float:
        return top + _HEIGHT - (min(max(math.log10(value), low), high) - low) / (high - low) * _HEIGHT

    yield f'<text x="{_LEFT}" y="{top - 10}" font-weight="bold">{title}</text>'
    for power in range(int(low), int(high) + 1):
        at = y(10**power)
        yield f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_LEFT + _WIDTH}" y2="{at:.1f}" stroke="#d0d7de"/>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{size(10**power)}</text>'
    for power in (10, 11, 12):
        yield f'<text x="{x(10**power):.1f}" y="{top + _HEIGHT + 18}" text-anchor="middle">{size(10**power)}</text>'
    if limit is not None:
        at = y(limit)
        yield f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_LEFT + _WIDTH}" y2="{at:.1f}" stroke="#cf3d4d"/>'
        yield f'<text x="{_LEFT + _WIDTH}" y="{at - 5:.1f}" text-anchor="end" fill="#cf3d4d">{size(limit)}</text>'
    for bytes_, value, keys in points:
        shift = (list(_COLOURS).index(keys) - 1) * 9
        yield (
            f'<circle cx="{x(bytes_) + shift:.1f}" cy="{y(value):.1f}" r="4" fill="{_COLOURS[keys]}" '
            f'fill-opacity="0.7"><title>{size(bytes_)}: {size(value)}</title></circle>'
        )
