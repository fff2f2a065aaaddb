"""Columns that a batch lacks: how they are named, and when a batch is refused for them."""

import pyarrow as pa
import pytest

from hoodie.config.options import Options
from hoodie.config.write import MissingColumnOptions, MissingColumns, missing_options
from hoodie.errors import InvalidInput, InvalidOption, SchemaMismatch
from hoodie.schema.schema import NO_DIFFERENCE, ColumnDifference, column_difference, reconcile, refusal

LONG = pa.int64()
TABLE = pa.schema([("id", pa.string()), ("fare", pa.float64()), ("tip", pa.float64())])


def difference(missing: list[str], new: list[str]) -> ColumnDifference:
    return ColumnDifference(tuple(missing), tuple(new))


def test_missing_and_new_columns_are_found_by_name_in_any_order() -> None:
    batch = pa.schema([("tips", LONG), ("fare", pa.float64()), ("id", pa.string())])
    assert column_difference(TABLE, batch) == difference(["tip"], ["tips"])
    assert column_difference(TABLE, pa.schema(list(reversed(TABLE)))) == NO_DIFFERENCE


def test_a_name_in_another_case_is_neither_missing_nor_new() -> None:
    assert column_difference(TABLE, pa.schema([("ID", LONG), ("Fare", LONG), ("tip", LONG)])) == NO_DIFFERENCE


def test_the_flag_of_deletes_is_never_missing() -> None:
    flagged = pa.schema([*TABLE, ("_hoodie_is_deleted", pa.bool_())])
    assert column_difference(flagged, TABLE) == NO_DIFFERENCE
    assert column_difference(TABLE, flagged) == difference([], ["_hoodie_is_deleted"])


def test_nested_fields_count_also_within_lists_and_maps() -> None:
    whole = pa.struct([("x", LONG), ("y", pa.struct([("z", LONG)]))])
    part = pa.struct([("y", pa.struct([("w", LONG)]))])

    def columns(kind: pa.DataType) -> pa.Schema:
        return pa.schema([("s", kind), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])

    found = column_difference(columns(whole), columns(part))
    within = ("l.element.x", "l.element.y.z", "m.value.x", "m.value.y.z")
    assert found.missing == ("s.x", "s.y.z", *within)
    assert found.new == ("s.y.w", "l.element.y.w", "m.value.y.w")
    assert found.within == within
    assert column_difference(pa.schema([("s", LONG)]), pa.schema([("s", whole)])) == NO_DIFFERENCE  # its type differs


@pytest.mark.parametrize(
    ("missing", "new", "text"),
    [
        ([], [], ""),
        (["fare"], [], "column 'fare' is missing."),
        ([], ["fares"], "column 'fares' is new."),
        (["fare"], ["fares"], "column 'fare' is missing and 'fares' is new. Did you mean 'fare'?"),
        (["fare"], ["FARES"], "column 'fare' is missing and 'FARES' is new. Did you mean 'fare'?"),
        (["fare", "tip"], ["note"], "columns 'fare', 'tip' are missing and 'note' is new."),
        (["tip"], ["no", "tips"], "column 'tip' is missing and 'no', 'tips' are new. Did you mean 'tip' by 'tips'?"),
        (["s.fare"], ["s.fares"], "column 's.fare' is missing and 's.fares' is new. Did you mean 's.fare'?"),
        (["s.fare"], ["fares"], "column 's.fare' is missing and 'fares' is new."),
    ],
)  # fmt: skip
def test_all_are_named_and_a_close_name_is_suggested(missing: list[str], new: list[str], text: str) -> None:
    assert str(difference(missing, new)) == text


def test_a_refused_batch_is_told_the_three_ways_to_go_on() -> None:
    message = refusal(difference(["fare"], ["fares"]), MissingColumns.REFUSE, "upsert", keeps=True)
    assert message.startswith("column 'fare' is missing and 'fares' is new. Did you mean 'fare'? ")
    for way in (
        "Give the batch all columns",
        "hoodie.write.set.null.for.missing.columns=true",
        'upsert with missing="keep"',
    ):
        assert way in message


def test_all_that_is_wrong_with_a_batch_is_in_one_message() -> None:
    strict = pa.schema([*TABLE, pa.field("n", LONG, nullable=False)])
    batch = pa.schema([("id", pa.string()), ("fare", pa.bool_())])
    columns = column_difference(strict, batch)
    why = refusal(columns, MissingColumns.REFUSE, "upsert", keeps=True)
    with pytest.raises(SchemaMismatch) as refused:
        reconcile(strict, batch, optional=columns.missing, refusal=why)
    assert str(refused.value) == (
        "The batch does not fit the table's schema; nothing was written: column fare is double in the table and "
        f"boolean in the batch: cast it to double; {why}."
    )


def test_kept_columns_may_be_missing_though_they_take_no_nulls() -> None:
    strict = pa.schema([*TABLE, pa.field("n", LONG, nullable=False)])
    assert reconcile(strict, TABLE, optional=["n"]) == strict
    with pytest.raises(SchemaMismatch, match="column n is missing in the batch and takes no nulls"):
        reconcile(strict, TABLE)


def test_new_columns_alone_are_never_refused() -> None:
    for policy in MissingColumns:
        assert refusal(difference([], ["note"]), policy, "insert", keeps=False) == ""


def test_values_can_be_kept_only_of_rows_that_are_replaced_by_key_and_not_within_lists() -> None:
    columns, keep = difference(["fare"], []), MissingColumns.KEEP
    assert refusal(columns, keep, "upsert", keeps=True) == ""
    assert "insert replaces none of them by key: upsert" in refusal(columns, keep, "insert", keeps=False)
    within = ColumnDifference(("l.element.x",), (), ("l.element.x",))
    assert "cannot keep 'l.element.x'" in refusal(within, keep, "upsert", keeps=True)
    assert refusal(columns, MissingColumns.NULL, "insert", keeps=False) == ""


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ({}, MissingColumns.REFUSE),
        ({"hoodie.write.set.null.for.missing.columns": "true"}, MissingColumns.NULL),
        ({"hoodie.datasource.write.reconcile.schema": "true"}, MissingColumns.NULL),
        ({"hoodie.write.missing.columns": "keep"}, MissingColumns.KEEP),
        ({"hoodie.write.missing.columns": "null"}, MissingColumns.NULL),
        (
            {"hoodie.write.missing.columns": "keep", "hoodie.write.set.null.for.missing.columns": "true"},
            MissingColumns.KEEP,
        ),
    ],
)
def test_options_of_hudi_and_our_own_say_what_becomes_of_missing_columns(
    options: dict[str, str], policy: MissingColumns
) -> None:
    assert Options(options).read(MissingColumnOptions).policy is policy


@pytest.mark.parametrize("word", MissingColumns)
def test_the_argument_of_a_call_goes_before_all_options(word: MissingColumns) -> None:
    others = {
        "hoodie.write.missing.columns": "null",
        "hoodie.write.set.null.for.missing.columns": "true",
        "hoodie.datasource.write.reconcile.schema": "true",
    }
    assert Options({**others, **missing_options(word.value)}).read(MissingColumnOptions).policy is word


def test_another_word_is_refused() -> None:
    assert missing_options(None) == {}
    with pytest.raises(InvalidInput, match="missing='drop': expected one of 'refuse', 'null', 'keep'"):
        missing_options("drop")
    with pytest.raises(InvalidOption, match=r"hoodie\.write\.missing\.columns='drop'"):
        Options({"hoodie.write.missing.columns": "drop"}).read(MissingColumnOptions)
