"""A line chart as SVG, with no more than a report needs: axes, a legend, a few lines."""

import math
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 760, 220, 64, 28, 34
_COLOURS = ("#1f6feb", "#bf3989", "#1a7f37", "#9a6700")


def chart(panels: Mapping[str, Sequence[float]], below: str) -> str:
    """Panels one above the other, each a line over the same x axis.

    panels  title -> values, one for each whole number from 1 on
    below   what the x axis is
    """
    inner = _HEIGHT - _TOP - _GAP
    parts = []
    for number, (title, values) in enumerate(panels.items()):
        top = number * _HEIGHT + _TOP
        highest = _round_up(max(values))
        colour = _COLOURS[number % len(_COLOURS)]
        parts.append(f'<text x="{_LEFT}" y="{top - 10}" font-weight="bold">{escape(title)}</text>')
        for share in (0.0, 0.5, 1.0):
            y = top + inner * (1 - share)
            parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH}" y2="{y:.1f}" stroke="#d0d7de"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{highest * share:g}</text>')
        step = (_WIDTH - _LEFT) / max(1, len(values) - 1)
        points = " ".join(
            f"{_LEFT + i * step:.1f},{top + inner * (1 - value / highest):.1f}" for i, value in enumerate(values)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1"/>')
        parts.append(f'<text x="{_LEFT}" y="{top + inner + 16}">1</text>')
        parts.append(
            f'<text x="{_WIDTH}" y="{top + inner + 16}" text-anchor="end">{len(values)} {escape(below)}</text>'
        )
    height = _HEIGHT * len(panels)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 16} {height}" '
        'font-family="sans-serif" font-size="12" fill="#1f2328">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
    )


def _round_up(value: float) -> float:
    """The next number of one digit: 1, 2, ... 9, 10, 20, ..."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / unit) * unit
