"""Options that Hudi knows and Hoodie does not use: which a job may have, and which are refused."""

import logging
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.driver_options import is_driver_option
from hoodie.config.hudi_options import (
    OptionClass,
    Purpose,
    as_sentences,
    decides_rows,
    find_option,
    misspelt,
    refused_value,
)
from hoodie.config.options import option, read_options
from hoodie.errors import InvalidOption, OptionIgnored, UnknownOptions

logger = logging.getLogger("hoodie.options")


class Unsupported(StrEnum):
    """What happens about an option that asks for something that would not happen."""

    ERROR = "error"
    WARN = "warn"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatOptions:
    """Options of Hudi that have no effect here."""

    unsupported: Unsupported = option(
        "hoodie.compat.unsupported",
        Unsupported.ERROR,
        "What happens about options of Hudi that ask for something that would not happen, such as clustering. error: "
        "the call fails and names them all; warn: it goes on without them and warns (`OptionIgnored`), but never "
        "without one that decides which rows or values are written or read. Hudi has no such option.",
    )


def without_unused(
    options: Mapping[str, str], declared: Collection[str], free: tuple[str, ...], purpose: Purpose
) -> dict[str, str]:
    """The options that have an effect. The others are named once: in a line of the log, a warning or an error.

    declared  names that groups of options have
    free      beginnings of names that are the user's own
    Raises    InvalidOption naming all misspelt options, and all that ask for something that would not happen. Warns
              UnknownOptions, once, of names that are like none of Hudi's
    """
    used: dict[str, str] = {}
    unused: list[str] = []
    unlike: list[str] = []
    slips: list[tuple[str, str]] = []
    refused: list[tuple[str, str]] = []
    about_rows: list[tuple[str, str]] = []
    for key, value in options.items():
        if key in declared:
            if (advice := refused_value(key, value)) is None:
                used[key] = value
            else:
                (about_rows if decides_rows(key, value) else refused).append((f"{key}={value!r}", advice))
        elif (free and key.startswith(free)) or is_driver_option(key):
            used[key] = value
        elif (option_of_hudi := find_option(key)) is None:
            if name := misspelt(key, declared):
                slips.append((key, name))
            else:
                unlike.append(key)
        elif option_of_hudi.is_refused(value, purpose):
            (about_rows if option_of_hudi.rows else refused).append((f"{key}={value!r}", option_of_hudi.advice))
        elif option_of_hudi.kind is OptionClass.USED:
            used[key] = value
        else:
            unused.append(key)
    warn = read_options(CompatOptions, used).unsupported is Unsupported.WARN
    if slips or about_rows or (refused and not warn):
        raise InvalidOption(_message(slips, [] if warn else refused, about_rows))
    if unlike:
        warnings.warn(UnknownOptions(*sorted(unlike)), stacklevel=2)
    if refused:
        warnings.warn(OptionIgnored(" ".join(as_sentences(refused))), stacklevel=2)
    if unused:
        logger.info("%d options have no effect here, and need none: %s", len(unused), ", ".join(sorted(unused)))
    return used


def _message(slips: list[tuple[str, str]], refused: list[tuple[str, str]], about_rows: list[tuple[str, str]]) -> str:
    """One sentence for one problem; several are a line each.

    slips       misspelt options, each with what is meant
    about_rows  options that decide about rows: no call goes on without them
    """
    parts = [f"unknown option {key!r}. Did you mean {name!r}?" for key, name in slips]
    advice = as_sentences([*refused, *about_rows])
    between, listed = ("\n", "\n  ") if len(slips) + len(advice) > 1 else (" ", " ")
    if advice:
        parts.append(listed.join(["Asked for, and would not happen:", *advice]))
    if refused:
        but = f", but not without {', '.join(shown for shown, _ in about_rows)}" if about_rows else ""
        parts.append(f"hoodie.compat.unsupported=warn goes on without{but}.")
    elif about_rows:
        parts.append("No call goes on without: rows would be others, whatever hoodie.compat.unsupported says.")
    return between.join(parts)
