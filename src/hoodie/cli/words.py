"""The words of Hudi's command line, and older ones of this one, that are accepted beside those of the help."""

from __future__ import annotations

from collections.abc import Sequence

#: Words at the beginning of a command line -> the words that they stand for.
OTHER_WORDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("desc",): ("info",),
    ("show",): ("info",),
    ("doctor",): ("check",),
    ("commits", "show"): ("history",),
    ("commits", "showarchived"): ("history", "--archived"),
    ("commit", "rollback"): ("rollback",),
    ("timeline", "show", "active"): ("history", "--all"),
    ("timeline", "show", "incomplete"): ("history", "--pending"),
    ("cleans", "show"): ("history", "--action", "clean"),
    ("cleans", "run"): ("clean",),
    ("rollbacks", "show"): ("history", "--action", "rollback"),
    ("trigger", "archival"): ("archive",),
    ("show", "fsview", "latest"): ("files",),
    ("show", "fsview", "all"): ("files", "--all"),
    ("stats", "filesizes"): ("stats",),
    ("stats", "wa"): ("stats",),
    ("compactor",): ("compaction",),
    ("compact",): ("compaction",),
    ("compaction", "show"): ("compaction", "plan"),
    ("compactions", "show", "all"): ("compaction", "plan"),
    ("compactions", "show"): ("compaction", "plan"),
    ("savepoints", "show"): ("savepoint", "show"),
    ("savepoint", "rollback"): ("restore",),
}


def other_words(words: Sequence[str]) -> list[str]:
    """A command line in the words of the help."""
    for length in (3, 2, 1):
        replacement = OTHER_WORDS.get(tuple(words[:length]))
        if replacement is not None:
            return other_words([*replacement, *words[length:]])  # "compactor show": one word after the other
    return list(words)
