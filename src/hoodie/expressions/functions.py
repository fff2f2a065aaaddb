"""The functions of SQL expressions by their names: how many arguments they take, and the term that they make."""

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

from hoodie.errors import InvalidInput
from hoodie.expressions import kinds, nested, numbers, patterns, texts, times
from hoodie.expressions.casts import cast
from hoodie.expressions.compare import comparison
from hoodie.expressions.duck import by_duckdb
from hoodie.expressions.kinds import BIGINT, BOOL, DATE, DOUBLE, INT, NULL, TEXT, TIMESTAMP
from hoodie.expressions.terms import NOTHING, Term, computed, elementwise, first_of, literal
from hoodie.schema.types import spark_name

Terms = Sequence[Term]


class Function(NamedTuple):
    least: int
    most: int
    make: Callable[[Terms], Term | None]


def call(name: str, of: Terms) -> Term:
    """A function of some terms. Raises InvalidInput where it is not known, or takes no such arguments"""
    function = FUNCTIONS.get(name)
    if function is None:
        raise InvalidInput(f"the function {name} is not known without Spark; known are {', '.join(sorted(FUNCTIONS))}")
    term = function.make(of) if function.least <= len(of) <= function.most else None
    if term is None:
        raise InvalidInput(f"{name} takes no arguments of types ({', '.join(spark_name(one.kind) for one in of)})")
    return term


def common_terms(of: Terms, what: str) -> tuple[list[Term], pa.DataType]:
    """Terms in their common type. Raises InvalidInput where they have none"""
    kind: pa.DataType | None = NULL
    for term in of:
        kind = None if kind is None else kinds.common_kind(kind, term.kind)
    if kind is None:
        raise InvalidInput(f"{what}: there is no type for {', '.join(spark_name(term.kind) for term in of)}")
    return [cast(term, kind) for term in of], kind


def choice(choices: Sequence[tuple[Term | None, Term]], otherwise: Term, what: str) -> Term:
    """A CASE."""
    values, kind = common_terms([*(value for _, value in choices), otherwise], what)
    conditions = [condition for condition, _ in choices]
    every = [*values, *(condition for condition in conditions if condition is not None)]
    columns = frozenset[Any]().union(*(term.columns for term in every))
    run = first_of(list(zip(conditions, values[:-1], strict=True)), values[-1])
    return Term(kind, run, columns, any(term.fails for term in every))


def _coalesce(of: Terms) -> Term:
    return choice([(None, term) for term in of[:-1]], of[-1], "coalesce")


def _nullif(of: Terms) -> Term:
    return choice([(comparison("=", *of), Term(NULL, lambda block: pa.scalar(None)))], of[0], "nullif")


def _if(of: Terms) -> Term | None:
    return choice([(cast(of[0], BOOL), of[1])], of[2], "if") if of[0].kind in (BOOL, NULL) else None


def _on_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of times and truth values as numbers: Arrow has none of times with a zone, nor of truth values."""

    def run(*values: pa.Array) -> pa.Array:
        kind = values[0].type
        if not arrow.is_timestamp(kind) and kind != BOOL:
            return function(*values)
        return function(*(value.cast(pa.int8() if kind == BOOL else BIGINT) for value in values)).cast(kind)

    return run


def _extreme(greatest: bool) -> Callable[[Terms], Term | None]:
    def make(of: Terms) -> Term | None:
        terms, kind = common_terms(of, "greatest" if greatest else "least")
        if kind != TEXT and any(kinds.is_text_kind(term.kind) for term in of):
            return None
        if kind == NULL:
            return terms[0]
        function = pc.max_element_wise if greatest else pc.min_element_wise
        if not kinds.is_float(kind):
            return computed(kind, elementwise(_on_numbers(function)), *terms)
        limit = pa.scalar(float("inf")).cast(kind)

        def run(*values: pa.Array) -> pa.Array:  # NaN is greater than infinity
            nan_masks = [pc.coalesce(pc.is_nan(value), pa.scalar(False)) for value in values]
            nan = pa.scalar(float("nan")).cast(kind)
            if greatest:
                extreme = function(
                    *(pc.if_else(is_nan, limit, value) for is_nan, value in zip(nan_masks, values, strict=True))
                )
                return pc.if_else(reduce(pc.or_, nan_masks), nan, extreme)
            none = pa.scalar(None, kind)
            extreme = function(
                *(pc.if_else(is_nan, none, value) for is_nan, value in zip(nan_masks, values, strict=True))
            )
            return pc.if_else(pc.and_(extreme.is_null(), reduce(pc.or_, nan_masks)), nan, extreme)

        return computed(kind, elementwise(run), *terms)

    return make


def _text(
    make: Callable[..., Term | None], *rest: pa.DataType, of_bytes: bool = True
) -> Callable[[Terms], Term | None]:
    """A function whose first argument is text, and the others of some types.

    of_bytes  Spark takes bytes for the text they are; else it gives bytes, which is not done here
    """

    def typed(of: Terms) -> Term | None:
        if arrow.is_binary(of[0].kind) and not of_bytes:
            return None
        if kinds.common_kind(of[0].kind, TEXT) is None or arrow.is_nested(of[0].kind):
            return None
        kinds_of_terms = (TEXT, *rest)
        return make(
            *(cast(term, kind) if term.kind != kind else term for term, kind in zip(of, kinds_of_terms, strict=False))
        )

    return typed


def _double(kernel: Callable[..., Any]) -> Callable[[Terms], Term | None]:
    def make(of: Terms) -> Term | None:
        if not all(kinds.common_kind(term.kind, DOUBLE) is not None for term in of):
            return None
        return computed(DOUBLE, kernel, *(cast(term, DOUBLE) for term in of))

    return make


def _number(make: Callable[[Term], Term]) -> Callable[[Terms], Term | None]:
    def typed(of: Terms) -> Term | None:
        term = cast(of[0], DOUBLE) if of[0].kind in (TEXT, NULL) else of[0]
        return make(term) if kinds.is_number(term.kind) else None

    return typed


def _round(of: Terms) -> Term | None:
    places = literal(0, INT) if len(of) == 1 else of[1]
    digits = places.run(NOTHING).as_py() if kinds.is_integer(places.kind) and not places.columns else None
    return None if digits is None else _number(lambda term: numbers.rounded(term, digits))(of[:1])


def _replace(text: Term, search: Term, by: Term | None = None) -> Term:
    by = by or literal("", TEXT)
    if isinstance(search.literal, str) and isinstance(by.literal, str):
        if not search.literal:
            return text
        return computed(TEXT, lambda v: pc.replace_substring(v, search.literal, by.literal), text)
    sql = "CASE WHEN $2 = '' THEN $1 ELSE replace($1, $2, $3) END"
    return by_duckdb("replace", TEXT, sql, text, search, by)


def _padded(on_left: bool) -> Callable[..., Term]:
    def make(text: Term, width: Term, fill: Term | None = None) -> Term:
        fill = fill or literal(" ", TEXT)
        if isinstance(width.literal, int) and isinstance(fill.literal, str):
            return texts.padded(text, width.literal, fill.literal, on_left)
        word = "lpad" if on_left else "rpad"
        nothing, cut = "$2 <= 0 THEN substring($1, 1, 0)", "$3 = '' THEN substring($1, 1, $2)"
        sql = f"CASE WHEN {nothing} WHEN {cut} ELSE {word}($1, $2, $3) END"
        return by_duckdb(word, TEXT, sql, text, width, fill)

    return make


def _repeat(text: Term, times_: Term) -> Term:
    return by_duckdb("repeat", TEXT, "CASE WHEN $2 <= 0 THEN substring($1, 1, 0) ELSE repeat($1, $2) END", text, times_)


def _place(text: Term, part: Term) -> Term:
    return by_duckdb("instr", INT, "instr($1, $2)", text, part)


def _trimmed(kernel: Callable[..., Any], word: str) -> Callable[[Terms], Term | None]:
    """A function that trims text; the first of two arguments has the characters that are trimmed off the second."""

    def make(text: Term, characters: Term) -> Term:
        if isinstance(characters.literal, str):
            return computed(TEXT, lambda values: kernel(values, characters=characters.literal), text)
        return by_duckdb(word, TEXT, f"{word}($1, $2)", text, characters)

    return lambda of: _text(make, TEXT)([of[-1], literal(" ", TEXT) if len(of) == 1 else of[0]])


def _text_test(kernel: Callable[..., Any], word: str) -> Callable[..., Term]:
    def make(text: Term, part: Term) -> Term:
        if isinstance(part.literal, str):
            return computed(BOOL, lambda values: kernel(values, part.literal), text)
        return by_duckdb(word, BOOL, f"{word}($1, $2)", text, part)

    return make


def _left(text: Term, count: Term) -> Term:
    if isinstance(count.literal, int) and count.literal <= 0:
        return texts.substring(text, literal(1, INT), literal(0, INT))
    return texts.substring(text, literal(1, INT), count)


def _right(text: Term, count: Term) -> Term:
    if not isinstance(count.literal, int):
        return by_duckdb(
            "right", TEXT, "CASE WHEN $2 <= 0 THEN substring($1, 1, 0) ELSE right($1, $2) END", text, count
        )
    if count.literal <= 0:
        return texts.substring(text, literal(1, INT), literal(0, INT))
    return texts.substring(text, literal(-count.literal, INT))


def _length(of: Terms) -> Term | None:
    """Characters of text, and bytes of bytes."""
    return computed(INT, pc.binary_length, of[0]) if arrow.is_binary(of[0].kind) else _text(texts.length)(of)


def _joined_by(of: Terms) -> Term | None:
    if any(arrow.is_nested(term.kind) for term in of):
        return None
    return texts.joined_by(cast(of[0], TEXT), [cast(term, TEXT) for term in of[1:]])


def _concat(of: Terms) -> Term | None:
    if any(arrow.is_nested(term.kind) or arrow.is_binary(term.kind) for term in of):
        return None
    return texts.concatenated([cast(term, TEXT) for term in of])


def _days(sign: int) -> Callable[[Terms], Term | None]:
    def make(of: Terms) -> Term | None:
        day = of[0] if arrow.is_date(of[0].kind) else cast(of[0], DATE) if _is_timely(of[0]) else None
        return None if day is None else times.plus_days(day, of[1], sign)

    return make


def _is_timely(term: Term) -> bool:
    return kinds.is_time(term.kind) or term.kind in (TEXT, NULL)


def _between_days(of: Terms) -> Term | None:
    return times.days_between(*of) if all(map(_is_timely, of)) else None


def _trunc(of: Terms) -> Term | None:
    unit = of[1].literal
    return times.cut_down(of[0], unit, DATE) if isinstance(unit, str) and _is_timely(of[0]) else None


def _date_trunc(of: Terms) -> Term | None:
    unit = of[0].literal
    return times.cut_down(of[1], unit, TIMESTAMP) if isinstance(unit, str) and _is_timely(of[1]) else None


def _date_part(of: Terms) -> Term | None:
    name = of[0].literal
    if of[0].kind == NULL:
        return cast(of[0], DOUBLE)
    value = cast(of[1], DATE) if of[1].kind == NULL else of[1]
    return times.extracted(name.lower(), value) if isinstance(name, str) else None


def _part(name: str) -> Callable[[Terms], Term | None]:
    return lambda of: times.part(name, cast(of[0], DATE) if of[0].kind == NULL else of[0])


def _time_from(kind: pa.DataType) -> Callable[[Terms], Term | None]:
    """`to_date` and `to_timestamp`, whose second argument is a format of text."""

    def make(of: Terms) -> Term | None:
        time = of[0] if len(of) == 1 or kinds.is_time(of[0].kind) else patterns.parsed_time(cast(of[0], TEXT), of[1])
        return None if time is None or not _is_timely(time) else cast(time, kind)

    return make


def _number_of(unit: int) -> Callable[[Terms], Term | None]:
    """`unix_seconds` and its like: how many of so many microseconds lie before a time."""
    return lambda of: times.units(of[0], unit) if arrow.is_timestamp(of[0].kind) else None


def _time_of(unit: int) -> Callable[[Terms], Term | None]:
    return lambda of: times.of_units(cast(of[0], BIGINT), unit) if kinds.is_integer(of[0].kind) else None


def _digest(algorithm: str) -> Function:
    return Function(
        1, 1, _text(_text_to(lambda text: hashlib.new(algorithm, text.encode()).hexdigest()), of_bytes=False)
    )


def _text_to(function: Callable[..., Any], kind: pa.DataType = TEXT) -> Callable[..., Term | None]:
    return lambda *of: patterns.of_constants(kind, function, *of)


def _sha2(text: str, bits: int) -> str | None:
    return hashlib.new(f"sha{bits or 256}", text.encode()).hexdigest() if bits in (0, 224, 256, 384, 512) else None


def _isnull(of: Terms) -> Term:
    return computed(BOOL, lambda value: pc.is_null(value), of[0])


def _isnan(of: Terms) -> Term | None:
    if kinds.common_kind(of[0].kind, DOUBLE) is None:
        return None
    return computed(BOOL, lambda value: pc.coalesce(pc.is_nan(value), pa.scalar(False)), cast(of[0], DOUBLE))


def _nanvl(of: Terms) -> Term | None:
    if any(term.kind == BOOL for term in of):
        return None
    terms = common_terms([term if kinds.is_float(term.kind) else cast(term, DOUBLE) for term in of], "nanvl")[0]
    is_nan = _isnan(terms)
    return None if is_nan is None else choice([(is_nan, terms[1])], terms[0], "nanvl")


def _tried(op: str) -> Callable[[Terms], Term | None]:
    """Arithmetic that is null where the divisor is zero."""

    def make(of: Terms) -> Term | None:
        term = numbers.arithmetic(op, *of)
        if term is None:
            return None
        return choice([(comparison("=", of[1], literal(0, INT)), Term(NULL, lambda block: pa.scalar(None)))], term, op)

    return make


def _of_bytes(kind: pa.DataType, function: Callable[[bytes], Any]) -> Callable[[Terms], Term | None]:
    """A function of bytes, or of the bytes of a text."""

    def value(content: str | bytes) -> Any:
        return function(content.encode() if isinstance(content, str) else content)

    return lambda of: patterns.of_constants(kind, value, of[0]) if _has_bytes(of[0].kind) else None


def _has_bytes(kind: pa.DataType) -> bool:
    return bool(kind == TEXT or arrow.is_binary(kind))


def _of_64_bits(form: str) -> Callable[[Terms], Term | None]:
    """The digits of a whole number, of which a negative one has 64 bits."""
    return lambda of: (
        patterns.of_constants(TEXT, lambda number: format(number % 2**64, form), of[0])
        if kinds.is_integer(of[0].kind)
        else None
    )


def _hex(of: Terms) -> Term | None:
    return (_of_bytes(TEXT, lambda content: content.hex().upper()) if _has_bytes(of[0].kind) else _of_64_bits("X"))(of)


def _array(of: Terms) -> Term:
    return nested.make_list(*common_terms(of, "array")) if of else literal([], pa.list_(NULL))


def _map(of: Terms) -> Term | None:
    if len(of) % 2:
        return None
    return nested.make_map(*common_terms(of[::2], "map"), common_terms(of[1::2], "map")[0])


def _named_struct(of: Terms) -> Term | None:
    names = [term.literal for term in of[::2]]
    fits = len(of) % 2 == 0 and all(isinstance(name, str) for name in names)
    return nested.make_struct(names, of[1::2]) if fits else None


def _make_date(of: Terms) -> Term | None:
    fits = all(kinds.is_integer(term.kind) for term in of)
    return computed(DATE, times.make_date, *(cast(term, INT) for term in of), fails=True) if fits else None


def _months_between(of: Terms) -> Term | None:
    rounded = literal(True, BOOL) if len(of) == 2 else of[2]
    fits = all(map(_is_timely, of[:2])) and isinstance(rounded.literal, bool)
    return times.months_between(of[0], of[1], rounded.literal) if fits else None


def _from_unixtime(of: Terms) -> Term | None:
    time = _time_of(1_000_000)(of)
    return None if time is None else patterns.formatted(time, [*of, _LONG_FORMAT][1])


def _unix_timestamp(of: Terms) -> Term | None:
    time = of[0] if kinds.is_time(of[0].kind) else _time_from(TIMESTAMP)([*of, _LONG_FORMAT][:2])
    return None if time is None else times.unix_timestamp(time)


def _negated(make: Callable[[Terms], Term]) -> Callable[[Terms], Term]:
    return lambda of: computed(BOOL, pc.invert, make(of))


def _sign(term: Term) -> Term:
    if kinds.is_decimal(term.kind):
        return cast(computed(pa.int8(), lambda value: pc.sign(value).cast(pa.int8()), term), DOUBLE)
    return computed(DOUBLE, lambda value: pc.if_else(pc.equal(value, 0.0), value, pc.sign(value)), cast(term, DOUBLE))


_PAIR = (TEXT, TEXT)
_LONG_FORMAT = literal("yyyy-MM-dd HH:mm:ss", TEXT)
_LOGARITHMS = {"ln": pc.ln, "log10": pc.log10, "log2": pc.log2}
_SUBUNITS = {"seconds": 1_000_000, "millis": 1_000, "micros": 1}
FUNCTIONS: Mapping[str, Function] = {
    "coalesce": Function(1, 99, _coalesce),
    **dict.fromkeys(("nvl", "ifnull"), Function(2, 2, _coalesce)),
    "nvl2": Function(3, 3, lambda of: choice([(_negated(_isnull)(of[:1]), of[1])], of[2], "nvl2")),
    "nullif": Function(2, 2, _nullif),
    "if": Function(3, 3, _if),
    "greatest": Function(2, 99, _extreme(True)),
    "least": Function(2, 99, _extreme(False)),
    "isnull": Function(1, 1, _isnull),
    "isnotnull": Function(1, 1, _negated(_isnull)),
    "isnan": Function(1, 1, _isnan),
    "nanvl": Function(2, 2, _nanvl),
    "typeof": Function(1, 1, lambda of: literal(spark_name(of[0].kind), TEXT)),
    "array": Function(0, 99, _array),
    "map": Function(2, 99, _map),
    "named_struct": Function(2, 99, _named_struct),
    "positive": Function(1, 1, _number(lambda term: replace(term, literal=None))),
    "abs": Function(1, 1, _number(numbers.absolute_value)),
    **dict.fromkeys(("sign", "signum"), Function(1, 1, _number(_sign))),
    "round": Function(1, 2, _round),
    "floor": Function(1, 1, _number(lambda term: numbers.floored(term, False))),
    **dict.fromkeys(("ceil", "ceiling"), Function(1, 1, _number(lambda term: numbers.floored(term, True)))),
    "sqrt": Function(1, 1, _double(pc.sqrt)),
    "exp": Function(1, 1, _double(pc.exp)),
    **{name: Function(1, 1, _double(numbers.logarithm(kernel))) for name, kernel in _LOGARITHMS.items()},
    "log": Function(1, 2, lambda of: _double(numbers.logarithm_of_base if of[1:] else numbers.logarithm(pc.ln))(of)),
    **dict.fromkeys(("pow", "power"), Function(2, 2, _double(numbers.power))),
    **dict.fromkeys(("size", "cardinality"), Function(1, 1, lambda of: nested.size(*of))),
    "array_size": Function(1, 1, lambda of: nested.size(*of, of_maps=False)),
    "array_contains": Function(2, 2, lambda of: nested.contains(*of)),
    "element_at": Function(2, 2, lambda of: nested.element_at(*of)),
    "mod": Function(2, 2, lambda of: numbers.arithmetic("%", *of)),
    "try_divide": Function(2, 2, _tried("/")),
    "try_mod": Function(2, 2, _tried("%")),
    "hex": Function(1, 1, _hex),
    "bin": Function(1, 1, _of_64_bits("b")),
    "pmod": Function(2, 2, lambda of: numbers.arithmetic("pmod", *of)),
    **dict.fromkeys(("upper", "ucase"), Function(1, 1, _text(texts.upper))),
    **dict.fromkeys(("lower", "lcase"), Function(1, 1, _text(texts.lower))),
    **dict.fromkeys(("length", "char_length", "character_length", "len"), Function(1, 1, _length)),
    "trim": Function(1, 2, _trimmed(pc.utf8_trim, "trim")),
    "ltrim": Function(1, 2, _trimmed(pc.utf8_ltrim, "ltrim")),
    "rtrim": Function(1, 2, _trimmed(pc.utf8_rtrim, "rtrim")),
    "btrim": Function(1, 2, lambda of: _trimmed(pc.utf8_trim, "trim")(of[::-1])),
    **dict.fromkeys(("substring", "substr"), Function(2, 3, _text(texts.substring, INT, INT, of_bytes=False))),
    "left": Function(2, 2, _text(_left, INT, of_bytes=False)),
    "right": Function(2, 2, _text(_right, INT)),
    "replace": Function(2, 3, _text(_replace, *_PAIR)),
    "lpad": Function(2, 3, _text(_padded(True), INT, TEXT, of_bytes=False)),
    "rpad": Function(2, 3, _text(_padded(False), INT, TEXT, of_bytes=False)),
    "repeat": Function(2, 2, _text(_repeat, INT)),
    "reverse": Function(1, 1, _text(lambda text: computed(TEXT, pc.utf8_reverse, text))),
    "instr": Function(2, 2, _text(_place, TEXT)),
    **dict.fromkeys(
        ("locate", "position"),
        Function(
            2,
            3,
            lambda of: _text(_place if len(of) == 2 else _text_to(patterns.place_from, INT), TEXT, INT)(
                [of[1], of[0], *of[2:]]
            ),
        ),
    ),
    "initcap": Function(1, 1, _text(_text_to(texts.capitalized))),
    "translate": Function(3, 3, _text(_text_to(patterns.translated), *_PAIR)),
    "split": Function(2, 2, _text(patterns.split, TEXT)),
    "split_part": Function(3, 3, _text(_text_to(patterns.part_of), TEXT, INT)),
    "substring_index": Function(3, 3, _text(_text_to(patterns.up_to_separator), TEXT, INT)),
    "regexp_replace": Function(3, 3, _text(patterns.replaced, *_PAIR)),
    "regexp_extract": Function(2, 3, lambda of: _text(patterns.extracted_group, TEXT, INT)([*of, literal(1, INT)][:3])),
    **{name: _digest(name) for name in ("md5", "sha1")},
    "crc32": Function(1, 1, _of_bytes(BIGINT, zlib.crc32)),
    "sha2": Function(2, 2, _text(_text_to(_sha2), INT, of_bytes=False)),
    "startswith": Function(2, 2, _text(_text_test(pc.starts_with, "starts_with"), TEXT)),
    "endswith": Function(2, 2, _text(_text_test(pc.ends_with, "ends_with"), TEXT)),
    "contains": Function(2, 2, _text(_text_test(pc.match_substring, "contains"), TEXT)),
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), Function(2, 2, _text(texts.matches, TEXT))),
    "concat": Function(1, 99, _concat),
    "concat_ws": Function(1, 99, _joined_by),
    "date_add": Function(2, 2, _days(1)),
    "date_sub": Function(2, 2, _days(-1)),
    **dict.fromkeys(("datediff", "date_diff"), Function(2, 2, _between_days)),
    "add_months": Function(2, 2, lambda of: times.add_months(cast(of[0], DATE), of[1]) if _is_timely(of[0]) else None),
    "last_day": Function(1, 1, lambda of: times.last_day(*of) if _is_timely(of[0]) else None),
    "next_day": Function(2, 2, lambda of: patterns.next_day(*of) if _is_timely(of[0]) else None),
    "months_between": Function(2, 3, _months_between),
    "make_date": Function(3, 3, _make_date),
    "from_unixtime": Function(1, 2, _from_unixtime),
    "trunc": Function(2, 2, _trunc),
    **dict.fromkeys(("date_part", "datepart"), Function(2, 2, _date_part)),
    "date_trunc": Function(2, 2, _date_trunc),
    "date_format": Function(2, 2, lambda of: patterns.formatted(*of) if _is_timely(of[0]) else None),
    **{name: Function(1, 2, _time_from(kind)) for name, kind in (("to_date", DATE), ("to_timestamp", TIMESTAMP))},
    **{name: Function(1, 1, _time_from(kind)) for name, kind in (("date", DATE), ("timestamp", TIMESTAMP))},
    **{f"unix_{name}": Function(1, 1, _number_of(micros)) for name, micros in _SUBUNITS.items()},
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), Function(1, 2, _unix_timestamp)),
    **{f"timestamp_{name}": Function(1, 1, _time_of(micros)) for name, micros in _SUBUNITS.items()},
    **{name: Function(1, 1, _part(name)) for name in times.PARTS if name != "week"},
    **{
        name: Function(1, 1, lambda of, kind=kind: replace(cast(of[0], kind), literal=None))  # type: ignore[misc]
        for name, kind in {"int": INT, "bigint": BIGINT, "double": DOUBLE, "string": TEXT, "boolean": BOOL}.items()
    },
}
