"""Statements taken apart: slices of the text, and the place of what cannot be read."""

import pytest

from hoodie.conditional.clauses import Act, When
from hoodie.errors import StatementError
from hoodie.statements.create_text import Create, read_create
from hoodie.statements.cutting import Name, Text, single_statement
from hoodie.statements.dml_text import Delete, Insert, Merge, Update, dml, with_selected_nulls
from hoodie.statements.functions import function_calls
from hoodie.statements.moments import moment_expression


def read(text):
    return dml(single_statement(text))


def test_an_update_is_its_table_its_values_and_its_condition():
    found = read("UPDATE hudi.`/tmp/a b` AS x SET x.a = CASE WHEN b THEN 1 END, c = 'O''x, y' WHERE d IN (SELECT 1) ;")
    assert found == Update(
        Name(("hudi", "/tmp/a b"), "x"),
        {"x.a": "CASE WHEN b THEN 1 END", "c": "'O''x, y'"},
        "d IN (SELECT 1)",
    )


def test_what_is_quoted_is_no_punctuation_and_no_keyword():
    assert read("UPDATE t SET a = ';', b = ',' || r'WHERE', `set` = X'2C' WHERE c <> ')' AND d = \"SET\";") == Update(
        Name(("t",), "t"),
        {"a": "';'", "b": "',' || r'WHERE'", "set": "X'2C'"},
        "c <> ')' AND d = \"SET\"",
    )
    assert read("DELETE FROM t WHERE a = ';'") == Delete(Name(("t",), "t"), "a = ';'")


def test_a_type_of_a_column_has_commas_and_keywords_in_its_brackets():
    columns = "m map<string,array<int>>, s struct<a: int COMMENT 'c', first: struct<b: decimal(4,1)>> AFTER m, n int"
    m, s, n = single_statement(columns).of_types().split()
    assert (str(m), str(n)) == ("m map<string,array<int>>", "n int")
    assert str(s.before(s.find("COMMENT", "FIRST", "AFTER"))) == (
        "s struct<a: int COMMENT 'c', first: struct<b: decimal(4,1)>>"
    )


def test_the_type_of_a_cast_has_commas_in_its_brackets():
    values = {
        "m": "x::map<string, array<int>>",
        "s": "(y)::struct<a: int, b: decimal(4, 1)>",
        "n": "a < 2",
        "o": "b > 1",
    }
    text = ", ".join(f"{name} = {value}" for name, value in values.items())
    assert read(f"UPDATE t SET {text} WHERE a::array<int> > b") == Update(
        Name(("t",), "t"), values, "a::array<int> > b"
    )
    insert = read(
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, m) VALUES (s.id, x::map<int, int>)"
    )
    assert insert.clauses[0].values == {"id": "s.id", "m": "x::map<int, int>"}


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("SELECT 1, DEFAULT", "SELECT 1, NULL"),
        ("SELECT DISTINCT default, a FROM t WHERE b = DEFAULT", "SELECT DISTINCT NULL, a FROM t WHERE b = DEFAULT"),
        ("SELECT f(DEFAULT), 'DEFAULT', `default` FROM t", None),
        ("VALUES (1, DEFAULT)", None),
    ],
)
def test_a_default_that_a_query_selects_is_null(query, plain):
    assert with_selected_nulls(query) == plain


def test_a_column_may_be_called_end():
    assert read("UPDATE t SET end = CASE WHEN end > 1 THEN t.end END, b = 1 WHERE end < 3") == Update(
        Name(("t",), "t"), {"end": "CASE WHEN end > 1 THEN t.end END", "b": "1"}, "end < 3"
    )


def test_a_name_behind_a_dot_is_no_keyword():
    merge = read(
        """MERGE INTO db.set t USING db.on s ON t.on = s.when AND s.using > 1
        WHEN MATCHED AND s.then > t.when THEN UPDATE SET t.when = s.when, n = s.where"""
    )
    assert isinstance(merge, Merge)
    assert (merge.table.parts, merge.source, merge.condition) == (
        ("db", "set"),
        "db.on s",
        "t.on = s.when AND s.using > 1",
    )
    (clause,) = merge.clauses
    assert (clause.condition, clause.values) == ("s.then > t.when", {"t.when": "s.when", "n": "s.where"})
    update = read("UPDATE t SET n = t.where + 1 WHERE t.where > 1")
    assert isinstance(update, Update)
    assert (update.values, update.where) == ({"n": "t.where + 1"}, "t.where > 1")
    assert read("DELETE FROM db.where AS t WHERE t.where = 1") == Delete(Name(("db", "where"), "t"), "t.where = 1")


def test_deletes_and_inserts():
    assert read("delete from db.t") == Delete(Name(("db", "t"), "t"), None)
    assert read("INSERT INTO t (a, `b c`) VALUES (1, 2)") == Insert(
        Name(("t",), "t"), "VALUES (1, 2)", columns=("a", "b c")
    )
    assert read("INSERT OVERWRITE TABLE t PARTITION (d = 'x', h) SELECT 1") == Insert(
        Name(("t",), "t"), "SELECT 1", overwrite=True, partition={"d": "'x'", "h": None}
    )
    assert read("INSERT INTO t BY NAME (SELECT 1 AS a)") == Insert(Name(("t",), "t"), "(SELECT 1 AS a)", by_name=True)
    assert read("WITH q AS (SELECT 1) SELECT * FROM q") is None
    assert read("SELECT 1") is None


def test_a_with_before_an_update_or_delete_is_that_of_its_subqueries():
    with_ = "WITH q AS (SELECT 1 AS a) -- a note"
    assert read(
        f"{with_}\nDELETE FROM t WHERE a IN (SELECT a FROM q WHERE a = (SELECT 2)) AND b = '(SELECT'"
    ) == Delete(Name(("t",), "t"), f"a IN ({with_}\nSELECT a FROM q WHERE a = ({with_}\nSELECT 2)) AND b = '(SELECT'")
    assert read(f"{with_}\nUPDATE t SET c = (SELECT max(a) FROM q) WHERE b = 1") == Update(
        Name(("t",), "t"), {"c": f"({with_}\nSELECT max(a) FROM q)"}, "b = 1"
    )


def test_calls_for_a_tables_changes_are_found_where_they_stand():
    text = (
        "SELECT `hudi_table_changes` FROM hudi_table_changes('db.t', 'cdc', 'earliest') c, "
        "HUDI_TABLE_CHANGES('/a b', 'latest_state', 20240101000000000, '2024-02-01')"
    )
    first, second = function_calls(single_statement(text))
    assert (first.table, first.arguments) == ("db.t", ["cdc", "earliest"])
    assert text[first.start : first.stop] == "hudi_table_changes('db.t', 'cdc', 'earliest')"
    assert (second.table, second.arguments) == ("/a b", ["latest_state", "20240101000000000", "2024-02-01"])
    assert text[second.start : second.stop].startswith("HUDI_TABLE_CHANGES(")
    assert second.stop == len(text)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("t TIMESTAMP AS OF '2024-01-31' AS x", "'2024-01-31'"),
        ("t TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY x", "current_timestamp() - INTERVAL 1 DAY"),
        ("t VERSION AS OF 20240101 WHERE a", "20240101"),
        ("t FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-31' JOIN u", "TIMESTAMP '2024-01-31'"),
        ("t TIMESTAMP AS OF date_sub(current_date(), 1) + INTERVAL '3' HOUR, u", None),
        ("t TIMESTAMP AS OF now() - INTERVAL '1 day' x", "now() - INTERVAL '1 day'"),
        ("t TIMESTAMP AS OF now() - INTERVAL 1 DAY 2 HOURS -3 MINUTES x", "now() - INTERVAL 1 DAY 2 HOURS -3 MINUTES"),
        ("t TIMESTAMP AS OF now() - INTERVAL 1 DAY - INTERVAL 2 HOURS x", "now() - INTERVAL 1 DAY - INTERVAL 2 HOURS"),
        ("t TIMESTAMP AS OF (SELECT max(a) FROM u) x", "(SELECT max(a) FROM u)"),
        ("t TIMESTAMP AS OF current_date x", "current_date"),
        ("t x", ""),
    ],
)
def test_the_expression_of_a_time_ends_before_what_follows_it(text, expression):
    whole = single_statement(text)
    moment = moment_expression(whole, 1)
    expected = "date_sub(current_date(), 1) + INTERVAL '3' HOUR" if expression is None else expression
    assert ("" if moment is None else str(moment)) == expected


@pytest.mark.parametrize(
    "arguments",
    ["'t', 'cdc'", "'t', 'all', 'earliest'", "t, 'cdc', 'earliest'", "'t', 'cdc', 'earliest', '2', 'x/*'", ""],
)
def test_a_call_for_changes_that_cannot_be_read_is_refused_with_its_place(arguments):
    with pytest.raises(StatementError, match="line 1, column"):
        list(function_calls(single_statement(f"SELECT * FROM hudi_table_changes({arguments})")))


def test_the_words_of_a_call_are_read_in_any_case():
    (call,) = function_calls(single_statement("SELECT * FROM HUDI_TABLE_CHANGES('db.T', 'CDC', 'earliest')"))
    assert (call.table, call.arguments) == ("db.T", ["cdc", "earliest"])


def test_a_merge_is_cut_at_its_clauses():
    found = read(
        """WITH q AS (SELECT 1) -- a note
        MERGE INTO t AS x USING (SELECT * FROM q) AS s ON x.id = s.id AND CASE WHEN x.a THEN true END
        WHEN MATCHED AND s.op = 'WHEN' THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED BY TARGET AND s.n > 1 THEN INSERT (id, n) VALUES (s.id, f(1, s.n))
        WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = x.n - 1"""
    )
    assert isinstance(found, Merge)
    assert (found.table.alias, found.source_name, found.source) == ("x", "s", "(SELECT * FROM q) AS s")
    assert found.condition == "x.id = s.id AND CASE WHEN x.a THEN true END"
    assert [(clause.when, clause.act, clause.condition, clause.values) for clause in found.clauses] == [
        (When.MATCHED, Act.DELETE, "s.op = 'WHEN'", None),
        (When.MATCHED, Act.UPDATE, None, None),
        (When.NOT_MATCHED, Act.INSERT, "s.n > 1", {"id": "s.id", "n": "f(1, s.n)"}),
        (When.NOT_MATCHED, Act.INSERT, None, None),
        (When.BY_SOURCE, Act.UPDATE, None, {"n": "x.n - 1"}),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("UPDATE t SET a 1", "line 1, column 14"),
        ("UPDATE t\nSET a = 1, a = 2", "line 2, column 12"),
        ("DELETE t", "line 1, column 8"),
        ("INSERT INTO t PARTITION (p = 1, P = 2) SELECT 3", "line 1, column 33"),
        ("MERGE INTO t USNG s ON a WHEN MATCHED THEN DELETE", "line 1, column 1"),
        ("MERGE INTO t USING s ON a = b\nWHEN MATCHED THEN INSERT *", "line 2, column 19"),
        ("MERGE INTO t USING s ON a = b WHEN MATCHED DELETE", "column 36"),
        ("MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", "2 columns and 1 values"),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON a = b WHEN MATCHED THEN DELETE", "line 1, column 7"),
        ("SELECT 1; SELECT 2", "line 1, column 11"),
        ("UPDATE t SET a = 'x", "cannot be read"),
        (" ; ", "no statement"),
    ],
)
def test_the_place_of_what_cannot_be_read_is_named(text, place):
    with pytest.raises(StatementError, match=place):
        read(text)


def created(clauses: str) -> Create:
    return read_create(Text.of(f"CREATE TABLE t USING hudi {clauses}"), Name(("t",), "t"), 3)


@pytest.mark.parametrize(
    ("clause", "problem"),
    [
        ("CLUSTERED BY (id) INTO 4 BUCKETS", r"CLUSTERED BY \(id\) INTO 4 BUCKETS would have no effect.*'BUCKET'"),
        ("CLUSTER BY (id)", r"CLUSTER BY \(id\) would have no effect"),
        ("SKEWED BY (id) ON (1)", "expected no other clauses than USING"),
        ("ROW FORMAT DELIMITED", "ROW FORMAT DELIMITED would have no effect: expected USING"),
        ("STORED AS PARQUET", "STORED AS PARQUET would have no effect: expected USING"),
        ("STORED AS INPUTFORMAT 'a' OUTPUTFORMAT 'b'", "STORED AS INPUTFORMAT 'a' .* would have no effect"),
        ("LOCATION '/a' COMMENT 'c' LOCATION '/b'", "LOCATION '/b' is the second clause of its kind"),
    ],
)
def test_clauses_of_create_table_without_an_effect_are_refused(clause: str, problem: str) -> None:
    with pytest.raises(StatementError, match=problem):
        created(f"{clause} TBLPROPERTIES (primaryKey = 'id')")


def test_values_of_properties_are_literals() -> None:
    properties = "TBLPROPERTIES ('a' = -1, b = 1.5, c.d = TRUE, f = r'g', `e` = 'it\\'s') LOCATION '/t' COMMENT 'text'"
    read = created(properties)
    assert read.options == {"a": "-1", "b": "1.5", "c.d": "true", "f": "g", "e": "it's"}
    assert (read.location, read.comment) == ("/t", "text")
    doubled = created("TBLPROPERTIES ('a''b' = 'it''s', c = \"d''e\"\"f\") LOCATION '/it''s' COMMENT '''x'''")
    assert doubled.options == {"a'b": "it's", "c": "d''e\"f"}
    assert (doubled.location, doubled.comment) == ("/it's", "'x'")
    for clause in ("TBLPROPERTIES ('a' = 'b' 'c')", "LOCATION '/b' 'c'", "COMMENT 'b' 'c'", "TBLPROPERTIES (a = NULL)"):
        with pytest.raises(StatementError, match="expected one literal"):
            created(clause)
