"""Text functions as Spark has them, and patterns of LIKE and RLIKE."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import InvalidInput
from hoodie.expressions.duck import by_duckdb
from hoodie.expressions.kinds import BOOL, INT, TEXT
from hoodie.expressions.terms import Term, by_distinct, computed, elementwise


def like(text: Term, pattern: Term, *, escape: str = "\\", any_case: bool = False) -> Term:
    """LIKE, and ILIKE, which is LIKE of both sides in lower case."""
    if any_case:
        lowered = lower(pattern)
        if pattern.literal is not None:
            lowered = replace(lowered, literal=pattern.literal.lower())
        return like(lower(text), lowered, escape=escape)
    if pattern.literal is not None and escape not in pattern.literal and "\\" not in pattern.literal:
        return computed(BOOL, lambda values: pc.match_like(values, pattern.literal), text)  # fast for 'begins%'
    if pattern.literal is not None:
        regex = like_regex(pattern.literal, escape)
        return computed(BOOL, lambda values: pc.match_substring_regex(values, regex), text)

    def matches(value: str, like_pattern: str) -> bool:
        python_regex = like_regex(like_pattern, escape).removesuffix("\\z") + "\\Z"
        return bool(re.search(python_regex, value))

    def run(values: pa.Array, patterns: pa.Array) -> pa.Array:
        pairs = zip(values.to_pylist(), patterns.to_pylist(), strict=True)
        return pa.array([None if None in pair else matches(*pair) for pair in pairs], BOOL)

    return computed(BOOL, elementwise(run), text, pattern, fails=True)


def like_regex(pattern: str, escape: str) -> str:
    """A regular expression that finds what a pattern of LIKE matches. Raises InvalidInput on an escape of nothing"""
    parts, at = [], 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            if at == len(pattern) or pattern[at] not in ("_", "%", escape):
                raise InvalidInput(
                    f"the pattern {pattern!r} has an escape {escape!r} that stands before no %, _ or itself"
                )
            parts.append(_quoted(pattern[at]))
        else:
            parts.append({"%": ".*", "_": "."}.get(char, _quoted(char)))
        at += 1
    return f"(?s)^{''.join(parts)}\\z"


def _quoted(char: str) -> str:
    return char if char.isalnum() or char == "_" or ord(char) > 127 else f"\\{char}" if char > " " else char


def matches(text: Term, pattern: Term) -> Term | None:
    """RLIKE; None: its pattern is no constant."""
    if not isinstance(pattern.literal, str):
        return None
    regex = java_regex(pattern.literal)
    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as problem:
        raise InvalidInput(f"the regular expression {pattern.literal!r} cannot be read: {problem}") from problem
    return computed(BOOL, lambda values: pc.match_substring_regex(values, regex), text)


def upper(text: Term) -> Term:
    return computed(TEXT, elementwise(_cased(pc.ascii_upper, str.upper)), text)


def lower(text: Term) -> Term:
    return computed(TEXT, elementwise(_cased(pc.ascii_lower, str.lower)), text)


def _cased(kernel: Callable[[pa.Array], pa.Array], function: Callable[[str], str]) -> Callable[[pa.Array], pa.Array]:
    """Letters in another case, also those that become several, as ß does: Arrow's kernels leave these alone."""

    def run(values: pa.Array) -> pa.Array:
        other = pc.fill_null(pc.invert(pc.string_is_ascii(values)), False)
        if not pc.any(other).as_py():
            return kernel(values)
        return pc.replace_with_mask(kernel(values), other, by_distinct(values.filter(other), TEXT, function))

    return run


def substring(text: Term, start: Term, length: Term | None = None) -> Term:
    """`substring`: places count from 1, negative ones from the end."""
    if not isinstance(start.literal, int) or not (length is None or isinstance(length.literal, int)):
        end = "2147483647" if length is None else "$3::BIGINT"
        begin = "CASE WHEN $2 > 0 THEN $2::BIGINT - 1 WHEN $2 < 0 THEN length($1) + $2::BIGINT ELSE 0 END"
        unknown = f"$1 IS NULL OR {end} IS NULL OR $2 IS NULL"
        sql = (
            f"CASE WHEN {unknown} THEN NULL WHEN {end} <= 0 OR {begin} + {end} <= 0 THEN '' "
            f"ELSE substring($1, greatest({begin}, 0) + 1, least({begin}, 0) + {end}) END"
        )
        return by_duckdb("substring", TEXT, sql, text, start, *([] if length is None else [length]))
    first, count = start.literal, None if length is None else length.literal

    def run(values: pa.Array) -> pa.Array:
        if first >= 0:
            begin = max(first - 1, 0)
            end = None if count is None else begin + max(count, 0)
            return pc.utf8_slice_codeunits(values, begin, end) if end is None or end > begin else _empty(values)
        if count is not None and count <= 0:
            return _empty(values)
        # A place before the first: of the length so much is lost.
        lengths = pc.utf8_length(values)
        short = pc.less(lengths, -first)
        whole_ = pc.utf8_slice_codeunits(values, first, None if count is None or first + count >= 0 else first + count)
        if count is None:
            return pc.if_else(short, values, whole_)
        return _cut_front(values, lengths, short, whole_, first, count)

    return computed(TEXT, elementwise(run), text)


def _cut_front(
    values: pa.Array, lengths: pa.Array, short: pa.Array, whole_: pa.Array, first: int, count: int
) -> pa.Array:
    texts = pc.if_else(short, values, whole_)
    for length in pc.unique(lengths.filter(pc.fill_null(short, False))).to_pylist():
        end = length + first + count
        cut = pc.utf8_slice_codeunits(values, 0, end) if end > 0 else _empty(values)
        texts = pc.if_else(pc.and_(short, pc.equal(lengths, length)), cut, texts)
    return texts


def _empty(values: pa.Array) -> pa.Array:
    return pc.if_else(values.is_null(), pa.scalar(None, TEXT), pa.scalar("", TEXT))


def padded(text: Term, width: int, fill: str, on_left: bool) -> Term:
    """`lpad` and `rpad`, which cut what is longer."""
    if width <= 0:
        return computed(TEXT, elementwise(_empty), text)

    def run(values: pa.Array) -> pa.Array:
        if not fill:
            return pc.utf8_slice_codeunits(values, 0, width)
        filling = (fill * width)[:width]
        missing = pc.subtract(width, pc.utf8_length(values))
        texts = values
        for count in pc.unique(missing.filter(pc.fill_null(pc.greater(missing, 0), False))).to_pylist():
            parts = [filling[:count], values] if on_left else [values, filling[:count]]
            texts = pc.if_else(pc.equal(missing, count), pc.binary_join_element_wise(*parts, ""), texts)
        return pc.utf8_slice_codeunits(texts, 0, width)

    return computed(TEXT, elementwise(run), text)


def concatenated(texts: Sequence[Term]) -> Term:
    """`concat` and ||: null where one is."""
    return computed(TEXT, lambda *values: pc.binary_join_element_wise(*values, pa.scalar("", TEXT)), *texts)


def joined_by(separator: Term, texts: Sequence[Term]) -> Term:
    """`concat_ws`: nulls are left out."""

    def run(between: pa.Array, *values: pa.Array) -> pa.Array:
        joined = pa.nulls(len(between), TEXT)
        for value in values:  # Arrow's own way to skip nulls leaves out rows that have nothing else
            joined = pc.coalesce(pc.binary_join_element_wise(joined, value, between), joined, value)
        return pc.if_else(between.is_null(), pa.scalar(None, TEXT), pc.coalesce(joined, pa.scalar("", TEXT)))

    return computed(TEXT, elementwise(run), separator, *texts)


def capitalized(text: str) -> str:
    """`initcap`: the first letter of each word, which spaces part."""
    return " ".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in text.split(" "))


def length(text: Term) -> Term:
    return computed(INT, pc.utf8_length, text)


_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-[a-zA-Z]*)?[:)]")
_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?|.", re.S)
#: Java's white space has the vertical tab.
_OUTSIDE = {r"\s": r"[\s\x0b]", r"\S": r"[^\s\x0b]"}
#: What ends a line in Java: a dot matches none of these, and the end of a text may stand before one. By token: the flag
#: that says something else, and what is meant.
_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_LINES = {".": ("s", f"[^{_ENDS}]"), "$": ("m", rf"(?:(?:\r\n|[{_ENDS}])?\z)")}


def java_regex(
    pattern: str, lines: Mapping[str, tuple[str, str]] = _LINES, outside: Mapping[str, str] = _OUTSIDE
) -> str:
    """A regular expression of Java's, as RLIKE has it, as one that means the same to Arrow. Raises InvalidInput on what
    Arrow takes for something else

    lines, outside  what tokens become outside of classes: `_LINES` and `_OUTSIDE` for Arrow
    """
    flags = "".join(_FLAGS.findall(pattern))
    if "U" in flags or ("i" in flags and not pattern.isascii()):
        raise _refusal(pattern, "flags that Java reads in another way")
    parts: list[str] = []
    in_class = False
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if token == r"\v":
            raise _refusal(pattern, r"the class \v")
        if in_class:
            if token.startswith("[") or (token == "&" and pattern.startswith("&", match.end())):
                raise _refusal(pattern, "a class within a class")
            in_class = token != "]"
        elif token.startswith("["):
            in_class = True
        else:
            token = outside.get(token, token)
            flag, meant = lines.get(token, ("", token))
            token = token if flag and flag in flags else meant
        parts.append(token)
    return "".join(parts)


def _refusal(pattern: str, what: str) -> InvalidInput:
    return InvalidInput(f"the regular expression {pattern!r} has {what}, which needs Spark: write it in another way")
