"""Properties files: what is stored is read back, and damage is told."""

import datetime as dt

from hypothesis import example, given
from hypothesis import strategies as st

from hoodie.errors import CorruptFile
from hoodie.formats.java.properties import parse_properties, render_properties

NOW = dt.datetime(2024, 7, 7, tzinfo=dt.UTC)
TEXT = st.text(max_size=12) | st.text(" \t\n\r\f\\=:#!u0041é😀", max_size=12)


@given(st.dictionaries(TEXT, TEXT, max_size=6), TEXT)
def test_entries_survive_a_file(values: dict[str, str], comment: str) -> None:
    stored = parse_properties(render_properties(values, comment, NOW), "p")
    assert list(stored.items()) == list(values.items())


@given(st.binary(max_size=60) | st.text("\\u0041=\n\r #", max_size=40).map(str.encode))
@example(b"\\")
@example(b"\\\n")
@example(b"a=\\ud83d\\u0041")
def test_any_bytes_are_properties_or_corrupt(data: bytes) -> None:
    try:
        values = parse_properties(data, "p")
    except CorruptFile:
        return
    assert parse_properties(render_properties(values, "", NOW), "p") == values
