"""The checks of a commit before it is published: queries whose results say whether it may be."""

from dataclasses import dataclass
from enum import StrEnum

from hoodie.config.options import option
from hoodie.errors import InvalidOption

#: What stands for the table in a query.
TABLE = "<TABLE_NAME>"

_VALIDATORS = "hoodie.precommit.validators"
_EQUAL = f"{_VALIDATORS}.equality.sql.queries"
_UNEQUAL = f"{_VALIDATORS}.inequality.sql.queries"
_SINGLE = f"{_VALIDATORS}.single.value.sql.queries"


class Check(StrEnum):
    """What is asked of a query's result, by the name of Hudi's class."""

    EQUAL = "SqlQueryEqualityPreCommitValidator"  # the same before and after the commit
    UNEQUAL = "SqlQueryInequalityPreCommitValidator"  # another after the commit
    SINGLE = "SqlQuerySingleResultPreCommitValidator"  # after the commit one value, that is given


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorOptions:
    """Checks of a commit before it is published, on the rows that it would make visible. They need a Spark session."""

    names: tuple[str, ...] = option(
        _VALIDATORS,
        (),
        "Classes, by full or short name: SqlQueryEqualityPreCommitValidator, SqlQueryInequalityPreCommitValidator, "
        "SqlQuerySingleResultPreCommitValidator. A commit that fails one is rolled back (`ValidationFailed`).",
    )
    equal: str = option(
        _EQUAL,
        "",
        "Queries, separated by semicolons, whose results are to be the same before and after the commit. "
        "`<TABLE_NAME>` stands for the table.",
    )
    unequal: str = option(_UNEQUAL, "", "Queries whose results are to differ before and after the commit.")
    single: str = option(
        _SINGLE, "", "Queries with the one value that they are to give after the commit: `query#value`."
    )


@dataclass(frozen=True, slots=True)
class Validation:
    """One query, and what is asked of its result; `value` is that of Check.SINGLE."""

    check: Check
    query: str
    value: str = ""


def validations(chosen: ValidatorOptions) -> tuple[Validation, ...]:
    """The queries that a commit has to pass.

    Raises InvalidOption on a class that is not known, and on one without queries
    """
    checks: list[Validation] = []
    for name in dict.fromkeys(chosen.names):
        short = name.rpartition(".")[2]
        if short not in tuple(Check):
            raise InvalidOption(
                f"{_VALIDATORS}={name!r}: that class cannot be run here, and a commit would pass unchecked. There are "
                f"{', '.join(Check)}"
            )
        check = Check(short)
        key, text = {
            Check.EQUAL: (_EQUAL, chosen.equal),
            Check.UNEQUAL: (_UNEQUAL, chosen.unequal),
            Check.SINGLE: (_SINGLE, chosen.single),
        }[check]
        queries = [query.strip() for query in text.split(";") if query.strip()]
        if not queries:
            raise InvalidOption(f"{_VALIDATORS}={name!r} needs queries: {key}")
        checks += [_validation(check, query, key) for query in queries]
    return tuple(checks)


def _validation(check: Check, query: str, key: str) -> Validation:
    if check is not Check.SINGLE:
        return Validation(check, query)
    sql, hash_, value = query.rpartition("#")
    if not hash_ or not sql.strip():
        raise InvalidOption(f"{key}={query!r}: expected query#value, such as select count(*) from {TABLE}#0")
    return Validation(check, sql.strip(), value.strip())
