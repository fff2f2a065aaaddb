"""Footers and properties of the tables that real Hudi wrote, read and made again byte for byte."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from hoodie.formats.java.properties import parse_properties, render_properties, verify_checksum
from hoodie.formats.parquet.base_footer import footer_metadata, java_min_max, read_footer
from hoodie.formats.parquet.bloom import add_keys, might_contain
from hoodie.model.files import BaseFile, parse_data_file
from support.nightly import by_day
from support.oracles import fixture_names, unpack_table


@pytest.mark.parametrize("name", by_day(fixture_names(), fixture_names()[::2].__contains__))
def test_properties_and_footers_of_a_real_table_are_made_again(name: str, tmp_path: Path) -> None:
    table = unpack_table(name, tmp_path)
    stores = [table / ".hoodie" / "hoodie.properties", *table.rglob(".hoodie_partition_metadata")]
    for path in stores:
        check_properties(path)
    for path in table.rglob("*.parquet"):
        inside = path.relative_to(table).parts
        if ".hoodie" not in inside and isinstance(parse_data_file("", path.name, 1), BaseFile):
            check_footer(path)


def check_properties(path: Path) -> None:
    data = path.read_bytes()
    values = parse_properties(data, str(path))
    verify_checksum(values, str(path))
    again = render_properties(values, "x", dt.datetime.now(dt.UTC))
    assert entry_lines(again) == entry_lines(data)


def entry_lines(data: bytes) -> list[bytes]:
    return sorted(line for line in data.splitlines() if not line.startswith(b"#"))


def check_footer(path: Path) -> None:
    with path.open("rb") as file:
        footer = read_footer(file, str(path))
    filter = footer.bloom(str(path))
    if filter is None:
        return
    keys = pq.ParquetFile(path).read(["_hoodie_record_key"])["_hoodie_record_key"]
    assert footer.rows == len(keys)
    assert might_contain(filter, keys).all()
    empty = replace(filter, count=0, rows=(np.zeros_like(filter.rows[0]),))
    again = add_keys(empty, keys, max_entries=100_000)
    bounds = java_min_max(keys) or (None, None)
    stored = {key.decode(): value.decode() for key, value in pq.read_metadata(path).metadata.items()}
    assert footer_metadata(*bounds, again).items() <= stored.items()
