"""Of which columns a look-up by key finds the rows that SQL finds equal."""

import pyarrow as pa
import pytest

from hoodie.conditional.shape import SharedTexts, equal_values_share_a_text, shared_texts
from hoodie.keygen.keygen import KeyGenerator, Kind, PartitionField
from hoodie.schema.types import TIMESTAMP_MILLIS

TEXT, LONG = pa.string(), pa.int64()
BY_CITY = KeyGenerator(Kind.SIMPLE, ("id",), (PartitionField("city"),))
PATH = ("", "__HIVE_DEFAULT_PARTITION__")


def test_null_and_empty_text_have_one_partition_path():
    assert shared_texts(BY_CITY, {"id": LONG, "city": TEXT}, is_global=False) == {"city": SharedTexts(PATH)}
    assert shared_texts(BY_CITY, {"id": TEXT, "city": LONG}, is_global=False) == {"id": SharedTexts(("",))}
    assert shared_texts(BY_CITY, {"id": LONG, "city": TEXT}, is_global=True) == {}
    assert shared_texts(BY_CITY, {"id": LONG, "city": pa.date32()}, is_global=False) == {}


def test_parts_of_compound_keys_may_hold_what_separates_them():
    keygen = KeyGenerator(Kind.COMPLEX, ("a", "b", "n"), (PartitionField("p"), PartitionField("q")))
    found = shared_texts(keygen, {"a": TEXT, "b": TEXT, "n": LONG, "p": TEXT, "q": LONG}, is_global=False)
    key = SharedTexts(("", "__empty__", "__null__"), (",b:", ",n:"))
    assert found == {"a": key, "b": key, "p": SharedTexts(PATH, ("/",))}
    escaped = KeyGenerator(Kind.COMPLEX, ("a",), keygen.partition_fields, url_encode=True)
    assert shared_texts(escaped, {"a": LONG, "p": TEXT, "q": LONG}, is_global=False) == {"p": SharedTexts(PATH)}
    odd = KeyGenerator(Kind.COMPLEX, ("a", "b,c"))
    assert shared_texts(odd, {"a": LONG, "b,c": LONG}, is_global=False) is None


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_zero_has_two_texts(kind):
    assert not equal_values_share_a_text({"id": kind, "city": TEXT}, ("id", "city"))
    assert not equal_values_share_a_text({"id": LONG, "city": kind}, ("id", "city"))
    assert equal_values_share_a_text({"id": LONG, "city": kind}, ("id",))
    assert shared_texts(BY_CITY, {"id": kind, "city": TEXT}, is_global=False) is None


def test_times_that_are_cut_short_are_told_by_the_condition():
    types = {"id": pa.timestamp("us", "UTC"), "city": TEXT}
    assert shared_texts(BY_CITY, types, is_global=False) is not None
    for how in ({"times": (("id", TIMESTAMP_MILLIS),)}, {"consistent_timestamps": True}):
        keygen = KeyGenerator(Kind.SIMPLE, ("id",), BY_CITY.partition_fields, **how)  # type: ignore[arg-type]
        assert shared_texts(keygen, types, is_global=False) is None
        assert equal_values_share_a_text(types, ("id", "city"))


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(LONG)])
def test_of_other_types_the_look_up_tells_nothing(kind):
    assert shared_texts(BY_CITY, {"id": kind, "city": TEXT}, is_global=False) is None


def test_a_table_without_columns_has_no_row_to_find():
    assert shared_texts(BY_CITY, {}, is_global=False) == {}
    assert equal_values_share_a_text({}, ("id", "city"))
