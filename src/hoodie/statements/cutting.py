"""A statement's text by its tokens: keywords outside brackets, parts between commas, names. No part is written anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from hoodie.errors import StatementError
from hoodie.expressions.parser import SqlglotError, Token, TokenType, exp, parse, tokens_of
from hoodie.expressions.text import depths, plain_problem

_QUOTED = {
    *(TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.BYTE_STRING),
    *(TokenType.NATIONAL_STRING, TokenType.UNICODE_STRING),
}


#: A part of a statement, from and to, and what stands in its place.
Span = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Name:
    """A table as a statement names it.

    parts  ("hudi", "/data/trips") of hudi.`/data/trips`, ("trips",) or ("db", "trips")
    alias  what expressions call it; the last part of a plain name
    """

    parts: tuple[str, ...]
    alias: str

    def __str__(self) -> str:
        return ".".join(f"`{part}`" if not part.isidentifier() else part for part in self.parts)


class Text:
    """A piece of a statement with its tokens; positions in errors are those in the whole statement.

    types  whether < and > are brackets, as in `map<string, int>`
    """

    def __init__(self, whole: str, start: int, end: int, tokens: Sequence[Token], types: bool = False) -> None:
        self.whole, self.start, self.end, self.types = whole, start, end, types
        self.tokens = [token for token in tokens if start <= token.start and token.end < end]
        self.depths = _depths_in_types(self.tokens) if types else depths(self.tokens)

    @classmethod
    def of(cls, text: str) -> Text:
        """Raises StatementError on text that has no tokens: an open quote or comment."""
        try:
            return cls(text, 0, len(text), tokens_of(text))
        except SqlglotError as problem:
            raise StatementError(f"the statement cannot be read: {plain_problem(problem)}") from problem

    def __str__(self) -> str:
        return self.whole[self.start : self.end].strip()

    def __bool__(self) -> bool:
        return bool(self.tokens)

    def with_spans(self, spans: Iterable[Span]) -> str:
        """The text with others in place of some parts of it."""
        parts, at = [], self.start
        for start, end, other in sorted(spans):
            parts += [self.whole[at:start], other]
            at = end
        return "".join([*parts, self.whole[at : self.end]])

    def part(self, start: int, end: int) -> Text:
        return Text(self.whole, start, end, self.tokens, self.types)

    def of_types(self) -> Text:
        """The same piece, which has types of columns and no comparisons."""
        return Text(self.whole, self.start, self.end, self.tokens, types=True)

    def word(self, index: int) -> str:
        """The token at a place as a keyword, in capitals; "" past the end, and of what stands in quotes."""
        if not -len(self.tokens) <= index < len(self.tokens) or self.is_quoted(index):
            return ""
        return self.tokens[index].text.upper()

    def words(self, count: int) -> tuple[str, ...]:
        return tuple(self.word(index) for index in range(count))

    def is_about_index(self) -> bool:
        """Whether a statement makes, drops or refreshes an index."""
        return self.word(0) in ("CREATE", "DROP", "REFRESH") and self.word(1) == "INDEX"

    def find(self, *words: str, start: int = 0) -> int:
        """The place of the first of these keywords outside brackets; -1: there is none."""
        return next((index for index in self.every(*words) if index >= start), -1)

    def every(self, *words: str) -> list[int]:
        """The places of these keywords outside brackets. What stands behind a dot is a name."""
        places = [i for i, depth in enumerate(self.depths) if depth == 0 and self.word(i) in words]
        return [i for i in places if i == 0 or self.word(i - 1) != "."]

    def before(self, index: int) -> Text:
        """The part before a token."""
        return self.part(self.start, self.tokens[index].start)

    def after(self, index: int) -> Text:
        """The part behind a token."""
        return self.part(self.tokens[index].end + 1, self.end)

    def between(self, first: int, last: int) -> Text:
        """The part behind one token and before another; `last` may be past the end."""
        end = self.tokens[last].start if last < len(self.tokens) else self.end
        return self.part(self.tokens[first].end + 1, end)

    def split(self, separator: str = ",") -> Iterator[Text]:
        """The parts that commas outside brackets separate."""
        start = self.start
        for index in range(len(self.tokens)):
            if self.depths[index] == 0 and self.word(index) == separator:
                yield self.part(start, self.tokens[index].start)
                start = self.tokens[index].end + 1
        yield self.part(start, self.end)

    def inside(self, opens: int) -> tuple[Text, int]:
        """The part within the bracket at a place, and the place of the bracket that closes it."""
        for index in range(opens + 1, len(self.tokens)):
            if self.depths[index] == self.depths[opens] and self.word(index) == ")":
                return self.between(opens, index), index
        raise self.unreadable("a bracket is open", opens)

    def is_quoted(self, index: int) -> bool:
        """Whether a token is a name in backticks or a text."""
        return self.tokens[index].token_type in _QUOTED

    def name(self, index: int = 0) -> tuple[tuple[str, ...], int]:
        """The dotted name that begins at a place, and the place behind it."""
        parts = []
        while index < len(self.tokens):
            parts.append(self._identifier(index))
            if self.word(index + 1) != ".":
                return tuple(parts), index + 1
            index += 2
        raise self.unreadable("a name is missing", index - 1)

    def table(self) -> Name:
        """The whole piece as the name of a table with its alias."""
        parts, at = self.name()
        if self.word(at) == "AS":
            at += 1
        if at >= len(self.tokens):
            return Name(parts, "target" if "/" in parts[-1] else parts[-1])
        alias = self._identifier(at)
        if at + 1 < len(self.tokens):
            raise self.unreadable("unexpected text", at + 1)
        return Name(parts, alias)

    def unreadable(self, problem: str, index: int = 0) -> StatementError:
        """An error that names the place."""
        at = self.tokens[index].start if -len(self.tokens) <= index < len(self.tokens) else self.end
        line = self.whole.count("\n", 0, at) + 1
        column = at - (self.whole.rfind("\n", 0, at) + 1) + 1
        near = self.whole[at : at + 30].split("\n")[0]
        where = f" near {near!r}" if near else " at the end"
        return StatementError(f"line {line}, column {column}{where}: {problem}")

    def _identifier(self, index: int) -> str:
        token = self.tokens[index] if index < len(self.tokens) else None
        if token is None or not (token.text.replace("_", "a").isalnum() or self.is_quoted(index)):
            raise self.unreadable("expected a name", min(index, len(self.tokens) - 1))
        return token.text


def _depths_in_types(tokens: list[Token]) -> list[int]:
    """How many brackets each token is in, those of types among them."""
    levels, angles = [], 0
    for token, depth in zip(tokens, depths(tokens), strict=True):
        angles -= token.token_type is TokenType.GT
        levels.append(depth + angles)
        angles += token.token_type is TokenType.LT
    return levels


def single_statement(text: str) -> Text:
    """The one statement of a text, without a semicolon behind it. Raises StatementError on several."""
    whole = Text.of(text)
    parts = [part for part in whole.split(";") if part]
    if not parts:
        raise StatementError("there is no statement")
    if len(parts) > 1:
        raise parts[1].unreadable("one statement at a time")
    return parts[0]


def rest_of(text: Text) -> Text:
    """What stands behind the first word, cut into tokens: to sqlglot it is one token behind some words."""
    start = text.tokens[0].end + 1
    blank = re.sub("[^\n]", " ", text.whole[:start])  # places stay those in the whole statement
    return Text(text.whole, start, text.end, Text.of(f"{blank}{text.whole[start : text.end]}").tokens)


def says_identifier(text: Text) -> bool:
    """Whether a name in the statement is given by `IDENTIFIER(…)`."""
    return any(text.word(at) == "IDENTIFIER" and text.word(at + 1) == "(" for at in range(len(text.tokens)))


def with_plain_names(text: Text) -> Text:
    """The statement with the names that `IDENTIFIER('db.name')` says in its place."""
    spans = []
    for at, token in enumerate(text.tokens[:-3]):
        name, words = text.tokens[at + 2], (text.word(at), text.word(at + 1), text.word(at + 3))
        if words == ("IDENTIFIER", "(", ")") and name.token_type is TokenType.STRING:
            spans.append((token.start, text.tokens[at + 3].end + 1, name.text))
    return Text.of(text.with_spans(spans)) if spans else text


def with_whole_comments(text: Text) -> Text:
    """The statement with each comment in one text: Spark joins texts that follow each other. Raises StatementError"""
    whole = text.whole
    for at in range(1, len(text.tokens) - 2):
        if text.word(at) not in ("COMMENT", "IS"):
            continue
        run = list(takewhile(lambda token: token.token_type is TokenType.STRING, text.tokens[at + 1 :]))
        if len(run) > 1:
            quotes = {whole[token.start] for token in run}
            if len(quotes) > 1:
                raise text.unreadable("the texts of a comment stand in quotes of two kinds: take one", at + 1)
            quote, first, last = quotes.pop(), run[0].start, run[-1].end + 1
            joined = "".join(whole[token.start + 1 : token.end] for token in run)
            whole = whole[:first] + f"{quote}{joined}{quote}".ljust(last - first) + whole[last:]
    return text if whole == text.whole else Text.of(whole[: text.end])


def check_grammar(text: Text) -> exp.Expr:
    """The tree of a statement. Raises StatementError with the position where it cannot be read"""
    try:
        return parse(str(text))
    except SqlglotError as problem:
        errors = getattr(problem, "errors", None) or [{}]
        line, column = errors[0].get("line"), errors[0].get("col")
        where = f"line {line}, column {column}: " if line else ""
        raise StatementError(f"{where}{plain_problem(errors[0].get('description') or problem)}") from problem
