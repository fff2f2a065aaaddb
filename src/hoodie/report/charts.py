"""Pictures as inline SVG: bars, a histogram, a timeline. Colours come from the page's style, by class."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape

from hoodie.display.summary import bytes_text, cut
from hoodie.model.instant import Action, Instant, State, parse_time

_WIDTH = 960
#: Room for what the lines of columns stand for.
_AXIS = 76
#: Least width of a bar of something that is there.
_VISIBLE = 2


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: its size, its class in the style, and what is shown where the pointer is."""

    size: float
    style: str
    title: str


def stacked_bars(rows: Sequence[tuple[str, Sequence[Part]]], label: str) -> str:
    """Horizontal bars with their names and totals to the left, sizes in bytes.

    label  what the picture shows, for those who do not see it
    """
    greatest = max((sum(part.size for part in parts) for _, parts in rows), default=0) or 1
    height, name_end = 26, 20 + 7 * max((min(30, len(name)) for name, _ in rows), default=0)
    left_margin = name_end + 80  # the totals stand before the bars: a narrow screen shows the left part
    room = _WIDTH - left_margin
    drawn = []
    for number, (name, parts) in enumerate(rows):
        y, x = number * height, float(left_margin)
        drawn.append(f'<text class="name" x="{name_end}" y="{y + 17}" text-anchor="end">{escape(cut(name, 30))}</text>')
        for part in parts:
            width = part.size / greatest * room
            if part.size:
                drawn.append(_rectangle(x, y + 4, max(_VISIBLE, width), height - 8, part))
            x += max(_VISIBLE, width) if part.size else 0
        total = bytes_text(sum(part.size for part in parts))
        drawn.append(f'<text class="value" x="{left_margin - 10}" y="{y + 17}" text-anchor="end">{total}</text>')
    return _picture(len(rows) * height, label, drawn)


def one_bar(parts: Sequence[Part], label: str) -> str:
    """One bar over the whole width, cut into its parts."""
    total = sum(part.size for part in parts) or 1
    drawn, x = [], 0.0
    for part in parts:
        width = part.size / total * _WIDTH
        if part.size:
            drawn.append(_rectangle(x, 0, max(_VISIBLE, width - 2), 28, part))
        x += width
    return _picture(28, label, drawn, scrolls=False)


def columns(
    bars: Sequence[tuple[str, Part]],
    label: str,
    scale: Callable[[float], str],
    height: int = 150,
    *,
    whole: bool = False,
) -> str:
    """Columns side by side, each with its name beneath where there is room, over lines for the greatest value and half
    of it.

    scale  what a height stands for, as text
    whole  the values are whole numbers: there is no half of an odd one
    """
    greatest = max((part.size for _, part in bars), default=0) or 1
    step = min(64.0, (_WIDTH - _AXIS) / max(len(bars), 1))
    ground = height + 16
    marks = [greatest, greatest / 2, 0] if not whole or greatest % 2 == 0 else [greatest, 0]
    drawn = []
    for mark in marks:
        y = ground - mark / greatest * height
        drawn.append(f'<line class="{"grid" if mark else "axis"}" x1="{_AXIS}" x2="{_WIDTH}" y1="{y:g}" y2="{y:g}"/>')
        drawn.append(
            f'<text class="value" x="{_AXIS - 8}" y="{y + 4:g}" text-anchor="end">{escape(scale(mark))}</text>'
        )
    widest = max((len(name) for name, _ in bars), default=0)
    every = math.ceil((widest * 6.6 + 10) / step)  # so many columns a name needs
    for number, (name, part) in enumerate(bars):
        x = _AXIS + number * step
        tall = max(_VISIBLE, part.size / greatest * height) if part.size else 0
        drawn.append(_rectangle(x + 1, ground - tall, max(1.0, step - 3), tall, part))
        if number % every == 0:
            drawn.append(f'<text class="name" x="{x + 2:.1f}" y="{ground + 16}">{escape(name)}</text>')
    return _picture(ground + 22, label, drawn)


def timeline(instants: Sequence[Instant], as_of: str, label: str, services: Collection[str] = ()) -> str:
    """The instants over time, a lane for each action. Pending ones are hollow.

    services  times of the commits that compactions and clusterings completed
    """
    lanes = [action for action in Action if any(instant.action is action for instant in instants)]
    left_margin, lane = 120, 28
    times = [parse_time(instant.requested).timestamp() for instant in instants]
    start, end = min(times, default=0.0), max([*times, parse_time(as_of).timestamp()])
    span = (end - start) or 1.0
    drawn = []
    for number, action in enumerate(lanes):
        y = number * lane + lane / 2
        drawn.append(f'<text class="name" x="{left_margin - 16}" y="{y + 4}" text-anchor="end">{action}</text>')
        drawn.append(f'<line class="grid" x1="{left_margin}" x2="{_WIDTH - 10}" y1="{y}" y2="{y}"/>')
    for instant, time in zip(instants, times, strict=True):
        x = left_margin + 6 + (time - start) / span * (_WIDTH - left_margin - 22)
        y = lanes.index(instant.action) * lane + lane / 2
        completed = instant.state is State.COMPLETED
        status = "" if completed else f", {instant.state.name.lower()}"
        title = f"{instant.action} {instant_label(instant.requested)}{status}"
        lane_style = _LANES.get(instant.action, "service")
        merging = lane_style == "base" and instant.requested in services
        style = f"dot {'log' if merging else lane_style}{'' if completed else ' open'}"
        drawn.append(f'<circle class="{style}" cx="{x:.1f}" cy="{y}" r="5"><title>{title}</title></circle>')
    bottom = len(lanes) * lane
    drawn.append(
        f'<text class="value" x="{left_margin}" y="{bottom + 16}">{instant_label(instants[0].requested)}</text>'
    )
    drawn.append(
        f'<text class="value" x="{_WIDTH - 10}" y="{bottom + 16}" text-anchor="end">{instant_label(as_of)}</text>'
    )
    return _picture(bottom + 22, label, drawn)


def ticks(instants: Sequence[str]) -> list[str]:
    """Short names of moments, beneath columns: the time of the day, or of longer spans day and time."""
    days = {instant[:8] for instant in instants}
    return [instant_label(instant)[11:] if len(days) == 1 else instant_label(instant)[5:16] for instant in instants]


def instant_label(instant: str) -> str:
    """An instant time as people read it: 2024-01-31 12:00:00."""
    return f"{parse_time(instant):%Y-%m-%d %H:%M:%S}"


_LANES = {
    **dict.fromkeys((Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT), "base"),
    **dict.fromkeys((Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING), "log"),
    **dict.fromkeys((Action.ROLLBACK, Action.RESTORE), "bad"),
}


def _rectangle(x: float, y: float, width: float, height: float, part: Part) -> str:
    return (
        f'<rect class="{part.style}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2">'
        f"<title>{escape(part.title)}</title></rect>"
    )


def _picture(height: float, label: str, drawn: Sequence[str], *, scrolls: bool = True) -> str:
    """scrolls  on a narrow screen it keeps a width at which its text can be read"""
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{escape(label)}" '
        f'preserveAspectRatio="xMinYMin meet">{"".join(drawn)}</svg>'
    )
    return f'<div class="scroll">{svg}</div>' if scrolls else svg
