"""The Avro container of one record."""

import io

import fastavro
import pytest

from hoodie.errors import CorruptFile
from hoodie.formats.avro.container import is_container, read_one, write_one

SCHEMA = {
    "type": "record",
    "name": "Plan",
    "namespace": "org.example",
    "fields": [
        {"name": "a", "type": "string"},
        {"name": "b", "type": ["null", "long"], "default": None},
    ],
}


def container(records, **more):
    sink = io.BytesIO()
    fastavro.writer(sink, SCHEMA | more, records)
    return sink.getvalue()


def test_a_record_reads_back():
    data = write_one(SCHEMA, {"a": "x" * 300, "b": 7})
    assert is_container(data)
    assert read_one(data, SCHEMA, "p") == {"a": "x" * 300, "b": 7}
    assert list(fastavro.reader(io.BytesIO(data))) == [{"a": "x" * 300, "b": 7}]


def test_a_record_of_another_name_is_named():
    with pytest.raises(CorruptFile, match="an Avro file of Other, expected Plan"):
        read_one(container([{"a": "x"}], name="Other"), SCHEMA, "p")


def test_an_empty_file_names_what_says_what_to_do():
    with pytest.raises(CorruptFile, match=r"p: empty.*its writer died.* `hoodie check`"):
        read_one(b"", SCHEMA, "p")


def test_equal_records_give_equal_bytes():
    assert write_one(SCHEMA, {"a": "x", "b": 7}) == write_one(SCHEMA, {"b": 7, "a": "x"})


def test_containers_of_other_writers_are_read():
    assert read_one(container([{"a": "x", "b": 7}]), SCHEMA, "p") == {"a": "x", "b": 7}


def test_missing_fields_have_their_default_and_unknown_ones_are_left_out():
    fields = [{"name": "z", "type": "long"}, {"name": "a", "type": "string"}]
    assert read_one(container([{"z": 1, "a": "x"}], fields=fields), SCHEMA, "p") == {"a": "x", "b": None}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Obj",
        b"Obj\x01",
        b"{}",
        container([]),
        container([{"a": "x"}, {"a": "y"}]),
        container([{"a": "x"}], name="Other"),
        container([{"b": 1}], fields=[{"name": "b", "type": "long"}]),
        container([{"a": 1}], fields=[{"name": "a", "type": "long"}]),
        container([{"a": "x"}])[:-1],
    ],
)
def test_anything_but_one_record_of_that_name_is_corrupt(data):
    with pytest.raises(CorruptFile, match=r"^p: "):
        read_one(data, SCHEMA, "p")
