"""Options of what people see while a call runs."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.config.options import option


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """What is shown in a terminal or a notebook."""

    progress: bool = option(
        "hoodie.console.progress",
        True,
        "A call of more than two seconds says on standard error how far it is; writes and compactions show a bar in "
        "terminals and notebooks that have the package tqdm. Not an option of Hudi.",
    )
