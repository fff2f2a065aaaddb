"""The tables of figures in Markdown."""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from bench.spark_peers.engines import ENGINES
from bench.spark_peers.parts import PARTS, UPSERTS, Step
from bench.spark_peers.run import Outcome

OURS = "hoodie"
MB = 10**6


def page(n: int, outcomes: Sequence[Outcome]) -> str:
    """CPU, bytes, commits, and what went wrong; a table without a figure is left out."""
    versions = {one.engine: one.spark for one in outcomes}
    engines = [name for name in ENGINES if name in versions]
    steps = [step for part in PARTS.values() for step in part.steps]
    rounds = 1 + max(one.number for one in outcomes)
    spark = "; ".join(f"{ENGINES[name].title} on Spark {versions[name]}" for name in engines)
    texts = [
        f"{n:,} rows, {rounds} round{'s' if rounds > 1 else ''}, two cores. {spark}.",
        _table(
            "CPU, ours ÷ its",
            engines,
            [step for step in steps if len(step.batches) <= UPSERTS],
            partial(_cpu, outcomes),
        ),
        _table("MB written", engines, [step for step in steps if step.writes], partial(_written, outcomes)),
        _commits(outcomes, engines, [step for step in steps if len(step.batches) > UPSERTS]),
        "\n".join(f"- {one.step}, {ENGINES[one.engine].title}: {one.problem}" for one in outcomes if one.problem)
        or "The rows of each engine were DuckDB's after each step.",
    ]
    return "\n\n".join(text for text in texts if text)


def _of(outcomes: Sequence[Outcome], step: str, engine: str) -> list[Outcome]:
    return [one for one in outcomes if (one.step, one.engine) == (step, engine)]


def _cpu(outcomes: Sequence[Outcome], step: Step, engine: str) -> str:
    """Seconds of ours; of another what ours takes for one of its."""
    theirs, ours = _of(outcomes, step.name, engine), _of(outcomes, step.name, OURS)
    if not theirs:
        return ""
    if wrong := _wrong(theirs):
        return wrong
    seconds = median(one.cpu for one in theirs)
    if engine == OURS or not ours or _wrong(ours):
        return f"{seconds:.2f} s"
    return f"{median(one.cpu for one in ours) / max(seconds, 0.01):.2f}"


def _written(outcomes: Sequence[Outcome], step: Step, engine: str) -> str:
    own = _of(outcomes, step.name, engine)
    if not own:
        return ""
    return _wrong(own) or f"{median(one.written for one in own) / MB:.1f}"


def _wrong(outcomes: Sequence[Outcome]) -> str:
    problems = [one.problem for one in outcomes if one.problem]
    return ("rows differ" if problems[0].startswith("rows differ") else "failed") if problems else ""


def _table(what: str, engines: Sequence[str], steps: Sequence[Step], cell: Callable[[Step, str], str]) -> str:
    lines = []
    for step in steps:
        cells = [cell(step, engine) for engine in engines]
        if any(cells):
            lines.append(f"| {step.name} | {' | '.join(cells)} |")
    if not lines:
        return ""
    titles = [ENGINES[name].title for name in engines]
    return "\n".join([f"| {what} | {' | '.join(titles)} |", "|---" * (len(engines) + 1) + "|", *lines])


def _commits(outcomes: Sequence[Outcome], engines: Sequence[str], steps: Sequence[Step]) -> str:
    """Each call of a step on its own: medians of the first and of the last fifth."""
    lines = []
    for step in steps:
        for name in engines:
            for one in _of(outcomes, step.name, name):
                if not one.problem:
                    wall, cpu = ([call[at] for call in one.calls] for at in (0, 1))
                    ends = [f"{end:.2f}" for values in (cpu, wall) for end in fifths(values)]
                    growth = fifths(cpu)[1] / max(fifths(cpu)[0], 0.01)
                    lines.append(f"| {ENGINES[name].title} | {' | '.join(ends)} | {growth:.2f} |")
    if not lines:
        return ""
    titles = ("CPU s, first fifth", "last fifth", "latency s, first fifth", "last fifth", "CPU, last ÷ first")
    return "\n".join([f"| a commit of ten rows | {' | '.join(titles)} |", "|---" * 6 + "|", *lines])


def fifths(values: Sequence[float]) -> tuple[float, float]:
    """The medians of the first and of the last fifth."""
    size = max(1, len(values) // 5)
    return median(values[:size]), median(values[-size:])
