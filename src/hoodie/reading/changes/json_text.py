"""Arrow values as JSON text, a column at a time."""

import base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as arrow

#: Control characters, which a JSON string cannot hold as they are.
_ESCAPES = {chr(code): f"\\u{code:04x}" for code in range(32)} | {
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def json_text(values: pa.Array) -> pa.Array:
    """Each value as JSON; null stays null, but within a value it is the word.

    returns  string[n]. Structs are objects in the order of their fields, maps objects, lists arrays. Numbers and
             decimals are numbers, what is no finite number is text; dates and times are ISO text, those with a zone in
             UTC; bytes are base64
    """
    return pc.if_else(pc.is_valid(values), _text(values), pa.scalar(None, pa.large_string())).cast(pa.string())


def _text(values: pa.Array) -> pa.Array:
    """large_string[n] without nulls."""
    kind = values.type
    if arrow.is_dictionary(kind):
        return _text(values.dictionary_decode())
    if arrow.is_struct(kind):
        texts = _struct(values)
    elif arrow.is_map(kind):
        texts = _map(values)
    elif arrow.is_list(kind) or arrow.is_large_list(kind):
        texts = _joined(values, _text(values.flatten()), "[", "]")
    elif arrow.is_floating(kind):
        texts = _float(values)
    elif arrow.is_boolean(kind) or arrow.is_integer(kind) or arrow.is_decimal(kind):
        texts = values.cast(pa.large_string())
    else:
        texts = _quoted(_as_text(values))
    return pc.fill_null(texts, "null") if texts.null_count else texts


def _as_text(values: pa.Array) -> pa.Array:
    """Values that JSON has no form for, and text."""
    kind = values.type
    if arrow.is_binary(kind) or arrow.is_large_binary(kind) or arrow.is_fixed_size_binary(kind):
        texts = [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
        return pa.array(texts, pa.large_string())
    text = values.cast(pa.large_string())
    return pc.replace_substring(text, " ", "T", max_replacements=1) if arrow.is_timestamp(kind) else text


def _quoted(text: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(text, r'[\x00-\x1f"\\]')).as_py():
        text = pc.replace_substring(text, "\\", "\\\\")
        text = pc.replace_substring(text, '"', '\\"')
        if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
            for character, escape in _ESCAPES.items():
                text = pc.replace_substring(text, character, escape)
    return _concat('"', text, '"')


def _float(values: pa.Array) -> pa.Array:
    """The fewest digits that tell the number, with a point or an exponent, as Java has it between 1e-3 and 1e7."""
    text = values.cast(pa.large_string())
    text = pc.if_else(pc.match_substring_regex(text, r"^-?\d+$"), _concat(text, ".0"), text)
    if pc.all(pc.is_finite(values)).as_py() is False:
        named = pc.if_else(pc.is_nan(values), "NaN", pc.if_else(pc.greater(values, 0), "Infinity", "-Infinity"))
        text = pc.if_else(pc.is_finite(values), text, _quoted(named.cast(pa.large_string())))
    return text


def _struct(values: pa.StructArray) -> pa.Array:
    if not values.type.num_fields:
        return pa.repeat(pa.scalar("{}", pa.large_string()), len(values))
    parts: list[str | pa.Array] = []
    for number, (field, child) in enumerate(zip(values.type, values.flatten(), strict=True)):
        name = _quoted(pa.array([field.name], pa.large_string()))[0].as_py()
        parts += [f"{', ' if number else '{'}{name}: ", _text(child)]
    return _if_valid(values, _concat(*parts, "}"))


def _map(values: pa.MapArray) -> pa.Array:
    whole = values.take(pa.array(np.arange(len(values))))  # its children then begin where it begins
    first, last = whole.offsets[0].as_py(), whole.offsets[-1].as_py()
    keys, items = whole.keys[first:last], whole.items[first:last]
    entries = _concat(_quoted(_as_text(keys)), ": ", _text(items))
    return _joined(whole, entries, "{", "}")


def _joined(values: pa.Array, texts: pa.Array, opening: str, closing: str) -> pa.Array:
    """The texts of all elements, joined by the list that they are of."""
    ends = np.asarray(values.offsets, np.int64)
    lengths = np.where(np.asarray(values.is_valid()), np.diff(ends), 0)
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int64())
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), pa.scalar(", ", pa.large_string()))
    return _if_valid(values, _concat(opening, joined, closing))


def _if_valid(values: pa.Array, text: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_valid(values), text, pa.scalar("null", pa.large_string())) if values.null_count else text


def _concat(*parts: str | pa.Array) -> pa.Array:
    scalars = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*scalars, pa.scalar("", pa.large_string()))
