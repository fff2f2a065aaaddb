"""Record keys computed from Arrow columns, against Hudi's (tests/vectors/keygen.json) and a real table."""

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from hoodie.formats.java.properties import parse_properties
from hoodie.index.stored_keys import record_key_arrow
from hoodie.keygen.keygen import KeyGenerator, Kind, stored_key_generator

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "keygen.json").read_text())


def simple_keys(values: pa.Array) -> list[str]:
    return record_key_arrow(pa.table({"k": values}), KeyGenerator(Kind.SIMPLE, ("k",))).to_pylist()


def arrow_value(kind: str, text: str) -> pa.Array:
    if kind in ("double", "float"):
        return pa.array([float(text)], pa.float64() if kind == "double" else pa.float32())
    if "scale -1" in kind:
        return pa.array([Decimal("1.00E+3")], pa.decimal128(5, -1))
    number = Decimal(text.split()[0])
    scale = int(text.split("scale ")[1].rstrip(")")) if "scale" in text else -int(number.as_tuple().exponent)
    return pa.array([number], pa.decimal128(20, scale))


@pytest.mark.parametrize("vector", VECTORS["to_string"], ids=lambda vector: f"{vector['type']} {vector['value']}")
def test_values_become_text_as_in_java(vector: dict[str, Any]) -> None:
    assert simple_keys(arrow_value(vector["type"], vector["value"])) == [vector["string"]]


@pytest.mark.parametrize("vector", VECTORS["record_keys"], ids=lambda vector: f"{vector['generator']} {vector['row']}")
def test_record_keys_are_those_of_hudi(vector: dict[str, Any]) -> None:
    if vector["generator"] == "global_delete":
        keygen = KeyGenerator(Kind.GLOBAL_DELETE, tuple(vector["key_fields"]))
        with pytest.raises(InvalidOption, match="GLOBAL_DELETE"):
            record_key_arrow(pa.table({"id": ["id4"]}), keygen)
        return
    kind = Kind(vector["generator"].split()[0].upper())
    keygen = KeyGenerator(kind, tuple(vector["key_fields"]), prefix_single_key="<=0.14.0" in vector["generator"])
    table = pa.table({name: pa.array([v], pa.string() if v is None else None) for name, v in vector["row"].items()})
    if vector["error"]:
        with pytest.raises(InvalidInput, match="1 of 1 rows have no record key"):
            record_key_arrow(table, keygen)
    else:
        assert record_key_arrow(table, keygen).to_pylist() == [vector["record_key"]]


def test_the_record_of_hudis_own_run_has_its_keys() -> None:
    columns = {
        "id": pa.array(["k1"]), "a": pa.array([""]), "b": pa.array([7], pa.int32()),
        "d": pa.array([datetime.date(2023, 3, 10)]), "ts": pa.array([1678451400000000], pa.timestamp("us", "UTC")),
        "tm": pa.array([1678451400123], pa.timestamp("ms", "UTC")), "dec": pa.array([Decimal("50.00")]),
        "db": pa.array([Decimal("0.0000001")], pa.decimal128(10, 7)), "bin": pa.array([b"\xca\xfe\x00"]),
        "dbl": pa.array([1e7]), "flt": pa.array([1.1], pa.float32()), "bo": pa.array([True]),
        "st": pa.array([{"x": "n"}]),
    }  # fmt: skip
    results = {result["case"]: result["result"] for result in VECTORS["class_run"]["results"]}
    found = {}
    for case in results:
        kind, _, rest = case.partition("|")
        field = rest.removesuffix("|consistent=false")
        if kind == "simple_key" and field != rest and field != "a":
            found[case] = record_key_arrow(pa.table(columns), KeyGenerator(Kind.SIMPLE, (field,)))[0].as_py()
        elif case in ("complex|id,a,b", "complex|st.x,b", "nonpart|id", "nonpart|id,b"):
            keygen = KeyGenerator(Kind.COMPLEX if kind == "complex" else Kind.NON_PARTITION, tuple(rest.split(",")))
            found[case] = record_key_arrow(pa.table(columns), keygen)[0].as_py()
    assert len(found) == 16
    assert found == {case: results[case] for case in found}


def test_floats_at_the_edges_are_those_of_java() -> None:
    doubles = [9999999.0, 1e7, 0.001, 9.99e-4, 0.0, -1.5, 1e22, 123456.789, 1e100, float("inf"), float("-inf"), 5e-324]
    assert simple_keys(pa.array(doubles)) == [
        "9999999.0", "1.0E7", "0.001", "9.99E-4", "0.0", "-1.5", "1.0E22", "123456.789", "1.0E100", "Infinity",
        "-Infinity", "4.9E-324",
    ]  # fmt: skip
    assert simple_keys(pa.array([16777216.0, 0.1, 0.001], pa.float32())) == ["1.6777216E7", "0.1", "0.001"]


def test_columns_in_chunks_and_dictionaries_keep_their_rows() -> None:
    chunked = pa.chunked_array([["a", "b"], ["c"]])
    coded = pa.array(["x", None, "x"]).dictionary_encode()
    keys = record_key_arrow(pa.table({"k": chunked, "c": coded}), KeyGenerator(Kind.COMPLEX, ("k", "c")))
    assert keys.to_pylist() == ["k:a,c:x", "k:b,c:__null__", "k:c,c:x"]
    empty = pa.table({"k": pa.chunked_array([], pa.string())})
    assert record_key_arrow(empty, KeyGenerator(Kind.SIMPLE, ("k",))).to_pylist() == []


def test_a_nested_value_below_a_null_is_null() -> None:
    nested = pa.array([None, {"x": "n"}], pa.struct([("x", pa.string())]))
    keys = record_key_arrow(pa.table({"st": nested, "b": [1, 2]}), KeyGenerator(Kind.COMPLEX, ("st.x", "b")))
    assert keys.to_pylist() == ["st.x:__null__,b:1", "st.x:n,b:2"]


def test_rows_without_a_key_are_counted() -> None:
    with pytest.raises(InvalidInput, match="2 of 4 rows have no record key, the first at 1: k must not"):
        simple_keys(pa.array(["a", None, "b", ""]))


def test_columns_that_cannot_be_keys_are_refused() -> None:
    with pytest.raises(SchemaMismatch, match="column 'k' is array"):
        simple_keys(pa.array([[1]]))
    for name in ("other", "k.x"):
        with pytest.raises(SchemaMismatch, match=f"'{name}' is missing"):
            record_key_arrow(pa.table({"k": ["a"]}), KeyGenerator(Kind.SIMPLE, (name,)))
    with pytest.raises(InvalidOption, match="zone of their writer"):
        record_key_arrow(
            pa.table({"k": pa.array([1], pa.timestamp("us"))}),
            KeyGenerator(Kind.SIMPLE, ("k",), consistent_timestamps=True),
        )


def test_keys_of_a_real_table_without_meta_columns(fixture_table: Callable[[str], Path]) -> None:
    folder = fixture_table("cow_no_meta_fields")
    keygen = stored_key_generator(parse_properties((folder / ".hoodie" / "hoodie.properties").read_bytes(), "p"))
    files = [file for file in folder.rglob("*.parquet") if ".hoodie" not in file.parts]
    assert files
    for file in files:
        rows = pq.read_table(file)
        assert not any(rows["_hoodie_record_key"].to_pylist())
        assert record_key_arrow(rows, keygen).to_pylist() == rows["id"].to_pylist()
