"""Arrow strings as Java sees them: their bytes, the order in which it compares them, hash codes of strings and lists.

Source: docs/format/indexing-and-write-path.md 4; pinned by tests/vectors/bucket_index.json.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.errors import InvalidInput

_Hashes = npt.NDArray[np.int32]
_UInts = npt.NDArray[np.uint32]


def string_hashes(keys: pa.Array) -> _Hashes:
    """`String.hashCode`: h = 31 * h + unit over the UTF-16 units, in 32 bits.

    keys     string[n], no nulls
    returns  int32[n]
    """
    text, bounds = raw_strings(keys)
    first = bounds[0] if len(bounds) else 0
    text, bounds = text[first : bounds[-1]], bounds - first
    if not len(text) or not (text & 0x80).any():
        return _polynomials(text.astype(np.uint32), bounds)
    # Bytes that begin a character; those of four bytes are two units.
    units = ((text & 0xC0) != 0x80).astype(np.int64) + (text >= 0xF0)
    before = np.concatenate([[0], np.cumsum(units)])
    utf16 = np.frombuffer(text.tobytes().decode("utf-8", "surrogatepass").encode("utf-16-le", "surrogatepass"), "<u2")
    return _polynomials(utf16.astype(np.uint32), before[bounds])


def list_hashes(elements: _Hashes, bounds: npt.NDArray[np.int64]) -> _Hashes:
    """`List.hashCode`: h = 1, then h = 31 * h + element hash.

    elements  int32[e], hashes of the elements of all lists; a null's is 0
    bounds    int64[n + 1], where each list begins and ends
    """
    lengths = np.diff(bounds)
    powers = _powers(int(lengths.max(initial=0)) + 1)
    return (_polynomials(elements.view(np.uint32), bounds).view(np.uint32) + powers[lengths]).view(np.int32)


def _polynomials(values: _UInts, bounds: npt.NDArray[np.int64]) -> _Hashes:
    """Per stretch the sum of value i times 31 to the power of the number of values after it, modulo 2**32."""
    lengths = np.diff(bounds)
    sums = np.zeros(len(lengths), np.uint32)
    filled = np.flatnonzero(lengths)
    if len(filled):
        after = np.repeat(bounds[1:], lengths) - 1 - np.arange(bounds[0], bounds[-1])
        weighted = values[bounds[0] : bounds[-1]] * _powers(int(lengths.max()))[after]
        sums[filled] = np.add.reduceat(weighted, bounds[:-1][filled] - bounds[0], dtype=np.uint32)
    return sums.view(np.int32)


def _powers(count: int) -> _UInts:
    powers: _UInts = np.multiply.accumulate(
        np.concatenate([[1], np.full(count, 31)]).astype(np.uint32), dtype=np.uint32
    )
    return powers


Bytes = npt.NDArray[np.uint8]

# UTF-8 sorts by code point, Java by UTF-16 unit. The two differ for U+10000 and above (lead bytes F0-F4, in UTF-16
# surrogates D800-DFFF) against U+E000-U+FFFF (lead bytes EE, EF): swapping the two groups of lead bytes makes byte
# order equal Java's. No byte from EE on is ever a continuation byte, so a table over bytes does it.
_JAVA_RANK = np.arange(256, dtype=np.uint8)
_JAVA_RANK[0xF0:0xF5] = np.arange(0xEE, 0xF3)
_JAVA_RANK[0xEE:0xF0] = (0xF3, 0xF4)
_PRIVATE_AND_UP = 0xEE  # lead byte of U+E000
_SUPPLEMENTARY = 0xF0  # lead byte of U+10000


def chunks_of(keys: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The non-empty chunks of a column of strings, each string or large_string.

    Raises InvalidInput on a null or on a column that is not text.
    """
    if keys.null_count:
        raise InvalidInput(f"{keys.null_count} of {len(keys)} record keys are null")
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)):
        try:
            keys = keys.cast(pa.large_string())
        except pa.ArrowInvalid as problem:
            raise InvalidInput(f"record keys of type {keys.type} are not text: {problem}") from problem
        except pa.ArrowNotImplementedError as problem:
            raise InvalidInput(f"record keys of type {keys.type} are not text") from problem
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    return [chunk for chunk in chunks if len(chunk)]


def raw_strings(chunk: pa.Array) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """The buffers of a string or large_string array without nulls: uint8[...] UTF-8 and int64[n + 1] offsets into it.

    No copy of the text; offsets do not start at 0 for a slice.
    """
    if not len(chunk):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    wide = pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type)
    _, offsets, data = chunk.buffers()
    bounds = np.frombuffer(offsets, np.int64 if wide else np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    text.flags.writeable = False  # Arrow owns it
    return text, bounds.astype(np.int64, copy=False)


def java_order(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Binary values whose byte order is the order of Java's `String.compareTo` (UTF-16 code units) on the keys.

    keys     string[n], no nulls
    returns  large_binary[n], aligned with keys; `from_java_order` gives the text back
    """
    return _translated(keys, _JAVA_RANK)


def from_java_order(value: bytes) -> str:
    """The string that `java_order` made these bytes of."""
    inverse = np.argsort(_JAVA_RANK).astype(np.uint8)
    return inverse[np.frombuffer(value, np.uint8)].tobytes().decode("utf-8")


def utf8_order(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Binary values whose byte order is the order of code points: large_binary[n], aligned with keys."""
    return _translated(keys, None)


def highest_groups(keys: pa.Array | pa.ChunkedArray) -> tuple[bool, bool]:
    """Whether the keys hold a character of U+E000-U+FFFF, and one above: Java's order differs from that of code
    points only where both occur."""
    private = supplementary = False
    for chunk in chunks_of(keys):
        data, offsets = raw_strings(chunk)
        text = data[offsets[0] : offsets[-1]]
        if text.size and int(text.max()) >= _PRIVATE_AND_UP:
            supplementary = supplementary or bool((text >= _SUPPLEMENTARY).any())
            private = private or bool(((text >= _PRIVATE_AND_UP) & (text < _SUPPLEMENTARY)).any())
    return private, supplementary


def _translated(keys: pa.Array | pa.ChunkedArray, table: Bytes | None) -> pa.Array:
    chunks = []
    for chunk in chunks_of(keys):
        data, offsets = raw_strings(chunk)
        text = data[offsets[0] : offsets[-1]]
        if table is not None and text.size and int(text.max()) >= _PRIVATE_AND_UP:
            text = table[text]
        buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(text)]
        chunks.append(pa.Array.from_buffers(pa.large_binary(), len(chunk), buffers))
    if not chunks:
        return pa.array([], pa.large_binary())
    return pa.concat_arrays(chunks) if len(chunks) > 1 else chunks[0]
